"""Batches in an order that seed and epoch decide, for any number of worker processes."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from regard.errors import DataError, EnvironmentFault, UserError

Batch = TypeVar("Batch", bound=tuple[Any, ...])

Plan = list[list[int]]
"""The indices of each batch, in the order of the batches."""

_POOL = 4096  # samples that are sorted by size together


@runtime_checkable
class Samples(Protocol):
    """What `loader` reads from; it may also offer `where(index)`, a sample's `file:line`."""

    def __getitem__(self, index: int, /) -> Any: ...


def plan(
    lengths: Sequence[Sequence[int]],
    *,
    tokens: int,
    seed: int,
    epoch: int,
    max_sentences: int | None = None,
) -> Plan:
    """Put sentences of similar length together, in batches of a bounded padded size.

    The result depends on the arguments alone, so a run can go on in the middle of an epoch; it
    changes from epoch to epoch.

    Args:
        lengths: The lengths of each sample, one per side; the longest counts.
        tokens: Most padded tokens of a batch; a longer sample is a batch of its own.
        seed: The seed of the run.
        epoch: The epoch, from 0.
        max_sentences: Most samples in a batch.

    Returns:
        The plan; every sample stands in it once.

    Raises:
        UserError: A bound is below 1.

    Example:
        >>> sorted(map(sorted, plan([(2, 3), (9, 1), (3, 3)], tokens=9, seed=0, epoch=0)))
        [[0, 2], [1]]
    """
    _check_bounds(tokens, max_sentences)
    generator = random.Random(f"{seed}/{epoch}")  # noqa: S311 - no secret
    longest = _longest(lengths)
    noise = [generator.random() for _ in longest]
    order = sorted(range(len(longest)), key=lambda index: (longest[index], noise[index]))
    batches = _fill(order, longest, tokens=tokens, most=max_sentences or len(order))
    generator.shuffle(batches)
    return batches


