"""Generated problems of algorithms over bits: copy, repeat, recall, sort, reverse.

A problem is a pure function of a seed and an index, drawn as a whole batch at once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from regard.errors import ShapeError, UserError

SORTED_SHARE = 0.8  # of the vectors of a sort, those that are answered


class Problem(NamedTuple):
    """A batch of sequences and what is to be answered.

    Attributes:
        inputs: What is shown at each step; zeros behind the end of a sequence.
        targets: The bits of the answer, where there is one.
        mask: True where an answer is due.
        lengths: How many steps each sequence has.
    """

    inputs: Float[Tensor, "batch steps input_dim"]
    targets: Float[Tensor, "batch steps output_dim"]
    mask: Bool[Tensor, "batch steps"]
    lengths: Int64[Tensor, " batch"]


class Algorithm(ABC):
    """What is to be done with vectors of random bits.

    Args:
        bits: How many bits in a vector.

    Attributes:
        flags: How many more numbers an input has.
        more: How many more bits an answer has.
        least: The smallest size.

    Raises:
        UserError: There is less than one bit.
    """

    flags = 1
    more = 0
    least = 1

    def __init__(self, bits: int = 8) -> None:
        if bits < 1:
            raise UserError(f"bits must be at least 1; got {bits}. 8 is usual.")
        self.bits = bits

    @property
    def input_dim(self) -> int:
        """Size of the inputs."""
        return self.bits + self.flags

    @property
    def output_dim(self) -> int:
        """Size of the answers."""
        return self.bits + self.more

    def draw(self, count: int, *, sizes: tuple[int, int], seed: int, index: int = 0) -> Problem:
        """Draw a batch.

        Args:
            count: How many sequences.
            sizes: Least and greatest size, each equally likely: the number of vectors, or of items.
            seed: Of all batches.
            index: Which batch.

        Returns:
            The batch; the same arguments give the same one.

        Raises:
            UserError: A number is out of range.

        Example:
            >>> problem = Copy(bits=3).draw(2, sizes=(4, 4), seed=0)
            >>> problem.inputs.shape, problem.mask.sum(dim=1).tolist()
            (torch.Size([2, 9, 4]), [4, 4])
        """
        if count < 0:
            raise UserError(f"count must not be negative; got {count}. Use 0 or more.")
        if not self.least <= sizes[0] <= sizes[1]:
            raise UserError(
                f"sizes must go up from {self.least} or more; got {sizes[0]} to {sizes[1]}. "
                "Exchange or raise them."
            )
        if min(seed, index) < 0:
            raise UserError(f"seed and index must not be negative; got {seed} and {index}.")
        generator = torch.Generator().manual_seed(_mixed(seed, index))
        drawn = torch.randint(sizes[0], sizes[1] + 1, (count, 1), generator=generator)
        return self.laid_out(drawn, sizes[1], generator)

    @abstractmethod
    def laid_out(
        self, sizes: Int64[Tensor, "batch 1"], most: int, generator: torch.Generator
    ) -> Problem:
        """Draw sequences of given sizes, none above `most`."""

    def vectors(self, count: int, places: int, generator: torch.Generator) -> Tensor:
        """Draw vectors of bits: `(count, places, bits)`."""
        return torch.randint(0, 2, (count, places, self.bits), generator=generator).float()


class Recital(Algorithm):
    """Say what was shown, in some order: `n` vectors, a flag, then `n` answers."""

    def laid_out(
        self, sizes: Int64[Tensor, "batch 1"], most: int, generator: torch.Generator
    ) -> Problem:
        """Draw sequences of given sizes."""
        vectors = self.vectors(len(sizes), most, generator)
        places = _places(2 * sizes + 1)
        asked = (places > sizes) & (places <= 2 * sizes)
        shown = _taken(vectors, places, places < sizes)
        inputs = torch.cat([shown, _flag(places == sizes)], dim=-1)
        answers = _taken(vectors, self.order(places, sizes), asked)
        return Problem(inputs, answers, asked, (2 * sizes + 1).squeeze(1))

    @abstractmethod
    def order(self, places: Tensor, sizes: Tensor) -> Tensor:
        """Return which vector is the answer at each step."""


class Copy(Recital):
    """Say what was shown, in the order in which it was shown.

    References:
        Graves, Wayne and Danihelka, Neural Turing machines, 2014.
    """

    def order(self, places: Tensor, sizes: Tensor) -> Tensor:
        """Return which vector is the answer at each step."""
        return places - sizes - 1


class Reversal(Recital):
    """Say what was shown, the last first.

    References:
        Grefenstette et al., Learning to transduce with unbounded memory, 2015.
    """

    def order(self, places: Tensor, sizes: Tensor) -> Tensor:
        """Return which vector is the answer at each step."""
        return 2 * sizes - places


class RepeatCopy(Algorithm):
    """Say what was shown several times, then a mark of the end.

    With the flag comes how often, less its mean and over its standard deviation as it is drawn:
    1 to `most_repeats`. Beyond that is the question of generalisation.

    Args:
        bits: How many bits in a vector.
        repeats: How often, exactly; by default drawn.
        most_repeats: How often at most, where drawn.

    Raises:
        UserError: A number is below 1.

    References:
        Graves, Wayne and Danihelka 2014.
    """

    flags = 2
    more = 1

    def __init__(
        self, bits: int = 8, *, repeats: int | None = None, most_repeats: int = 10
    ) -> None:
        super().__init__(bits)
        for name, number in (("repeats", repeats), ("most_repeats", most_repeats)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be at least 1; got {number}. 10 is usual.")
        self.repeats, self.most_repeats = repeats, most_repeats

    def laid_out(
        self, sizes: Int64[Tensor, "batch 1"], most: int, generator: torch.Generator
    ) -> Problem:
        """Draw sequences of given sizes."""
        vectors = self.vectors(len(sizes), most, generator)
        times = torch.randint(1, self.most_repeats + 1, sizes.shape, generator=generator)
        times = times if self.repeats is None else torch.full_like(times, self.repeats)
        last = sizes * (1 + times) + 1
        places = _places(last + 1)
        asked = (places > sizes) & (places < last)
        flagged = places == sizes
        spread = math.sqrt((self.most_repeats**2 - 1) / 12) or 1.0
        often = (times - (self.most_repeats + 1) / 2) / spread
        shown = _taken(vectors, places, places < sizes)
        inputs = torch.cat([shown, _flag(flagged), _flag(flagged) * often.unsqueeze(-1)], dim=-1)
        answers = _taken(vectors, (places - sizes - 1) % sizes, asked)
        ended = places == last
        targets = torch.cat([answers, _flag(ended)], dim=-1)
        return Problem(inputs, targets, asked | ended, (last + 1).squeeze(1))


class AssociativeRecall(Algorithm):
    """Shown one item of a list, say the one that came after it.

    Each item is a flag and three vectors; the question is an item between two other flags.

    Args:
        bits: How many bits in a vector.
        item: How many vectors in an item.

    Raises:
        UserError: A number is below 1.

    References:
        Graves, Wayne and Danihelka 2014.
    """

    flags = 2
    least = 2

    def __init__(self, bits: int = 6, *, item: int = 3) -> None:
        super().__init__(bits)
        if item < 1:
            raise UserError(f"item must be at least 1 vector; got {item}. 3 is usual.")
        self.item = item

    def laid_out(
        self, sizes: Int64[Tensor, "batch 1"], most: int, generator: torch.Generator
    ) -> Problem:
        """Draw sequences of given sizes."""
        item, count = self.item, len(sizes)
        vectors = self.vectors(count, most * item, generator)
        chosen = (torch.rand(count, 1, generator=generator) * (sizes - 1)).long()
        question = sizes * (item + 1)  # the step of its first flag
        lengths = question + 2 * item + 2
        places = _places(lengths)
        behind = places - question
        listed, begins = behind < 0, places % (item + 1) == 0
        asked_about = (behind > 0) & (behind <= item)
        asked = (behind > item + 1) & (places < lengths)
        order = (places // (item + 1)) * item + places % (item + 1) - 1
        order = order.where(listed, chosen * item + behind - 1)
        shown = _taken(vectors, order, (listed & ~begins) | asked_about)
        flags = [_flag(listed & begins), _flag((behind == 0) | (behind == item + 1))]
        answers = _taken(vectors, (chosen + 1) * item + behind - item - 2, asked)
        return Problem(torch.cat([shown, *flags], dim=-1), answers, asked, lengths.squeeze(1))


class PrioritySort(Algorithm):
    """Say the vectors of highest priority, the highest first.

    With each vector comes a priority from -1 to 1; four in five of the vectors are answered.

    References:
        Graves, Wayne and Danihelka 2014.
    """

    flags = 2

    def laid_out(
        self, sizes: Int64[Tensor, "batch 1"], most: int, generator: torch.Generator
    ) -> Problem:
        """Draw sequences of given sizes."""
        vectors = self.vectors(len(sizes), most, generator)
        priorities = 2 * torch.rand(len(sizes), most, 1, generator=generator) - 1
        there = torch.arange(most) < sizes
        ranks = priorities.squeeze(-1).masked_fill(~there, -torch.inf)
        order = ranks.argsort(dim=1, descending=True, stable=True)
        answered = (SORTED_SHARE * sizes).ceil().long()
        lengths = sizes + 1 + answered
        places = _places(lengths)
        asked = (places > sizes) & (places < lengths)
        shown = _taken(torch.cat([vectors, priorities], dim=-1), places, places < sizes)
        inputs = torch.cat([shown, _flag(places == sizes)], dim=-1)
        rank = (places - sizes - 1).clamp(0, most - 1)
        answers = _taken(vectors, order.gather(1, rank), asked)
        return Problem(inputs, answers, asked, lengths.squeeze(1))


ALGORITHMS: dict[str, type[Algorithm]] = {
    "associative_recall": AssociativeRecall,
    "copy": Copy,
    "priority_sort": PrioritySort,
    "repeat_copy": RepeatCopy,
    "reversal": Reversal,
}


def bits_wrong(
    outputs: Float[Tensor, "batch steps output_dim"], problem: Problem
) -> Int64[Tensor, " batch"]:
    """Count the bits that are wrong in each answer; an output above 0 means 1.

    The error of the papers is their mean; a sequence is perfect where there is none.

    Args:
        outputs: What was said.
        problem: What was asked.

    Returns:
        One count for each sequence.

    Raises:
        ShapeError: There are not as many outputs as targets.
    """
    if outputs.shape != problem.targets.shape:
        raise ShapeError(
            f"outputs must have the shape of the targets, {tuple(problem.targets.shape)}; got "
            f"{tuple(outputs.shape)}. One number for each bit."
        )
    wrong = (outputs > 0) != (problem.targets > 0.5)
    return (wrong & problem.mask.unsqueeze(-1)).sum(dim=(1, 2))


def bit_loss(
    outputs: Float[Tensor, "batch steps output_dim"], problem: Problem
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of the bits that are asked for, 0 where none is.

    Args:
        outputs: What was said, as logits.
        problem: What was asked.

    Returns:
        The loss.
    """
    said, bits = outputs[problem.mask], problem.targets[problem.mask]
    total = nn.functional.binary_cross_entropy_with_logits(said, bits, reduction="sum")
    return total / max(bits.numel(), 1)


def _places(lengths: Tensor) -> Tensor:
    """Number the steps of the longest sequence: `(1, steps)`."""
    return torch.arange(int(lengths.max()) if lengths.numel() else 0).unsqueeze(0)


def _taken(vectors: Tensor, order: Tensor, where: Tensor) -> Tensor:
    """Put vectors in an order, and zeros elsewhere: `(batch, steps, dim)`."""
    places = order.clamp(0, vectors.shape[1] - 1).expand_as(where).unsqueeze(-1)
    found = vectors.gather(1, places.expand(-1, -1, vectors.shape[2]))
    return found * where.unsqueeze(-1)


def _flag(where: Tensor) -> Tensor:
    return where.float().unsqueeze(-1)


def _mixed(seed: int, index: int) -> int:
    """Give each pair a seed of its own, far from those of its neighbours."""
    return ((seed + 1) * 0x9E3779B97F4A7C15 + (index + 1) * 0xBF58476D1CE4E5B9) % 2**63
