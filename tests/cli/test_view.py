"""`regard view`: records in the terminal and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.pictures import Map, Record, Text, Token


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    text = Text("un able", (Token("un", 0, 2), Token("ab", 3, 5), Token("le", 5, 7)))
    weights = [np.full((3, 3), 1 / 3), np.eye(3)]
    maps = tuple(Map(f"layer 1, head {k + 1}", one) for k, one in enumerate(weights))
    Record("attention", text, text, maps).save(tmp_path / "record.json")
    return tmp_path / "record.json"


def test_the_mean_is_shown_and_the_maps_are_named(regard: Any, saved: Path) -> None:
    result = regard("view", saved)
    assert result.code == 0
    assert "able" in result.out  # the pieces of a word are one
    assert "The mean of 2 maps; --map names one of them:" in result.out
    assert "  layer 1, head 2" in result.out
    assert "\x1b" not in result.out


def test_one_map_by_its_name_with_numbers_in_pieces(regard: Any, saved: Path) -> None:
    result = regard("view", saved, "--map", "layer 1, head 2", "--pieces", "--numbers")
    assert result.code == 0
    assert "1.00" in result.out
    assert "able" not in result.out
    assert "mean" not in result.out


def test_pictures_by_ending(regard: Any, saved: Path, tmp_path: Path) -> None:
    for ending, mark in (("svg", "<image"), ("html", 'id="multiples"'), ("json", "schema_version")):
        path = tmp_path / f"out.{ending}"
        assert regard("view", saved, "--picture", path).code == 0
        assert mark in path.read_text("utf-8")
    path = tmp_path / "one.svg"
    assert regard("view", saved, "--map", "layer 1, head 2", "--picture", path).code == 0
    assert "<image" not in path.read_text("utf-8")


def test_what_is_wrong_is_one_line(refused: Any, saved: Path, tmp_path: Path) -> None:
    assert "did you mean 'layer 1, head 2'" in refused("view", saved, "--map", "layer 1 head 2")
    assert "must end in" in refused("view", saved, "--picture", tmp_path / "out.gif")
    assert "cannot be read" in refused("view", tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    assert "bad.json" in refused("view", tmp_path / "bad.json")
    (tmp_path / "there.svg").write_text("", encoding="utf-8")
    assert "--force" in refused("view", saved, "--picture", tmp_path / "there.svg")
    assert "there.svg" in refused("view", saved, "--picture", tmp_path / "there.svg")
