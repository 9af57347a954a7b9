"""The parts of recurrent decoders."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import Attended, Attention, MultiHead, Prepared, State
from regard.models.encoders import Encoded
from regard.models.layers import checked_cell


class Bridge(nn.Module):
    """From an encoder's final vector to a decoder's first states, between any sizes.

    Args:
        final_dim: Size of the encoder's final vector.
        states: How many states the decoder has.
        hidden_dim: Size of each.
    """

    def __init__(self, final_dim: int, states: int, hidden_dim: int) -> None:
        super().__init__()
        self.states, self.hidden_dim = states, hidden_dim
        self.projection = nn.Linear(final_dim, states * hidden_dim)

    def forward(
        self, final: Float[Tensor, "batch final_dim"]
    ) -> Float[Tensor, "batch 1 states hidden_dim"]:
        """Return the first states of one hypothesis for each sentence."""
        first = torch.tanh(self.projection(final))
        return first.view(final.shape[0], 1, self.states, self.hidden_dim)


class RecurrentCore(nn.Module):
    """The recurrent layers of a decoder, advanced by one token or over a sequence.

    States are `(batch, hypotheses, states, hidden_dim)`: the layers of an RNN
    or a GRU, or the layers of an LSTM followed by its cells.

    Args:
        input_dim: Size of the inputs.
        hidden_dim: Size of the states.
        cell: "rnn" (tanh), "gru" or "lstm".
        layers: How many layers.
        dropout: Probability of dropping a state between layers.

    Raises:
        MechanismError: The cell is unknown.
    """

    def __init__(
        self, input_dim: int, hidden_dim: int, *, cell: str, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.cells = checked_cell(cell)(
            input_dim,
            hidden_dim,
            num_layers=layers,
            batch_first=True,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.layers, self.hidden_dim = layers, hidden_dim
        self.states = layers * (2 if cell == "lstm" else 1)

    def top(self, hidden: Float[Tensor, "batch hypotheses states dim"]) -> Tensor:
        """Return the state of the top layer, `(batch, hypotheses, dim)`."""
        return hidden[:, :, self.layers - 1]

    def run(
        self,
        inputs: Float[Tensor, "flat tokens input_dim"],
        hidden: Float[Tensor, "batch hypotheses states dim"],
    ) -> tuple[Float[Tensor, "flat tokens dim"], Float[Tensor, "batch hypotheses states dim"]]:
        """Advance every hypothesis over its inputs.

        Args:
            inputs: One sequence for each hypothesis, `flat = batch · hypotheses`.
            hidden: The states before.

        Returns:
            The top layer's states at every token, and all states after.
        """
        if 0 in inputs.shape[:2]:  # no sequence, or no token: PyTorch's layers refuse both
            return inputs.new_zeros(*inputs.shape[:2], self.hidden_dim), hidden
        stacked = hidden.flatten(0, 1).transpose(0, 1).contiguous()  # (states, flat, dim)
        if self.states > self.layers:
            outputs, after = self.cells(inputs, (stacked[: self.layers], stacked[self.layers :]))
            last = torch.cat(after)
        else:
            outputs, last = self.cells(inputs, stacked)
        return outputs, last.transpose(0, 1).reshape(hidden.shape)


class Sources(NamedTuple):
    """What a context is read from: items, a fixed vector, the attention's state."""

    memory: tuple[Prepared, ...]
    fixed: Float[Tensor, "batch hypotheses final_dim"]
    state: State | None


class ContextReader(nn.Module):
    """Where a decoder gets its context: an attention, or one fixed vector.

    Args:
        attention: An attention over the items, with heads or without, or None for the encoder's
            final vector, the same at every step (the baseline of Cho et al. 2014).
        memory_dim: Size of the items.
        final_dim: Size of the final vector; 0 to read nothing of it.
        query_dim: Size of the queries, for a context that is gated: `σ(w · q + b) · c`, by which a
            decoder says how much what it sees counts (Xu et al. 2015); None for no gate.

    Attributes:
        out_dim: Size of the context.
        maps: How many maps of weights it draws: one, one for each head, or none.
    """

    def __init__(
        self,
        attention: Attention | MultiHead | None,
        memory_dim: int,
        final_dim: int,
        *,
        query_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.gate = None if query_dim is None else nn.Linear(query_dim, 1)
        if attention is None:
            self.out_dim, self.maps = final_dim, 0
        elif isinstance(attention, MultiHead):
            self.out_dim, self.maps = attention.query_dim, attention.num_heads
        else:
            self.out_dim, self.maps = memory_dim, 1

    @property
    def stateful(self) -> bool:
        """Whether a step depends on where earlier steps looked."""
        return self.attention is not None and self.attention.traits.stateful

    def prepare(self, encoded: Encoded) -> tuple[Prepared, ...]:
        """Make the items ready, once for a sentence."""
        if self.attention is None:
            return ()
        return (self.attention.prepare(encoded.memory, mask=encoded.mask),)

    def forward(self, query: Float[Tensor, "batch queries dim"], sources: Sources) -> Attended:
        """Read the context of every query; weights come as `(batch, maps, queries, keys)`."""
        read = self._read(query, sources)
        if self.gate is None:
            return read
        return read._replace(context=read.context * self.gate(query).sigmoid())

    def _read(self, query: Tensor, sources: Sources) -> Attended:
        if self.attention is None:
            fixed = sources.fixed[..., : self.out_dim].expand(-1, query.shape[1], -1)
            nothing = fixed.new_zeros(query.shape[0], 0, query.shape[1], 0)
            return Attended(fixed, nothing, None, nothing, None)
        attended: Attended = self.attention(query, sources.memory[0], state=sources.state)
        return attended if isinstance(self.attention, MultiHead) else _with_maps(attended)


def _with_maps(attended: Attended) -> Attended:
    """Give weights without heads the axis of maps; what is one tensor stays one."""
    weights, distribution = attended.weights, attended.distribution
    one = distribution is weights
    weights = None if weights is None else weights.unsqueeze(1)
    if one or distribution is None:
        return attended._replace(weights=weights, distribution=weights)
    return attended._replace(weights=weights, distribution=distribution.unsqueeze(1))
