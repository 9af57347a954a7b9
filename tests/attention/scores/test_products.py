from __future__ import annotations

import math

import pytest
import torch
from tests.attention.scores.loops import built, dot

from regard.attention import SCORES, Bilinear, Cosine, Dot, Rotary, ScaledDot
from regard.errors import MechanismError


def test_bilinear_worked_by_hand():
    score = Bilinear(2, 1, bias=True)
    with torch.no_grad():
        score.key_projection.weight.copy_(torch.tensor([[3.0], [-1.0]]))
    query, key = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[2.0]]])
    assert score(query, score.prepare(key)).item() == 2.0 * (3.0 - 2.0)
    with torch.no_grad():
        score.query_bias.copy_(torch.tensor([1.0, 0.0]))
    assert score(query, score.prepare(key)).item() == 2.0 * (6.0 - 2.0)


def test_dot_products_worked_by_hand():
    query = torch.full((1, 1, 4), 2.0)
    assert ScaledDot()(query, query).item() == 8.0
    assert ScaledDot(scale=0.5)(query, query).item() == 8.0
    assert Dot()(query, query).item() == 16.0
    scaled = Dot(learned_scale=True)
    assert scaled(query, query).item() == 16.0
    with torch.no_grad():
        scaled.scale.fill_(-0.5)
    assert scaled(query, query).item() == -8.0
    scaled.reset_parameters()
    assert scaled.scale.item() == 1.0


def test_the_cosine_worked_by_hand():
    score = Cosine(strength=2.0)
    query = torch.tensor([[[3.0, 4.0]]])
    key = torch.tensor([[[30.0, 40.0], [-4.0, 3.0], [-0.3, -0.4], [0.0, 0.0]]])
    found = score(query, score.prepare(key))
    assert found[0, 0].tolist() == pytest.approx([2.0, 0.0, -2.0, 0.0], abs=1e-6)
    fixed = Cosine(strength=2.0, learned=False)
    assert torch.allclose(fixed(query, fixed.prepare(key)), found)
    assert not list(fixed.parameters())
    found.sum().backward()
    assert score.log_strength.grad.item() == pytest.approx(found.sum().item(), abs=1e-6)


def test_vectors_of_zeros_have_finite_cosines_and_gradients():
    query = torch.zeros(1, 1, 3, requires_grad=True)
    key = torch.zeros(1, 2, 3, requires_grad=True)
    score = Cosine()
    score(query, score.prepare(key)).sum().backward()
    assert query.grad.isfinite().all()
    assert key.grad.isfinite().all()


def test_rotary_worked_by_hand():
    # One pair of features turns by one radian a place: cos(i - j) for equal vectors.
    vectors = torch.tensor([[[1.0, 0.0]] * 4])
    found = Rotary()(vectors, vectors)[0] * math.sqrt(2.0)
    expected = [[math.cos(i - j) for j in range(4)] for i in range(4)]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-6)


def test_rotary_depends_on_distances_alone_and_serves_a_cache():
    query, key = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
    score = Rotary()
    whole = score(query, key)
    moved = score(query[:, 1:], key[:, 1:])  # all places are one less
    assert torch.allclose(whole[:, 1:, 1:], moved, atol=1e-5)
    last = score(query[:, 3:4], key[:, :4])  # a query that reads a growing cache
    assert torch.allclose(last, whole[:, 3:4, :4], atol=1e-5)
    assert not torch.allclose(whole, ScaledDot()(query, key), atol=1e-2)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "rotary"])
def test_products_take_one_size(name):
    with pytest.raises(MechanismError, match=r"query_dim must equal key_dim.*got 4 and 6"):
        built(name, 4, 6)
    assert SCORES[name](key_dim=8).query_dim == 8
    assert SCORES[name](6).key_dim == 6


def test_settings_are_checked():
    for number in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(MechanismError, match=f"scale must be positive.*got {number}"):
            ScaledDot(scale=number)
        with pytest.raises(MechanismError, match=f"strength must be positive.*got {number}"):
            Cosine(strength=number)
    with pytest.raises(MechanismError, match=r"base must be above 1; got 1.0"):
        Rotary(base=1.0)
    with pytest.raises(MechanismError, match="query_dim must be even for Rotary; got 5"):
        Rotary(5)
    with pytest.raises(MechanismError, match="query_dim must be even for Rotary; got 3"):
        Rotary().prepare(torch.zeros(1, 2, 3))


def test_lengths_do_not_count_for_the_cosine():
    query, key = [1.0, -2.0, 0.5], [0.3, 0.1, -0.7]
    score = Cosine(learned=False, strength=1.0)
    found = score(torch.tensor([[query]]) * 7.0, score.prepare(torch.tensor([[key]]) * 0.01))
    expected = dot(query, key) / math.sqrt(dot(query, query) * dot(key, key))
    assert found.item() == pytest.approx(expected, abs=1e-6)
