"""Poolings: by hand, under masks, with nothing to pool."""

import pytest
import torch

from regard.errors import MechanismError, ShapeError
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


def test_the_last_is_that_of_the_mask() -> None:
    context, weights = build_pool("last", 2)(ITEMS, MASK)
    assert context.tolist() == [[3.0, 2.0]]
    assert weights.tolist() == [[0.0, 1.0, 0.0]]
    holed = torch.tensor([[True, False, True]])
    assert build_pool("last", 2)(ITEMS, holed).context.tolist() == [[9.0, 9.0]]


def test_steps_have_their_place_and_shorter_sequences_are_padded() -> None:
    pool = build_pool("step", 2, steps=4)
    context, weights = pool(ITEMS[:, :2], MASK[:, :2])
    padded = torch.cat([ITEMS[:, :2], torch.full((1, 2, 2), float("nan"))], dim=1)
    shown = torch.tensor([[True, True, False, False]])
    expected = pool.attention(padded, mask=shown)
    torch.testing.assert_close(context, expected.context)
    torch.testing.assert_close(weights, expected.weights[:, :2])
    torch.testing.assert_close(context, (weights.unsqueeze(-1) * ITEMS[:, :2]).sum(1))
    swapped = pool(ITEMS[:, [1, 0]], MASK[:, :2])
    assert not torch.allclose(swapped.context, context)
    with pytest.raises(ShapeError, match=r"at most the steps of the pooling, 4; got 5"):
        pool(torch.zeros(1, 5, 2), torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(MechanismError, match='steps must be given for the pooling "step"'):
        build_pool("step", 2)


def test_heads_have_weights_of_their_own() -> None:
    pool = build_pool("multihead", 2, num_heads=2, selection="sparsemax")
    context, weights = pool(ITEMS, MASK)
    attended = pool.attention(ITEMS, mask=MASK)
    assert weights.shape == (1, 2, 3)
    torch.testing.assert_close(weights, attended.weights)
    torch.testing.assert_close(context, attended.context)


@pytest.mark.parametrize("name", POOLS)
def test_l1_what_is_hidden_and_rows_of_nothing(name: str) -> None:
    pool = build_pool(name, 2, num_heads=2, steps=6)
    items = torch.randn(3, 4, 2)
    mask = torch.tensor([[True, True, False, False], [False] * 4, [True] * 4])
    clean = pool(items, mask)
    dirty = items.masked_fill(~mask.unsqueeze(-1), float("nan")).requires_grad_()
    context, weights = pool(dirty, mask)
    torch.testing.assert_close(context, clean.context)
    torch.testing.assert_close(weights, clean.weights)
    assert not context[1].any()
    for own in weights.unbind(1) if weights.dim() == 3 else [weights]:
        assert not own[~mask].any()
        torch.testing.assert_close(own.sum(1), torch.tensor([1.0, 0.0, 1.0]))
    context.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in pool.parameters())
    assert dirty.grad[mask].isfinite().all()
    empty = pool(torch.zeros(2, 0, 2), torch.zeros(2, 0, dtype=torch.bool))
    assert (empty.context.tolist(), empty.weights.shape[-1]) == ([[0.0, 0.0]] * 2, 0)


def test_an_unknown_name() -> None:
    with pytest.raises(MechanismError, match=r"pooling must be known; got 'mena'; did you mean"):
        build_pool("mena", 2)
