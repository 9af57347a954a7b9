"""Columns of numbers, times and texts: every cell is read, or its place is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, MissingExtraError, did_you_mean

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
"""What a cell of a CSV file may hold in the place of a number that is missing."""

Column: TypeAlias = Any  # pyarrow's ChunkedArray; it brings no types


def require_pyarrow() -> Any:
    """Return pyarrow with what reads tables, or raise where it is not installed.

    Raises:
        MissingExtraError: The extra `tables` is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 - an extra
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.csv  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(
            "pyarrow must be installed to read tables. Run: pip install 'regard[tables]'"
        ) from None
    return pyarrow


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The columns of a table, and where each row stands.

    Args:
        columns: The columns by name; those without a name, and lists in a cell, are left out.
        file: The file that they were read from.
        rows: How many rows there are.
        lines: The line of each row, from 1; None where a row is no line.
    """

    columns: dict[str, Column]
    file: str
    rows: int
    lines: Sequence[int] | None

    def where(self, row: int) -> str:
        """Name the place of a row.

        Args:
            row: Which, from 0.

        Returns:
            `file:line`, or `file: row N`, rows counted from 1.
        """
        if self.lines is None:
            return f"{self.file}: row {row + 1}"
        return f"{self.file}:{self.lines[row]}"

    def column(self, name: str) -> Column:
        """Return a column as it was read.

        Args:
            name: Its name in the header.

        Returns:
            The column.

        Raises:
            DataError: There is none of this name.
        """
        if name not in self.columns:
            raise DataError(
                f"table must have the column {name!r}; {did_you_mean(name, [*self.columns][:50])}.",
                where=self.file,
            )
        return self.columns[name]

    def is_numeric(self, name: str) -> bool:
        """Say whether a column holds numbers: of text, whether the first that is there is one.

        Args:
            name: Its name.

        Returns:
            Whether it does; a column in which nothing is there does not.
        """
        column = self.column(name)
        if _is_number(column):
            return True
        if not _is_text(column):
            return False
        pa = require_pyarrow()
        gone = pa.compute.is_in(_trimmed(column), value_set=pa.array(MISSING))
        there = pa.compute.index(pa.compute.fill_null(gone, True), False).as_py()
        return there >= 0 and _casts(_trimmed(column).slice(there, 1), pa.float64())

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers.

        Args:
            name: Its name.

        Returns:
            A number for each row; NaN where it is missing.

        Raises:
            DataError: There is no such column, or a cell holds something else.
        """
        pa, column = require_pyarrow(), self.column(name)
        if _is_text(column):
            trimmed = _trimmed(column)
            gone = pa.compute.is_in(trimmed, value_set=pa.array(MISSING))
            column = pa.compute.if_else(gone, "nan", trimmed)
        elif not _is_number(column):
            raise DataError(
                f"column {name!r} must hold numbers; got {column.type}. Name another.",
                where=self.file,
            )
        values = self._cast(name, column, pa.float64(), "a number, with a point if any")
        made = np.array(values.to_numpy(), dtype=np.float64)
        infinite = np.flatnonzero(np.isinf(made))
        if len(infinite):
            row = int(infinite[0])
            raise DataError(
                f"column {name!r} must hold finite numbers; got {made[row]}. Correct it, or leave "
                "it empty.",
                where=self.where(row),
            )
        return made

    def times(self, name: str) -> NDArray[Any]:
        """Return a column that rows can be ordered by: numbers, or dates and times (ISO 8601).

        Args:
            name: Its name.

        Returns:
            Numbers that rise with time.

        Raises:
            DataError: There is no such column, or a cell is missing or holds something else.
        """
        pa, column = require_pyarrow(), self.column(name)
        if self.is_numeric(name):
            numbers = self.numbers(name)
            self._refuse_missing(name, np.isnan(numbers))
            return numbers
        if _is_text(column):
            column = _trimmed(column)
            self._refuse_missing(name, _blank(column))
            zone = "UTC" if not _casts(column.slice(0, 1), pa.timestamp("us")) else None
            column = self._cast(name, column, pa.timestamp("us", zone), "a time as the first has")
        elif not pa.types.is_temporal(column.type):
            raise DataError(
                f"column {name!r} must hold numbers or times; got {column.type}. Name another.",
                where=self.file,
            )
        self._refuse_missing(name, np.asarray(column.is_null().to_numpy(), dtype=np.bool_))
        return np.asarray(column.to_numpy())

    def texts(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return a column of names or labels: texts or whole numbers.

        Args:
            name: Its name.

        Returns:
            For each row the place of its text among those that differ, and these.

        Raises:
            DataError: There is no such column, or a cell is missing or holds something else.
        """
        pa, column = require_pyarrow(), self.column(name)
        whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
        if not whole and not _is_text(column):
            raise DataError(
                f"column {name!r} must hold texts or whole numbers; got {column.type}. Name "
                "another, or turn it into text.",
                where=self.file,
            )
        column = column.cast(pa.string()) if whole else _trimmed(column)
        self._refuse_missing(name, _blank(column))
        encoded = column.combine_chunks().dictionary_encode()
        places = np.array(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        return places, list(encoded.dictionary.to_pylist())

    def _refuse_missing(self, name: str, gone: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(gone)
        if len(rows):
            raise DataError(
                f"column {name!r} must be filled in every row; {len(rows)} are empty. Fill them.",
                where=self.where(int(rows[0])),
            )

    def _cast(self, name: str, column: Column, kind: Any, wanted: str) -> Column:
        if _casts(column, kind, safe=False):
            return column.cast(kind, safe=False)
        low, high = 0, len(column)
        while high - low > 1:  # the first cell that does not cast lies in here
            middle = (low + high) // 2
            good = _casts(column.slice(low, middle - low), kind)
            low, high = (middle, high) if good else (low, middle)
        raise DataError(
            f"column {name!r} must hold {wanted}; got {str(column[low].as_py())[:60]!r}. Correct "
            "it, or name the columns to read.",
            where=self.where(low),
        )


def _is_text(column: Column) -> bool:
    types = require_pyarrow().types
    tests: tuple[Callable[[Any], bool], ...] = (types.is_string, types.is_large_string)
    return any(test(column.type) for test in tests)


def _is_number(column: Column) -> bool:
    types, kind = require_pyarrow().types, column.type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _trimmed(column: Column) -> Column:
    return require_pyarrow().compute.utf8_trim_whitespace(column)


def _casts(column: Column, kind: Any, *, safe: bool = True) -> bool:
    try:
        column.cast(kind, safe=safe)
    except require_pyarrow().ArrowInvalid:
        return False
    return True


def _blank(column: Column) -> NDArray[np.bool_]:
    compute = require_pyarrow().compute
    flags = compute.fill_null(compute.equal(column, ""), True)
    return np.asarray(flags.to_numpy(), dtype=np.bool_)