def mixed_plan(
    lengths: Sequence[Sequence[int]],
    *,
    tokens: int,
    seed: int,
    epoch: int,
    max_sentences: int | None = None,
) -> Plan:
    """Put samples together at random, in batches of one size, whatever their lengths.

    For models that compute with the means of a batch, which should be those of all the data: long
    samples may show other things than short ones. No batch is larger than `tokens` allows for the
    longest sample of all.

    Args:
        lengths: The lengths of each sample, one per side; the longest counts.
        tokens: Most padded tokens of a batch.
        seed: The seed of the run.
        epoch: The epoch, from 0.
        max_sentences: Most samples in a batch.

    Returns:
        The plan; every sample stands in it once.

    Raises:
        UserError: A bound is below 1.

    Example:
        >>> [len(batch) for batch in mixed_plan([(3,), (1,), (4,)], tokens=8, seed=0, epoch=0)]
        [2, 1]
    """
    _check_bounds(tokens, max_sentences)
    size = max(1, tokens // max(_longest(lengths), default=1))
    size = size if max_sentences is None else min(size, max_sentences)
    order = list(range(len(lengths)))
    random.Random(f"{seed}/{epoch}").shuffle(order)  # noqa: S311 - no secret
    return [order[start : start + size] for start in range(0, len(order), size)]


def packed_plan(
    sizes: Sequence[int],
    *,
    tokens: int,
    seed: int,
    epoch: int,
    max_sentences: int | None = None,
) -> Plan:
    """Put samples of similar size together, as many as have a number of tokens in all.

    For models that read samples of any length without padding them to the longest. The samples are
    drawn some thousands at a time, and sorted by size among these: a recurrent network then takes
    few steps for many samples, and who is together with whom differs from epoch to epoch.

    Args:
        sizes: How many tokens each sample has.
        tokens: Most tokens of a batch; a larger sample is a batch of its own.
        seed: The seed of the run.
        epoch: The epoch, from 0.
        max_sentences: Most samples in a batch.

    Returns:
        The plan; every sample stands in it once. Epochs may differ in how many batches they have.

    Raises:
        UserError: A bound is below 1.

    Example:
        >>> sorted(packed_plan([4, 9, 3, 2], tokens=9, seed=0, epoch=1))
        [[1], [3, 2, 0]]
    """
    _check_bounds(tokens, max_sentences)
    generator = random.Random(f"{seed}/{epoch}")  # noqa: S311 - no secret
    order = list(range(len(sizes)))
    generator.shuffle(order)
    batches: Plan = []
    for start in range(0, len(order), _POOL):
        pool = sorted(order[start : start + _POOL], key=lambda index: sizes[index])
        batches += _pack(pool, sizes, tokens=tokens, most=max_sentences or len(order))
    generator.shuffle(batches)
    return batches


def reading_plan(lengths: Sequence[int], *, tokens: int, max_sentences: int) -> Plan:
    """Put samples of similar length together, the shortest first: to be read, not learnt from.

    Args:
        lengths: The length of each sample.
        tokens: Most padded tokens of a batch; a longer sample is a batch of its own.
        max_sentences: Most samples in a batch.

    Returns:
        The plan; every sample stands in it once.

    Raises:
        UserError: A bound is below 1.

    Example:
        >>> reading_plan([9, 2, 3], tokens=9, max_sentences=2)
        [[1, 2], [0]]
    """
    _check_bounds(tokens, max_sentences)
    longest = _longest([(length,) for length in lengths])
    order = sorted(range(len(longest)), key=longest.__getitem__)
    return _fill(order, longest, tokens=tokens, most=max_sentences)


def _pack(order: Sequence[int], sizes: Sequence[int], *, tokens: int, most: int) -> Plan:
    batches: Plan = []
    total = 0
    for index in order:
        total += sizes[index]
        if batches and total <= tokens and len(batches[-1]) < most:
            batches[-1].append(index)
        else:
            batches.append([index])
            total = sizes[index]
    return batches


def _check_bounds(tokens: int, max_sentences: int | None) -> None:
    for name, value in (("tokens", tokens), ("max_sentences", max_sentences)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1; got {value}. Raise it.")


def _longest(lengths: Sequence[Sequence[int]]) -> list[int]:
    return [max(1, *sides) if sides else 1 for sides in lengths]


def _fill(order: Sequence[int], longest: Sequence[int], *, tokens: int, most: int) -> Plan:
    batches: Plan = []
    for index in order:  # ascending, so this one is the longest of its batch so far
        count = len(batches[-1]) + 1 if batches else 0
        if batches and count * longest[index] <= tokens and count <= most:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def pad(sequences: Sequence[Sequence[int]], *, value: int = 0) -> Int64[Tensor, "batch longest"]:
    """Put sequences of different length into one tensor.

    Args:
        sequences: The sequences.
        value: What fills the places behind the shorter ones.

    Returns:
        The sequences as rows.

    Example:
        >>> pad([[5, 6, 7], [8]]).tolist()
        [[5, 6, 7], [8, 0, 0]]
    """
    longest = max(map(len, sequences), default=0)
    rows = [[*sequence, *[value] * (longest - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), longest)


def halves(batch: Batch) -> tuple[Batch, Batch] | None:
    """Halve a batch whose fields all have one row for each sample.

    Args:
        batch: A named tuple of tensors and lists.

    Returns:
        Its first and its second half, or None where there is but one sample.
    """
    half = len(batch[0]) // 2
    if half == 0:
        return None
    make = type(batch)
    return make(*(part[:half] for part in batch)), make(*(part[half:] for part in batch))


def loader(
    dataset: Samples,
    plan: Sequence[Sequence[int]],
    *,
    collate: Callable[[list[Any]], Any],
    start: int = 0,
    workers: int = 0,
    timeout: int = 0,
) -> Generator[Any, None, None]:
    """Read and collate the batches of a plan, here or in worker processes.

    Order and content are the same for any number of workers, the global random state is left as
    it was, and when the iterator ends or is closed, the workers are gone.

    Args:
        dataset: The samples.
        plan: The batches.
        collate: Makes a batch from a list of samples.
        start: The first batch to read, to go on after an interruption.
        workers: How many processes read; 0 reads here. They set `TOKENIZERS_PARALLELISM`.
        timeout: Most seconds to wait for a worker; 0 waits for ever.

    Returns:
        A generator of the batches.

    Raises:
        UserError: A number is out of range.
        DataError: Later: a sample cannot be read; its place is named.
        EnvironmentFault: Later: a worker was killed or took too long.
    """
    _check_loader(len(plan), start=start, workers=workers, timeout=timeout)
    rest = [list(batch) for batch in plan[start:]]
    made = _data_loader(
        _Guarded(dataset), rest, collate=_Collate(collate), workers=workers, timeout=timeout
    )
    return _checked(iter(made))


def _data_loader(
    samples: _Guarded, rest: Plan, *, collate: _Collate, workers: int, timeout: int
) -> DataLoader[Any]:
    if workers:  # the tokenizers library must not be forked with its threads
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return DataLoader(
        cast("Dataset[Any]", samples),
        batch_sampler=rest,
        num_workers=workers,
        collate_fn=collate,
        timeout=timeout if workers else 0,
        worker_init_fn=_quiet,
        generator=torch.Generator().manual_seed(0),  # else it draws from the global one
    )


def _check_loader(count: int, *, start: int, workers: int, timeout: int) -> None:
    if not 0 <= start <= count:
        raise UserError(f"start must be from 0 to {count}; got {start}. Is it the same data?")
    if workers < 0 or timeout < 0:
        raise UserError(
            f"workers and timeout must not be negative; got {workers} and {timeout}. Use 0."
        )


@dataclass(frozen=True)
class _Failure:
    """An error on its way from a worker: torch would turn a raised one into a long text."""

    error: UserError | EnvironmentFault


class _Guarded:
    """Samples with their index, or a failure in the place of one."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __getitem__(self, index: int) -> tuple[str, Any]:
        where = f"sample {index}"
        try:
            name = getattr(self.samples, "where", None)
            where = str(name(index)) if name else where
            return where, self.samples[index]
        except Exception as error:  # any error in a sample must say which sample
            return where, _Failure(_located(error, where))


class _Collate:
    """The caller's collate function, behind the failures."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, batch: list[tuple[str, Any]]) -> Any:
        for _, sample in batch:
            if isinstance(sample, _Failure):
                return sample
        try:
            return self.collate([sample for _, sample in batch])
        except Exception as error:  # any error in a batch must say which batch
            return _Failure(_located(error, f"batch of {batch[0][0]}"))


def _located(error: Exception, where: str) -> UserError | EnvironmentFault:
    if isinstance(error, (UserError, EnvironmentFault)):
        error.where = error.where or where
        return error
    return DataError(
        f"sample must be readable; got {type(error).__name__}: {error}. Correct or remove it.",
        where=where,
    )


def _quiet(_: int) -> None:
    """Leave signals to the main process, which saves first and then ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _checked(batches: Iterator[Any]) -> Generator[Any, None, None]:
    try:
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except (RuntimeError, OSError) as error:  # samples' own errors come as failures
                raise EnvironmentFault(
                    f"the data workers must stay alive; got: {str(error).splitlines()[0]} "
                    "Free some memory (/dev/shm too), or use fewer workers."
                ) from error
            if isinstance(batch, _Failure):
                raise batch.error
            yield batch
    finally:
        shut_down = getattr(batches, "_shutdown_workers", None)
        if shut_down:
            shut_down()
