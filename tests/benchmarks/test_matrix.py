"""Every encoder learns with every decoder; a sample of the pairs in the default run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[2]
# A set, a convolution, a recurrence and a Transformer to read with; with and without attention.
SAMPLE = [
    ("embedding", "gru none"),
    ("embedding", "convolution"),
    ("convolution", "lstm bahdanau"),
    ("birnn", "gru input_feeding"),
    ("transformer", "rnn luong"),
]


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "benchmarks" / "matrix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


matrix = _loaded()
PAIRS = [(encoder, decoder) for encoder in matrix.ENCODERS for decoder in matrix.DECODERS]


def test_what_is_scored_was_not_trained_on() -> None:
    for name in ("reversal", "sorting", "copy"):
        task = matrix.data(name)
        ordered = name != "sorting"
        trained, dev, scored = (
            {tuple(row if ordered else sorted(row)) for row in source.tolist()}
            for source, _ in (task.train, task.dev, task.test)
        )
        assert (len(dev), len(scored)) == (200, 400)
        assert not trained & (dev | scored)
        assert not dev & scored


def test_a_sequence_that_is_right_by_teacher_forcing_is_right_by_search() -> None:
    """The one stops the training, the other is the score."""
    torch.manual_seed(1)
    task = matrix.data("reversal")
    model = matrix.build("gru", "gru luong", task.size)
    matrix.train(model, task, rate=0.005, steps=101, seed=1)
    sequences, symbols = matrix.score(model.eval(), *task.test)
    assert 1 < sequences < symbols < 100
    assert sequences == pytest.approx(100 * matrix.right(model, *task.test), abs=1e-3)


@pytest.mark.parametrize(("encoder", "decoder"), SAMPLE)
def test_a_pair_learns(encoder: str, decoder: str) -> None:
    row = matrix.train_pair(encoder, decoder)
    assert row["enough"], row


def test_drawing_is_learned_by_reinforce() -> None:
    row = matrix.train_selection("sampled")
    assert row["enough"], row


@pytest.mark.results
@pytest.mark.parametrize("selection", matrix.SELECTIONS)
def test_every_selection_learns(selection: str) -> None:
    row = matrix.train_selection(selection)
    assert row["enough"], row


@pytest.mark.results
@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_every_pair_learns(encoder: str, decoder: str) -> None:
    row = matrix.train_pair(encoder, decoder)
    published = json.loads((ROOT / "benchmarks" / "results" / "matrix.json").read_text())
    assert row["enough"] is published["rows"][decoder][encoder]["enough"], row
