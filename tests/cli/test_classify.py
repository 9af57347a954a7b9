from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.planted import Planted, write_planted
from regard.tasks import load
from regard.tasks.classification_training import train_classification
from regard.training import RunOptions

CONFIG = """
task = "classification"
[data]
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
language = "en"
max_words = 40
[tokens]
lowercase = true
[model]
embedding_dim = 12
words = {encoder = {kind = "embedding"}}
sentences = {encoder = {kind = "embedding"}}
[training]
epochs = 1
learning_rate = 0.02
threads = 1
device = "cpu"
"""
TEXT = "We like it here. The lamp was delivered late."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that has hardly learnt anything: what counts is how it is shown."""
    folder = tmp_path_factory.mktemp("letters")
    write_planted(folder, {"train": 60, "dev": 8, "test": 8}, seed=1, planted=Planted(longest=4))
    (folder / "config.toml").write_text(CONFIG)
    train_classification(folder / "config.toml", [], RunOptions(folder / "run", quiet=True))
    return folder / "run"


def test_a_text_is_classified_and_drawn(regard: Any, run: Path, tmp_path: Path) -> None:
    look = tmp_path / "look.svg"
    found = load(run)(TEXT)
    result = regard("classify", "--model", run, TEXT, "--picture", look)
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0] == f"{found.label}\t{found.probability:.4f}"
    assert any("delivered" in line for line in lines)
    assert "<svg" in look.read_text()
    plain = regard("classify", "--model", run, TEXT, "--plain")
    assert plain.out == f"{lines[0]}\n"


def test_lines_of_a_file_are_labelled(
    regard: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "letters.txt"
    texts = [TEXT, "", "The\tclock \x1b[31mwas broken."]
    file.write_text("\ufeff" + "\r\n".join(texts) + "\r\n", encoding="utf-8")
    result = regard("classify", "--model", run, "--file", file)
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == [one.label for one in load(run)(texts)]
    assert rows[0][2] == TEXT
    assert rows[1][2] == ""
    assert rows[2][2] == "The clock [31mwas broken."
    again = regard("classify", "--model", run, "-", stdin=file.read_bytes())
    assert again.out == result.out
    monkeypatch.setattr("regard.cli.classify._AT_ONCE", 2)
    assert regard("classify", "--model", run, "--file", file).out == result.out


def test_a_file_as_one_document(regard: Any, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("We like it here.\n\nThe lamp was delivered late.\n")
    result = regard("classify", "--model", run, "--file", file, "--whole", "--json")
    table = json.loads(result.out)
    assert table["text"] == "We like it here.\n\nThe lamp was delivered late."
    assert len(table["record"]["read"]["sentences"]) == 2
    piped = regard("classify", "--model", run, "-", "--whole", stdin=file.read_bytes())
    assert len(piped.out.splitlines()) > 3  # and what decided


def test_json_for_programs(regard: Any, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "letters.jsonl"
    file.write_text(json.dumps({"text": TEXT}) + "\n" + json.dumps({"sentences": ["A.", "B."]}))
    out = regard("classify", "--model", run, "--file", file, "--json").out
    first, second = map(json.loads, out.splitlines())
    assert first["label"] == max(first["probabilities"], key=first["probabilities"].get)
    assert first["labels"] == [first["label"]]
    assert not first["truncated"]
    one = first["evidence"][0]
    assert TEXT[one["start"] : one["end"]] == one["sentence"]
    for word in one["words"]:
        assert TEXT[word["start"] : word["end"]] == word["word"]
    assert first["record"]["schema_version"] == 3
    assert second["record"]["read"]["sentences"] == [[0, 2, 0, 2], [3, 5, 2, 4]]


def test_pictures_are_numbered(regard: Any, run: Path, tmp_path: Path) -> None:
    look = tmp_path / "look.html"
    result = regard("classify", "--model", run, TEXT, "Good.", "--plain", "--picture", look)
    assert result.code == 0
    assert len(result.out.splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look-1.html", "look-2.html"]


@pytest.mark.filterwarnings("always")
def test_d22_what_is_cut_is_said(regard: Any, run: Path) -> None:
    result = regard("classify", "--model", run, "so " * 60, "--plain")
    assert result.code == 0
    assert "regard: warning: documents are read up to " in result.err
    assert "up to 40 words; 1 of 1 are longer and were cut" in result.err


def test_a_run_is_evaluated_and_trained_by_the_command(
    regard: Any, run: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "labels.txt"
    result = regard("evaluate", run, "--save", saved)
    assert result.code == 0, result
    assert result.out.startswith("accuracy ")
    assert len(saved.read_text().splitlines()) == 8
    table = json.loads(regard("evaluate", run, run.parent / "dev.jsonl", "--json").out)
    assert table["documents"] == 8
    checked = regard("check", run.parent / "config.toml")
    assert checked.out.splitlines()[0].startswith("train: 60 documents")


def test_what_is_wrong_is_one_line(refused: Any, run: Path, tmp_path: Path) -> None:
    def refuse(*arguments: object, **own: Any) -> str:
        return refused("classify", "--model", run, *arguments, **own)

    file = tmp_path / "a.txt"
    file.write_text("x")
    assert "texts or --file, not both" in refuse("x", "--file", file)
    assert "--whole: counts for a file" in refuse("x", "--whole")
    assert "none.txt: cannot be read" in refuse("--file", tmp_path / "none.txt")
    assert "must end in .svg" in refuse("x", "--picture", tmp_path / "a.gif")
    assert "of documents or pictures" in refused("classify", "--model", "en-zh", "x")
    assert "--beam: must be left out" in refused("evaluate", run, "--beam", "2")
    file.write_bytes(b"\xff\xfe")
    assert "a.txt:1: text must be utf-8" in refuse("--file", file)
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n[]\n')
    assert "a.jsonl:2: line must be a JSON object" in refuse("--file", tmp_path / "a.jsonl")
    assert "'nothing'" in refused("classify", "--model", "nothing", "x")
