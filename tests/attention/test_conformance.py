"""Every score with every selection, with one head and several, in every type."""

from __future__ import annotations

import itertools

import pytest
import torch

from regard.attention import (
    SCORES,
    SELECTIONS,
    Additive,
    Attention,
    Cosine,
    Dot,
    Entmax,
    GumbelSoftmax,
    LocationSensitive,
    Monotonic,
    MultiHead,
    Sampled,
    Sigmoid,
    Softmax,
    TopK,
)
from regard.attention.building import sizes_of
from regard.errors import MechanismError
from regard.testing import check_attention

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
MEANINGLESS = {
    *itertools.product(["uniform"], ["hardmax", "sampled", "gumbel_softmax", "top_k"]),
    *itertools.product(["rotary"], ["local_monotonic", "monotonic"]),
}
PAIRS = [pair for pair in itertools.product(SCORES, SELECTIONS) if pair not in MEANINGLESS]


def sizes(score: str, query_dim: int, key_dim: int) -> dict[str, int]:
    found = {"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": 6}
    return {name: found[name] for name in sizes_of(SCORES[score])}


@pytest.mark.parametrize(("score", "selection"), PAIRS)
def test_one_head_conforms(score, selection):
    # The other two types are left to benchmarks/conformance.py, which examines every pair in all.
    dtypes = (torch.float64, torch.bfloat16)
    report = check_attention(Attention(score, selection, **sizes(score, 4, 4)), dtypes=dtypes)
    traits = Attention(score, selection, **sizes(score, 4, 4)).traits
    if traits.stateful:
        assert "steps_hold_the_mask" in report.passed
    if traits.stochastic:
        assert "generators_decide" in report.passed


@pytest.mark.parametrize(("score", "selection"), PAIRS)
def test_several_heads_conform(score, selection):
    attention = MultiHead(2, 8, score=score, selection=selection)
    report = check_attention(attention)
    assert "context_is_weights_times_values" in report.skipped


@pytest.mark.parametrize(("score", "selection"), sorted(MEANINGLESS))
def test_pairs_that_mean_nothing_are_named(score, selection):
    with pytest.raises(MechanismError, match=r"selection must not .*; got (Uniform|Rotary) and "):
        Attention(score, selection, **sizes(score, 4, 4))


@pytest.mark.parametrize("score", [name for name in SCORES if not SCORES[name].one_size])
def test_sizes_that_differ_conform(score):
    check_attention(Attention(score, **sizes(score, 4, 7), dropout=0.4))


def test_heads_with_sizes_that_differ_conform():
    check_attention(MultiHead(2, 8, key_dim=5, value_dim=3, dropout=0.4))
    check_attention(MultiHead(2, 8, score=Additive(4, 4, hidden_dim=3)))


@pytest.mark.parametrize(
    "score",
    [
        Additive(4, 4, hidden_dim=3, weight_norm=True),
        Additive(4, 4, hidden_dim=3, bias=False),
        Cosine(4, learned=False),
        Dot(4, learned_scale=True),
        LocationSensitive(4, 4, hidden_dim=3, channels=2, kernel_size=3, cumulative=True),
    ],
)
def test_scores_set_otherwise_conform(score):
    check_attention(Attention(score), dtypes=DTYPES)
    check_attention(MultiHead(2, 8, score=score))


@pytest.mark.parametrize(
    "selection",
    [
        Softmax(0.3),
        Sigmoid(normalise=True),
        Sigmoid(bias=-2.0),
        TopK(2, temperature=0.5),
        Entmax(1.2),
        Entmax(2.5),
        Entmax(1.5, learned=True),
        Sampled(0.5, evaluation="expectation"),
        GumbelSoftmax(0.5, straight_through=True),
        GumbelSoftmax(2.0, evaluation="expectation"),
        Monotonic(noise=0.0, bias=0.0),
        Monotonic(evaluation="expected"),
    ],
)
def test_selections_set_otherwise_conform(selection):
    check_attention(Attention("scaled_dot", selection), dtypes=DTYPES)
    check_attention(MultiHead(2, 8, selection=selection))


SAMPLE = [
    *((score, "softmax") for score in SCORES),
    *(("additive", selection) for selection in SELECTIONS),
]


def traced(test):
    """Let Dynamo trace entmax's autograd functions in its way, which PyTorch warns against."""
    for words in ("DeprecationWarning", "UserWarning"):
        known = ".*should not be instantiated" if words[0] == "D" else "The .grad attribute"
        test = pytest.mark.filterwarnings(f"ignore:{known}:{words}")(test)
    return test


@traced
@pytest.mark.compiled
@pytest.mark.parametrize(("score", "selection"), SAMPLE)
def test_compiled_mechanisms_conform(score, selection):
    check_attention(Attention(score, selection, **sizes(score, 4, 4)), checks=["compiled_agrees"])


@traced
@pytest.mark.compiled
@pytest.mark.parametrize("selection", ["softmax", "sampled", "entmax", "monotonic"])
def test_compiled_heads_conform(selection):
    check_attention(MultiHead(2, 8, selection=selection), checks=["compiled_agrees"])
