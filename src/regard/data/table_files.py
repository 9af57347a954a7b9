"""Tables from CSV and Parquet files: every row is read, or its place is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.data.files import read_bytes
from regard.data.tables import Column, Table, require_pyarrow
from regard.data.text import read_lines
from regard.errors import DataError

LARGEST_TABLE = 2**30
"""Most bytes of a file."""
MAX_COLUMNS = 10_000
MAX_CELLS = 200_000_000

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


def read_table(
    path: str | Path, *, encoding: str = "utf-8-sig", separator: str | None = None
) -> Table:
    r"""Read a table from a CSV or Parquet file, whose first line or schema names the columns.

    Cells of CSV are texts until something else is asked for; they may be quoted. Blank lines are
    left out.

    Args:
        path: The file; it ends in `.csv`, `.tsv`, `.parquet` or `.pq`.
        encoding: How a CSV file is encoded.
        separator: What stands between its cells; by default a comma, in `.tsv` a tab.

    Returns:
        The table.

    Raises:
        DataError: The file or a row of it is wrong, or too large.
        MissingExtraError: The extra `tables` is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "heights.csv"
        >>> _ = path.write_text("name,height\nTom,1.8\nJerry,\n")
        >>> read_table(path).numbers("height").tolist()
        [1.8, nan]
    """
    file = Path(path)
    ending = file.suffix.lower()
    if ending in _PARQUET:
        return _read_parquet(file)
    if ending in _SEPARATORS or separator is not None:
        return _read_csv(file, encoding, separator or _SEPARATORS[ending])
    raise DataError(
        f"name must end in {', '.join((*_SEPARATORS, *_PARQUET))}; got {ending!r}. Rename it, or "
        "say what separates its cells.",
        where=str(file),
    )


def _read_csv(file: Path, encoding: str, separator: str) -> Table:
    pa = require_pyarrow()
    given = read_lines(file, encoding=encoding, largest=LARGEST_TABLE)
    kept = [number for number, line in enumerate(given, start=1) if line.strip()]
    if not kept:
        raise DataError("file must hold a table; it is empty. Check the path.", where=str(file))
    columns = given[kept[0] - 1].count(separator) + 1
    _check_size(columns, len(kept), file)
    text = "\n".join(given[number - 1] for number in kept) + "\n"
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    try:
        read = pa.csv.read_csv(
            pa.BufferReader(text.encode()),
            read_options=pa.csv.ReadOptions(
                use_threads=False,  # else an invalid row has no number
                autogenerate_column_names=True,
                block_size=min(max(4 * len(text), 1 << 20), 2**31 - 1),  # a row must not be cut
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={f"f{place}": pa.string() for place in range(columns)},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise _bad_row(file, kept, wrong, error) from error
    names = [str(column[0].as_py()).strip() for column in read.columns]
    body = [column.slice(1) for column in read.columns]
    lines = kept[1:] if read.num_rows == len(kept) else None  # else a cell holds line breaks
    return _table(dict(zip(_checked_names(names, file), body, strict=True)), file, lines)


def _bad_row(file: Path, kept: Sequence[int], wrong: Sequence[Any], error: Exception) -> DataError:
    if not wrong:
        return DataError(f"file must be a table; got: {error}. Check it.", where=str(file))
    row = wrong[0]
    return DataError(
        f"row must have {row.expected_columns} cells as the first line has; got "
        f"{row.actual_columns}: {row.text[:60]!r}. Look for a missing separator or quote.",
        where=f"{file}:{kept[min(row.number or 1, len(kept)) - 1]}",
    )


def _read_parquet(file: Path) -> Table:
    pa = require_pyarrow()
    data = read_bytes(file, LARGEST_TABLE)
    try:
        opened = pa.parquet.ParquetFile(pa.BufferReader(data))
        schema = opened.schema_arrow
        _check_size(len(schema.names), opened.metadata.num_rows, file)
        names = _checked_names(list(schema.names), file)
        flat = [name for name, kind in zip(names, schema.types, strict=True) if _is_flat(kind)]
        read = opened.read(columns=flat)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, DataError):
            raise
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataError(
            f"file must be Parquet; got: {reason}. Write it anew.", where=str(file)
        ) from error
    return _table({name: _plain(read.column(name)) for name in flat}, file, None)


def _is_flat(kind: Any) -> bool:
    types = require_pyarrow().types
    return not types.is_nested(kind)


def _plain(column: Column) -> Column:
    """Turn a column of categories into what they stand for."""
    types = require_pyarrow().types
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _table(columns: dict[str, Column], file: Path, lines: Sequence[int] | None) -> Table:
    rows = len(next(iter(columns.values()))) if columns else 0
    if not rows:
        raise DataError(
            "table must have a row below the names of its columns; got 0. Check the file.",
            where=str(file),
        )
    unnamed = ("", "__index_level_0__")  # the number of a row, as pandas writes it
    return Table({n: c for n, c in columns.items() if n not in unnamed}, str(file), rows, lines)


def _checked_names(names: list[str], file: Path) -> list[str]:
    for name, count in Counter(filter(None, names)).most_common(1):
        if count == 1:
            break
        raise DataError(
            f"column {name!r} must stand once in the header; got {count} times; rename one of "
            "them.",
            where=str(file),
        )
    return names


def _check_size(columns: int, rows: int, file: Path) -> None:
    if columns > MAX_COLUMNS or columns * rows > MAX_CELLS:
        raise DataError(
            f"table must have at most {MAX_COLUMNS:,} columns and {MAX_CELLS:,} cells; got "
            f"{columns:,} columns and {rows:,} rows. Split it.",
            where=str(file),
        )
