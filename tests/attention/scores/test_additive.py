from __future__ import annotations

import math

import pytest
import torch
from tests.attention.scores.loops import additive

from regard.attention import Additive, Attention, Coverage, LocationSensitive, State, unroll
from regard.errors import MechanismError


def test_additive_worked_by_hand():
    score = Additive(1, 1, hidden_dim=2)
    with torch.no_grad():
        score.query_projection.weight.copy_(torch.tensor([[1.0], [0.0]]))
        score.key_projection.weight.copy_(torch.tensor([[1.0], [1.0]]))
        score.key_projection.bias.copy_(torch.tensor([0.0, -1.0]))
        score.vector.copy_(torch.tensor([1.0, 10.0]))
    found = score(torch.tensor([[[2.0]]]), score.prepare(torch.tensor([[[-2.0], [1.0]]])))
    expected = [10.0 * math.tanh(-3.0), math.tanh(3.0)]
    assert found[0, 0].tolist() == pytest.approx(expected)


def test_additive_without_bias_has_none():
    score = Additive(4, 4, hidden_dim=3, bias=False)
    assert score.key_projection.bias is None
    assert "hidden_dim=3" in repr(score)
    with pytest.raises(MechanismError, match="hidden_dim must be at least 1; got 0"):
        Additive(4, 4, hidden_dim=0)


def test_weight_normalisation_learns_the_length_apart():
    score = Additive(4, 4, hidden_dim=9, weight_norm=True)
    assert score.length.item() == pytest.approx(1 / 3)
    query, key = torch.randn(1, 1, 4), torch.randn(1, 1, 4)
    found = score(query, score.prepare(key))
    wanted = additive(score, query[0, 0].tolist(), key[0, 0].tolist(), [0.0] * 9)
    assert found.item() == pytest.approx(wanted, abs=1e-6)
    with torch.no_grad():
        score.vector.mul_(5.0)  # only its direction counts
        score.length.mul_(2.0)
    assert score(query, score.prepare(key)).item() == pytest.approx(2.0 * wanted, abs=1e-6)


def test_coverage_worked_by_hand():
    score = Coverage(1, 1, hidden_dim=1)
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.fill_(1.0)
        score.additive.key_projection.bias.fill_(0.0)
        score.coverage_projection.weight.fill_(-2.0)
    query, key = torch.tensor([[[0.5]]]), torch.tensor([[[0.0], [0.0]]])
    state = State(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[1.5, 0.5]]]), 2)
    found = score(query, score.prepare(key), state)[0, 0].tolist()
    assert found == pytest.approx([math.tanh(0.5 - 3.0), math.tanh(0.5 - 1.0)])


def test_coverage_can_read_every_item_once():
    # With a strong dislike of what was read, equal items are read in turn.
    score = Coverage(1, 1, hidden_dim=1)
    with torch.no_grad():
        score.additive.query_projection.weight.zero_()
        score.additive.key_projection.weight.fill_(1.0)
        score.additive.key_projection.bias.zero_()
        score.additive.vector.fill_(30.0)
        score.coverage_projection.weight.fill_(-2.0)
    attention = Attention(score)
    key = torch.tensor([[[0.3], [0.2], [0.1]]])
    attended = unroll(attention, torch.zeros(1, 3, 1), attention.prepare(key))
    assert sorted(attended.weights.argmax(-1)[0].tolist()) == [0, 1, 2]
    assert attended.state.total[0, 0].sum().item() == pytest.approx(3.0)


def test_location_sensitivity_can_move_on():
    # A kernel that looks one item back moves the weight one item forward at each step.
    score = LocationSensitive(1, 1, hidden_dim=1, channels=1, kernel_size=3)
    with torch.no_grad():
        for parameter in score.additive.parameters():
            parameter.zero_()
        score.additive.vector.fill_(50.0)
        score.convolution.weight.copy_(torch.tensor([[[1.0, 0.0, 0.0]]]))
        score.location_projection.weight.fill_(2.0)
    attention = Attention(score)
    prepared = attention.prepare(torch.zeros(1, 5, 1))
    start = State.following(None, torch.tensor([[[1.0, 0.0, 0.0, 0.0, 0.0]]]))
    attended = unroll(attention, torch.zeros(1, 4, 1), prepared, state=start)
    assert attended.weights.argmax(-1).tolist() == [[1, 2, 3, 4]]


def test_kernels_are_odd_and_not_empty():
    with pytest.raises(MechanismError, match="kernel_size must be odd; got 4"):
        LocationSensitive(4, 4, hidden_dim=3, kernel_size=4)
    with pytest.raises(MechanismError, match="channels must be at least 1; got 0"):
        LocationSensitive(4, 4, hidden_dim=3, channels=0)
