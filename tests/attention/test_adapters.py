"""Attention as a layer that returns one tensor."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from regard import Attention, MultiHead
from regard.attention import ContextOnly
from regard.attention.pooling import AttentionPooling

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True] * 5, [True, True, False, False, False]])


def test_a_pooling_in_a_sequential() -> None:
    pooling = AttentionPooling(8)
    model = nn.Sequential(ContextOnly(pooling), nn.Linear(8, 3))
    assert torch.equal(model(X), model[1](pooling(X).context))
    assert torch.equal(model[0](X, mask=MASK), pooling(X, mask=MASK).context)


def test_self_attention_in_a_sequential() -> None:
    heads = MultiHead(2, 8)
    model = nn.Sequential(ContextOnly(heads, itself=True), nn.LayerNorm(8))
    assert torch.equal(model(X), model[1](heads(X, X).context))


def test_query_and_items_apart() -> None:
    attention = Attention("dot", query_dim=8, key_dim=8)
    query = torch.randn(2, 8)
    expected = attention(query, X, mask=MASK).context
    assert torch.equal(ContextOnly(attention)(query, X, mask=MASK), expected)


@pytest.mark.compiled
def test_compiled_it_says_the_same() -> None:
    model = nn.Sequential(ContextOnly(AttentionPooling(8)), nn.Linear(8, 3))
    assert torch.allclose(torch.compile(model, backend="aot_eager")(X), model(X), atol=1e-6)
