"""D7, D9, T12 and exact resume: batches that depend on seed and epoch alone."""

import multiprocessing
import os
import pickle
import random
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import (
    halves,
    loader,
    mixed_plan,
    packed_plan,
    pad,
    plan,
    reading_plan,
)
from regard.errors import DataError, EnvironmentFault, MissingExtraError, UserError

LENGTHS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


class Squares:
    """Samples that fail on demand, in the way that `fault` says."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def where(self, index: int) -> str:
        return f"squares.txt:{index + 1}"

    def __getitem__(self, index: int) -> list[int]:
        if index == 5 and self.fault:
            self.fail()
        return [index * index] * (index % 3 + 1)

    def fail(self) -> None:
        if self.fault == "value":
            raise ValueError("not a number")
        if self.fault == "data":
            raise DataError("label must be known; got 'x'. Correct it.", where="labels.txt:9")
        if self.fault == "extra":
            raise MissingExtraError("rjieba must be installed; it is not.")
        if self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "slow":
            time.sleep(3)


BATCHES = [[3, 1], [0, 2], [5, 4], [6]]


@given(lengths=LENGTHS, tokens=st.integers(1, 100), bound=st.none() | st.integers(1, 5))
def test_d7_a_plan_holds_everything_once_within_its_bounds(
    lengths: list[tuple[int, int]], tokens: int, bound: int | None
) -> None:
    batches = plan(lengths, tokens=tokens, seed=1, epoch=2, max_sentences=bound)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(max(1, *lengths[index]) for index in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert len(batch) <= (bound or len(batch))


def test_a_plan_depends_on_seed_and_epoch_alone() -> None:
    lengths = [(i % 17 + 1, i % 13 + 1) for i in range(500)]
    first = plan(lengths, tokens=64, seed=1, epoch=0)
    random.seed(9)
    torch.manual_seed(9)
    assert plan(lengths, tokens=64, seed=1, epoch=0) == first
    assert plan(lengths, tokens=64, seed=1, epoch=1) != first
    assert plan(lengths, tokens=64, seed=2, epoch=0) != first


def test_every_epoch_has_as_many_batches() -> None:
    lengths = [(n % 13 + 1, n % 7 + 1) for n in range(200)]
    plans = [plan(lengths, tokens=40, seed=3, epoch=e, max_sentences=9) for e in range(6)]
    assert len({len(one) for one in plans}) == 1


def test_similar_lengths_stand_together_and_batches_are_mixed() -> None:
    lengths = [(i % 40 + 1,) for i in range(4000)]
    batches = plan(lengths, tokens=400, seed=0, epoch=0)
    spread = [max(lengths[i][0] for i in b) - min(lengths[i][0] for i in b) for b in batches]
    assert max(spread) <= 4
    longest = [max(lengths[i][0] for i in batch) for batch in batches]
    assert longest != sorted(longest)


@given(LENGTHS, st.integers(1, 40), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 7)))
def test_a_mixed_plan_holds_everything_once_in_batches_of_one_size(
    lengths: list[tuple[int, int]], tokens: int, epoch: int, most: int | None
) -> None:
    made = mixed_plan(lengths, tokens=tokens, seed=1, epoch=epoch, max_sentences=most)
    assert sorted(index for batch in made for index in batch) == list(range(len(lengths)))
    longest = max([1, *map(max, lengths)])
    sizes = [len(batch) for batch in made]
    assert all(size == sizes[0] for size in sizes[:-1])
    assert all(size == 1 or size * longest <= tokens for size in sizes)
    assert most is None or all(size <= most for size in sizes)
    again = mixed_plan(lengths, tokens=tokens, seed=1, epoch=epoch + 1, max_sentences=most)
    assert [len(batch) for batch in again] == sizes


def test_a_mixed_plan_mixes_lengths() -> None:
    made = mixed_plan([(index,) for index in range(64)], tokens=512, seed=1, epoch=0)
    assert len(made) == 8
    assert all(max(batch) - min(batch) > 16 for batch in made)
    assert made != mixed_plan([(index,) for index in range(64)], tokens=512, seed=1, epoch=1)
    with pytest.raises(UserError, match="tokens must be at least 1"):
        mixed_plan([(1,)], tokens=0, seed=1, epoch=0)


def test_nothing_and_wrong_bounds() -> None:
    assert plan([], tokens=5, seed=0, epoch=0) == []
    assert plan([()], tokens=5, seed=0, epoch=0) == [[0]]
    with pytest.raises(UserError, match="tokens must be at least 1; got 0"):
        plan([(1, 1)], tokens=0, seed=0, epoch=0)
    with pytest.raises(UserError, match="max_sentences must be at least 1; got 0"):
        plan([(1, 1)], tokens=1, seed=0, epoch=0, max_sentences=0)


class Pair(NamedTuple):
    numbers: torch.Tensor
    names: list[str]


def test_a_batch_is_halved_in_all_its_fields() -> None:
    found = halves(Pair(torch.arange(6).view(3, 2), ["a", "b", "c"]))
    assert found is not None
    first, second = found
    assert (first.numbers.tolist(), first.names) == ([[0, 1]], ["a"])
    assert (second.numbers.tolist(), second.names) == ([[2, 3], [4, 5]], ["b", "c"])
    assert halves(first) is None


def test_pad() -> None:
    padded = pad([[1, 2], [], [3]], value=9)
    assert padded.tolist() == [[1, 2], [9, 9], [3, 9]]
    assert padded.dtype == torch.int64
    assert pad([]).shape == (0, 0)
    assert pad([[], []]).shape == (2, 0)


def test_t12_any_number_of_workers_gives_the_same() -> None:
    runs = [
        [batch.tolist() for batch in loader(Squares(), BATCHES, workers=workers, collate=pad)]
        for workers in (0, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0][0] == [[9, 0], [1, 1]]
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 2])
def test_going_on_in_the_middle(workers: int) -> None:
    whole = list(loader(Squares(), BATCHES, collate=list))
    rest = list(loader(Squares(), BATCHES, start=2, workers=workers, collate=list))
    assert rest == whole[2:]
    assert list(loader(Squares(), BATCHES, start=4, collate=list)) == []
    with pytest.raises(UserError, match="start must be from 0 to 4; got 5"):
        loader(Squares(), BATCHES, start=5, collate=list)
    with pytest.raises(UserError, match="got -1 and 0"):
        loader(Squares(), BATCHES, workers=-1, collate=list)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_global_random_state_is_left_alone(workers: int) -> None:
    before = (torch.get_rng_state(), pickle.dumps(np.random.get_state()))
    batches = loader(Squares(), BATCHES, workers=workers, collate=list)
    assert torch.equal(torch.get_rng_state(), before[0])
    list(batches)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert pickle.dumps(np.random.get_state()) == before[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ("value", DataError, r"^squares\.txt:6: sample must be readable; got ValueError: not a"),
        ("data", DataError, r"^labels\.txt:9: label must be known; got 'x'\. Correct it\.$"),
        ("extra", MissingExtraError, r"^squares\.txt:6: rjieba must be installed"),
    ],
)
def test_d9_a_bad_sample_is_named(
    workers: int, fault: str, kind: type[Exception], message: str
) -> None:
    batches = loader(Squares(fault), BATCHES, workers=workers, collate=list)
    assert len([next(batches), next(batches)]) == 2
    with pytest.raises(kind, match=message) as caught:
        next(batches)
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bad_batch_is_named(workers: int) -> None:
    def collate(_: list[list[int]]) -> None:
        raise KeyError("size")

    with pytest.raises(DataError, match=r"batch of squares\.txt:4: .*KeyError"):
        list(loader(Squares(), BATCHES, workers=workers, collate=collate))


def test_without_where_the_index_is_named() -> None:
    with pytest.raises(DataError, match=r"sample 7: .*IndexError"):
        list(loader([1, 2], [[7]], collate=list))


@pytest.mark.parametrize(("fault", "timeout"), [("killed", 0), ("slow", 1)])
def test_t12_a_dead_or_stuck_worker_is_an_environment_fault(fault: str, timeout: int) -> None:
    batches = loader(Squares(fault), BATCHES, workers=2, timeout=timeout, collate=list)
    with pytest.raises(EnvironmentFault, match="data workers must stay alive") as caught:
        list(batches)
    assert caught.value.exit_code == 3
    assert not multiprocessing.active_children()


def test_a_closed_iterator_leaves_no_process() -> None:
    batches: Iterator[object] = loader(Squares(), BATCHES * 50, workers=2, collate=list)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 60), st.integers(0, 3))
def test_packed_batches_hold_every_sample_once_and_no_more_than_fits(
    sizes: list[int], tokens: int, epoch: int
) -> None:
    plan = packed_plan(sizes, tokens=tokens, seed=1, epoch=epoch, max_sentences=7)
    assert sorted(index for batch in plan for index in batch) == list(range(len(sizes)))
    for batch in plan:
        assert len(batch) <= 7
        assert sum(sizes[i] for i in batch) <= tokens or len(batch) == 1
    assert plan == packed_plan(sizes, tokens=tokens, seed=1, epoch=epoch, max_sentences=7)


def test_packed_batches_change_with_seed_and_epoch() -> None:
    plans = [
        packed_plan([1] * 50, tokens=10, seed=seed, epoch=epoch)
        for seed, epoch in ((0, 0), (0, 1), (1, 0))
    ]
    assert all(len(plan) == 5 for plan in plans)
    assert len({str(plan) for plan in plans}) == 3
    with pytest.raises(UserError, match="tokens must be at least 1; got 0"):
        packed_plan([1], tokens=0, seed=0, epoch=0)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 60), st.integers(1, 9))
def test_a_plan_for_reading_has_every_sample_once(
    lengths: list[int], tokens: int, most: int
) -> None:
    made = reading_plan(lengths, tokens=tokens, max_sentences=most)
    flat = [index for batch in made for index in batch]
    assert sorted(flat) == list(range(len(lengths)))
    longest = [max(1, lengths[index]) for index in flat]
    assert longest == sorted(longest)
    for batch in made:
        assert len(batch) <= most
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= tokens
