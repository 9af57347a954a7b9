from __future__ import annotations

import pytest
import torch

from regard.attention import Attention
from regard.models.encoders import Encoded
from regard.models.recurrent import Bridge, ContextReader, RecurrentCore, Sources


def encoded() -> Encoded:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    return Encoded(torch.randn(2, 3, 4), mask, torch.randn(2, 5))


def test_a_bridge_joins_any_sizes() -> None:
    bridge = Bridge(5, states=4, hidden_dim=3)
    final = torch.randn(2, 5)
    first = bridge(final)
    assert first.shape == (2, 1, 4, 3)
    expected = torch.tanh(bridge.projection(final))
    assert torch.equal(first.flatten(1), expected)
    assert bridge(torch.randn(0, 5)).shape == (0, 1, 4, 3)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_core_over_a_sequence_is_a_core_step_by_step(cell: str, layers: int) -> None:
    core = RecurrentCore(3, 4, cell=cell, layers=layers, dropout=0.0)
    inputs, hidden = torch.randn(6, 5, 3), torch.randn(2, 3, core.states, 4)
    whole, last = core.run(inputs, hidden)
    states, steps = hidden, []
    for one in inputs.unbind(1):
        output, states = core.run(one.unsqueeze(1), states)
        steps.append(output)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    torch.testing.assert_close(states, last)
    torch.testing.assert_close(core.top(last).flatten(0, 1), whole[:, -1])


@pytest.mark.parametrize("shape", [(0, 5), (6, 0)])
def test_l2_a_core_without_anything_to_read(shape: tuple[int, int]) -> None:
    core = RecurrentCore(3, 4, cell="lstm", layers=2, dropout=0.0)
    hidden = torch.randn(shape[0], 1, core.states, 4)
    outputs, after = core.run(torch.zeros(*shape, 3), hidden)
    assert outputs.shape == (*shape, 4)
    assert torch.equal(after, hidden)


def test_the_fixed_vector_is_the_same_for_every_query_and_has_no_map() -> None:
    reader = ContextReader(None, 4, 5)
    items = encoded()
    sources = Sources(reader.prepare(items), items.final.unsqueeze(1), None)
    context, weights, state, distribution, log_prob = reader(torch.randn(2, 3, 7), sources)
    assert reader.out_dim == 5
    assert torch.equal(context, items.final.unsqueeze(1).expand(2, 3, 5))
    assert weights.shape == (2, 0, 3, 0)
    assert state is None
    assert distribution is weights
    assert log_prob is None
    assert not reader.stateful


def test_uniform_reads_the_mean_of_the_real_items() -> None:
    reader = ContextReader(Attention("uniform"), 4, 5)
    items = encoded()
    sources = Sources(reader.prepare(items), items.final.unsqueeze(1), None)
    context, weights, *_ = reader(torch.randn(2, 1, 7), sources)
    torch.testing.assert_close(context[0, 0], items.memory[0].mean(dim=0))
    torch.testing.assert_close(context[1, 0], items.memory[1, 0])
    torch.testing.assert_close(weights[0, 0, 0], torch.full((3,), 1 / 3))
