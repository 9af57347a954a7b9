from __future__ import annotations

import math

import pytest
import torch

from regard.attention import masks
from regard.errors import MechanismError
from regard.models.layers import (
    GatedConvolution,
    SelfAttentionBlock,
    TransformerDecoderLayer,
    checked_cell,
    placed,
    sinusoids,
)


def test_sinusoids_by_hand() -> None:
    rows = sinusoids(0, 3, 4)
    assert rows[0].tolist() == [0.0, 0.0, 1.0, 1.0]
    expected = [math.sin(2), math.sin(2 / 100), math.cos(2), math.cos(2 / 100)]
    torch.testing.assert_close(rows[2], torch.tensor(expected))


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_l7_sinusoids_have_no_table_to_run_out_of(dim: int) -> None:
    whole = sinusoids(0, 5001, dim)
    assert whole.shape == (5001, dim)
    assert torch.equal(sinusoids(5000, 1, dim)[0], whole[5000])
    assert bool(torch.isfinite(whole).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_places_keep_the_precision_of_the_embeddings(dtype: torch.dtype) -> None:
    embedded = torch.ones(2, 3, 4, dtype=dtype)
    found = placed(embedded, 5, 3)
    assert found.dtype == dtype
    expected = (2 + sinusoids(5, 3, 4)).expand(2, 3, 4)
    torch.testing.assert_close(found.float(), expected, atol=1e-2, rtol=1e-2)
    one = placed(embedded, 5, 1)  # all at one place
    assert torch.equal(one[:, 2], found[:, 0])


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'qrnn': did you mean 'rnn'"):
        checked_cell("qrnn")


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_gated_convolution_in_plain_loops(width: int) -> None:
    layer = GatedConvolution(3, width, dropout=0.0)
    padded = torch.randn(2, 5, 3)
    found = layer(padded)
    assert found.shape == (2, 6 - width, 3)
    weight, bias = layer.convolution.weight, layer.convolution.bias
    for row in range(2):
        for place in range(6 - width):
            both = bias.clone()
            for step in range(width):
                both = both + weight[:, :, step] @ padded[row, place + step]
            expected = both[:3] * torch.sigmoid(both[3:])
            torch.testing.assert_close(found[row, place], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3), (2, 2, 3)])
def test_l2_a_gated_convolution_without_a_whole_stretch(shape: tuple[int, int, int]) -> None:
    found = GatedConvolution(3, 3, dropout=0.0)(torch.zeros(shape))
    assert found.shape == (shape[0], max(shape[1] - 2, 0), 3)


def test_l8_a_convolution_of_no_width_is_refused() -> None:
    with pytest.raises(MechanismError, match="width must be at least 1; got 0"):
        GatedConvolution(3, 0, dropout=0.0)


def test_the_spread_neither_dies_nor_bursts_in_a_stack_of_gated_convolutions() -> None:
    items = torch.randn(1, 400, 64)
    for _ in range(8):
        around = torch.nn.functional.pad(items, (0, 0, 1, 1))
        items = (items + GatedConvolution(64, 3, dropout=0.0)(around)) * math.sqrt(0.5)
    assert 0.4 < items.std().item() < 4  # PyTorch's own initial spread: 0.1


def test_self_attention_step_by_step_is_self_attention_under_a_causal_mask() -> None:
    block = SelfAttentionBlock(6, 3, dropout=0.0)
    items = torch.randn(2, 5, 6)
    whole = block(items, masks.causal(5))
    cache, steps = None, []
    for item in items.unbind(1):
        added, cache = block.step(item.unsqueeze(1), cache)
        steps.append(added)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


def test_a_decoder_layer_looks_at_real_items_only() -> None:
    layer = TransformerDecoderLayer(6, 2, memory_dim=4, hidden_dim=7, dropout=0.0)
    memory, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    prepared = layer.prepare(memory, mask)
    items, look = layer(torch.randn(2, 5, 6), masks.causal(5), prepared)
    assert items.shape == (2, 5, 6)
    assert not look.weights[0, :, :, 2].any()
    assert bool((look.weights[1, :, :, 0] == 1).all())
