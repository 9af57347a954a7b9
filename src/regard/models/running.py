"""Recurrent layers over sequences of different length, in one direction or in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "RNN_TANH": torch.rnn_tanh,
    "GRU": torch.gru,
    "LSTM": torch.lstm,
}


def run_cells(
    cells: nn.RNNBase,
    inputs: Float[Tensor, "batch steps in_dim"],
    lengths: Int[Tensor, " batch"],
) -> tuple[Float[Tensor, "batch steps out_dim"], Float[Tensor, "batch out_dim"]]:
    """Run recurrent layers over padded sequences, as if each stood alone.

    On a CPU the gradient of PyTorch's packed sequences takes time in the square of the number of
    steps, as each step writes a gradient of the size of all of them. There padding is read too,
    behind the end of each sequence where it bears on nothing, and what reads backwards is given
    every sequence reversed by itself.

    Args:
        cells: The layers, with the batch first.
        inputs: The sequences.
        lengths: The length of each, at least 1.

    Returns:
        The top layer's states, of which those behind an end mean nothing; the state of each
        direction after it has read the sequence.
    """
    if inputs.device.type != "cpu":
        return _packed(cells, inputs, lengths)
    steps = torch.arange(inputs.shape[1], device=inputs.device)
    last = (lengths - 1).unsqueeze(1)
    backwards = torch.where(steps <= last, last - steps, steps)  # (batch, steps), its own inverse
    directions = 2 if cells.bidirectional else 1
    states = inputs
    for layer in range(cells.num_layers):
        weights = cells.all_weights[layer * directions : (layer + 1) * directions]
        read = [_one_way(cells, states, list(weights[0]))]
        if directions == 2:
            reversed_states = _one_way(cells, _taken(states, backwards), list(weights[1]))
            read.append(_taken(reversed_states, backwards))
        states = torch.cat(read, dim=2)
        if layer < cells.num_layers - 1:
            states = nn.functional.dropout(states, cells.dropout, cells.training)
    ends = [_taken(read[0], last)]
    if directions == 2:
        ends.append(read[1][:, :1])  # what reads backwards ends at the beginning
    return states, torch.cat(ends, dim=2).squeeze(1)


def _one_way(cells: nn.RNNBase, inputs: Tensor, weights: list[Tensor]) -> Tensor:
    start = inputs.new_zeros(1, inputs.shape[0], cells.hidden_size)
    hidden = (start, start) if cells.mode == "LSTM" else start
    # one layer, no dropout, forwards, the batch first
    one = (cells.bias, 1, 0.0, cells.training, False, True)
    states: Tensor = _FUNCTIONS[cells.mode](inputs, hidden, weights, *one)[0]
    return states


def _taken(items: Tensor, places: Tensor) -> Tensor:
    """Take the items at some places of each row."""
    return items.gather(1, places.unsqueeze(-1).expand(-1, -1, items.shape[-1]))


def _packed(cells: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, last = cells(packed)
    memory, _ = pad_packed_sequence(states, batch_first=True, total_length=inputs.shape[1])
    last = last[0] if isinstance(last, tuple) else last
    directions = 2 if cells.bidirectional else 1
    return memory, last[-directions:].transpose(0, 1).flatten(1)
