from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from regard.models import running
from regard.models.running import run_cells

CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def drawn(cell, *, layers=1, bidirectional=True, bias=True, dropout=0.0):
    torch.manual_seed(1)
    cells = CELLS[cell](
        4,
        5,
        num_layers=layers,
        bidirectional=bidirectional,
        bias=bias,
        dropout=dropout,
        batch_first=True,
    )
    return cells.double(), torch.randn(3, 6, 4).double()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_padded_reading_is_packed_reading(cell, layers, bidirectional, bias):
    cells, inputs = drawn(cell, layers=layers, bidirectional=bidirectional, bias=bias)
    lengths = torch.tensor([6, 1, 4])
    real = (torch.arange(6) < lengths.unsqueeze(1)).unsqueeze(-1)
    found = []
    for run in (run_cells, running._packed):
        own = inputs.clone().requires_grad_()
        states, final = run(cells, own, lengths)
        loss = (states * real).square().sum() + final.exp().sum()
        found.append((states * real, final, *torch.autograd.grad(loss, [own, *cells.parameters()])))
    for mine, packed in zip(*found, strict=True):
        assert torch.allclose(mine, packed, atol=1e-12)


def test_what_lies_behind_an_end_changes_nothing():
    cells, inputs = drawn("gru", layers=2)
    lengths = torch.tensor([2, 6, 3])
    states, final = run_cells(cells, inputs, lengths)
    inputs[0, 2:] = 1e6
    again, same = run_cells(cells, inputs, lengths)
    assert torch.equal(final, same)
    assert torch.equal(states[0, :2], again[0, :2])


def test_states_between_layers_are_dropped_in_training_alone():
    cells, inputs = drawn("gru", layers=2, dropout=0.5)
    lengths = torch.full((3,), 6)
    assert not torch.equal(*(run_cells(cells, inputs, lengths)[0] for _ in range(2)))
    cells.eval()
    assert torch.equal(*(run_cells(cells, inputs, lengths)[0] for _ in range(2)))
    assert torch.allclose(run_cells(cells, inputs, lengths)[0], cells(inputs)[0], atol=1e-12)


def test_time_follows_the_number_of_steps():
    cells = nn.GRU(8, 16, batch_first=True)

    def seconds(steps):
        inputs, best = torch.randn(16, steps, 8, requires_grad=True), float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            run_cells(cells, inputs, torch.full((16,), steps))[0].sum().backward()
            best = min(best, time.perf_counter() - begun)
        return best

    assert seconds(1600) < 16 * seconds(200)  # eight times the steps, not their square
