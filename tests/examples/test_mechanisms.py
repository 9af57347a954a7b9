"""Every mechanism is drawn on the example, and the pictures kept are those that it draws."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from regard.attention import SELECTIONS, Selection

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "mechanisms.py"
KEPT = ROOT / "docs" / "images" / "mechanisms"
CELL = re.compile(r"<title>(\S+ → \S+) (\d+\.\d+)</title>")
LARGEST = 16_000  # characters of a picture


@pytest.fixture(scope="module")
def example() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


@pytest.fixture
def drawn(tmp_path, monkeypatch, capsys) -> SimpleNamespace:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path / "pictures")])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    return SimpleNamespace(folder=tmp_path / "pictures", lines=lines)


def cells(path: Path) -> dict[str, float]:
    return {pair: float(weight) for pair, weight in CELL.findall(path.read_text("utf-8"))}


def test_every_mechanism_is_drawn_and_kept(example, drawn):
    expected = {f"{kind}-{name}" for kind, parts in example.KINDS.items() for name in parts}
    assert set(drawn.lines) == expected
    for folder in (drawn.folder, KEPT):
        assert {path.name for path in folder.iterdir()} == {f"{stem}.svg" for stem in expected}
    assert all(len(path.read_text("utf-8")) < LARGEST for path in KEPT.iterdir())


def test_the_pictures_kept_show_what_is_drawn(drawn):
    for path in sorted(drawn.folder.iterdir()):
        new, old = cells(path), cells(KEPT / path.name)
        if path.stem in ("selection-sampled", "selection-gumbel_softmax"):
            assert new  # what a seed draws may differ from machine to machine
            continue
        gaps = {pair: abs(new.get(pair, 0.0) - old.get(pair, 0.0)) for pair in new | old}
        far = {pair: gap for pair, gap in gaps.items() if gap > 0.003}
        assert not far, f"{path.name} is old: run python examples/mechanisms.py {KEPT}"


def test_recipes_build_what_they_are_named_for(example):
    for kind, parts in example.KINDS.items():
        assert list(example.RECIPES[kind]) == list(parts)
        for name, part in parts.items():
            assert type(example.part_of(kind, name)) is part


def test_a_mechanism_without_a_recipe_is_named(example, monkeypatch):
    monkeypatch.setitem(SELECTIONS, "newest", Selection)
    with pytest.raises(KeyError, match="RECIPES must say how to build the selection 'newest'"):
        list(example.records())


def test_the_dot_product_is_the_table_of_wanted_scores(example):
    scores = example.QUERIES[0] @ example.KEYS[0].T
    assert torch.equal(scores, torch.tensor(example.SCORES_WANTED))


def test_the_example_is_an_alignment(example, drawn):
    right = "汤姆=Tom 看见=saw 了=saw 睡觉=slept 的=that 猫=cat"
    for stem in ("score-dot", "score-additive", "score-cosine", "selection-entmax"):
        assert drawn.lines[stem] == right
    rotated = "汤姆=Tom 看见=saw 了=saw 睡觉=cat 的=that 猫=cat"  # as the page says
    assert drawn.lines["score-rotary"] == rotated
    assert "了=slept" in drawn.lines["score-coverage"]
    assert drawn.lines["pooling-attention_pooling"] == "all=cat"
