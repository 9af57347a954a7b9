from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.scenes import Scenes, write_scenes
from regard.tasks import load
from regard.tasks.captioning_training import train_captioning
from regard.training import RunOptions

CONFIG = """
task = "captioning"
metric = "loss"
[data]
train = "scenes"
dev = "scenes"
splits = ["train", "dev"]
[model]
item_dim = 16
embedding_dim = 16
picture = {network = "small", height = 32, width = 32, dim = 16}
decoder = {kind = "gru", hidden_dim = 16, attention_dim = 16}
[training]
epochs = 1
threads = 1
device = "cpu"
[decoding]
beam = 2
maximum_length = 8
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner that has hardly learnt anything: what counts is how it is shown."""
    folder = tmp_path_factory.mktemp("captions")
    scenes = Scenes(width=48, height=48, most_things=1)
    write_scenes(folder / "scenes", {"train": 30, "dev": 6}, seed=1, scenes=scenes)
    (folder / "config.toml").write_text(CONFIG)
    train_captioning(folder / "config.toml", [], RunOptions(folder / "run", quiet=True))
    return folder / "run"


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "scene.png"
    Scenes().scene(3, seed=9, split="test").image.save(path)
    return path


def test_a_picture_is_described_and_drawn(
    regard: Any, run: Path, scene: Path, tmp_path: Path
) -> None:
    look = tmp_path / "look.svg"
    caption = load(run)(scene).text
    result = regard("caption", "--model", run, scene, "--picture", look)
    assert result.code == 0, result
    assert result.out.splitlines()[0] == caption
    assert len(result.out.splitlines()) > 3  # and where it looked
    assert "<svg" in look.read_text()
    plain = regard("caption", "--model", run, scene, "--plain")
    assert plain.out == f"{caption}\n"


def test_folders_and_several_files(regard: Any, run: Path, scene: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bmp"
    Scenes().scene(4, seed=9, split="test").image.save(other)
    captioner = load(run)
    result = regard("caption", "--model", run, tmp_path, "--beam", "1")
    expected = [f"{path}\t{captioner(path, beam=1).text}" for path in (other, scene)]
    assert result.out.splitlines() == expected
    listed = regard("caption", "--model", run, scene, "--nbest", "2", "--beam", "3", "--plain")
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert len(rows) == 2
    assert float(rows[0][0]) >= float(rows[1][0])


def test_names_do_nothing_in_a_terminal(regard: Any, run: Path, scene: Path) -> None:
    odd = scene.with_name("a\tb\n\x1b[31m.png")
    odd.write_bytes(scene.read_bytes())
    lines = regard("caption", "--model", run, odd, scene).out.splitlines()
    assert len(lines) == 2
    assert all(line.count("\t") == 1 for line in lines)
    assert "\x1b" not in lines[0]


def test_captions_can_be_drawn(
    regard: Any, run: Path, scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        Scenes().scene(number, seed=5).image.save(tmp_path / f"{number}.png")

    def drawn(*options: str) -> str:
        result = regard("caption", "--model", run, tmp_path, "--sample", *options)
        assert result.code == 0, result
        return str(result.out)

    first = drawn("--seed", "4")
    assert drawn("--seed", "5") != first
    assert drawn("--seed", "4", "--batch-size", "1") == first
    monkeypatch.setattr("regard.cli.caption._AT_ONCE", 2)
    assert drawn("--seed", "4") == first
    greedy = regard("caption", "--model", run, tmp_path, "--beam", "1").out
    assert drawn("--top-k", "1") == greedy
    listed = regard("caption", "--model", run, scene, "--sample", "--nbest", "3", "--plain")
    assert len(listed.out.splitlines()) == 3


def test_json_for_programs(regard: Any, run: Path, scene: Path) -> None:
    table = json.loads(regard("caption", "--model", run, scene, "--json").out)
    assert table["caption"] == load(run)(scene).text
    assert (table["record"]["read"]["rows"], table["record"]["read"]["columns"]) == (4, 4)


def test_what_is_wrong_is_one_line(refused: Any, run: Path, scene: Path, tmp_path: Path) -> None:
    def refuse(*arguments: object) -> str:
        return refused("caption", "--model", run, *arguments)

    (tmp_path / "empty").mkdir()
    assert "must hold pictures" in refuse(tmp_path / "empty")
    assert "a.png" in refuse(tmp_path / "a.png")
    (tmp_path / "page.jpg").write_text("<html>")
    assert "page.jpg" in refuse(tmp_path / "page.jpg")
    assert "draws at random, and --beam" in refuse(scene, "--sample", "--beam", "2")
    assert "caption: top_p: must be less" in refuse(scene, "--sample", "--top-p", "2")
    assert "must end in .svg" in refuse(scene, "--picture", tmp_path / "a.gif")
    assert "describes pictures" in refused("caption", "--model", "en-zh", scene)
    there = tmp_path / "there.svg"
    there.write_text("")
    assert "there.svg" in refuse(scene, "--picture", there)
