"""Machines: a controller whose heads read and write a memory of slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import MechanismError, did_you_mean
from regard.memory.heads import ADDRESSINGS, Layout, Slots
from regard.memory.layer import MemoryLayer, Structure, kept

CONSTANT = 1e-6  # what a constant memory begins with
SPREAD = 0.5  # of the numbers that a random or learned memory begins with

Initial = Literal["constant", "random", "learned"]


class SlotMemory(Structure):
    """A memory of slots with its heads.

    Args:
        hidden_dim: Size of what the controller says.
        layout: Its sizes.
        addressing: "ntm", "lru" or "dnc" (see Machine).
        initial: What stands in it at first (see Machine).

    Raises:
        MechanismError: A name is unknown, or the heads do not fit the layout.
    """

    def __init__(self, hidden_dim: int, layout: Layout, *, addressing: str, initial: str) -> None:
        super().__init__()
        if addressing not in ADDRESSINGS:
            known = did_you_mean(addressing, ADDRESSINGS)
            raise MechanismError(f"addressing must be the name of one; got {addressing!r}: {known}")
        if initial not in ("constant", "random", "learned"):
            known = did_you_mean(initial, ("constant", "random", "learned"))
            raise MechanismError(f"initial must be the name of a memory; got {initial!r}: {known}")
        self.layout, self.initial, self.addressing = layout, initial, addressing
        self.read_dim = layout.readers * layout.width
        self.heads = ADDRESSINGS[addressing](hidden_dim, layout)
        memory = torch.full((layout.slots, layout.width), CONSTANT)
        if initial != "constant":
            nn.init.trunc_normal_(memory, std=SPREAD, a=-2 * SPREAD, b=2 * SPREAD)
        if initial == "learned":
            self.first_memory = nn.Parameter(memory)
        else:
            self.register_buffer("first_memory", memory)

    def first(self, batch: int, like: Tensor) -> Slots:
        """Return the memory as it begins."""
        memory = self.first_memory.to(like.dtype).expand(batch, -1, -1)
        return self.heads.first(memory)

    def step(
        self,
        said: Float[Tensor, "batch dim"],
        before: Slots,
        goes_on: Bool[Tensor, " batch"] | None,
    ) -> Slots:
        """Write and read once."""
        after: Slots = self.heads(said, before)
        if goes_on is None:
            return after
        pairs = zip(after, before, strict=True)
        return Slots(*[kept(goes_on, new, old) for new, old in pairs])

    def read(self, state: Slots) -> Float[Tensor, "batch read_dim"]:
        """Return what was read last."""
        return state.reads.flatten(1)

    def looks(
        self, states: Sequence[Slots]
    ) -> tuple[
        Float[Tensor, "batch readers steps slots"], Float[Tensor, "batch writers steps slots"]
    ]:
        """Return where was read and written over time."""
        return (
            _over_time([state.read_weights for state in states]),
            _over_time([state.write_weights for state in states]),
        )

    def extra_repr(self) -> str:
        """Name what it is made of."""
        return f"{self.layout}, addressing={self.addressing!r}, initial={self.initial!r}"


class Machine(MemoryLayer):
    """A neural network that reads and writes a memory, used like a recurrent layer.

    Args:
        input_dim: Size of the inputs.
        output_dim: Size of the outputs.
        layout: Slots, their width, and how many heads.
        controller: "lstm" or "feed_forward".
        hidden_dim: Size of the controller.
        addressing: How heads find slots. "ntm": by content or from where they were, with shifts;
            for algorithms over sequences. "lru": writes to the slot used least and reads by
            content; for remembering cases. "dnc": takes free slots, gives them free, and follows
            the order of writing; for the most, at the cost of `slots²` numbers a step.
        initial: What stands in the memory at first: "constant" (1e-6), which generalises best;
            "random", drawn once and saved with the model; "learned".

    Raises:
        MechanismError: A size is too small, a name is unknown, or there are more writers than
            readers with "lru".

    Example:
        >>> machine = Machine(3, 2, Layout(slots=16, width=8), addressing="dnc")
        >>> trace = machine.traced(torch.ones(4, 5, 3))
        >>> trace.outputs.shape, trace.write_weights.shape
        (torch.Size([4, 5, 2]), torch.Size([4, 1, 5, 16]))

    References:
        Graves, Wayne and Danihelka 2014; Santoro et al. 2016; Graves et al. 2016; Collier and
        Beel, Implementing neural Turing machines, 2018 (initial memories).
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        layout: Layout | None = None,
        *,
        controller: str = "lstm",
        hidden_dim: int = 100,
        addressing: str = "ntm",
        initial: str = "constant",
    ) -> None:
        memory = SlotMemory(
            max(hidden_dim, 1), layout or Layout(), addressing=addressing, initial=initial
        )
        super().__init__(
            input_dim, output_dim, memory, controller=controller, hidden_dim=hidden_dim
        )


def _over_time(weights: list[Tensor]) -> Tensor:
    """Join the steps; the first state is before any."""
    first = weights[0]
    if len(weights) == 1:
        return first.new_zeros(*first.shape[:2], 0, first.shape[2])
    return torch.stack(weights[1:], dim=2)
