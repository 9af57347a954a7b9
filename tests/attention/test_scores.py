from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from regard.attention import SCORES, Additive, Bilinear, Dot, ScaledDot, Score, Uniform
from regard.errors import MechanismError


def built(name: str, query_dim: int = 4, key_dim: int = 4) -> Score:
    torch.manual_seed(5)
    sizes = {"hidden_dim": 3} if name == "additive" else {}
    return SCORES[name](query_dim=query_dim, key_dim=key_dim, **sizes)


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def times(matrix: Tensor, vector: list[float]) -> list[float]:
    return [dot(row, vector) for row in matrix.tolist()]


def in_loops(score: Score, query: list[float], key: list[float]) -> float:
    """Score one pair without a tensor operation."""
    if isinstance(score, Additive):
        left = times(score.query_projection.weight, query)
        right = times(score.key_projection.weight, key)
        bias = score.key_projection.bias.tolist()
        inner = [math.tanh(a + b + c) for a, b, c in zip(left, right, bias, strict=True)]
        return dot(score.vector.tolist(), inner)
    if isinstance(score, Bilinear):
        return dot(query, times(score.key_projection.weight, key))
    if isinstance(score, Uniform):
        return 0.0
    plain = dot(query, key)
    return plain / math.sqrt(len(key)) if isinstance(score, ScaledDot) else plain


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_plain_loops(name):
    score = built(name)
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    found = score(query, score.prepare(key))
    assert found.shape == (2, 3, 5)
    for row in range(2):
        for q in range(3):
            for k in range(5):
                expected = in_loops(score, query[row, q].tolist(), key[row, k].tolist())
                assert found[row, q, k].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_scores_work_on_any_leading_axes(name):
    score = built(name)
    query, key = torch.randn(2, 6, 3, 4), torch.randn(2, 6, 5, 4)
    whole = score(query, score.prepare(key))
    single = score(query[1, 2], score.prepare(key[1, 2]))
    assert torch.allclose(whole[1, 2], single, atol=1e-6)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_half_precision_come_in_float32(name):
    score = built(name).to(torch.bfloat16)
    query = torch.randn(2, 3, 4, dtype=torch.bfloat16)
    assert score(query, score.prepare(query)).dtype == torch.float32


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


def test_bilinear_worked_by_hand():
    score = Bilinear(2, 1)
    with torch.no_grad():
        score.key_projection.weight.copy_(torch.tensor([[3.0], [-1.0]]))
    found = score(torch.tensor([[[1.0, 2.0]]]), score.prepare(torch.tensor([[[2.0]]])))
    assert found.item() == 2.0 * (3.0 - 2.0)


def test_scaled_dot_worked_by_hand():
    query = torch.full((1, 1, 4), 2.0)
    assert ScaledDot()(query, query).item() == 8.0
    assert ScaledDot(scale=0.5)(query, query).item() == 8.0
    assert Dot()(query, query).item() == 16.0


@pytest.mark.parametrize("name", ["additive", "bilinear", "uniform"])
def test_sizes_may_differ(name):
    score = built(name, 4, 6)
    assert score(torch.randn(2, 3, 4), score.prepare(torch.randn(2, 5, 6))).shape == (2, 3, 5)
    assert (score.query_dim, score.key_dim, score.one_size) == (4, 6, False)


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_the_dot_product_takes_one_size(name):
    with pytest.raises(MechanismError, match=r"query_dim must equal key_dim.*got 4 and 6"):
        built(name, 4, 6)
    assert SCORES[name](key_dim=7).query_dim == 7
    assert SCORES[name](5).key_dim == 5


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [0, -2])
def test_sizes_below_one_are_refused(name, size):
    with pytest.raises(MechanismError, match=f"query_dim must be at least 1; got {size}"):
        built(name, size, 4)
    with pytest.raises(MechanismError, match=f"key_dim must be at least 1; got {size}"):
        built(name, 4, size)


def test_other_settings_are_checked():
    with pytest.raises(MechanismError, match="hidden_dim must be at least 1; got 0"):
        Additive(4, 4, hidden_dim=0)
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(MechanismError, match=f"scale must be positive and finite; got {scale}"):
            ScaledDot(scale=scale)


@pytest.mark.parametrize("name", ["additive", "bilinear"])
def test_parameters_can_be_drawn_anew(name):
    score = built(name)
    before = [parameter.clone() for parameter in score.parameters()]
    score.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, score.parameters(), strict=True))


def test_additive_without_bias_has_none():
    score = Additive(4, 4, hidden_dim=3, bias=False)
    assert score.key_projection.bias is None
    assert "hidden_dim=3" in repr(score)
