from __future__ import annotations

import math

import pytest
import torch

from regard.attention import masks
from regard.models.layers import (
    SelfAttentionBlock,
    TransformerDecoderLayer,
    checked_cell,
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


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="cell must be known; got 'rnn': use one of: gru, lstm"):
        checked_cell("rnn")


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
    items, weights = layer(torch.randn(2, 5, 6), masks.causal(5), prepared)
    assert items.shape == (2, 5, 6)
    assert not weights[0, :, :, 2].any()
    assert bool((weights[1, :, :, 0] == 1).all())
