"""Sequences of vectors of numbers, such as time series: from arrays, and from tables of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.labels import checked_label
from regard.data.table_files import read_table
from regard.data.tables import Table
from regard.errors import DataError, ShapeError, UserError

MAX_FEATURES = 4096

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """Which columns of a table make sequences: a row is a step of one of them.

    Args:
        sequence: Names the sequence that a row belongs to.
        order: What the steps of a sequence are ordered by, numbers or times; by default they
            stand in the order of the file.
        targets: Labels or values of a sequence, the same in all its rows; none to read without.
        features: The numbers of a step; by default all other columns that hold numbers.
    """

    sequence: str = "sequence"
    order: str | None = None
    targets: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Sequences of vectors of numbers, and where each came from.

    Args:
        names: What each is called.
        features: What the numbers of a step are called.
        values: All steps, those of a sequence after each other; NaN where a number is missing.
        starts: Where each sequence begins, and where the last one ends.
        labels: The label of each, where they have labels.
        targets: The values of each, where they have values.
        file: The file that they were read from; empty for arrays.
        lines: The line of each step, from 1; None where a step is no line.
        unsorted: How many stood in another order than that of their times.
        repeated: How many have two steps of the same time.
        unused: Columns of the table that were not read.
        sha256: Hash of names, numbers, labels and values.
    """

    names: tuple[str, ...]
    features: tuple[str, ...]
    values: Numbers
    starts: Places
    labels: tuple[str, ...] | None = None
    targets: Numbers | None = None
    file: str = ""
    lines: Places | None = None
    unsorted: int = 0
    repeated: int = 0
    unused: tuple[str, ...] = ()
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(json.dumps([self.names, self.features, self.labels]).encode())
        for part in (self.starts, self.values, self.targets):
            if part is not None:
                little = part.astype(part.dtype.newbyteorder("<"))
                digest.update(np.where(np.isnan(little), np.nan, little).tobytes())
        object.__setattr__(self, "sha256", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Numbers:
        """Return the steps of a sequence, `(steps, features)`."""
        return self.values[self.starts[index] : self.starts[index + 1]]

    @property
    def lengths(self) -> Places:
        """How many steps each has."""
        return np.diff(self.starts)

    def where(self, index: int, step: int = 0) -> str:
        """Name the place of a step.

        Args:
            index: Which sequence.
            step: Which of its steps, from 0.

        Returns:
            `file:line`, or what the sequence is called and the step, counted from 1.
        """
        row = int(self.starts[index]) + step
        if self.lines is not None and row < len(self.lines):
            return f"{self.file}:{self.lines[row]}"
        place = f"sequence {self.names[index]!r}, step {step + 1}"
        return f"{self.file}: {place}" if self.file else place

    def check_numbers(self, *, missing: bool) -> None:
        """Refuse numbers that are infinite, or missing where they must not be.

        Args:
            missing: Whether they may be.

        Raises:
            DataError: There is one; its place and its feature are named.
        """
        wrong = np.isinf(self.values) if missing else ~np.isfinite(self.values)
        if not wrong.any():
            return
        row, column = (int(place[0]) for place in np.nonzero(wrong))
        index = int(np.searchsorted(self.starts, row, side="right")) - 1
        where = self.where(index, row - int(self.starts[index]))
        name = self.features[column]
        if np.isnan(self.values[row, column]):
            raise DataError(
                f"{name!r} must be a number in every step; it is missing. Fill it in, or let "
                'missing = "mean" of the model stand for it.',
                where=where,
            )
        raise DataError(f"{name!r} must be finite; got infinity. Correct it.", where=where)


def read_sequences(
    path: str | Path,
    *,
    columns: SeriesColumns | None = None,
    labelled: bool = True,
    encoding: str = "utf-8-sig",
    separator: str | None = None,
) -> Sequences:
    r"""Read sequences from a table in which a row is a step: CSV or Parquet.

    Args:
        path: The file.
        columns: Which columns say what.
        labelled: Whether targets are labels, of which there is one; else they are values.
        encoding: How a CSV file is encoded.
        separator: What stands between its cells; by default a comma, in `.tsv` a tab.

    Returns:
        The sequences, in the order in which they first appear.

    Raises:
        DataError: The file or a row of it is wrong.
        MissingExtraError: The extra `tables` is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "walks.csv"
        >>> _ = path.write_text("sequence,x,label\na,1.5,up\nb,2,down\na,3,up\n")
        >>> read = read_sequences(path, columns=SeriesColumns(targets=("label",)))
        >>> read.names, read[0].tolist(), read.labels
        (('a', 'b'), [[1.5], [3.0]], ('up', 'down'))
    """
    own = columns or SeriesColumns()
    table = read_table(path, encoding=encoding, separator=separator)
    codes, names = table.texts(own.sequence)
    features = _features(table, own)
    order, unsorted, repeated = _ordered(table, codes, own.order)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
    values = np.stack([table.numbers(name) for name in features], axis=1)[order]
    rows = _Rows(table, order, names, starts)
    labels = targets = None
    if own.targets and labelled:
        labels = rows.labels(own.targets)
    elif own.targets:
        targets = np.stack([rows.values(name) for name in own.targets], axis=1)
    read = {own.sequence, own.order, *own.targets, *features}
    return Sequences(
        names=tuple(names),
        features=features,
        values=values,
        starts=starts.astype(np.int64),
        labels=labels,
        targets=targets,
        file=str(path),
        lines=None if table.lines is None else np.asarray(table.lines, dtype=np.int64)[order],
        unsorted=unsorted,
        repeated=repeated,
        unused=tuple(name for name in table.columns if name not in read),
    )


def as_sequences(arrays: Sequence[Any], *, features: Sequence[str] | None = None) -> Sequences:
    """Take arrays for sequences.

    Args:
        arrays: One for each: `(steps, features)`, or `(steps,)` for a single feature.
        features: What the features are called; by default by their number, from 0.

    Returns:
        The sequences, named by their number, from 0.

    Raises:
        UserError: An array is no array of numbers.
        ShapeError: It has other axes, or another number of features.
    """
    parts = [_array(one, index) for index, one in enumerate(arrays)]
    known = None if features is None else tuple(features)
    count = len(known) if known is not None else parts[0].shape[1] if parts else 1
    for index, part in enumerate(parts):
        if part.shape[1] != count:
            raise ShapeError(
                f"sequence {index} must have {count} features; got {part.shape[1]} in an array of "
                f"shape {part.shape}. Its axes are (steps, features)."
            )
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return Sequences(
        names=tuple(map(str, range(len(parts)))),
        features=known or tuple(map(str, range(count))),
        values=np.concatenate([*parts, np.zeros((0, count))]),
        starts=starts.astype(np.int64),
    )


def _array(given: Any, index: int) -> Numbers:
    try:
        made = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"sequence {index} must be an array of numbers; got {type(given).__name__}: {error}. "
            "Its axes are (steps, features)."
        ) from error
    if made.ndim == 1:
        made = made[:, np.newaxis]
    if made.ndim != 2 or not 1 <= made.shape[1] <= MAX_FEATURES:
        raise ShapeError(
            f"sequence {index} must have shape (steps, features), with 1 to {MAX_FEATURES} "
            f"features; got {made.shape}. Give a list of them for several."
        )
    return made


