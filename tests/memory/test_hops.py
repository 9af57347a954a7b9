"""Hops: against the formula in plain loops, masks, empty memories, and the linear start."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard.errors import MechanismError, ShapeError
from regard.memory import Hops, Linear


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def changed(hops: Hops, u: Tensor, read: Tensor, r: int, k: int) -> Tensor:
    if hops.update == "sum":
        u = u + read
    elif hops.update == "matrix":
        u = u @ hops.transforms[0][r] + read
    else:
        u = (u + read) @ hops.transforms[k][r]
    first = {"none": len(u), "half": len(u) - len(u) // 2, "all": 0}[hops.rectified]
    return torch.cat([u[:first], u[first:].clamp(min=0)])


@torch.no_grad()
def by_hand(
    hops: Hops, query: Tensor, keys: list[Tensor], values: list[Tensor], mask: Tensor, linear: bool
) -> tuple[Tensor, Tensor]:
    states = query.clone()
    weights = torch.zeros(*query.shape[:2], hops.hops, mask.shape[1], dtype=query.dtype)
    for r, b in itertools.product(*map(range, query.shape[:2])):
        u = query[r, b]
        slots = [i for i in range(mask.shape[1]) if mask[b, i]]
        for k in range(hops.hops):
            scores = [float(u @ keys[k][r, b, i]) for i in slots]
            total = sum(map(math.exp, scores))
            read = torch.zeros_like(u)
            for i, score in zip(slots, scores, strict=True):
                p = score if linear else math.exp(score) / total
                weights[r, b, k, i] = p
                read = read + p * values[k][r, b, i]
            u = changed(hops, u, read, r, k)
        states[r, b] = u
    return states, weights


def memory(hops: int, *shape: int) -> list[Tensor]:
    return [drawn(*shape, seed=10 + hop) for hop in range(hops)]


@pytest.mark.parametrize("update", ["sum", "matrix", "matrices"])
@pytest.mark.parametrize("rectified", ["none", "half", "all"])
@pytest.mark.parametrize("linear", [False, True])
def test_hops_are_the_formula(update: str, rectified: str, linear: bool) -> None:
    hops = Hops(5, hops=3, update=update, rectified=rectified, restarts=2).double()
    query, keys = drawn(2, 3, 5), memory(3, 2, 3, 4, 5)
    values = memory(3, 2, 3, 4, 5)[::-1]
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=torch.bool)
    found = hops(query, keys, values, mask, linear=linear)
    state, weights = by_hand(hops, query, keys, values, mask, linear)
    torch.testing.assert_close(found.state, state)
    torch.testing.assert_close(found.weights, weights)


def test_l1_nothing_attends_to_an_empty_slot_whatever_it_holds() -> None:
    hops = Hops(4, hops=2)
    query = torch.randn(1, 2, 4, requires_grad=True)
    keys = [torch.randn(1, 2, 3, 4) for _ in range(2)]
    mask = torch.tensor([[True, True, False], [False, False, False]])
    found = hops(query, keys, keys, mask)
    broken = [key.masked_fill(~mask[None, :, :, None], torch.nan) for key in keys]
    again = hops(query, broken, broken, mask)
    torch.testing.assert_close(again.state, found.state)
    assert not found.weights[0, 0, :, 2].any()
    assert not found.weights[0, 1].any()
    torch.testing.assert_close(found.weights[0, 0].sum(dim=-1), torch.ones(2))
    torch.testing.assert_close(found.state[0, 1], query[0, 1])  # an empty story adds zeros
    again.state.sum().backward()
    assert torch.isfinite(query.grad).all()


def test_l2_a_memory_without_slots_and_a_batch_of_none() -> None:
    hops = Hops(4, hops=2)
    none = [torch.zeros(1, 3, 0, 4)] * 2
    query = torch.randn(1, 3, 4)
    found = hops(query, none, none, torch.zeros(3, 0, dtype=torch.bool))
    torch.testing.assert_close(found.state, query)
    assert found.weights.shape == (1, 3, 2, 0)
    nobody = [torch.zeros(1, 0, 5, 4)] * 2
    found = hops(torch.zeros(1, 0, 4), nobody, nobody, torch.zeros(0, 5, dtype=torch.bool))
    assert found.weights.shape == (1, 0, 2, 5)


@pytest.mark.parametrize("linear", [False, True])
def test_gradients_are_right(linear: bool) -> None:
    hops = Hops(3, hops=2, update="matrices", rectified="half").double()
    mask = torch.tensor([[True, False, True]])

    def read(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return hops(query, [key] * 2, [value] * 2, mask, linear=linear).state

    inputs = [drawn(1, 1, 3), drawn(1, 1, 3, 3, seed=1), drawn(1, 1, 3, 3, seed=2)]
    assert torch.autograd.gradcheck(read, [one.requires_grad_() for one in inputs])


def test_linear_weights_are_the_scores() -> None:
    scores = torch.tensor([[[1.5, -2.0, 3.0]]])
    mask = torch.tensor([[[True, True, False]]])
    assert Linear()(scores, mask).weights.tolist() == [[[1.5, -2.0, 0.0]]]
    assert not Linear().traits.normalised
    assert Linear()(scores.half(), None).weights.dtype == torch.float32


def test_wrong_sizes_are_named(without_shapes: None) -> None:
    hops = Hops(4, hops=2)
    key, mask = torch.zeros(1, 2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ShapeError, match="each of the 2 hops; got 1 and 2"):
        hops(torch.zeros(1, 2, 4), [key], [key] * 2, mask)
    with pytest.raises(ShapeError, match=r"query must have shape \(restarts, batch, 4\)"):
        hops(torch.zeros(2, 4), [key] * 2, [key] * 2, mask)
    with pytest.raises(ShapeError, match="value must have shape"):
        hops(torch.zeros(1, 2, 4), [key] * 2, [key, key[..., :3]], mask)
    with pytest.raises(MechanismError, match="hops must be at least 1"):
        Hops(4, hops=0)
