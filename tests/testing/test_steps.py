"""The checks on steps catch mechanisms that go wrong after the first one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import (
    Attention,
    Coverage,
    MultiHead,
    Score,
    Selected,
    Softmax,
    State,
    Traits,
    functional,
    unroll,
)
from regard.testing import check_attention
from regard.testing.steps import CHECKS


class Fading(Score):
    """A stateful score: the dot product, less what a key has had so far."""

    traits = Traits(stateful=True)

    def __init__(self) -> None:
        super().__init__()
        self.query_dim = self.key_dim = None

    def prepare(self, key):
        return key

    def forward(self, query, prepared_key, state=None):
        scores = functional.dot_scores(query, prepared_key)
        return scores if state is None else scores - self.seen(state)

    def seen(self, state):
        return state.total


class SeesTheWidth(Fading):
    def seen(self, state):
        return state.total * torch.arange(state.total.shape[-1]).flip(0)


class HypothesesLeak(Fading):
    def seen(self, state):
        return state.total.mean(-2, keepdim=True) - state.total[..., :1, :]


class Detaches(Fading):
    def seen(self, state):
        return state.total.detach()


class MaskForgotten(Softmax):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        shift = 0.0 if state is None else 1e-9
        weights = super().forward(scores, mask, query=query, state=state).weights + shift
        return Selected(weights, weights, None)


class Overflows(Softmax):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        weights = super().forward(scores, mask, query=query, state=state).weights
        weights = weights if state is None else weights / (state.step < 3)
        return Selected(weights, weights, None)


class Silent(nn.Module):
    """Takes a whole sequence without saying that it goes step by step."""

    traits = Traits(stateful=True)

    def __init__(self) -> None:
        super().__init__()
        self.inner = Attention(Fading())

    def forward(self, query, key, value=None, *, mask=None, state=None):
        if query.dim() == 3 and query.shape[1] > 1 and state is None:
            return unroll(self.inner, query, self.inner.prepare(key, value, mask=mask))
        return self.inner(query, key, value, mask=mask, state=state)


WRONG = {
    "steps_hold_the_mask": [Attention(Fading(), MaskForgotten()), Attention(Fading(), Overflows())],
    "steps_ignore_padding": [Attention(SeesTheWidth())],
    "hypotheses_are_independent": [Attention(HypothesesLeak())],
    "gradients_through_steps_are_right": [Attention(Detaches())],
    "whole_sequences_are_refused": [Silent()],
}


@pytest.mark.parametrize("attention", [Attention(Fading()), MultiHead(2, 8, score=Fading())])
def test_stateful_mechanisms_are_examined_step_by_step(attention):
    report = check_attention(attention, dtypes=(torch.float32, torch.bfloat16))
    assert "queries_are_independent" in report.skipped
    assert {check.__name__ for check in CHECKS} <= set(report.passed)


@pytest.mark.parametrize(
    ("check", "attention"),
    [(check, attention) for check, attentions in WRONG.items() for attention in attentions],
)
def test_what_goes_wrong_in_later_steps_is_caught(check, attention):
    assert check in check_attention(attention, raises=False).failed


def test_what_has_no_steps_is_not_examined():
    report = check_attention(Attention("dot"))
    assert {check.__name__ for check in CHECKS} <= set(report.skipped)


def test_heads_are_examined_too():
    report = check_attention(MultiHead(2, 8, score=Coverage(4, 4, hidden_dim=3)))
    assert {*WRONG} <= set(report.passed)
    assert State.following(None, torch.ones(1, 1, 1)).step == 1
