"""Generated time series in which one event decides, of a known kind at a known place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.splits import SPLITS, check_split, split_of_content
from regard.errors import UserError
from regard.saving import make_room, write_file

NOTHING = "nothing"
"""The label of series in which nothing happens: none of the others is what is left over."""
KINDS = ("bump", "dip", "burst", NOTHING)

_LENGTH = 8  # steps of an event
_FEATURES = ("first", "second")
_LONGEST = 10_000


class PlantedSeries(NamedTuple):
    """A series with what decides it.

    Args:
        values: Its steps, `(steps, 2)`, rounded to three digits.
        label: What happens in it: one of `KINDS`.
        height: How strong that is; 0 where nothing happens.
        start: The first step of the event.
        end: One past its last; the same as the first where nothing happens.
    """

    values: NDArray[np.float64]
    label: str
    height: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SeriesPlanter:
    """A generator of noisy series of two features, in one of which something happens once.

    The noise follows itself (`n_t = 0.6 n_{t-1} + ε`), on a slow wave. A "bump" rises for eight
    steps, a "dip" falls, a "burst" goes up and down at every step; in some series nothing happens.
    A series is a function of seed, split and index alone, and what it holds decides its split, so
    that none stands in two, whatever their seeds.

    Args:
        shortest: Fewest steps of a series.
        longest: Most steps.

    Raises:
        UserError: A number is out of range.

    Example:
        >>> series = SeriesPlanter().series(0, seed=1)
        >>> series.label, series.end - series.start
        ('burst', 8)
    """

    shortest: int = 30
    longest: int = 60

    def __post_init__(self) -> None:
        if not _LENGTH <= self.shortest <= self.longest <= _LONGEST:
            raise UserError(
                f"shortest and longest must be from {_LENGTH} to {_LONGEST}, in this order; got "
                f"{self.shortest} and {self.longest}. Change them."
            )

    def series(self, index: int, *, seed: int, split: str = "train") -> PlantedSeries:
        """Make a series.

        Args:
            index: Which one of the seed and the split.
            seed: Other seeds give other series.
            split: `train`, `dev` or `test`.

        Returns:
            The series.

        Raises:
            UserError: There is no such split.
        """
        check_split(split)
        generator = np.random.default_rng([seed, list(SPLITS).index(split), index])
        while split_of_content(str((made := self._make(generator)).values.tolist())) != split:
            pass
        return made

    def _make(self, generator: np.random.Generator) -> PlantedSeries:
        steps = int(generator.integers(self.shortest, self.longest + 1))
        noise = generator.normal(scale=0.4, size=(steps, len(_FEATURES)))
        for step in range(1, steps):
            noise[step] += 0.6 * noise[step - 1]
        phase, period = generator.uniform(0, 6.28), generator.uniform(20, 60)
        values = noise + np.sin(phase + np.arange(steps) * 6.28 / period)[:, np.newaxis]
        label = KINDS[int(generator.integers(len(KINDS)))]
        start = int(generator.integers(steps - _LENGTH + 1))
        height = round(float(generator.uniform(3.0, 6.0)), 3)
        feature = int(generator.integers(len(_FEATURES)))
        if label == NOTHING:
            return PlantedSeries(values.round(3), label, 0.0, start, start)
        values[start : start + _LENGTH, feature] += height * _SHAPES[label]
        return PlantedSeries(values.round(3), label, height, start, start + _LENGTH)


_HILL = np.sin(np.pi * (np.arange(_LENGTH) + 0.5) / _LENGTH)
_SHAPES = {"bump": _HILL, "dip": -_HILL, "burst": _HILL * np.resize([1.0, -1.0], _LENGTH)}


def write_planted_series(
    folder: Path,
    counts: Mapping[str, int],
    *,
    seed: int,
    planter: SeriesPlanter | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write series as a person's data would be: a CSV file for each split, a row for each step.

    Beside the two features a row has the series' label, its height (the strength of what happens),
    and whether the step is one of the event's, which no model may read.

    Args:
        folder: Where to write; made where it does not exist.
        counts: How many series of each split.
        seed: Other seeds give other series.
        planter: What to write; by default `SeriesPlanter()`.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The files.

    Raises:
        UserError: A file exists already, or there is no such split.
        EnvironmentFault: Something cannot be written.
    """
    made = planter or SeriesPlanter()
    files = {Path(folder) / f"{split}.csv": split for split in counts}
    make_room(files, overwrite=overwrite)
    for path, split in files.items():
        rows = [f"sequence,step,{','.join(_FEATURES)},label,height,event\n"]
        for index in range(counts[split]):
            rows += _rows(f"{split}-{index}", made.series(index, seed=seed, split=split))
        write_file(path, "".join(rows), overwrite=overwrite)
    return list(files)


def _rows(name: str, series: PlantedSeries) -> list[str]:
    rows = []
    for step, values in enumerate(series.values.tolist()):
        event = int(series.start <= step < series.end)
        numbers = ",".join(f"{value:g}" for value in values)
        rows.append(f"{name},{step},{numbers},{series.label},{series.height:g},{event}\n")
    return rows
