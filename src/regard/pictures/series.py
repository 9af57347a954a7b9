"""A series of numbers that was read, step by step, and what a chart of it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.errors import ShapeError, UserError
from regard.pictures.colours import scale_top
from regard.pictures.gaze import number
from regard.pictures.lettering import visible
from regard.pictures.texts import Text, Token

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from regard.pictures.records import Record

MOST_STEPS = 100_000
MOST_FEATURES = 64
EVEN = "All steps weigh about the same: none of them decided."

_DRAWN = 6  # features of a chart
_NAMED = 3  # steps of most weight that are named
_MOST_EVEN = 1.25  # the largest weight over the mean, for steps that weigh about the same

Row = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Series(Text):
    """Numbers in order: the tokens are the steps, counted from 1.

    Args:
        text: The numbers of the steps, with a space between them.
        tokens: One for each step.
        language: None.
        features: What the numbers of a step are called.
        values: For each step its numbers; None where one is missing.

    Raises:
        UserError: A step has another number of values, one is not finite, or there are too many.

    Example:
        >>> series = Series.of([[0.5], [2.0], [float("nan")]], ["speed"])
        >>> series.values, series.text
        (((0.5,), (2.0,), (None,)), '1 2 3')
    """

    features: tuple[str, ...] = ()
    values: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        super(Series, self).__post_init__()  # slots make the class anew: super() fails
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "values", tuple(map(tuple, self.values)))
        if not 1 <= len(self.features) <= MOST_FEATURES or len(self.values) > MOST_STEPS:
            raise UserError(
                f"values must have 1 to {MOST_FEATURES} features and at most {MOST_STEPS} steps; "
                f"got {len(self.features)} and {len(self.values)}. Leave some out."
            )
        if len(self.values) != len(self.tokens):
            raise UserError(
                f"values must have one row for each of {len(self.tokens)} tokens; got "
                f"{len(self.values)}. Count the steps."
            )
        for step, row in enumerate(self.values):
            known = [value for value in row if value is not None]
            if len(row) != len(self.features) or not all(map(_is_finite, known)):
                raise UserError(
                    f"values[{step}] must be {len(self.features)} finite numbers, or None; got "
                    f"{len(row)}, or one that is not. Correct it."
                )

    @classmethod
    def of(cls, values: ArrayLike, features: tuple[str, ...] | list[str]) -> Series:
        """Make a series of an array.

        Args:
            values: The numbers, `(steps, features)`; NaN where one is missing.
            features: What the features are called.

        Returns:
            The series; its numbers are rounded to six significant digits.

        Raises:
            ShapeError: The array has other axes.
            UserError: There are too many numbers, or one is infinite.
        """
        made = np.asarray(values, dtype=np.float64)
        if made.ndim != 2:
            raise ShapeError(
                f"values must have 2 axes (steps, features); got {made.ndim}. Reshape them."
            )
        rows = [
            tuple(None if math.isnan(value) else float(f"{value:.6g}") for value in row)
            for row in made.tolist()
        ]
        tokens, place = [], 0
        for step in range(1, len(rows) + 1):
            tokens.append(Token(str(step), place, place + len(str(step))))
            place += len(str(step)) + 1
        text = " ".join(token.text for token in tokens)
        return cls(text, tuple(tokens), None, tuple(features), tuple(rows))


def _is_finite(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


class Trace(NamedTuple):
    """One feature of a chart.

    Args:
        name: What it is called, visible.
        low: Its smallest number; 0 where there is none.
        high: Its largest.
        ranges: For each column the smallest and the largest of its numbers; None where all are
            missing.
    """

    name: str
    low: float
    high: float
    ranges: tuple[tuple[float, float] | None, ...]

    def height(self, value: float) -> float:
        """Say how high a number stands, from 0 to 1."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5


@dataclass(frozen=True)
class Chart:
    """What a chart of a series shows, whatever draws it.

    Args:
        heading: What was read and said, visible.
        steps: How many steps each column stands for; the last one may have fewer.
        weights: The weight of each column, that of its steps together.
        count: How many steps there are.
        traces: The features that are drawn.
        named: The steps of most weight, in words.
        remark: What must be said beside, or "".
    """

    heading: str
    steps: int
    weights: tuple[float, ...]
    count: int
    traces: tuple[Trace, ...]
    named: str
    remark: str

    @property
    def top(self) -> float:
        """The weight that is drawn strongest."""
        return scale_top(np.array(self.weights, dtype=np.float32))

    def said(self, column: int) -> str:
        """Say what a column stands for, and its weight."""
        first = column * self.steps + 1
        last = min(first + self.steps - 1, self.count)
        name = f"step {first}" if first == last else f"steps {first} to {last}"
        return f"{name}: {number(self.weights[column])}"


def chart(record: Record, *, columns: int, name: str | None = None) -> Chart:
    """Work out what a chart of a record shows.

    Args:
        record: A record whose `read` is a series; of several rows the mean is shown.
        columns: Most columns, each of as many steps as are needed.
        name: The map; the mean when it is not given.

    Returns:
        The chart.

    Raises:
        UserError: No map has this name, or something else was read.
    """
    read = record.read
    if not isinstance(read, Series):
        raise UserError(f"read must be a series here; got {type(read).__name__}. Draw it as it is.")
    rows = record.weights(name)
    weights = rows.mean(axis=0, dtype=np.float64) if len(rows) else np.zeros(len(read.values))
    steps = max(math.ceil(len(weights) / max(columns, 1)), 1)
    starts = range(0, len(weights), steps)
    values = np.array(read.values, dtype=np.float64).reshape(-1, len(read.features))
    drawn = list(zip(read.features, values.T, strict=True))[:_DRAWN]
    return Chart(
        heading=_heading(record, name),
        steps=steps,
        weights=tuple(float(weights[start : start + steps].sum()) for start in starts),
        count=len(weights),
        traces=tuple(_trace(visible(feature), line, steps) for feature, line in drawn),
        named=_named(weights),
        remark=_remark(weights, len(read.features) - len(drawn)),
    )


def _trace(name: str, line: NDArray[np.float64], steps: int) -> Trace:
    known = line[~np.isnan(line)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    ranges: list[tuple[float, float] | None] = []
    for start in range(0, len(line), steps):
        part = line[start : start + steps]
        part = part[~np.isnan(part)]
        ranges.append((float(part.min()), float(part.max())) if len(part) else None)
    return Trace(name, low, high, tuple(ranges))


def _heading(record: Record, name: str | None) -> str:
    said = visible(record.written.text) or "nothing"
    probability = record.details.get("probability")
    sure = f" {probability:.2f}" if isinstance(probability, float) else ""
    read = visible(str(record.details.get("sequence", "")))
    which = ""
    if len(record.maps) > 1:
        which = f"  mean of {len(record.maps)} maps" if name is None else f"  {visible(name)}"
    return f"{read or visible(record.task)}: {said}{sure}{which}"


def _named(weights: NDArray[np.float64]) -> str:
    order = np.argsort(-weights, kind="stable")[:_NAMED]
    best = [f"step {step + 1} {number(float(weights[step]))}" for step in order if weights[step]]
    return ", ".join(best)


def _remark(weights: NDArray[np.float64], left_out: int) -> str:
    said = []
    if len(weights) > 1 and weights.max() <= _MOST_EVEN * weights.mean():
        said.append(EVEN if weights.any() else "No step has any weight.")
    if left_out:
        said.append(f"Features that are not drawn: {left_out}.")
    return " ".join(said)
