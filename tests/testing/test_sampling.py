"""The checks on training catch draws and gradients that are wrong there alone."""

from __future__ import annotations

import pytest
import torch

from regard.attention import (
    Attention,
    GumbelSoftmax,
    Monotonic,
    MultiHead,
    Sampled,
    Selected,
    Softmax,
)
from regard.testing import check_attention


class MaskForgotten(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        mask = None if self.training else mask
        return super().forward(scores, mask, query=query, state=state, generator=generator)


class EvenDraws(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        told = super().forward(scores, mask, query=query, generator=generator)
        if not self.training:
            return told
        even = super().forward(0 * scores, mask, query=query, generator=generator)
        log_prob = (even.weights * told.distribution.clamp(min=1e-30).log()).sum(-1)
        return Selected(even.weights, told.distribution, log_prob)


class WrongLogProb(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        told = super().forward(scores, mask, query=query, generator=generator)
        if told.log_prob is None:
            return told
        return told._replace(log_prob=told.log_prob.exp())


class OwnMind(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        return super().forward(scores, mask, query=query, state=state)


class HalfGradient(GumbelSoftmax):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        found = super().forward(scores, mask, query=query, generator=generator)
        weights = 0.5 * found.weights + 0.5 * found.weights.detach()
        return found._replace(weights=weights)


class NanWhenEmpty(Softmax):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        found = super().forward(scores, mask)
        if self.training:
            weights = found.weights / found.weights.sum(-1, keepdim=True)
            return Selected(weights, weights, None)
        return found


WRONG = {
    MaskForgotten: "training_holds_the_mask",
    NanWhenEmpty: "training_holds_the_mask",
    EvenDraws: "samples_follow_the_distribution",
    WrongLogProb: "samples_follow_the_distribution",
    OwnMind: "generators_decide",
    HalfGradient: "training_gradients_are_right",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_is_wrong_in_training_is_caught(wrong):
    assert WRONG[wrong] in check_attention(Attention("dot", wrong()), raises=False).failed


@pytest.mark.parametrize(
    ("selection", "passed", "skipped"),
    [
        (Sampled(), "samples_follow_the_distribution", "training_gradients_are_right"),
        (GumbelSoftmax(), "training_gradients_are_right", "samples_follow_the_distribution"),
        (Monotonic(), "training_gradients_are_right", "samples_follow_the_distribution"),
        (Softmax(), "training_holds_the_mask", "training_gradients_are_right"),
    ],
)
def test_each_selection_is_asked_what_it_can_answer(selection, passed, skipped):
    for attention in (Attention("dot", selection), MultiHead(2, 8, selection=selection)):
        report = check_attention(attention, dtypes=(torch.float32, torch.float16))
        assert passed in report.passed
        assert skipped in report.skipped


def test_straight_through_gradients_are_not_compared():
    report = check_attention(Attention("dot", GumbelSoftmax(straight_through=True)))
    assert "training_gradients_are_right" in report.skipped
    assert "training_holds_the_mask" in report.passed
