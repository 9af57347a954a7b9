from __future__ import annotations

import math

import pytest
import torch

from regard.attention import Attention, Dot, Monotonic, MultiHead, State, functional, unroll
from regard.errors import MechanismError


def recursive(stop, before):
    """Follow the definition: where it may come from, and what it passes over on the way."""
    weights = []
    for j in range(len(stop)):
        arrived = 0.0
        for k in range(j + 1):
            passed = 1.0
            for over in range(k, j):
                passed *= 1.0 - stop[over]
            arrived += before[k] * passed
        weights.append(stop[j] * arrived)
    return weights


def test_the_expected_weights_are_those_of_the_definition():
    stop, before = torch.rand(3, 7), torch.rand(3, 7).softmax(-1)
    stop[0, 3] = 1.0
    stop[1, 2:5] = 0.0
    found = functional.monotonic_weights(stop, before)
    for row in range(3):
        expected = recursive(stop[row].tolist(), before[row].tolist())
        assert found[row].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_recurrence_is_that_of_a_loop():
    for keys in (1, 2, 3, 8, 13):
        decay, inputs = torch.rand(2, keys), torch.randn(2, keys)
        found, before = functional.recurrence(decay, inputs), torch.zeros(2)
        for j in range(keys):
            before = decay[:, j] * before + inputs[:, j]
            assert torch.allclose(found[:, j], before, atol=1e-6)


def test_monotonic_worked_by_hand():
    # Stops with probability 1/2 everywhere, from the first item.
    selection = Monotonic(noise=0.0, bias=0.0)
    first = selection(torch.zeros(1, 1, 3), None).weights
    assert first[0, 0].tolist() == pytest.approx([1 / 2, 1 / 4, 1 / 8])
    state = State.following(None, first)
    second = selection(torch.zeros(1, 1, 3), None, state=state).weights
    assert second[0, 0].tolist() == pytest.approx([1 / 4, 1 / 4, 3 / 16])


def test_a_hard_reader_stops_at_the_first_likely_item_and_never_goes_back():
    selection = Monotonic(bias=0.0).eval()
    likely = torch.tensor([[[-1.0, 2.0, -1.0, 3.0]]])
    first = selection(likely, None).weights
    assert first[0, 0].tolist() == [0, 1, 0, 0]
    state = State.following(None, first)
    again = selection(likely, None, state=state).weights
    assert again[0, 0].tolist() == [0, 1, 0, 0]  # it may stay
    further = selection(torch.tensor([[[9.0, -1.0, -1.0, 3.0]]]), None, state=state).weights
    assert further[0, 0].tolist() == [0, 0, 0, 1]
    gone = selection(torch.tensor([[[9.0, -1.0, -1.0, -1.0]]]), None, state=state)
    assert gone.weights[0, 0].tolist() == [0, 0, 0, 0]
    after = selection(likely, None, state=State.following(state, gone.weights))
    assert (after.weights == 0).all()


def test_hidden_items_are_passed_over():
    mask = torch.tensor([[[False, True, False, True]]])
    weights = Monotonic(noise=0.0, bias=0.0)(torch.zeros(1, 1, 4), mask).weights
    assert weights[0, 0].tolist() == pytest.approx([0, 1 / 2, 0, 1 / 4])
    hard = Monotonic(bias=1.0).eval()(torch.zeros(1, 1, 4), mask).weights
    assert hard[0, 0].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_two_thousand_items_stay_finite(size):
    selection = Monotonic(noise=1.0)
    scores = (size * torch.randn(2, 1, 2000)).requires_grad_()
    state = None
    for _ in range(3):
        weights = selection(scores, None, state=state).weights
        state = State.following(state, weights)
        assert weights.isfinite().all()
        assert (weights >= 0).all()
        assert (weights.sum(-1) <= 1 + 1e-5).all()
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()


def test_weights_over_two_thousand_items_are_exact():
    stop = torch.full((1, 2000), 1e-3, dtype=torch.float64)
    before = torch.zeros_like(stop)
    before[0, 0] = 1.0
    found = functional.monotonic_weights(stop, before)
    expected = 1e-3 * (1 - 1e-3) ** torch.arange(2000, dtype=torch.float64)
    assert torch.allclose(found[0], expected, rtol=1e-12)
    single = functional.monotonic_weights(stop.float(), before.float())
    assert torch.allclose(single.double(), found, rtol=1e-3)


def test_the_first_settings_do_not_stick_to_the_first_item():
    torch.manual_seed(1)
    attention = Attention("additive", "monotonic", query_dim=8, key_dim=8, hidden_dim=8).train()
    key, queries = torch.randn(200, 12, 8), torch.randn(200, 4, 8)
    weights = unroll(attention, queries, attention.prepare(key)).weights
    places = (weights * torch.arange(12.0)).sum(-1) / weights.sum(-1)
    assert weights[:, 0, 0].mean() < 0.4
    assert (places.mean(0).diff() > 0.5).all()  # each step moves on


def test_each_head_has_its_own_bias():
    attention = MultiHead(2, 8, selection=Monotonic(noise=0.0)).train()
    with torch.no_grad():
        attention.selection.heads[0].bias.fill_(9.0)
        attention.selection.heads[1].bias.fill_(-9.0)
    items = torch.randn(2, 5, 8)
    weights = attention(items[:, :1], items).weights
    assert (weights[:, 0, 0, 0] > 0.9).all()
    assert (weights[:, 1].sum(-1) < 0.2).all()


def test_in_evaluation_the_expectation_can_be_asked_for():
    key, query = torch.randn(2, 5, 4), torch.randn(2, 1, 4)
    selection = Monotonic(noise=1.0, evaluation="expected")
    attention = Attention(Dot(), selection).eval()
    quiet = Attention(Dot(), Monotonic(noise=0.0)).train()
    assert torch.equal(attention(query, key).weights, quiet(query, key).weights)
    assert attention.traits.differentiable
    assert not attention.traits.hard_evaluation


@pytest.mark.usefixtures("without_shapes")
def test_settings_are_checked():
    for settings in ({"noise": -1.0}, {"noise": math.inf}, {"bias": math.nan}):
        with pytest.raises(MechanismError, match="noise must be at least 0, and bias finite"):
            Monotonic(**settings)
    with pytest.raises(MechanismError, match="evaluation must be 'hard' or 'expected'; got 'soft'"):
        Monotonic(evaluation="soft")
