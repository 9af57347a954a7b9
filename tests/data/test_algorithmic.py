from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from regard.data.algorithmic import (
    ALGORITHMS,
    AssociativeRecall,
    Copy,
    PrioritySort,
    Problem,
    RepeatCopy,
    Reversal,
    bit_loss,
    bits_wrong,
)
from regard.errors import ShapeError, UserError


def rows(problem: Problem) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Cut each sequence at its end; nothing stands behind it."""
    cut = []
    for row, length in enumerate(problem.lengths.tolist()):
        for tensor in (problem.inputs, problem.targets, problem.mask):
            assert (tensor[row, length:] == 0).all()
        mask = problem.mask[row, :length]
        assert mask[-1]
        assert (problem.inputs[row, :length][mask] == 0).all()
        assert (problem.targets[row, :length][~mask] == 0).all()
        cut.append((problem.inputs[row, :length], problem.targets[row, :length][mask], mask))
    return cut


@pytest.mark.parametrize("kind", [Copy, Reversal])
def test_copy_and_reversal(kind: type[Copy | Reversal]) -> None:
    problem = kind(5).draw(60, sizes=(1, 7), seed=1)
    sizes = set()
    for inputs, answers, mask in rows(problem):
        size = len(answers)
        sizes.add(size)
        assert inputs.shape == (2 * size + 1, 6)
        assert inputs[:, 5].nonzero().tolist() == [[size]]
        shown = inputs[:size, :5]
        assert torch.equal(answers, shown.flip(0) if kind is Reversal else shown)
        assert not mask[: size + 1].any()
    assert sizes == set(range(1, 8))


def test_repeat_copy() -> None:
    problem = RepeatCopy(4, most_repeats=3).draw(60, sizes=(1, 4), seed=1)
    spread = math.sqrt(2 / 3)
    seen = set()
    for inputs, answers, _ in rows(problem):
        size = int(inputs[:, 4].nonzero())
        times = (len(answers) - 1) // size
        seen.add((size, times))
        assert inputs[size, 5].item() == pytest.approx((times - 2) / spread)
        assert torch.equal(answers[:-1, :4], inputs[:size, :4].repeat(times, 1))
        assert answers[:, 4].nonzero().tolist() == [[size * times]]
    assert len(seen) == 12
    exact = RepeatCopy(4, repeats=7).draw(2, sizes=(2, 2), seed=1)
    assert exact.mask.sum(dim=1).tolist() == [15, 15]


def test_associative_recall() -> None:
    problem = AssociativeRecall(6).draw(80, sizes=(2, 5), seed=1)
    asked = set()
    for inputs, answers, _ in rows(problem):
        begins = inputs[:, 6].nonzero().flatten().tolist()
        items = [inputs[begin + 1 : begin + 4, :6] for begin in begins]
        assert begins == [4 * place for place in range(len(items))]
        first, second = inputs[:, 7].nonzero().flatten().tolist()
        assert (first, second) == (4 * len(items), 4 * len(items) + 4)
        question = inputs[first + 1 : second, :6]
        found = [torch.equal(question, item) for item in items]
        place = found.index(True)
        asked.add((len(items), place))
        assert torch.equal(answers, items[place + 1])
    assert asked == {(items, place) for items in range(2, 6) for place in range(items - 1)}


def test_priority_sort() -> None:
    problem = PrioritySort(5).draw(40, sizes=(1, 10), seed=1)
    for inputs, answers, _ in rows(problem):
        size = int(inputs[:, 6].nonzero())
        assert len(answers) == math.ceil(0.8 * size)
        order = inputs[:size, 5].argsort(descending=True)
        assert inputs[:size, 5].abs().max() <= 1
        assert torch.equal(answers, inputs[:size, :5][order][: len(answers)])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_seed_and_index_decide(name: str) -> None:
    algorithm = ALGORITHMS[name]()
    one = algorithm.draw(5, sizes=(2, 9), seed=3, index=4)
    again = algorithm.draw(5, sizes=(2, 9), seed=3, index=4)
    for a, b in zip(one, again, strict=True):
        assert torch.equal(a, b)
    for seed, index in ((4, 3), (3, 5), (4, 4)):
        other = algorithm.draw(5, sizes=(2, 9), seed=seed, index=index)
        assert other.inputs.shape != one.inputs.shape or not torch.equal(other.inputs, one.inputs)
    assert one.inputs.shape[2] == algorithm.input_dim
    assert one.targets.shape[2] == algorithm.output_dim


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_sequences(name: str) -> None:
    problem = ALGORITHMS[name]().draw(0, sizes=(2, 3), seed=0)
    assert problem.inputs.shape[0] == 0
    assert bits_wrong(problem.targets, problem).tolist() == []
    assert bit_loss(problem.targets, problem) == 0


def test_drawing_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    Copy().draw(3, sizes=(1, 3), seed=0)
    assert torch.equal(torch.rand(1), expected)


def test_wrong_bits_are_counted_where_an_answer_is_due() -> None:
    problem = Copy(3).draw(2, sizes=(2, 4), seed=2)
    right = problem.targets * 2 - 1
    assert bits_wrong(right, problem).tolist() == [0, 0]
    changed = right.where(problem.mask.unsqueeze(-1), 5.0)
    assert bits_wrong(changed, problem).tolist() == [0, 0]
    step = int(problem.mask[1].nonzero()[0])
    changed[1, step] *= -1
    assert bits_wrong(changed, problem).tolist() == [0, 3]
    assert bits_wrong(-right, problem).tolist() == (3 * problem.mask.sum(dim=1)).tolist()
    with pytest.raises(ShapeError, match="outputs must have the shape of the targets"):
        bits_wrong(right[:, :2], problem)


def test_the_loss_is_that_of_the_bits_asked_for() -> None:
    problem = Copy(3).draw(4, sizes=(1, 4), seed=2)
    outputs = torch.zeros_like(problem.targets)
    outputs[~problem.mask] = 100.0
    assert bit_loss(outputs, problem).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("count", "sizes", "seed", "name"),
    [
        (-1, (1, 2), 0, "count"),
        (1, (0, 2), 0, "sizes"),
        (1, (3, 2), 0, "sizes"),
        (1, (1, 2), -1, "seed"),
    ],
)
def test_ranges(count: int, sizes: tuple[int, int], seed: int, name: str) -> None:
    with pytest.raises(UserError, match=f"{name} .*must"):
        Copy().draw(count, sizes=sizes, seed=seed)


def test_other_ranges() -> None:
    with pytest.raises(UserError, match="sizes must go up from 2 or more; got 1 to 4"):
        AssociativeRecall().draw(1, sizes=(1, 4), seed=0)
    with pytest.raises(UserError, match="bits must be at least 1; got 0"):
        Copy(0)
    with pytest.raises(UserError, match="item must be at least 1 vector; got 0"):
        AssociativeRecall(item=0)
    with pytest.raises(UserError, match="repeats must be at least 1; got 0"):
        RepeatCopy(repeats=0)
