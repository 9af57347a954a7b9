"""Heads that read and write a memory, driven by what a controller says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import MechanismError
from regard.memory import addressing
from regard.memory.controllers import applied
from regard.memory.layer import check_sizes

STRENGTH_CAP = 50.0  # of key strengths
EXPONENT_CAP = 20.0  # of what sharpening adds to its exponent of 1


@dataclass(frozen=True)
class Layout:
    """The sizes of a memory and how many heads it has.

    Args:
        slots: How many slots.
        width: How many numbers in each.
        readers: How many heads that read.
        writers: How many heads that write.
        reach: How far the Turing machine's heads can shift in a step, either way.

    Raises:
        MechanismError: A number is too small.
    """

    slots: int = 128
    width: int = 20
    readers: int = 1
    writers: int = 1
    reach: int = 1

    def __post_init__(self) -> None:
        check_sizes(slots=self.slots, width=self.width, readers=self.readers, writers=self.writers)
        if self.reach < 0:
            raise MechanismError(f"reach must not be negative; got {self.reach}. 1 is usual.")


class Slots(NamedTuple):
    """A memory and what its heads must know of the step before.

    Attributes:
        memory: The slots.
        reads: What each reader read.
        read_weights: Where it read.
        write_weights: Where each writer wrote.
        usage: How far each slot is in use; no slots where the heads need none.
        precedence: Where each writer wrote last; no slots where the heads need none.
        links: Which slot was written after which; no slots where the heads need none.
    """

    memory: Float[Tensor, "batch slots width"]
    reads: Float[Tensor, "batch readers width"]
    read_weights: Float[Tensor, "batch readers slots"]
    write_weights: Float[Tensor, "batch writers slots"]
    usage: Float[Tensor, "batch used"]
    precedence: Float[Tensor, "batch writers linked"]
    links: Float[Tensor, "batch writers linked linked"]


class TuringHeads(nn.Module):
    """The Neural Turing Machine's heads: by content, or from where they were.

    Each head goes through `c = softmax(β · cos(k, M))`, `g · c + (1 - g) · w_{t-1}`, a shift,
    and sharpening. All heads look at the memory before it is written; what is read is the memory
    after. Key strengths stay below `STRENGTH_CAP` and exponents below `1 + EXPONENT_CAP`.

    All heads begin at the first slot, as far as they have not learned otherwise: over a memory
    that is the same everywhere, weights that begin even would stay even for ever.

    Args:
        hidden_dim: Size of what the controller says.
        layout: The memory.

    References:
        Graves, Wayne and Danihelka 2014.
    """

    def __init__(self, hidden_dim: int, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.heads = layout.readers + layout.writers
        offsets = 2 * layout.reach + 1
        self.fields = [layout.width, 1, 1, offsets, 1]  # key, strength, gate, shift, exponent
        self.addresses = nn.Linear(hidden_dim, self.heads * sum(self.fields))
        self.contents = nn.Linear(hidden_dim, 2 * layout.writers * layout.width)
        self.first_weights = nn.Parameter(torch.zeros(self.heads, layout.slots))
        with torch.no_grad():
            self.first_weights[:, 0] = 10.0

    def first(self, memory: Float[Tensor, "batch slots width"]) -> Slots:
        """Return the state before the first step."""
        batch, layout = memory.shape[0], self.layout
        weights = self.first_weights.to(memory.dtype).softmax(dim=-1).expand(batch, -1, -1)
        read, write = torch.split(weights, [layout.readers, layout.writers], dim=1)
        unused = memory.new_zeros(batch, layout.writers, 0)
        return Slots(memory, read @ memory, read, write, unused[:, 0], unused, unused.unsqueeze(-1))

    def forward(self, said: Float[Tensor, "batch dim"], before: Slots) -> Slots:
        """Write, then read."""
        weights = self._addressed(said, before)
        read, write = torch.split(weights, [self.layout.readers, self.layout.writers], dim=1)
        memory = _written(before.memory, write, _by_head(self.contents, said, self.layout.writers))
        return before._replace(
            memory=memory, reads=read @ memory, read_weights=read, write_weights=write
        )

    def _addressed(self, said: Tensor, before: Slots) -> Tensor:
        raw = _by_head(self.addresses, said, self.heads)
        key, strength, gate, shift, exponent = torch.split(raw, self.fields, dim=-1)
        strength = addressing.bounded(strength, STRENGTH_CAP)
        content = addressing.content_weights(before.memory, key.tanh(), strength)
        last = torch.cat([before.read_weights, before.write_weights], dim=1)
        mixed = addressing.interpolated(content, last, gate.sigmoid())
        moved = addressing.shifted(mixed, shift.softmax(dim=-1))
        return addressing.sharpened(moved, 1.0 + addressing.bounded(exponent, EXPONENT_CAP))


class RecentHeads(nn.Module):
    """Heads that write where was read last, or to the slot used least, and read by content.

    `w^w = σ(α) · w^r_{t-1} + (1 - σ(α)) · w^lu`: writer `j` takes after reader `j`, and its least
    used slot is the `j`-th least used of all. That slot is emptied before it is written. Slots
    are added to and never erased otherwise. What is written is apart from the key of the
    reader (in the paper it is that key).

    Args:
        hidden_dim: Size of what the controller says.
        layout: The memory; no more writers than readers or slots.
        decay: `γ` of the usage.

    Raises:
        MechanismError: There are more writers than readers or slots, or the decay is out of range.

    References:
        Santoro et al., Meta-learning with memory-augmented neural networks, 2016.
    """

    def __init__(self, hidden_dim: int, layout: Layout, *, decay: float = 0.95) -> None:
        super().__init__()
        most = min(layout.readers, layout.slots)
        if layout.writers > most:
            raise MechanismError(
                f"writers must be at most {most}, the readers or slots; got {layout.writers}. "
                "Each writer takes after a reader."
            )
        if not 0 <= decay < 1:
            raise MechanismError(f"decay must be from 0 to below 1; got {decay}. 0.95 is usual.")
        self.layout, self.decay = layout, decay
        self.keys = nn.Linear(hidden_dim, layout.readers * (layout.width + 1))
        self.contents = nn.Linear(hidden_dim, layout.writers * (layout.width + 1))

    def first(self, memory: Float[Tensor, "batch slots width"]) -> Slots:
        """Return the state before the first step."""
        return _nowhere(memory, self.layout, linked=0)

    def forward(self, said: Float[Tensor, "batch dim"], before: Slots) -> Slots:
        """Write, then read."""
        layout = self.layout
        contents = _by_head(self.contents, said, layout.writers)
        add, gate = torch.split(contents, [layout.width, 1], dim=-1)
        least = addressing.least_used(before.usage, layout.writers)
        last = before.read_weights[:, : layout.writers]
        write = addressing.interpolated(last, least, gate.sigmoid())
        emptied = before.memory * (1.0 - least.sum(dim=1)).unsqueeze(-1)
        memory = torch.baddbmm(emptied, write.transpose(1, 2), add.tanh())
        raw = _by_head(self.keys, said, layout.readers)
        key, strength = torch.split(raw, [layout.width, 1], dim=-1)
        strength = addressing.bounded(strength, STRENGTH_CAP)
        read = addressing.content_weights(memory, key.tanh(), strength)
        usage = addressing.recent_usage(before.usage, read, write, decay=self.decay)
        return before._replace(
            memory=memory,
            reads=read @ memory,
            read_weights=read,
            write_weights=write,
            usage=usage,
        )


class LinkedHeads(nn.Module):
    """The Differentiable Neural Computer's heads: free slots, content, and the order of writing.

    A writer goes to free slots or by content, or does not write: `g^w · (g^a · a + (1 - g^a) · c)`.
    Several writers choose free slots one after the other. A reader goes by content, to what was
    written next after where it read last, or to what was written before.

    Args:
        hidden_dim: Size of what the controller says.
        layout: The memory. Links take `slots²` numbers for each writer.

    References:
        Graves et al., Hybrid computing using a neural network with dynamic external memory, 2016.
    """

    def __init__(self, hidden_dim: int, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.read_fields = [layout.width, 1, 1, 1 + 2 * layout.writers]
        self.write_fields = [layout.width, 1, 1, 1]
        self.readers = nn.Linear(hidden_dim, layout.readers * sum(self.read_fields))
        self.writers = nn.Linear(hidden_dim, layout.writers * sum(self.write_fields))
        self.contents = nn.Linear(hidden_dim, 2 * layout.writers * layout.width)

    def first(self, memory: Float[Tensor, "batch slots width"]) -> Slots:
        """Return the state before the first step."""
        return _nowhere(memory, self.layout, linked=self.layout.slots)

    def forward(self, said: Float[Tensor, "batch dim"], before: Slots) -> Slots:
        """Write, then read."""
        raw = _by_head(self.readers, said, self.layout.readers)
        key, strength, free, modes = torch.split(raw, self.read_fields, dim=-1)
        usage = addressing.next_usage(
            before.usage, before.write_weights, before.read_weights, free.sigmoid()
        )
        write = self._places(said, before.memory, usage)
        memory = _written(before.memory, write, _by_head(self.contents, said, self.layout.writers))
        links = addressing.next_links(before.links, before.precedence, write)
        content = addressing.content_weights(memory, key.tanh(), _strength(strength))
        ways = torch.cat(
            [
                content.unsqueeze(2),
                addressing.followed(links, before.read_weights),
                addressing.followed(links, before.read_weights, backwards=True),
            ],
            dim=2,
        )  # (batch, readers, ways, slots)
        read = (modes.softmax(dim=-1).unsqueeze(2) @ ways).squeeze(2)
        precedence = addressing.next_precedence(before.precedence, write)
        return Slots(memory, read @ memory, read, write, usage, precedence, links)

    def _places(self, said: Tensor, memory: Tensor, usage: Tensor) -> Tensor:
        raw = _by_head(self.writers, said, self.layout.writers)
        key, strength, free, gate = torch.split(raw, self.write_fields, dim=-1)
        content = addressing.content_weights(memory, key.tanh(), _strength(strength))
        to_free, gate = free.sigmoid(), gate.sigmoid()
        weights = []
        for writer in range(self.layout.writers):
            share = to_free[:, writer]  # (batch, 1)
            free_slots = addressing.allocation(usage)
            chosen = torch.lerp(content[:, writer], free_slots, share)
            weights.append(gate[:, writer] * chosen)
            usage = usage + (1.0 - usage) * gate[:, writer] * share * free_slots
        return torch.stack(weights, dim=1)


Heads: TypeAlias = TuringHeads | RecentHeads | LinkedHeads

ADDRESSINGS: dict[str, type[Heads]] = {"ntm": TuringHeads, "lru": RecentHeads, "dnc": LinkedHeads}


def _written(memory: Tensor, weights: Tensor, contents: Tensor) -> Tensor:
    erase, add = contents.chunk(2, dim=-1)
    return addressing.written(memory, weights, erase.sigmoid(), add.tanh())


def _by_head(layer: nn.Linear, said: Tensor, heads: int) -> Tensor:
    raw = applied(layer, said)
    return raw.view(raw.shape[0], heads, layer.out_features // heads)


def _strength(raw: Tensor) -> Tensor:
    return 1.0 + addressing.bounded(raw, STRENGTH_CAP)


def _nowhere(memory: Tensor, layout: Layout, *, linked: int) -> Slots:
    """Return the state of heads that begin nowhere, of a memory that nothing has used."""
    batch, slots = memory.shape[0], layout.slots
    return Slots(
        memory,
        memory.new_zeros(batch, layout.readers, layout.width),
        memory.new_zeros(batch, layout.readers, slots),
        memory.new_zeros(batch, layout.writers, slots),
        memory.new_zeros(batch, slots),
        memory.new_zeros(batch, layout.writers, linked),
        memory.new_zeros(batch, layout.writers, linked, linked),
    )
