"""A stack, a queue and a deque whose pushes and pops are matters of degree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import MechanismError, did_you_mean
from regard.memory.controllers import applied
from regard.memory.layer import MemoryLayer, Structure, check_sizes

ENDS = {"stack": ("top",), "queue": ("bottom",), "deque": ("top", "bottom")}


def popped(
    strengths: Float[Tensor, "batch cells"], pop: Float[Tensor, "batch 1"], *, end: str
) -> Float[Tensor, "batch cells"]:
    """Take so much away from one end: `s_i ← max(0, s_i - max(0, u - Σ_{j nearer} s_j))`.

    Args:
        strengths: How far each cell is there, from the bottom to the top.
        pop: `u`, how much to take.
        end: "top" or "bottom".

    Returns:
        The strengths after.

    References:
        Grefenstette et al., Learning to transduce with unbounded memory, 2015.
    """
    left = (pop - _nearer(strengths, end)).relu()
    return (strengths - left).relu()


def read_weights(
    strengths: Float[Tensor, "batch cells"], *, end: str
) -> Float[Tensor, "batch cells"]:
    """Weigh the cells nearest to one end: `min(s_i, max(0, 1 - Σ_{j nearer} s_j))`.

    Args:
        strengths: How far each cell is there, from the bottom to the top.
        end: "top" or "bottom".

    Returns:
        Weights; they sum to 1, or to all that is there where that is less.

    References:
        Grefenstette et al. 2015.
    """
    return torch.minimum(strengths, (1.0 - _nearer(strengths, end)).relu())


def _nearer(strengths: Tensor, end: str) -> Tensor:
    """Sum what lies nearer to an end than each cell."""
    if end == "bottom":
        return nn.functional.pad(strengths.cumsum(dim=1), (1, 0))[:, :-1]
    return nn.functional.pad(strengths.flip(1).cumsum(dim=1), (1, 0))[:, :-1].flip(1)


class Cells(NamedTuple):
    """A stack, a queue or a deque: its cells from the bottom to the top.

    Attributes:
        values: What stands in each cell.
        strengths: How far it is there, from 0 to 1.
        reads: What is read at each end that is read.
    """

    values: Float[Tensor, "batch cells width"]
    strengths: Float[Tensor, "batch cells"]
    reads: Float[Tensor, "batch ends width"]


class Signals(NamedTuple):
    """What to do at a step, each from 0 to 1, for each end that is popped or pushed to.

    Attributes:
        pop: How much to take from it.
        push: How far to put a value there.
        values: The value.
    """

    pop: Float[Tensor, "batch ends"]
    push: Float[Tensor, "batch ends"]
    values: Float[Tensor, "batch ends width"]


class Stack(nn.Module):
    """A stack, a queue or a deque without a controller; it has no parameters.

    At a step something is popped, then a value is pushed, then the end is read. A stack pushes,
    pops and reads at its top. A queue is pushed to at its top, and popped and read at its bottom.
    A deque does all of it at both ends, first at the top. With signals of 0 and 1 they do what a
    list does. A step adds a cell at each end that is pushed to, and what is read of `T` steps
    takes `T²` numbers.

    Args:
        width: How many numbers in a cell.
        kind: "stack", "queue" or "deque".

    Raises:
        MechanismError: The width is below 1, or the kind is unknown.

    Example:
        >>> stack, on, off = Stack(1), torch.ones(1, 1), torch.zeros(1, 1)
        >>> cells = stack.first(1, torch.zeros(()))
        >>> for number in (1.0, 2.0):
        ...     cells = stack(cells, Signals(off, on, torch.full((1, 1, 1), number)))
        >>> cells.reads.item()
        2.0
        >>> stack(cells, Signals(on, off, torch.zeros(1, 1, 1))).reads.item()
        1.0

    References:
        Grefenstette et al., Learning to transduce with unbounded memory, 2015.
    """

    def __init__(self, width: int, kind: str = "stack") -> None:
        super().__init__()
        check_sizes(width=width)
        if kind not in ENDS:
            known = did_you_mean(kind, ENDS)
            raise MechanismError(f"kind must be the name of one; got {kind!r}: {known}")
        self.width, self.kind, self.ends = width, kind, ENDS[kind]

    def first(self, batch: int, like: Tensor) -> Cells:
        """Return it empty, with the type and device of a tensor."""
        return Cells(
            like.new_zeros(batch, 0, self.width),
            like.new_zeros(batch, 0),
            like.new_zeros(batch, len(self.ends), self.width),
        )

    def forward(self, before: Cells, signals: Signals) -> Cells:
        """Pop, push, read.

        Args:
            before: The cells before.
            signals: What to do.

        Returns:
            The cells after.
        """
        strengths = before.strengths
        for place, end in enumerate(self.ends):
            strengths = popped(strengths, signals.pop[:, place : place + 1], end=end)
        values, push = signals.values, signals.push
        parts = [(before.values, strengths), (values[:, :1], push[:, :1])]
        if len(self.ends) == 2:
            parts = [(values[:, 1:], push[:, 1:]), *parts]
        held = torch.cat([one for one, _ in parts], dim=1)
        strengths = torch.cat([one for _, one in parts], dim=1)
        return Cells(held, strengths, self.weights(strengths) @ held)

    def weights(self, strengths: Float[Tensor, "batch cells"]) -> Float[Tensor, "batch ends cells"]:
        """Return how much of each cell is read at each end."""
        return torch.stack([read_weights(strengths, end=end) for end in self.ends], dim=1)

    def extra_repr(self) -> str:
        """Name what it is."""
        return f"width={self.width}, kind={self.kind!r}"


class StackMemory(Structure):
    """A stack, a queue or a deque, with the layer that turns what a controller says into signals.

    Pushes and pops are sigmoids and values tanh, as in the paper, whose biases are kept: a
    pop begins with a bias of -1, so that what is pushed stays at first.

    Args:
        hidden_dim: Size of what the controller says.
        width: How many numbers in a cell.
        kind: "stack", "queue" or "deque".

    Raises:
        MechanismError: The width is below 1, or the kind is unknown.
    """

    def __init__(self, hidden_dim: int, *, width: int, kind: str) -> None:
        super().__init__()
        self.stack = Stack(width, kind)
        ends = len(self.stack.ends)
        self.read_dim = ends * width
        self.signals = nn.Linear(hidden_dim, ends * (2 + width))
        nn.init.constant_(self.signals.bias[:ends], -1.0)

    def first(self, batch: int, like: Tensor) -> Cells:
        """Return it empty."""
        return self.stack.first(batch, like)

    def step(
        self,
        said: Float[Tensor, "batch dim"],
        before: Cells,
        goes_on: Bool[Tensor, " batch"] | None,
    ) -> Cells:
        """Pop, push, read; a sequence that does not go on gets a cell that is not there."""
        ends = len(self.stack.ends)
        pop, push, values = torch.split(
            applied(self.signals, said), [ends, ends, self.read_dim], dim=1
        )
        pop, push = pop.sigmoid(), push.sigmoid()
        if goes_on is not None:
            pop, push = pop.where(goes_on[:, None], 0.0), push.where(goes_on[:, None], 0.0)
        values = values.tanh().view(said.shape[0], ends, self.stack.width)
        after: Cells = self.stack(before, Signals(pop, push, values))
        return after

    def read(self, state: Cells) -> Float[Tensor, "batch read_dim"]:
        """Return what was read last."""
        return state.reads.flatten(1)

    def looks(self, states: Sequence[Cells]) -> tuple[Tensor, Tensor]:
        """Return how much of each cell was read at each end, and how far each is there.

        Cells are those of the last step, from the bottom to the top: `(batch, ends, steps, cells)`
        and `(batch, 1, steps, cells)`.
        """
        cells = states[-1].strengths.shape[1]
        steps = states[1:]
        if not steps:
            nothing = states[-1].strengths.new_zeros(states[-1].strengths.shape[0], 1, 0, cells)
            return nothing.expand(-1, len(self.stack.ends), -1, -1), nothing
        reads = [self._placed(self.stack.weights(one.strengths), cells) for one in steps]
        there = [self._placed(one.strengths.unsqueeze(1), cells) for one in steps]
        return torch.stack(reads, dim=2), torch.stack(there, dim=2)

    def _placed(self, weights: Tensor, cells: int) -> Tensor:
        """Put cells where they stand among those of the last step."""
        missing = cells - weights.shape[-1]
        below = missing // 2 if self.stack.kind == "deque" else 0
        return nn.functional.pad(weights, (below, missing - below))


class NeuralStack(MemoryLayer):
    """A controller with a stack, a queue or a deque, used like a recurrent layer.

    For sequences that are to be reversed (a stack), repeated (a queue), or matched (brackets), also
    far longer than those of the training. The memory has no fixed size.

    Args:
        input_dim: Size of the inputs.
        output_dim: Size of the outputs.
        kind: "stack", "queue" or "deque".
        width: How many numbers in a cell.
        controller: "lstm" or "feed_forward".
        hidden_dim: Size of the controller.

    Raises:
        MechanismError: A size is below 1, or a name is unknown.

    Example:
        >>> layer = NeuralStack(3, 2, kind="queue")
        >>> outputs, state = layer(torch.ones(4, 5, 3))
        >>> outputs.shape, state.structure.strengths.shape
        (torch.Size([4, 5, 2]), torch.Size([4, 5]))

    References:
        Grefenstette et al., Learning to transduce with unbounded memory, 2015.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        *,
        kind: str = "stack",
        width: int = 16,
        controller: str = "lstm",
        hidden_dim: int = 64,
    ) -> None:
        memory = StackMemory(max(hidden_dim, 1), width=width, kind=kind)
        super().__init__(
            input_dim, output_dim, memory, controller=controller, hidden_dim=hidden_dim
        )
