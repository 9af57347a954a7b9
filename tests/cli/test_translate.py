"""Text in, translations out, one line for each line, and pictures where they were asked for."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from regard.pictures.records import Record


@pytest.fixture
def translate(regard: Any, reversal_run: Any) -> Any:
    def call(*arguments: object, **own: Any) -> Any:
        return regard("translate", "--model", reversal_run.run, *arguments, **own)

    return call


@pytest.fixture
def refuse(refused: Any, reversal_run: Any) -> Any:
    def call(*arguments: object, **own: Any) -> str:
        line: str = refused("translate", "--model", reversal_run.run, *arguments, **own)
        return line

    return call


def test_a_text_gives_its_translation_its_words_and_a_picture(translate: Any) -> None:
    result = translate("a b c")
    assert result.code == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[:3] == ["c b a", "c b a", ""]
    assert len(lines) > 6
    assert "\x1b" not in result.out  # no colour in a pipe


def test_plain_gives_the_translation_alone(translate: Any) -> None:
    assert translate("a b", "c d", "--plain").out == "b a\nd c\n"


def test_a_blank_text_gives_a_blank_line(translate: Any) -> None:
    assert translate("", "--plain").out == "\n"
    assert translate(" ").code == 0


INPUTS = {
    "lines": (b"a b\nc d\n", ["b a", "d c"]),
    "no end": (b"a b\nc d", ["b a", "d c"]),
    "empty lines": (b"\na b\n\n \n", ["", "b a", "", ""]),
    "nothing": (b"", []),
    "mark": (b"\xef\xbb\xbfa b\n", ["b a"]),
    "windows": (b"a b\r\nc d\r\n", ["b a", "d c"]),
    "line separator": ("a b\u2028\nc\x85d\n".encode(), [None, None]),
    "form feed": (b"a\x0cb\n\x0b\n", [None, None]),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("way", ["file", "stdin", "dash", "file dash"])
def test_d4_as_many_lines_out_as_in(name: str, way: str, translate: Any, tmp_path: Path) -> None:
    """Rows D1, D3, D4 and D6, from a file and from standard input."""
    data, expected = INPUTS[name]
    (tmp_path / "input").write_bytes(data)
    ways = {"file": ["--file", tmp_path / "input"], "dash": ["-"], "file dash": ["--file", "-"]}
    result = translate(*ways.get(way, []), stdin=data if way != "file" else b"")
    assert result.code == 0
    lines = result.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(expected)
    for line, wanted in zip(lines, expected, strict=True):
        assert wanted is None or line == wanted


def test_more_lines_than_are_translated_at_once(
    translate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.cli.translate._AT_ONCE", 3)
    data = b"".join(b"a b\n" if i % 2 else b"c d\n" for i in range(8))
    assert translate(stdin=data).out == "d c\nb a\n" * 4


def test_json_is_one_object_a_line(translate: Any) -> None:
    result = translate("--json", "--nbest", "2", stdin=b"a b\n\n<eos>\n")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["source"] for row in rows] == ["a b", "", "<eos>"]
    first, blank, _ = rows
    assert first["translation"] == "b a"
    assert first["tokens"] == ["b", "a"]
    assert len(first["alternatives"]) == 1
    assert first["alternatives"][0]["score"] <= first["score"] < 0
    assert first["record"]["schema_version"] == 1
    assert Record.from_json(json.dumps(first["record"])).strongest(1)[0][0][0] == 1
    assert (blank["translation"], blank["alternatives"]) == ("", [])
    assert not first["truncated"]


def test_d11_half_a_character_is_written_as_valid_json(translate: Any) -> None:
    result = translate("\ud800 a\u2028b", "--json")
    assert result.code == 0
    result.out.encode("utf-8")
    assert json.loads(result.out)["source"] == "\ufffd a\u2028b"
    assert len(result.out.splitlines()) == 1


def test_nbest_gives_scores_and_translations(translate: Any) -> None:
    lines = translate("a b c", "--nbest", "4", "--plain").out.splitlines()
    assert len(lines) == 4
    scores = []
    for line in lines:
        score, _, text = line.partition("\t")
        assert re.fullmatch(r"-?\d+\.\d{4}", score)
        assert text
        scores.append(float(score))
    assert scores == sorted(scores, reverse=True)
    assert lines[0].endswith("\tc b a")


def test_nbest_above_the_beam_is_refused(refuse: Any) -> None:
    assert "translate: nbest must be from 1 to 2; got 3." in refuse(
        "a", "--beam", "2", "--nbest", "3"
    )


def test_d7_a_long_line_is_cut_with_a_warning(translate: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = translate("a " * 40, "--plain")
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert result.err == (
        "regard: warning: inputs are read up to 12 tokens; 1 of 1 are longer and were cut\n"
    )


@pytest.mark.parametrize("columns", ["1", "20", "40", "200"])
def test_c4_a_narrow_terminal(
    columns: str, translate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = translate("a b c d e f").out.splitlines()[3:]
    assert lines
    assert max(map(len, lines)) <= max(int(columns), 20) + 2  # two marks take no room


@pytest.mark.parametrize(("name", "colour"), [("NO_COLOR", False), ("FORCE_COLOR", True)])
def test_c4_colour_as_asked(
    name: str, colour: bool, translate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert ("\x1b[" in translate("a b").out) is colour


@pytest.mark.parametrize("ending", ["svg", "html", "json", "SVG"])
def test_a_picture_is_saved(ending: str, translate: Any, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{ending}"
    assert translate("a b c", "--picture", path).code == 0
    beginning = {"svg": "<svg", "html": "<!doctype html>", "json": "{"}[ending.lower()]
    assert path.read_text(encoding="utf-8").startswith(beginning)


def test_several_texts_give_numbered_pictures(translate: Any, tmp_path: Path) -> None:
    result = translate("a b", "", "c", "--plain", "--picture", tmp_path / "p.svg")
    assert result.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p-1.svg", "p-2.svg", "p-3.svg"]


def test_c5_an_output_is_not_replaced_unasked(translate: Any, refuse: Any, tmp_path: Path) -> None:
    """And nothing is translated in vain: the refusal comes first."""
    for name in ("p.svg", "q-2.svg"):
        (tmp_path / name).write_text("mine")
    assert "exists already" in refuse("a b", "--picture", tmp_path / "p.svg")
    assert "q-2.svg: exists already" in refuse("a", "b", "--picture", tmp_path / "q.svg")
    assert (tmp_path / "p.svg").read_text() == "mine"
    assert translate("a b", "--picture", tmp_path / "p.svg", "--force").code == 0
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    assert not list(tmp_path.glob(".*"))


def test_c5_wrong_places_for_an_output(refuse: Any, tmp_path: Path) -> None:
    (tmp_path / "d.svg").mkdir()
    assert "its folder does not exist" in refuse("a", "--picture", tmp_path / "no" / "p.svg")
    assert "is a folder" in refuse("a", "--picture", tmp_path / "d.svg")
    assert "must end in .svg, .html, .json, .png; got 'p.gif'" in refuse("a", "--picture", "p.gif")
    assert "must end in" in refuse("a", "--picture", tmp_path / "p")


def test_c5_an_output_is_not_the_input(refuse: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("a b\n")
    (tmp_path / "link.json").symlink_to(path)
    for name in ("x.json", "link.json"):
        line = refuse("--file", path, "--picture", tmp_path / name, "--force")
        assert "is the input too; choose another name" in line
    assert path.read_text() == "a b\n"


def test_c2_what_is_no_file_of_text(refuse: Any, tmp_path: Path) -> None:
    """A missing file, a folder, a pipe, a device: none is waited for, none is read for ever."""
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be read: No such file" in refuse("--file", tmp_path / "missing")
    assert "must be a file; it is a folder" in refuse("--file", tmp_path)
    assert "must be a file; it is a pipe" in refuse("--file", tmp_path / "pipe")
    assert "must be a file; it is a device" in refuse("--file", "/dev/zero")
    assert "/dev/zero: must be a folder" in refuse("a", "--model", "/dev/zero")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a b\n".encode("utf-16"), "byte order mark of UTF-16"),
        (b"a b\nc \xe9\n", ":2: text must be utf-8; got a byte that is not, b'\\xe9' at byte 6"),
        (b"a\0b\n", ":1: text must hold no NUL character"),
    ],
)
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_d2_another_encoding_is_refused(
    data: bytes, message: str, way: str, refuse: Any, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(data)
    line = refuse(*(["--file", tmp_path / "x"] if way == "file" else []), stdin=data)
    assert message in line
    assert line.startswith(str(tmp_path / "x") if way == "file" else "standard input:")


def test_an_encoding_that_is_named_is_read(translate: Any, refuse: Any) -> None:
    data = "a b\n".encode("utf-16")
    assert translate("--encoding", "utf-16", stdin=data).out == "b a\n"
    assert "encoding must be one that Python knows" in refuse("--encoding", "utf-99", stdin=b"a")


def test_d7_standard_input_that_never_ends_is_given_up(
    refused: Any, reversal_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.cli.common._LARGEST_INPUT", 1 << 20)
    line = refused("translate", "--model", reversal_run.run, stdin=b"a\n" * (1 << 20))
    assert line == "standard input: must have at most 1 MiB; it has more. Split it, or use --file."


def test_texts_and_a_file_are_not_both_taken(refuse: Any, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a")
    for texts in (["a"], ["-"]):
        assert "takes texts or --file, not both" in refuse(*texts, "--file", tmp_path / "x")


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_not_waited_for_unasked(refused: Any, translate: Any) -> None:
    line = refused("translate", stdin=Terminal(b"a b\n"))
    assert line == 'translate: needs a text; try: regard translate "Tom chases Jerry"'
    for asked in (["-"], ["--file", "-"]):
        assert translate(*asked, stdin=Terminal(b"a b\n")).out == "b a\n"


def test_models_that_are_none(refused: Any, tmp_path: Path) -> None:
    assert "model: must be a folder or a bundled name; got 'no'" in refused(
        "translate", "a", "--model", "no"
    )
    assert "must hold a model" in refused("translate", "a", "--model", tmp_path)


def test_devices_that_are_none_or_not_there(refuse: Any) -> None:
    assert "device: must be auto, cpu, cuda, cuda:N or mps; got 'gpu'" in refuse(
        "a", "--device", "gpu"
    )
    assert "device: must be there; got cuda:99" in refuse("a", "--device", "cuda:99", code=3)


def test_c4_in_the_c_locale_with_a_pipe(process: Any, reversal_run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes("a b\n猫\n\n".encode())
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    shell = f'"$@" < {tmp_path / "in"} | cat'
    done = process("translate", "--model", reversal_run.run, "--json", shell=shell, env=env)
    assert done.stderr == b""
    rows = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert [row["source"] for row in rows] == ["a b", "猫", ""]
    assert rows[0]["translation"] == "b a"


def test_c4_a_reader_that_leaves_early(process: Any, reversal_run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a b\n" * 3000)
    shell = '"$@" | head -n 1; exit ${PIPESTATUS[0]}'
    done = process(
        *("translate", "--model", reversal_run.run, "--beam", 1, "--file", tmp_path / "in"),
        *("--batch-size", 1024, "--json"),
        shell=shell,
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert json.loads(done.stdout)["translation"] == "b a"
