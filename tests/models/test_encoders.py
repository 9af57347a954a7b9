"""Every encoder reads sentences of any length, and padding is nothing to it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from regard.errors import MechanismError
from regard.models.encoders import (
    ConvolutionalEncoder,
    EmbeddingEncoder,
    Encoder,
    RecurrentEncoder,
    TransformerEncoder,
)
from regard.models.layers import sinusoids

DIM, HIDDEN = 6, 7
KINDS = {
    f"{cell} {layers} {'both' if both else 'one'}": {
        "cell": cell,
        "layers": layers,
        "bidirectional": both,
    }
    for cell in ("rnn", "gru", "lstm")
    for layers in (1, 2)
    for both in (True, False)
}


def made(kind: str, **changes: Any) -> Encoder:
    embedding = nn.Embedding(11, DIM, padding_idx=0)
    if kind == "transformer":
        return TransformerEncoder(embedding, num_heads=3, layers=2, hidden_dim=HIDDEN, **changes)
    if kind == "embedding":
        return EmbeddingEncoder(embedding, **changes)
    if kind == "convolution":
        return ConvolutionalEncoder(embedding, HIDDEN, layers=2, width=5, **changes)
    return RecurrentEncoder(embedding, HIDDEN, **KINDS[kind], **changes)


@pytest.fixture(params=[*KINDS, "transformer", "embedding", "convolution"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return made(request.param).eval()


def test_sizes_are_those_it_states(encoder: Encoder, tokens: Any) -> None:
    read = tokens(4, 2, 1)
    memory, mask, final = encoder(read, read != 0)
    assert memory.shape == (3, 4, encoder.out_dim)
    assert final.shape == (3, encoder.final_dim)
    assert torch.equal(mask, read != 0)


def test_l6_empty_sentences_give_zeros_and_finite_gradients(encoder: Encoder, tokens: Any) -> None:
    read = tokens(3, 0, 1, 0)
    memory, _, final = encoder(read, read != 0)
    assert not memory[[1, 3]].any()
    assert not final[[1, 3]].any()
    (memory.sum() + final.sum()).backward()
    for parameter in encoder.parameters():
        assert parameter.grad is None or bool(torch.isfinite(parameter.grad).all())


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0)])
def test_l2_nothing_to_read(encoder: Encoder, shape: tuple[int, int]) -> None:
    read = torch.zeros(shape, dtype=torch.long)
    memory, _, final = encoder(read, read != 0)
    assert memory.shape == (*shape, encoder.out_dim)
    assert final.shape == (shape[0], encoder.final_dim)
    assert not final.any()


def test_items_of_padding_are_zero(encoder: Encoder, tokens: Any) -> None:
    read = tokens(5, 2)
    memory, _, _ = encoder(read, read != 0)
    assert not memory[1, 2:].any()
    assert bool(memory[1, :2].all())


def test_what_stands_in_the_padding_does_not_matter(encoder: Encoder, tokens: Any) -> None:
    read = tokens(5, 2, 0)
    mask = read != 0
    other = torch.where(mask, read, 7)
    for ours, theirs in zip(encoder(read, mask), encoder(other, mask), strict=True):
        assert torch.equal(ours, theirs)


def test_a_sentence_alone_is_as_in_a_batch_of_64(encoder: Encoder, tokens: Any) -> None:
    read = tokens(3, *[1 + i % 9 for i in range(63)])
    memory, _, final = encoder(read, read != 0)
    alone, _, last = encoder(read[:1, :3], read[:1, :3] != 0)
    torch.testing.assert_close(memory[:1, :3], alone, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(final[:1], last, atol=1e-6, rtol=1e-5)


def test_the_final_vector_is_the_last_state_of_each_direction(tokens: Any) -> None:
    encoder = made("gru 2 both").eval()
    read = tokens(4, 2)
    memory, _, final = encoder(read, read != 0)
    assert torch.equal(final[1, :HIDDEN], memory[1, 1, :HIDDEN])  # forwards: at its end
    assert torch.equal(final[1, HIDDEN:], memory[1, 0, HIDDEN:])  # backwards: at its start


@pytest.mark.parametrize("kind", ["transformer", "embedding", "convolution"])
def test_the_final_vector_is_the_mean_of_real_items(kind: str, tokens: Any) -> None:
    encoder = made(kind).eval()
    read = tokens(4, 2)
    memory, _, final = encoder(read, read != 0)
    torch.testing.assert_close(final[1], memory[1, :2].mean(dim=0))


def test_what_is_ordered_knows_the_order_and_what_is_not_does_not(encoder: Encoder) -> None:
    read = torch.tensor([[4, 5, 6]])
    ours, theirs = (encoder(x, x != 0) for x in (read, read.flip(1)))
    assert torch.allclose(ours.memory, theirs.memory.flip(1), atol=1e-3) is not encoder.ordered
    assert encoder.ordered is not isinstance(encoder, EmbeddingEncoder)


def test_the_items_of_an_embedding_are_the_embeddings(tokens: Any) -> None:
    encoder = made("embedding")
    read = tokens(4, 2)
    memory, _, final = encoder(read, read != 0)
    assert torch.equal(memory, encoder.embedding.weight[read])
    expected = encoder.embedding.weight[read[1, :2]].mean(dim=0)
    torch.testing.assert_close(final[1], expected)


def test_a_convolution_in_plain_loops(tokens: Any) -> None:
    encoder = made("convolution").eval()
    read = tokens(6, 3)
    memory, _, _ = encoder(read, read != 0)
    alone = read[1, :3]
    items = encoder.embedding.weight[alone] * math.sqrt(DIM) + sinusoids(0, 3, DIM)
    items = items @ encoder.projection.weight.T + encoder.projection.bias
    for block in encoder.blocks:
        weight, bias = block.convolution.weight, block.convolution.bias
        after = []
        for place in range(3):
            both = bias
            for step in range(5):
                other = place + step - 2
                if 0 <= other < 3:
                    both = both + weight[:, :, step] @ items[other]
            gated = both[:HIDDEN] * torch.sigmoid(both[HIDDEN:])
            after.append((gated + items[place]) * math.sqrt(0.5))
        items = torch.stack(after)
    torch.testing.assert_close(memory[1, :3], items, atol=1e-5, rtol=1e-4)


def test_a_convolution_sees_as_far_as_its_blocks_reach() -> None:
    encoder = made("convolution").eval()  # two blocks of width 5: four places to each side
    read = torch.full((1, 11), 4)
    other = read.clone()
    other[0, 5] = 7
    ours, theirs = (encoder(x, x != 0).memory[0] for x in (read, other))
    changed = [place for place in range(11) if not torch.equal(ours[place], theirs[place])]
    assert changed == [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("width", [0, 2, -3])
def test_l8_an_even_width_is_refused(width: int) -> None:
    with pytest.raises(MechanismError, match=f"width must be odd.*; got {width}"):
        ConvolutionalEncoder(nn.Embedding(3, 3), 3, width=width)


def test_a_batch_of_one_with_dropout_in_training_is_random_and_in_evaluation_is_not(
    tokens: Any,
) -> None:
    encoder = made("lstm 2 both", dropout=0.5)
    read = tokens(6, 6)
    mask = read != 0
    assert not torch.equal(encoder(read, mask).memory, encoder(read, mask).memory)
    encoder.eval()
    assert torch.equal(encoder(read, mask).memory, encoder(read, mask).memory)


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(MechanismError, match="cell must be known; got 'gruu': did you mean 'gru'"):
        RecurrentEncoder(nn.Embedding(3, 3), 3, cell="gruu")
