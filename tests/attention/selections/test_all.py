"""What holds for every selection."""

from __future__ import annotations

import pytest
import torch

from regard.attention import SELECTIONS
from regard.attention.building import sizes_of


def built(name):
    needed = [size for size, needed in sizes_of(SELECTIONS[name]).items() if needed]
    return SELECTIONS[name](**dict.fromkeys(needed, 4))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("level", [-1e4, 1e4])
def test_scores_of_1e4_hold_the_mask(name, training, level):
    scores = torch.randn(2, 3, 5) + level
    mask = torch.rand(2, 3, 5) > 0.3
    mask[..., 0] = True
    mask[1, 2] = False
    scores = scores.masked_fill(~mask, -level).requires_grad_()
    selection = built(name).train(training)
    weights = selection(scores, mask, query=torch.randn(2, 3, 4)).weights
    assert weights.isfinite().all()
    assert (weights[~mask] == 0).all()
    if selection.traits.normalised:
        sums = mask.any(-1).float()
        assert torch.allclose(weights.sum(-1), sums, atol=1e-5)
    if weights.requires_grad:
        weights.square().sum().backward()
        assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_say_how_they_are_set(name):
    words = repr(built(name))
    assert words.startswith(type(built(name)).__name__)
    assert "=" in words or name in ("hardmax", "sparsemax")
