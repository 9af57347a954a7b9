"""The command as a whole: help, errors in one line, exit codes, streams."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

import regard as package
from regard.cli import app
from regard.errors import (
    DivergedError,
    EnvironmentFault,
    Interrupted,
    RegardError,
    UserError,
)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_verb(arguments: list[str], regard: Any) -> None:
    result = regard(*arguments)
    assert result.code == 0
    for name, line in app.VERBS.items():
        assert f"{name}  " in result.out
        assert line in result.out


@pytest.mark.parametrize("verb", app.VERBS)
def test_every_verb_has_help(verb: str, regard: Any) -> None:
    result = regard(verb, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: regard {verb} ")
    assert result.err == ""


def test_version(regard: Any) -> None:
    assert regard("--version").out == f"regard {package.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["train", "--help"], ["nonsense"]]
)
def test_c7_help_loads_no_torch(arguments: list[str]) -> None:
    """Row C7: and is therefore quick, which is asserted loosely."""
    code = (
        "import sys\n"
        "from regard.cli.app import run\n"
        "try:\n"
        f"    run({arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'torch', 'numpy', 'tokenizers', 'pydantic', 'numba', 'PIL'} & set(sys.modules)\n"
        "sys.exit(str(sorted(heavy)) if heavy else 0)\n"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["translat"], "arguments: no such command 'translat'; did you mean 'translate'?"),
        (
            ["zzz"],
            "arguments: no such command 'zzz'; use one of: answer, caption, check, ",
        ),
        (["--hlep"], "arguments: no such option --hlep; did you mean '--help'?"),
        (["translate", "--bem", "3"], "translate: no such option --bem; did you mean '--beam'?"),
        (["translate", "--beam", "x"], "translate: invalid value for '--beam': 'x' is not a valid"),
        (
            ["translate", "--beam", "0"],
            "0 is not in the range 1<=x<=1000; see regard translate --h",
        ),
        (["translate", "--nbest", "1001"], "1001 is not in the range 1<=x<=1000"),
        (["translate", "--threads", "0"], "invalid value for '--threads'"),
        (["translate", "--beam"], "option '--beam' requires an argument; see regard"),
        (["train"], "train: missing argument 'CONFIG'; see regard train --help"),
        (["train", "x", "--seed", "-1"], "train: invalid value for '--seed'"),
        (["new", "translation"], "new: missing argument 'FOLDER'"),
        (["check", "a", "--force"], "check: no such option --force"),
        (["list", "all", "more"], "list: got unexpected extra argument (more)"),
        (["list", "nothing"], "'nothing' is not one of 'all', 'models', 'tasks', 'mechanisms'"),
    ],
)
def test_c1_what_is_typed_wrong_is_one_line(arguments: list[str], line: str, refused: Any) -> None:
    assert line in refused(*arguments)


CODES = [
    (UserError("must be x; got y. Do z.", where="here"), 2, "here: must be x; got y. Do z."),
    (EnvironmentFault("is full.", where="disk"), 3, "disk: is full."),
    (DivergedError("must be finite.", where="step 3"), 4, "step 3: must be finite."),
    (Interrupted("stopped", signal_number=15), 143, "new: stopped"),
    (Interrupted("stopped", signal_number=2), 130, "stopped"),
    (RegardError("odd"), 1, "new: odd"),
    (KeyboardInterrupt(), 130, "signal: interrupted; nothing was left half written"),
    (click.exceptions.Abort(), 130, "signal: interrupted; nothing was left half written"),
    (MemoryError(), 3, "memory: not enough; use smaller batches or a smaller model"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes"), 3, "memory: not enough"),
    (FileNotFoundError(2, "No such file", "a"), 2, "a: No such file; check the path"),
    (IsADirectoryError(21, "Is a directory", b"a"), 2, "a: Is a directory; check the path"),
    (PermissionError(13, "Permission denied", "a"), 3, "a: Permission denied; check the disk"),
    (OSError(28, "No space left on device"), 3, "system: No space left on device; check the disk"),
    (KeyError("x"), 1, "bug: KeyError: 'x'; this is a bug in regard, run again with --debug"),
    (ValueError("two\nlines\n"), 1, "bug: ValueError: two lines ; this is a bug in regard"),
    (ValueError("x" * 10_000), 1, "bug: ValueError: xxx"),
]


@pytest.mark.parametrize(("error", "code", "line"), CODES)
def test_every_error_has_a_code_and_one_line(
    error: BaseException, code: int, line: str, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("regard.tasks.base.task_kind", fail)
    result = refused("new", "translation", "folder", code=code)
    assert line in result
    assert len(result) < 2100


@pytest.mark.parametrize("place", ["first", "last"])
def test_debug_shows_the_traceback_and_keeps_the_code(place: str, regard: Any) -> None:
    arguments = ["check", "/nowhere/config.toml"]
    result = regard(*(["--debug", *arguments] if place == "first" else [*arguments, "--debug"]))
    assert result.code == 2
    assert result.err.startswith("Traceback (most recent call last):")
    assert "ConfigError" in result.err
    assert result.err.splitlines()[-1].startswith("regard: error: /nowhere/config.toml: ")


def test_debug_behind_two_dashes_is_a_text() -> None:
    assert app._without_debug(["a", "--debug", "--", "--debug"]) == (True, ["a", "--", "--debug"])
    assert app._without_debug(["a", "--", "--debug"]) == (False, ["a", "--", "--debug"])


def test_a_warning_is_one_line(regard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            "regard.tasks.base.bundled_models",
            lambda: warnings.warn("two\nlines", stacklevel=2) or {},
        )
        result = regard("list", "models")
    assert result.code == 0
    assert result.err == "regard: warning: two lines\n"


@pytest.mark.parametrize("shell", ['"$@" >&-', '"$@" >&- 2>&-', '"$@" <&- >&- 2>&-'])
@pytest.mark.parametrize(("verb", "code"), [("--help", 0), ("nonsense", 2)])
def test_c4_closed_streams(shell: str, verb: str, code: int, process: Any) -> None:
    done = process(verb, shell=shell)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    if "2>&-" not in shell:
        assert done.stderr.count(b"\n") == (1 if code else 0)


def test_c4_a_full_disk_behind_standard_output(process: Any) -> None:
    done = process("--help", shell='"$@" > /dev/full')
    assert done.returncode == 3
    assert done.stderr.startswith(b"regard: error: system: No space left on device")
    assert done.stderr.count(b"\n") == 1


def test_c4_a_reader_that_has_enough(process: Any) -> None:
    done = process("list", "mechanisms", shell='"$@" | true; exit ${PIPESTATUS[0]}')
    assert done.returncode == 0
    assert done.stderr == b""


def test_what_can_be_listed(regard: Any) -> None:
    everything = regard("list")
    assert everything.code == 0
    for heading in ("models:", "tasks:", "mechanisms:"):
        assert heading in everything.out
    listed = regard("list", "tasks").out.splitlines()
    tasks = dict(line.split(maxsplit=1) for line in listed)
    assert tasks["translation"] == "Text in one language in, text in another out."
    assert tasks["captioning"].startswith("A picture in, a sentence out")
    assert tasks["classification"].startswith("A document in")
    assert tasks["image_classification"].startswith("A picture in, its label out")
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in listed}) == 1  # columns
    mechanisms = regard("list", "mechanisms").out
    rows = [line.split(maxsplit=2) for line in mechanisms.splitlines()]
    assert ["additive", "score"] in [row[:2] for row in rows]
    assert {row[1] for row in rows} >= {"score", "term", "selection", "pooling", "preset"}
    assert all(len(row[2]) > 20 for row in rows)


def test_a_bundled_model_is_listed_with_or_without_a_card(
    regard: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = {name: tmp_path / name for name in ("one", "two")}
    for folder in folders.values():
        folder.mkdir()
    (folders["one"] / "card.md").write_text("\n# A model\n\nmore\n")
    monkeypatch.setattr("regard.tasks.base.bundled_models", lambda: folders)
    lines = regard("list", "models").out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [["one", "A model"], ["two"]]


def test_json_is_valid_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """Row D11: half a surrogate pair, and what some readers take for the end of a line."""
    from regard.cli.common import write_json

    value = {"a": "\ud800 x\u2028y\x85z\u2029\0\n"}
    write_json(value)
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    out.encode("utf-8")
    assert json.loads(out) == {"a": "\ufffd x\u2028y\x85z\u2029\0\n"}
