from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        Image.new("RGB", (20, 10 + number), "red").save(tmp_path / f"{number}.png")
    rows = "".join(f"{number}.png\ta red picture\n" for number in range(4))
    (tmp_path / "captions.tsv").write_text(rows)
    return tmp_path


def test_a_folder_that_is_right(regard: Any, folder: Path) -> None:
    result = regard("data", "check", folder)
    assert result.code == 0
    assert "4 images, 4 captions" in result.out


def test_d15_broken_pictures_are_listed(regard: Any, folder: Path) -> None:
    (folder / "2.png").write_bytes(b"<html>")
    result = regard("data", "check", folder)
    assert result.code == 2
    assert "2.png" in result.out
    assert "1 of 4" in result.err
    assert result.err.count("\n") == 1
    assert regard("data", "check", folder, "--max-bad", "0.5").code == 0


def test_keys_and_wrong_files(refused: Any, regard: Any, folder: Path) -> None:
    (folder / "captions.jsonl").write_text('{"file": "0.png", "zh": "红"}\n')
    assert (
        regard(
            "data", "check", folder / "captions.jsonl", "--image", "file", "--caption", "zh"
        ).code
        == 0
    )
    assert "captions.jsonl:1" in refused("data", "check", folder / "captions.jsonl")
    assert "no" in refused("data", "check", folder / "no")
    assert regard("data", "--help").out.count("check") >= 1


def test_folders_of_labels_and_lists_of_them(regard: Any, refused: Any, tmp_path: Path) -> None:
    for name in ("cat/a.png", "dog/b.png", "dog/c.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8 + len(name)), "blue").save(tmp_path / name)
    result = regard("data", "check", tmp_path)
    assert result.code == 0
    assert "3 images, 2 labels (dog 66.7 %, cat 33.3 %)" in result.out
    (tmp_path / "dog" / "b.png").write_bytes(b"")
    result = regard("data", "check", tmp_path)
    assert result.code == 2
    assert f"bad: {tmp_path}/dog/b.png: must be a picture; it is empty" in result.out
    file = tmp_path / "own.jsonl"
    file.write_text('{"image": "cat/a.png", "kind": ["x", "y"]}\n')
    assert "2 labels" in regard("data", "check", file, "--label", "kind").out
    assert "must have the key 'caption'" in refused("data", "check", file)
    assert "not both" in refused("data", "check", file, "--label", "kind", "--caption", "c")
