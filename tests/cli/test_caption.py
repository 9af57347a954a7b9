from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from regard.data.scenes import Scenes


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Path, str]:
    """A drawn scene that the bundled model can describe, and its caption."""
    drawn = Scenes().scene(3, seed=9, split="test")
    path = tmp_path / "scene.png"
    drawn.image.save(path)
    return path, drawn.caption


def test_a_picture_is_described_and_drawn(regard: Any, scene: Any, tmp_path: Path) -> None:
    path, caption = scene
    look = tmp_path / "look.svg"
    result = regard("caption", path, "--picture", look)
    assert result.code == 0, result
    assert result.out.splitlines()[0] == caption
    assert len(result.out.splitlines()) > 3  # and where it looked
    assert look.read_text().startswith("<svg")
    plain = regard("caption", path, "--plain", "--beam", "1")
    assert plain.out == f"{caption}\n"


def test_folders_and_several_files(regard: Any, scene: Any, tmp_path: Path) -> None:
    path, caption = scene
    with Image.open(path) as image:
        image.save(tmp_path / "other.bmp")
    result = regard("caption", tmp_path)
    assert result.out == f"{tmp_path / 'other.bmp'}\t{caption}\n{path}\t{caption}\n"
    listed = regard("caption", path, "--nbest", "2", "--beam", "3", "--plain")
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert len(rows) == 2
    assert float(rows[0][0]) >= float(rows[1][0])
    assert rows[0][1] == caption


def test_json_for_programs(regard: Any, scene: Any) -> None:
    table = json.loads(regard("caption", scene[0], "--json").out)
    assert table["caption"] == scene[1]
    assert table["record"]["read"]["rows"] == 8


def test_what_is_wrong_is_one_line(refused: Any, scene: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "must hold pictures" in refused("caption", tmp_path / "empty")
    assert "a.png" in refused("caption", tmp_path / "a.png")
    (tmp_path / "page.jpg").write_text("<html>")
    assert "page.jpg" in refused("caption", tmp_path / "page.jpg")
    assert "must end in .svg" in refused("caption", scene[0], "--picture", tmp_path / "a.gif")
    assert "describes pictures" in refused("caption", scene[0], "--model", "en-zh")
    there = tmp_path / "there.svg"
    there.write_text("")
    assert "there.svg" in refused("caption", scene[0], "--picture", there)
