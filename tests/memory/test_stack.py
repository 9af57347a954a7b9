from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from regard.errors import MechanismError
from regard.memory import NeuralStack, Signals, Stack
from regard.memory.stack import ENDS, StackMemory, popped, read_weights


def one_step(kind: str, held: list[float], pops: list[int], pushes: list[float | None]) -> None:
    """Do to a list what a step does: pop, first at the top, then push."""
    for end, pop in zip(ENDS[kind], pops, strict=True):
        if pop and held:
            held.pop(-1 if end == "top" else 0)
    if pushes[0] is not None:
        held.append(pushes[0])
    if len(pushes) == 2 and pushes[1] is not None:
        held.insert(0, pushes[1])


@pytest.mark.parametrize("kind", ENDS)
def test_with_signals_of_zero_and_one_it_is_a_list(kind: str) -> None:
    """A batch of random walks, each against a list of its own."""
    chance, ends, batch = random.Random(5), len(ENDS[kind]), 16
    stack = Stack(1, kind)
    cells = stack.first(batch, torch.zeros(()))
    lists: list[list[float]] = [[] for _ in range(batch)]
    longest = 0
    for step in range(40):
        pops = [[chance.randint(0, 1) for _ in range(ends)] for _ in range(batch)]
        pushes = [
            [float(2 * step + end + 1) if chance.random() < 0.6 else None for end in range(ends)]
            for _ in range(batch)
        ]
        for held, pop, push in zip(lists, pops, pushes, strict=True):
            one_step(kind, held, pop, push)
        values = torch.tensor([[-1.0 if p is None else p for p in push] for push in pushes])
        there = torch.tensor([[float(p is not None) for p in push] for push in pushes])
        cells = stack(cells, Signals(torch.tensor(pops).float(), there, values.unsqueeze(-1)))
        for row, held in enumerate(lists):
            kept = cells.values[row, cells.strengths[row] > 0].flatten().tolist()
            assert kept == held
            ends_read = [held[-1 if end == "top" else 0] if held else 0.0 for end in ENDS[kind]]
            assert cells.reads[row].flatten().tolist() == ends_read
        longest = max(longest, *map(len, lists))
    assert longest > 4


def in_loops(strengths: list[float], pop: float, end: str) -> tuple[list[float], list[float]]:
    """Pop and read by the formulas of the paper."""
    order = range(len(strengths))
    order = reversed(order) if end == "top" else order
    after, weights = list(strengths), [0.0] * len(strengths)
    left = pop
    for cell in order:
        after[cell] = max(0.0, strengths[cell] - max(0.0, left))
        left -= strengths[cell]
    room = 1.0
    order = range(len(strengths))
    for cell in reversed(order) if end == "top" else order:
        weights[cell] = min(after[cell], max(0.0, room))
        room -= after[cell]
    return after, weights


@pytest.mark.parametrize("end", ["top", "bottom"])
def test_degrees_in_plain_loops(end: str) -> None:
    torch.manual_seed(0)
    strengths, pop = torch.rand(8, 5), torch.rand(8, 1)
    after = popped(strengths, pop, end=end)
    weights = read_weights(after, end=end)
    for row in range(8):
        expected = in_loops(strengths[row].tolist(), pop[row].item(), end)
        assert after[row].tolist() == pytest.approx(expected[0], abs=1e-6)
        assert weights[row].tolist() == pytest.approx(expected[1], abs=1e-6)


def test_the_example_of_the_paper() -> None:
    """Figure 1a: v1 is pushed with 0.8, v2 with 0.5 after a pop of 0.1, v3 with 0.9 after 0.9."""
    stack = Stack(3)
    cells = stack.first(1, torch.zeros(()))
    steps = [(0.0, 0.8), (0.1, 0.5), (0.9, 0.9)]
    there = [[0.8], [0.7, 0.5], [0.3, 0.0, 0.9]]
    read = [[0.8, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.0, 0.9]]
    for place, (pop, push) in enumerate(steps):
        value = torch.eye(3)[place].view(1, 1, 3)
        cells = stack(cells, Signals(torch.tensor([[pop]]), torch.tensor([[push]]), value))
        assert cells.strengths[0].tolist() == pytest.approx(there[place])
        assert cells.reads[0, 0].tolist() == pytest.approx(read[place])


def test_a_trace_puts_the_cells_of_a_deque_where_they_stand_at_last() -> None:
    torch.manual_seed(0)
    layer = NeuralStack(3, 2, kind="deque", width=4, hidden_dim=5)
    inputs = torch.randn(2, 4, 3)
    trace = layer.traced(inputs)
    assert trace.read_weights.shape == (2, 2, 4, 8)
    assert trace.write_weights.shape == (2, 1, 4, 8)
    cells = trace.state.structure
    torch.testing.assert_close(trace.write_weights[:, 0, -1], cells.strengths)
    for step in range(4):
        _, state = layer(inputs[:, : step + 1])
        reads = trace.read_weights[:, :, step] @ cells.values
        torch.testing.assert_close(reads, state.structure.reads)
        outside = torch.ones(8, dtype=torch.bool)
        outside[3 - step : 5 + step] = False
        assert (trace.write_weights[:, 0, step, outside] == 0).all()


@pytest.mark.parametrize("kind", ENDS)
def test_what_is_read_is_what_a_trace_weighs(kind: str) -> None:
    torch.manual_seed(0)
    layer = NeuralStack(3, 2, kind=kind, width=4, hidden_dim=5)
    trace = layer.traced(torch.randn(2, 5, 3), lengths=torch.tensor([5, 3]))
    structure = layer.structure
    assert isinstance(structure, StackMemory)
    cells = trace.state.structure
    whole = (trace.read_weights[0, :, 4] @ cells.values[0]).flatten()
    torch.testing.assert_close(whole, structure.read(cells)[0])
    last = (trace.read_weights[1, :, 2] @ cells.values[1]).flatten()
    torch.testing.assert_close(last, structure.read(cells)[1])


def reversal_batch(count: int, length: int) -> tuple[Tensor, Tensor]:
    symbols = torch.randint(0, 2, (count, length))
    inputs = torch.zeros(count, 2 * length - 1, 3)
    inputs[:, :length].scatter_(2, symbols.unsqueeze(-1), 1.0)
    inputs[:, length:, 2] = 1.0
    return inputs, symbols.flip(1)


def test_a_stack_reverses_what_is_four_times_as_long_as_in_training() -> None:
    torch.manual_seed(2)
    layer = NeuralStack(3, 2, width=4, hidden_dim=16, controller="feed_forward")
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)
    for _ in range(200):
        inputs, targets = reversal_batch(8, int(torch.randint(1, 7, ())))
        said = layer(inputs)[0][:, targets.shape[1] - 1 :]
        loss = torch.nn.functional.cross_entropy(said.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    inputs, targets = reversal_batch(16, 24)
    right = layer(inputs)[0][:, 23:].argmax(dim=-1) == targets
    assert right.float().mean() == 1


def test_l8_sizes_and_names() -> None:
    with pytest.raises(MechanismError, match=r"kind .*; got 'stak': did you mean 'stack'"):
        Stack(4, "stak")
    with pytest.raises(MechanismError, match="width must be at least 1; got 0"):
        NeuralStack(3, 2, width=0)
