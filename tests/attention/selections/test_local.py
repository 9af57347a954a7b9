from __future__ import annotations

import math

import pytest
import torch

from regard.attention import Attention, LocalMonotonic, LocalPredictive, MultiHead, State, unroll
from regard.errors import MechanismError


def at_step(step, keys, queries=1):
    weights = torch.zeros(1, queries, keys)
    return State(weights, weights, step)


def softmax(line):
    powers = [math.exp(score) for score in line]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("step", range(7))
def test_local_monotonic_is_that_of_plain_loops(step):
    scores = torch.randn(1, 1, 5)
    state = at_step(step, 5) if step else None
    found = LocalMonotonic(1)(scores, None, state=state).weights[0, 0]
    centre = min(step, 4)
    near = [j for j in range(5) if abs(j - centre) <= 1]
    expected = [0.0] * 5
    for j, share in zip(near, softmax([scores[0, 0, j].item() for j in near]), strict=True):
        expected[j] = share
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_places_count_what_may_be_attended_to():
    # Padding before, between and behind: the window moves over the three real items alone.
    mask = torch.tensor([[[False, True, False, True, True, False]]])
    for step, expected in enumerate(([1, 3], [1, 3, 4], [3, 4], [3, 4])):
        state = at_step(step, 6) if step else None
        weights = LocalMonotonic(1)(torch.zeros(1, 1, 6), mask, state=state).weights[0, 0]
        assert weights.nonzero().flatten().tolist() == expected


def test_local_monotonic_moves_along_a_sequence():
    attention = Attention("dot", LocalMonotonic(1))
    prepared = attention.prepare(torch.zeros(1, 5, 4))
    weights = unroll(attention, torch.zeros(1, 5, 4), prepared).weights[0]
    third = 1 / 3
    expected = [
        [0.5, 0.5, 0, 0, 0],
        [third, third, third, 0, 0],
        [0, third, third, third, 0],
        [0, 0, third, third, third],
        [0, 0, 0, 0.5, 0.5],
    ]
    assert torch.allclose(weights, torch.tensor(expected))


def centre_of(selection, query, count):
    hidden = [math.tanh(v) for v in (selection.hidden.weight @ query).tolist()]
    share = sum(a * b for a, b in zip(selection.place.weight[0].tolist(), hidden, strict=True))
    return (count - 1) / (1.0 + math.exp(-share))


def test_local_predictive_is_that_of_plain_loops():
    selection = LocalPredictive(3, half_width=2)
    scores, query = torch.randn(2, 4, 9), torch.randn(2, 4, 3)
    mask = torch.ones(2, 1, 9, dtype=torch.bool)
    mask[1, :, 6:] = False
    found = selection(scores, mask, query=query).weights
    for row, count in ((0, 9), (1, 6)):
        for i in range(4):
            centre = centre_of(selection, query[row, i], count)
            near = [j for j in range(count) if abs(j - centre) <= 2]
            shares = softmax([scores[row, i, j].item() for j in near])
            expected = [0.0] * 9
            for j, share in zip(near, shares, strict=True):
                expected[j] = share * math.exp(-((j - centre) ** 2) / 2.0)
            assert found[row, i].tolist() == pytest.approx(expected, abs=1e-5)


def test_local_predictive_worked_by_hand():
    selection = LocalPredictive(1, half_width=2)
    with torch.no_grad():
        selection.place.weight.zero_()  # the middle
    weights = selection(torch.zeros(1, 1, 5), None, query=torch.ones(1, 1, 1)).weights[0, 0]
    expected = [math.exp(-2.0) / 5, math.exp(-0.5) / 5, 0.2, math.exp(-0.5) / 5, math.exp(-2.0) / 5]
    assert weights.tolist() == pytest.approx(expected)


def test_the_place_gets_a_gradient_and_each_head_its_own():
    attention = MultiHead(2, 8, score="scaled_dot", selection=LocalPredictive(4, half_width=2))
    items = torch.randn(2, 9, 8)
    attention(items, items).context.square().sum().backward()
    first, second = attention.selection.heads
    for head in (first, second):
        assert head.hidden.weight.grad.abs().sum() > 0
    assert not torch.equal(first.hidden.weight, second.hidden.weight)


@pytest.mark.usefixtures("without_shapes")
def test_settings_are_checked():
    for part in (LocalMonotonic, lambda d: LocalPredictive(4, half_width=d)):
        for width in (0, 2.5, math.nan):
            with pytest.raises(MechanismError, match=f"half_width must be at least 1; got {width}"):
                part(width)
    with pytest.raises(MechanismError, match=r"query_dim and hidden_dim must be.*got 4 and 0"):
        LocalPredictive(4, hidden_dim=0)
    with pytest.raises(MechanismError, match="query must be given to LocalPredictive"):
        LocalPredictive(4)(torch.zeros(1, 1, 3), None)
    with pytest.raises(MechanismError, match="of the score's size; got query_dim=5 and 4"):
        Attention("additive", LocalPredictive(5), query_dim=4, key_dim=4, hidden_dim=3)
    with pytest.raises(MechanismError, match="query_dim must be given for selection"):
        Attention("dot", "local_predictive")
    with pytest.raises(MechanismError, match=r"score's size; got query_dim=8 and 4"):
        MultiHead(2, 8, selection=LocalPredictive(8))
