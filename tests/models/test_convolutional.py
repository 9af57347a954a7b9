"""The convolutional decoder in plain loops, its reach, and what it keeps between steps."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from regard.attention import Attention, MultiHead
from regard.errors import MechanismError
from regard.models.convolutional import ConvolutionalDecoder
from regard.models.encoders import Encoded
from regard.models.layers import sinusoids

HIDDEN, DIM, ITEMS, FINAL = 4, 5, 6, 7


def look() -> Attention:
    return Attention("bilinear", query_dim=DIM, key_dim=ITEMS)


def made(*attentions: Any, width: int = 3) -> ConvolutionalDecoder:
    decoder = ConvolutionalDecoder(
        nn.Embedding(9, DIM), (ITEMS, FINAL), attentions, hidden_dim=HIDDEN, width=width
    )
    for parameter in decoder.parameters():  # biases that begin as zero would hide a mistake
        nn.init.normal_(parameter, std=0.4)
    return decoder.eval()


@pytest.fixture
def encoded() -> Encoded:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    memory = torch.randn(2, 3, ITEMS).masked_fill(~mask.unsqueeze(-1), 0.0)
    return Encoded(memory, mask, torch.randn(2, FINAL))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_in_plain_loops(width: int, encoded: Encoded) -> None:
    decoder = made(look(), None, width=width)
    tokens = torch.randint(0, 9, (2, 4))
    found = decoder(tokens, encoded)
    half = math.sqrt(0.5)
    for row in range(2):
        embedded = decoder.embedding(tokens[row]) * math.sqrt(DIM) + sinusoids(0, 4, DIM)
        items = decoder.projection(embedded)
        for block in decoder.blocks:
            weight, bias = block.convolution.convolution.weight, block.convolution.convolution.bias
            refined = []
            for place in range(4):
                both = bias
                for step in range(width):
                    other = place - (width - 1) + step
                    if other >= 0:
                        both = both + weight[:, :, step] @ items[other]
                inner = both[:HIDDEN] * torch.sigmoid(both[HIDDEN:])
                query = (block.query_projection(inner) + embedded[place]) * half
                context = encoded.final[row]
                if block.reader.attention is not None:
                    real = encoded.memory[row, encoded.mask[row]]
                    weights = (block.reader.attention.score.prepare(real) @ query).softmax(dim=0)
                    context = weights @ real
                    seen = found.weights[row, 0, place, encoded.mask[row]]
                    torch.testing.assert_close(seen, weights, atol=1e-5, rtol=1e-4)
                inner = (inner + block.context_projection(context)) * half
                refined.append((inner + items[place]) * half)
            items = torch.stack(refined)
        torch.testing.assert_close(
            found.features[row], decoder.readout(items), atol=1e-5, rtol=1e-4
        )


def test_a_token_sees_as_far_back_as_the_blocks_reach_and_nothing_ahead(encoded: Encoded) -> None:
    decoder = made(None, None)  # two blocks of width 3: four tokens before it
    tokens = torch.full((2, 9), 4)
    other = tokens.clone()
    other[:, 3] = 5
    ours, theirs = (decoder(t, encoded).features[0] for t in (tokens, other))
    changed = [place for place in range(9) if not torch.equal(ours[place], theirs[place])]
    assert changed == [3, 4, 5, 6, 7]


def test_the_state_does_not_grow(encoded: Encoded) -> None:
    decoder = made(look(), look(), width=4)
    state = decoder.start(encoded)
    sizes = [tensor.shape for tensor in state.hidden]
    assert sizes == [(2, 1, 3, HIDDEN), (2, 1, 3, HIDDEN), (2, 1, FINAL)]
    for _ in range(6):
        _, state = decoder.step(torch.full((2, 1), 4), state)
    assert [tensor.shape for tensor in state.hidden] == sizes
    assert state.position == 6


def test_heads_and_single_attentions_in_one_decoder(encoded: Encoded) -> None:
    heads = MultiHead(5, DIM, key_dim=ITEMS)
    decoder = made(heads, None, look())
    single = decoder.blocks[2].reader.attention
    assert decoder.attentions() == [heads, single]
    decoded = decoder(torch.full((2, 3), 4), encoded)
    assert decoded.weights.shape == (2, 6, 3, 3)
    assert decoded.distribution is decoded.weights
    assert decoded.log_prob is None
    torch.testing.assert_close(decoded.weights.sum(dim=-1), torch.ones(2, 6, 3))


def test_refused_when_built() -> None:
    with pytest.raises(MechanismError, match="attentions must hold one for each block; got none"):
        made()
    with pytest.raises(MechanismError, match="width must be at least 1; got 0"):
        made(None, width=0)
    with pytest.raises(MechanismError, match=r"query_dim must be 5, .*; got 4"):
        made(Attention("bilinear", query_dim=HIDDEN, key_dim=ITEMS))
