"""Every score with every selection, with one head and several, in every type."""

from __future__ import annotations

import itertools

import pytest
import torch

from regard.attention import SCORES, SELECTIONS, Additive, Attention, MultiHead
from regard.testing import check_attention

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
PAIRS = list(itertools.product(SCORES, SELECTIONS))


def sizes(score: str, query_dim: int, key_dim: int) -> dict[str, int]:
    found = {"query_dim": query_dim, "key_dim": key_dim}
    return {**found, "hidden_dim": 6} if score == "additive" else found


@pytest.mark.parametrize(("score", "selection"), PAIRS)
def test_one_head_conforms(score, selection):
    report = check_attention(Attention(score, selection, **sizes(score, 4, 4)), dtypes=DTYPES)
    assert not report.skipped


@pytest.mark.parametrize(("score", "selection"), PAIRS)
def test_several_heads_conform(score, selection):
    attention = MultiHead(2, 8, score=score, selection=selection)
    report = check_attention(attention, dtypes=DTYPES)
    assert report.skipped == ("context_is_weights_times_values",)


@pytest.mark.parametrize("score", ["additive", "bilinear", "uniform"])
def test_sizes_that_differ_conform(score):
    check_attention(Attention(score, **sizes(score, 4, 7), dropout=0.4))


def test_heads_with_sizes_that_differ_conform():
    check_attention(MultiHead(2, 8, key_dim=5, value_dim=3, dropout=0.4))
    check_attention(MultiHead(2, 8, score=Additive(4, 4, hidden_dim=3)))


@pytest.mark.compiled
@pytest.mark.parametrize("score", SCORES)
def test_compiled_mechanisms_conform(score):
    for attention in (
        Attention(score, **sizes(score, 4, 4)),
        MultiHead(2, 8, score=score),
    ):
        check_attention(attention, checks=["compiled_agrees"])
