from __future__ import annotations

import math

import pytest
import torch

from regard.attention import SELECTIONS, Softmax
from regard.errors import MechanismError


def test_the_softmax_worked_by_hand():
    scores = torch.tensor([[[0.0, math.log(3.0)]]])
    weights, distribution, log_prob = Softmax()(scores, None)
    assert weights[0, 0].tolist() == pytest.approx([0.25, 0.75])
    assert distribution is weights
    assert log_prob is None


def test_the_softmax_is_that_of_plain_loops():
    torch.manual_seed(2)
    scores, mask = torch.randn(2, 3, 5), torch.rand(2, 3, 5) > 0.3
    mask[0, 0] = False
    found = Softmax(temperature=0.7)(scores, mask).weights
    for row in range(2):
        for query in range(3):
            line, allowed = scores[row, query].tolist(), mask[row, query].tolist()
            powers = [math.exp(s / 0.7) * a for s, a in zip(line, allowed, strict=True)]
            expected = [power / (sum(powers) or 1.0) for power in powers]
            assert found[row, query].tolist() == pytest.approx(expected, abs=1e-6)


def test_temperature_sharpens_and_flattens():
    scores = torch.tensor([[[0.0, 1.0]]])
    sharp, plain, flat = (Softmax(t)(scores, None).weights[0, 0, 1] for t in (0.1, 1.0, 10.0))
    assert sharp > plain > flat > 0.5
    assert "temperature=0.1" in repr(Softmax(0.1))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_temperatures_that_are_none_are_refused(temperature):
    words = f"temperature must be positive and finite; got {temperature}"
    with pytest.raises(MechanismError, match=words):
        Softmax(temperature)


@pytest.mark.parametrize("name", SELECTIONS)
def test_scores_near_minus_1e4_hold_the_mask(name):
    scores = torch.randn(2, 3, 5) - 1e4
    mask = torch.rand(2, 3, 5) > 0.3
    mask[..., 0] = True
    scores = scores.masked_fill(~mask, 1e4)
    selection = SELECTIONS[name]()
    weights = selection(scores, mask).weights
    assert (weights[~mask] == 0).all()
    if selection.traits.normalised:
        assert torch.allclose(weights.sum(-1), torch.ones(2, 3), atol=1e-5)
