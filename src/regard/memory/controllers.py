"""Controllers: what drives a memory, one step at a time."""

from __future__ import annotations

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import functional


def applied(
    layer: nn.Linear, inputs: Float[Tensor, "*lead in_dim"]
) -> Float[Tensor, "*lead out_dim"]:
    """Apply a layer in the precision of its weights; what comes out is float32 or wider."""
    with functional.full_precision(inputs):
        out: Tensor = layer(inputs.to(layer.weight.dtype))
        return functional.widened(out)


class Controller(Protocol):
    """What an object must have to drive a memory.

    Attributes:
        states: How many vectors of the hidden size it hands on from step to step.
        hidden_dim: Size of what it says.
    """

    states: int
    hidden_dim: int

    def __call__(self, inputs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return what it says and its states after: `(batch, dim)`, `(batch, states, dim)`."""
        ...


class LSTMController(nn.Module):
    """A layer of LSTM: it remembers by itself, too.

    The gate that keeps its cell starts with a bias of 1.

    Args:
        input_dim: Size of the inputs, with what was read at the step before.
        hidden_dim: Size of its state.

    References:
        Hochreiter and Schmidhuber 1997; Jozefowicz et al. 2015 (the bias).
    """

    states = 2

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.gates = nn.Linear(input_dim + hidden_dim, 4 * hidden_dim)
        with torch.no_grad():
            self.gates.bias[:hidden_dim].add_(1.0)

    def forward(
        self, inputs: Float[Tensor, "batch input_dim"], hidden: Float[Tensor, "batch 2 dim"]
    ) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, "batch 2 dim"]]:
        """Advance by one step."""
        before, cell = hidden.unbind(dim=1)
        gates = applied(self.gates, torch.cat([inputs, before], dim=1))
        opened, fresh = torch.split(gates, [3 * self.hidden_dim, self.hidden_dim], dim=1)
        keep, write, show = opened.sigmoid().chunk(3, dim=1)
        cell = keep * cell + write * fresh.tanh()
        said = show * cell.tanh()
        return said, torch.stack([said, cell], dim=1)


class FeedForwardController(nn.Module):
    """A layer with tanh: what it knows of earlier steps stands in the memory.

    Where it wrote and read is easier to follow than with an LSTM, as the memory is all it has.

    Args:
        input_dim: Size of the inputs, with what was read at the step before.
        hidden_dim: Size of the layer.

    References:
        Graves, Wayne and Danihelka 2014.
    """

    states = 0

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.layer = nn.Linear(input_dim, hidden_dim)

    def forward(
        self, inputs: Float[Tensor, "batch input_dim"], hidden: Float[Tensor, "batch 0 dim"]
    ) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, "batch 0 dim"]]:
        """Advance by one step."""
        return applied(self.layer, inputs).tanh(), hidden


CONTROLLERS: dict[str, type[LSTMController | FeedForwardController]] = {
    "lstm": LSTMController,
    "feed_forward": FeedForwardController,
}
