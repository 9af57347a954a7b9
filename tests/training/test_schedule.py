"""Learning rates by step."""

import itertools

import pytest

from regard.training.schedule import factor


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "inverse_sqrt", "halving"])
def test_the_warm_up_rises_evenly_to_the_highest(schedule: str) -> None:
    rates = [factor(step, schedule=schedule, warmup=4, total=20) for step in range(20)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert all(a >= b for a, b in itertools.pairwise(rates[3:]))
    assert all(0.0 <= rate <= 1.0 for rate in rates)


@pytest.mark.parametrize(
    ("schedule", "last"), [("constant", 1.0), ("linear", 0.0), ("cosine", 0.0)]
)
def test_where_it_ends(schedule: str, last: float) -> None:
    for step in (20, 99):  # a run whose data has shrunk goes beyond its total
        assert factor(step, schedule=schedule, warmup=4, total=20) == pytest.approx(last)


def test_without_warm_up_and_with_too_long_a_one() -> None:
    assert factor(0, schedule="inverse_sqrt", warmup=0, total=5) == 1.0
    assert factor(3, schedule="inverse_sqrt", warmup=0, total=5) == 0.5
    assert factor(9, schedule="linear", warmup=10, total=5) == 1.0
    assert factor(10, schedule="linear", warmup=10, total=5) == 1.0


def test_halving_comes_after_each_quarter() -> None:
    rates = [factor(step, schedule="halving", warmup=0, total=8) for step in range(10)]
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
