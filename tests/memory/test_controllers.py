from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.memory.controllers import CONTROLLERS, FeedForwardController, LSTMController, applied


def test_an_lstm_controller_is_pytorchs_lstm() -> None:
    ours, theirs = LSTMController(3, 5), nn.LSTMCell(3, 5)
    order = [1, 0, 3, 2]  # ours: keep, write, show, fresh; theirs: write, keep, fresh, show
    inputs, hidden = ours.gates.weight.split([3, 5], dim=1)
    to_theirs = [order.index(place) for place in (1, 0, 3, 2)]
    assert to_theirs == [0, 1, 2, 3]

    def reordered(rows: torch.Tensor) -> torch.Tensor:
        keep, write, show, fresh = rows.chunk(4)
        return torch.cat([write, keep, fresh, show])

    with torch.no_grad():
        theirs.weight_ih.copy_(reordered(inputs))
        theirs.weight_hh.copy_(reordered(hidden))
        theirs.bias_ih.copy_(reordered(ours.gates.bias))
        theirs.bias_hh.zero_()
    state = torch.zeros(2, 2, 5)
    before = (torch.zeros(2, 5), torch.zeros(2, 5))
    for one in torch.randn(4, 2, 3):
        said, state = ours(one, state)
        before = theirs(one, before)
        torch.testing.assert_close(said, before[0])
        torch.testing.assert_close(state, torch.stack(before, dim=1))


def test_the_gate_that_keeps_begins_open() -> None:
    biases = LSTMController(3, 50).gates.bias
    assert biases[:50].mean() > 0.9
    assert biases[50:].abs().max() < 1


def test_a_feed_forward_controller_remembers_nothing() -> None:
    controller = FeedForwardController(3, 5)
    inputs, hidden = torch.randn(2, 3), torch.zeros(2, 0, 5)
    said, after = controller(inputs, hidden)
    torch.testing.assert_close(said, controller.layer(inputs).tanh())
    assert after is hidden


@pytest.mark.parametrize("name", CONTROLLERS)
def test_what_is_said_is_float32_or_wider(name: str) -> None:
    for kind, expected in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        controller = CONTROLLERS[name](3, 5).to(kind)
        wide = torch.float64 if kind == torch.float64 else torch.float32
        hidden = torch.zeros(2, controller.states, 5, dtype=wide)
        said, _ = controller(torch.randn(2, 3, dtype=wide), hidden)
        assert said.dtype == expected


def test_autocast_does_not_lower_a_layer() -> None:
    layer, inputs = nn.Linear(3, 4), torch.randn(2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(applied(layer, inputs), applied(layer, inputs).float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lowered = applied(layer, inputs)
    assert torch.equal(lowered, layer(inputs))
