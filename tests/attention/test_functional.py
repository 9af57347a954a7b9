from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from regard.attention import functional


def test_half_precision_is_raised_and_the_rest_left_alone():
    for dtype in (torch.float16, torch.bfloat16):
        assert functional.widened(torch.ones(2, dtype=dtype)).dtype == torch.float32
    for dtype in (torch.float32, torch.float64):
        tensor = torch.ones(2, dtype=dtype)
        assert functional.widened(tensor) is tensor


def test_dot_scores_worked_by_hand():
    query = torch.tensor([[[1.0, 2.0]]])
    key = torch.tensor([[[3.0, 4.0], [-1.0, 0.5]]])
    assert functional.dot_scores(query, key).tolist() == [[[11.0, 0.0]]]
    assert functional.dot_scores(query, key, 0.5).tolist() == [[[5.5, 0.0]]]


def test_additive_scores_worked_by_hand():
    query = torch.tensor([[[0.0, 1.0]]])
    key = torch.tensor([[[0.0, -1.0], [100.0, 0.0]]])
    vector = torch.tensor([2.0, 3.0])
    expected = [0.0, 2.0 + 3.0 * math.tanh(1.0)]
    assert functional.additive_scores(query, key, vector)[0, 0].tolist() == pytest.approx(expected)


def test_the_softmax_worked_by_hand():
    scores = torch.tensor([[0.0, math.log(3.0), 50.0]])
    mask = torch.tensor([[True, True, False]])
    assert functional.masked_softmax(scores, mask)[0].tolist() == pytest.approx([0.25, 0.75, 0.0])


def test_the_weighted_sum_worked_by_hand():
    weights = torch.tensor([[[0.25, 0.75]]])
    value = torch.tensor([[[4.0, 0.0], [8.0, 2.0]]])
    assert functional.weighted_sum(weights, value).tolist() == [[[7.0, 1.5]]]


def test_contexts_have_the_type_of_the_values():
    weights = torch.full((1, 1, 2), 0.5)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        value = torch.ones(1, 2, 3, dtype=dtype)
        assert functional.weighted_sum(weights, value).dtype == dtype


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf, 1e30, -1e30])
def test_what_stands_under_the_mask_does_not_matter(number):
    scores = torch.tensor([[1.0, 2.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    held = scores.detach().clone()
    held[0, 2] = number
    held.requires_grad_()
    for given_scores in (scores, held):
        functional.masked_softmax(given_scores, mask)[0, 0].backward()
    assert torch.equal(scores.grad, held.grad)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")  # it only says that it is slow
def test_an_empty_row_gives_zeros_and_zero_gradients_without_anomaly():
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[False] * 3, [True, False, True]])
    with torch.autograd.detect_anomaly(check_nan=True):
        weights = functional.masked_softmax(scores, mask)
        (weights * torch.arange(3.0)).sum().backward()
    assert weights[0].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad[0].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad[1].abs().sum() > 0


@pytest.mark.parametrize("level", [-1e4, 1e4, 3e38])
def test_scores_of_any_size_give_shares(level):
    weights = functional.masked_softmax(
        torch.tensor([[level, level, 0.0]]), torch.tensor([[True, True, False]])
    )
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


def test_half_precision_scores_are_exponentiated_in_float32():
    scores = torch.tensor([[10.0, 10.0625]], dtype=torch.bfloat16)
    assert functional.masked_softmax(scores, None).dtype == torch.float32
    expected = torch.tensor([[10.0, 10.0625]]).softmax(-1)
    assert torch.equal(functional.masked_softmax(scores, None), expected)


def test_autocast_is_held_off():
    query, key = torch.full((1, 1, 8), 1.001), torch.full((1, 2, 8), 1.001)
    expected = functional.dot_scores(query, key)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(functional.dot_scores(query, key), expected)
        assert functional.weighted_sum(expected, key).dtype == torch.float32


def test_shapes_can_be_worked_out_without_memory():
    query, key = torch.empty(2, 3, 4, device="meta"), torch.empty(2, 5, 4, device="meta")
    weights = functional.masked_softmax(functional.dot_scores(query, key), None)
    assert functional.weighted_sum(weights, key).shape == (2, 3, 4)


def test_gradients_of_the_softmax_twice():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, 3, 4) > 0.4
    mask[0, 0] = False
    assert gradcheck(lambda s: functional.masked_softmax(s, mask), scores)
    assert torch.autograd.gradgradcheck(lambda s: functional.masked_softmax(s, mask), scores)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_softmax_over_any_mask_is_that_of_the_allowed_keys_alone(data):
    batch, queries, keys = (data.draw(st.integers(low, 4)) for low in (0, 0, 0))
    bits = data.draw(
        st.lists(st.booleans(), min_size=batch * queries * keys, max_size=batch * queries * keys)
    )
    mask = torch.tensor(bits, dtype=torch.bool).view(batch, queries, keys)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    scale = data.draw(st.sampled_from([0.1, 1.0, 1e4]))
    scores = torch.randn(batch, queries, keys, generator=generator) * scale
    weights = functional.masked_softmax(scores, mask)
    for row, allowed, found in zip(
        scores.flatten(0, 1), mask.flatten(0, 1), weights.flatten(0, 1), strict=True
    ):
        assert (found[~allowed] == 0).all()
        assert torch.allclose(found[allowed], row[allowed].softmax(-1), atol=1e-6)
