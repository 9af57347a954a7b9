"""Attention that is inserted looks where the answer lies."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "insert.py"


@pytest.fixture(scope="module")
def example() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


@pytest.mark.parametrize("name", ["of_time", "of_a_grid"])
def test_it_helps_and_looks_where_the_answer_lies(example: SimpleNamespace, name: str) -> None:
    without, attending, looks = getattr(example, name)(1)
    assert attending > 95
    assert attending > without
    assert looks > 60  # by chance 12 or 11


def test_a_model_of_hugging_face_says_what_it_said(example: SimpleNamespace) -> None:
    pytest.importorskip("transformers")
    same, alone, total = example.of_bert()
    assert same
    assert 0 < alone < total / 10
