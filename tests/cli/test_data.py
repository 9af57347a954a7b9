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
