from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import (
    Coverage,
    Entmax,
    LocalPredictive,
    Monotonic,
    MultiHead,
    Sampled,
    Softmax,
    State,
    masks,
)
from regard.attention.heads import HeadScores, HeadSelections
from regard.errors import MechanismError


@pytest.mark.parametrize("selection", [Entmax(1.4, learned=True), Monotonic(), LocalPredictive(4)])
def test_every_head_selects_with_its_own_parameters(selection):
    attention = MultiHead(2, 8, selection=selection).eval()
    assert isinstance(attention.selection, HeadSelections)
    first, second = attention.selection.heads
    for parameter in second.parameters():
        torch.nn.init.normal_(parameter)
    scores, query = torch.randn(3, 2, 1, 5), torch.randn(3, 2, 1, 4)
    mask = torch.rand(3, 2, 1, 5) > 0.2
    weights = attention.selection(scores, mask, query=query).weights
    for head, part in enumerate((first, second)):
        alone = part(scores[:, head], mask[:, head], query=query[:, head]).weights
        assert torch.allclose(weights[:, head], alone, atol=1e-6)


def test_masks_reach_the_head_they_are_for():
    attention = MultiHead(2, 8, selection=Entmax(1.4, learned=True))
    items = torch.randn(3, 5, 8)
    mask = torch.ones(1, 2, 5, 5, dtype=torch.bool)
    mask[:, 1, :, 2:] = False
    weights = attention(items, items, mask=mask).weights
    assert (weights[:, 1, :, 2:] == 0).all()
    assert (weights[:, 0, :, 2:] > 0).any()
    shared = attention(items, items, mask=masks.causal(5)).weights
    assert (shared.masked_fill(masks.causal(5), 0.0) == 0).all()


def test_parts_without_parameters_serve_all_heads_at_once():
    attention = MultiHead(2, 8, selection=Softmax())
    assert isinstance(attention.selection, Softmax)
    assert not isinstance(attention.score, HeadScores)
    assert isinstance(MultiHead(2, 8, selection=Sampled()).selection, Sampled)


def test_every_head_has_its_own_state():
    attention = MultiHead(2, 8, score=Coverage(4, 4, hidden_dim=3), selection=Monotonic(noise=0.0))
    items = torch.randn(3, 5, 8)
    prepared = attention.prepare(items)
    first = attention(items[:, :1], prepared)
    second = attention(items[:, 1:2], prepared, state=first.state)
    assert second.state.total.shape == (3, 2, 1, 5)
    exchanged = State(*[part.flip(1) for part in first.state[:2]], 1)
    other = attention(items[:, 1:2], prepared, state=exchanged)
    assert not torch.allclose(other.weights, second.weights)


def test_heads_draw_in_one_order():
    attention = MultiHead(2, 8, selection=Monotonic(noise=1.0)).train()
    items = torch.randn(3, 5, 8)
    drawn = [
        attention(items[:, :1], items, generator=torch.Generator().manual_seed(4)).weights
        for _ in range(2)
    ]
    assert torch.equal(*drawn)
    assert not torch.allclose(drawn[0][:, 0], drawn[0][:, 1])


class Eye(nn.Module):
    """Knows how its parts begin, and would not have them drawn anew one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.eye_(self.inner.weight)
        nn.init.zeros_(self.inner.bias)

    def forward(self, query, key):
        return self.inner(query) @ key.transpose(-1, -2)


def test_a_module_draws_its_own_parts():
    for head in MultiHead(2, 8, score=Eye()).score.heads:
        assert torch.equal(head.function.inner.weight, torch.eye(4))


def test_parts_of_another_size_are_named():
    with pytest.raises(MechanismError, match=r"query_dim=4, the size of a head; got 8 in Coverage"):
        MultiHead(2, 8, score=Coverage(8, 8, hidden_dim=3))
    with pytest.raises(MechanismError, match=r"score's size; got query_dim=8 and 4"):
        MultiHead(2, 8, score="scaled_dot", selection=LocalPredictive(8))
