from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import Attention, Function, Location, MultiHead, Traits
from regard.errors import MechanismError, ShapeError
from regard.testing import check_attention


def test_location_worked_by_hand():
    score = Location(2, max_keys=3)
    with torch.no_grad():
        score.projection.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    query = torch.tensor([[[2.0, 5.0]]])
    assert score(query, score.prepare(torch.randn(1, 3, 7)))[0, 0].tolist() == [2.0, 5.0, 7.0]
    assert score(query, score.prepare(torch.randn(1, 2, 7)))[0, 0].tolist() == [2.0, 5.0]


def test_more_keys_than_places_are_refused():
    attention = Attention(Location(4, max_keys=3))
    with pytest.raises(ShapeError, match=r"at most max_keys=3 items for Location; got 4"):
        attention(torch.zeros(1, 4), torch.zeros(1, 4, 4))


def test_a_cache_may_not_outgrow_the_places():
    attention = Attention(Location(4, max_keys=3))
    cache = attention.prepare(torch.zeros(1, 3, 4))
    grown = cache.append(attention.prepare(torch.zeros(1, 1, 4)))
    with pytest.raises(ShapeError, match=r"at most max_keys=3 items for Location; got 4"):
        attention(torch.zeros(1, 4), grown)


class Normalising(nn.Module):
    """Divides by lengths, as people's own scores do."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(4, 4, bias=False)

    def forward(self, query, key):
        query = self.projection(query)
        query = query / query.norm(dim=-1, keepdim=True)
        return query @ (key / key.norm(dim=-1, keepdim=True)).transpose(-1, -2)


def distance(query, key):
    return -torch.cdist(query, key)


class Learned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, query, key):
        return self.scale * (query @ key.transpose(-1, -2))


@pytest.mark.parametrize("function", [distance, Learned(), Normalising()])
def test_a_function_of_ones_own_conforms(function):
    check_attention(Attention(function), checks=None)
    check_attention(MultiHead(2, 8, score=function))


def test_a_functions_parameters_are_the_attentions_and_each_heads():
    assert len(list(Attention(Learned()).parameters())) == 1
    heads = MultiHead(2, 8, score=Learned()).score.heads
    assert heads[0].function.scale is not heads[1].function.scale


def test_functions_state_their_traits_and_sizes():
    score = Function(distance, 3, 3, traits=Traits(differentiable=False))
    assert not Attention(score).traits.differentiable
    with pytest.raises(ShapeError, match="query must have size query_dim=3"):
        Attention(score)(torch.zeros(1, 4), torch.zeros(1, 2, 3))
    with pytest.raises(MechanismError, match=r"query_dim must be at least 1; got 0"):
        Function(distance, 0)


@pytest.mark.usefixtures("without_shapes")
def test_wrong_functions_are_named():
    with pytest.raises(MechanismError, match="function must be callable; got 3"):
        Function(3)
    attention = Attention(lambda query, key: query.sum(-1))
    with pytest.raises(ShapeError, match=r"scores must have shape .* \(2, 1, 3\); got \(2, 1\)"):
        attention(torch.zeros(2, 4), torch.zeros(2, 3, 4))