def _features(table: Table, columns: SeriesColumns) -> tuple[str, ...]:
    taken = {columns.sequence, columns.order, *columns.targets}
    if columns.features is not None:
        found = columns.features
    else:
        others = [name for name in table.columns if name not in taken]
        found = tuple(name for name in others if table.is_numeric(name))
    both = [name for name in found if name in taken - {columns.order}]
    if both or len(set(found)) < len(found):
        raise DataError(
            f"features must differ from each other, and from sequence and label; got "
            f"{', '.join(found[:20])}. Name each column once.",
            where=table.file,
        )
    if not 1 <= len(found) <= MAX_FEATURES:
        raise DataError(
            f"table must have 1 to {MAX_FEATURES} columns of numbers beside the others; got "
            f"{len(found)}. Name them as features.",
            where=table.file,
        )
    return found


def _ordered(table: Table, codes: Places, by: str | None) -> tuple[Places, int, int]:
    """Order rows by sequence and time; count sequences that were not, or have equal times."""
    given = np.argsort(codes, kind="stable")
    if by is None:
        return given, 0, 0
    times = table.times(by)
    order = np.lexsort((times, codes))
    moved = np.unique(codes[order][given != order])
    codes, times = codes[order], times[order]
    same = (codes[1:] == codes[:-1]) & (times[1:] == times[:-1])
    return order, len(moved), len(np.unique(codes[1:][same]))


class _Rows(NamedTuple):
    """The rows of a table, in the order of sequences and their steps."""

    table: Table
    order: Places
    names: Sequence[str]
    starts: Places

    def constant(self, column: str, values: NDArray[Any], shown: Callable[[int], str]) -> Any:
        """Return the one value that each sequence has, or say where one has two."""
        first = values[self.starts[:-1]]
        wrong = np.flatnonzero(values != np.repeat(first, np.diff(self.starts)))
        if not len(wrong):
            return first
        row = int(wrong[0])
        index = int(np.searchsorted(self.starts, row, side="right")) - 1
        raise DataError(
            f"column {column!r} must be the same in all rows of a sequence; got "
            f"{shown(int(self.starts[index]))} and {shown(row)} in {self.names[index]!r}. Write "
            "one for the whole sequence.",
            where=self.table.where(int(self.order[row])),
        )

    def labels(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the label of each sequence."""
        if len(columns) > 1:
            raise UserError(
                f"label must be one column; got {len(columns)}. Several are for values.",
                where="label",
            )
        places, known = self.table.texts(columns[0])
        clean = [checked_label(label, self.table.file) for label in known]
        place: dict[str, int] = {}  # two spellings of one label are the same
        same = np.array([place.setdefault(label, index) for index, label in enumerate(clean)])
        rows = same[places][self.order]
        first = self.constant(columns[0], rows, lambda row: repr(clean[rows[row]][:60]))
        return tuple(clean[place] for place in first)

    def values(self, name: str) -> Numbers:
        """Return the value of each sequence."""
        rows = self.table.numbers(name)[self.order]
        gone = np.flatnonzero(np.isnan(rows))
        if len(gone):
            raise DataError(
                f"column {name!r} must be filled in every row; {len(gone)} are empty. Fill them.",
                where=self.table.where(int(self.order[gone[0]])),
            )
        return np.asarray(self.constant(name, rows, lambda row: f"{rows[row]:g}"))
