"""Poolings: by hand, under masks, with nothing to pool."""

import pytest
import torch

from regard.errors import MechanismError
from regard.models.poolings import POOLS, build_pool

ITEMS = torch.tensor([[[1.0, 4.0], [3.0, 2.0], [9.0, 9.0]]])
MASK = torch.tensor([[True, True, False]])


def test_mean_and_maximum_by_hand() -> None:
    context, weights = build_pool("mean", 2)(ITEMS, MASK)
    assert context.tolist() == [[2.0, 3.0]]
    assert weights.tolist() == [[0.5, 0.5, 0.0]]
    context, weights = build_pool("max", 2)(ITEMS, MASK)
    assert context.tolist() == [[3.0, 4.0]]
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


def test_attention_is_that_of_the_formula() -> None:
    pool = build_pool("attention", 2, hidden_dim=3, gated=True)
    score = pool.attention.attention.score
    hidden = torch.tanh(score.hidden(ITEMS)) * torch.sigmoid(score.gate(ITEMS))
    scores = score.vector(hidden).squeeze(-1)[:, :2]
    expected = torch.softmax(scores, dim=1)
    context, weights = pool(ITEMS, MASK)
    torch.testing.assert_close(weights[:, :2], expected)
    torch.testing.assert_close(context, (expected.unsqueeze(-1) * ITEMS[:, :2]).sum(1))


@pytest.mark.parametrize("name", POOLS)
def test_l1_what_is_hidden_and_rows_of_nothing(name: str) -> None:
    pool = build_pool(name, 2)
    items = torch.randn(3, 4, 2)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    clean = pool(items, mask)
    dirty = items.masked_fill(~mask.unsqueeze(-1), float("nan")).requires_grad_()
    context, weights = pool(dirty, mask)
    torch.testing.assert_close(context, clean.context)
    torch.testing.assert_close(weights, clean.weights)
    assert not context[1].any()
    assert not weights[~mask].any()
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 0.0, 1.0]))
    context.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in pool.parameters())
    assert dirty.grad[mask].isfinite().all()
    empty = pool(torch.zeros(2, 0, 2), torch.zeros(2, 0, dtype=torch.bool))
    assert (empty.context.tolist(), empty.weights.shape) == ([[0.0, 0.0]] * 2, (2, 0))


def test_an_unknown_name() -> None:
    with pytest.raises(MechanismError, match=r"pooling must be known; got 'mena'; did you mean"):
        build_pool("mena", 2)
