from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.data.deciding import DecidingScenes, write_deciding
from regard.data.scenes import Scenes
from regard.tasks import load
from regard.tasks.image_classification_training import train_image_classification
from regard.training import RunOptions

CONFIG = """
task = "image_classification"
[data]
train = "scenes"
dev = "scenes"
test = "scenes"
splits = ["train", "dev", "test"]
[model.picture]
network = "small"
height = 32
width = 32
dim = 8
[training]
epochs = 1
threads = 1
device = "cpu"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that has hardly learnt anything: what counts is how it is shown."""
    folder = tmp_path_factory.mktemp("pictures")
    scenes = DecidingScenes(Scenes(width=32, height=32, most_things=2))
    write_deciding(folder / "scenes", {"train": 20, "dev": 5, "test": 4}, seed=1, deciding=scenes)
    (folder / "config.toml").write_text(CONFIG)
    train_image_classification(folder / "config.toml", [], RunOptions(folder / "run", quiet=True))
    return folder / "run"


@pytest.fixture
def picture(run: Path) -> Path:
    return run.parent / "scenes" / "images" / "test-00000.png"


def test_a_picture_is_classified_and_drawn(
    regard: Any, run: Path, picture: Path, tmp_path: Path
) -> None:
    look = tmp_path / "look.svg"
    found = load(run)(picture)
    result = regard("classify", "--model", run, picture, "--picture", look)
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0] == f"{found.label}\t{found.probability:.4f}"
    assert any("test-00000.png" in line for line in lines[1:])
    drawn = look.read_text()
    assert "<image" in drawn
    assert found.label in drawn
    plain = regard("classify", "--model", run, picture, "--plain")
    assert plain.out == f"{lines[0]}\n"


def test_folders_and_several_files(
    regard: Any, run: Path, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(picture, tmp_path / "B.PNG")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "deep").mkdir()
    shutil.copy(picture, tmp_path / "deep" / "a\x1b[31m.png")
    result = regard("classify", "--model", run, picture, tmp_path)
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == [
        str(picture),
        str(tmp_path / "B.PNG"),
        f"{tmp_path}/deep/a\u241b[31m.png",
    ]
    assert len({tuple(row[1:]) for row in rows}) == 1
    monkeypatch.setattr("regard.cli.classify_pictures._AT_ONCE", 2)
    assert regard("classify", "--model", run, picture, tmp_path).out == result.out


def test_json_for_programs_and_numbered_pictures(
    regard: Any, run: Path, picture: Path, tmp_path: Path
) -> None:
    look = tmp_path / "look.html"
    both = (picture, picture.with_name("test-00001.png"))
    out = regard("classify", "--model", run, *both, "--json", "--picture", look).out
    first, second = map(json.loads, out.splitlines())
    assert first["image"] == str(picture)
    assert first["label"] == max(first["probabilities"], key=first["probabilities"].get)
    assert first["labels"] == [first["label"]]
    assert first["record"]["task"] == "image classification"
    assert second["record"]["read"]["name"] == "test-00001.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look-1.html", "look-2.html"]


def test_a_run_is_checked_and_evaluated_by_the_command(regard: Any, run: Path) -> None:
    result = regard("evaluate", run)
    assert result.code == 0, result
    assert result.out.startswith("accuracy ")
    checked = regard("check", run.parent / "config.toml")
    assert "20 images, 4 labels" in checked.out.splitlines()[0]
    assert "image_classification" in regard("list", "tasks").out
    assert "image_classification" in regard("new", "--help").out


def test_what_is_wrong_is_one_line(refused: Any, run: Path, picture: Path, tmp_path: Path) -> None:
    def refuse(*arguments: object, **own: Any) -> str:
        return refused("classify", "--model", run, *arguments, **own)

    assert "needs a picture" in refuse()
    assert "--file: counts for documents" in refuse("--file", tmp_path / "a.txt")
    assert "--whole: counts for documents" in refuse(picture, "--whole")
    assert "must hold pictures" in refuse(tmp_path)
    assert "no.png: cannot be read" in refuse(tmp_path / "no.png")
    (tmp_path / "page.jpg").write_text("<html>")
    assert "page.jpg: must be a picture" in refuse(tmp_path / "page.jpg")
    assert "must end in .svg" in refuse(picture, "--picture", tmp_path / "a.gif")
    assert "is the input too" in refuse(picture, "--picture", picture)
    assert "documents or pictures" in refused("classify", "--model", "en-zh", picture)
    assert "describes pictures" in refused("caption", "--model", run, picture)
