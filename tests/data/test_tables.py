"""Columns of tables: CSV and Parquet alike, every fault named with its file, row and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.table_files import read_table
from regard.data.tables import Table
from regard.errors import DataError

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - behind the skip


def csv(folder: Path, content: str | bytes, name: str = "a.csv", **own: Any) -> Table:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(file, **own)


def parquet(folder: Path, columns: dict[str, Any] | Any) -> Table:
    file = folder / "a.parquet"
    pq.write_table(pa.table(columns) if isinstance(columns, dict) else columns, file)
    return read_table(file)


def test_numbers_and_what_is_missing(tmp_path: Path) -> None:
    table = csv(tmp_path, 'x,"y, z",n\n 1 ,-2.5e3,a\n,NA,\n+3.,NaN,b\n')
    assert list(table.columns) == ["x", "y, z", "n"]
    np.testing.assert_equal(table.numbers("x"), [1.0, np.nan, 3.0])
    np.testing.assert_equal(table.numbers("y, z"), [-2500.0, np.nan, np.nan])
    assert [table.is_numeric(name) for name in table.columns] == [True, True, False]
    assert (table.rows, table.where(2)) == (3, f"{tmp_path / 'a.csv'}:4")


@pytest.mark.parametrize("wrong", ["1,5", "0x1", "1_0", "one", "1e5e", "١"])
def test_d9_what_is_no_number_is_named(tmp_path: Path, wrong: str) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(50))
    table = csv(tmp_path, f'x,y\n{rows}50,"{wrong}"\n{rows}51,other\n')
    with pytest.raises(DataError, match=rf"a\.csv:52: column 'y' must hold a number.*{wrong}"):
        table.numbers("y")
    assert table.is_numeric("y")  # its first cell is


@pytest.mark.parametrize("written", ["inf", "-Infinity", "1e999"])
def test_infinite_numbers_are_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(DataError, match=r"a\.csv:3: column 'x' must hold finite numbers"):
        csv(tmp_path, f"x\n1\n{written}\n").numbers("x")


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    table = csv(tmp_path, "height,weight\n1,2\n")
    with pytest.raises(DataError, match=r"column 'hieght'; did you mean 'height'"):
        table.numbers("hieght")


def test_times_are_numbers_or_dates(tmp_path: Path) -> None:
    later = "2,2024-02-01,2024-02-01T00:00:00Z,x"
    earlier = "1,2024-01-31 10:00:00,2024-02-01T02:00:00+03:00,y"
    content = f"n,d,z,w\n{later}\n{earlier}\n"
    table = csv(tmp_path, content)
    for name in ("n", "d", "z"):
        assert np.argsort(table.times(name)).tolist() == [1, 0]
    with pytest.raises(DataError, match=r"a\.csv:2: column 'w' must hold a time .* got 'x'"):
        table.times("w")
    table = csv(tmp_path, "d\n2024-02-01\n1.2.2024\n")
    with pytest.raises(DataError, match=r"a\.csv:3: column 'd' must hold a time"):
        table.times("d")
    for content in ("n,x\n1,1\n,2\n", "n,x\n2024-01-01,1\n,2\n"):
        with pytest.raises(DataError, match=r"a\.csv:3: column 'n' must be filled .* 1 are empty"):
            csv(tmp_path, content).times("n")


def test_texts_keep_what_looks_like_something_else(tmp_path: Path) -> None:
    places, known = csv(tmp_path, "country\nNA\n01\nNA\n 1.0 \n").texts("country")
    assert [known[place] for place in places] == ["NA", "01", "NA", "1.0"]
    with pytest.raises(DataError, match=r"a\.csv:3: column 'a' must be filled"):
        csv(tmp_path, "a,b\nx,1\n,2\n").texts("a")


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    columns = {
        "i": pa.array([1, None, 3], pa.int16()),
        "f": pa.array([0.5, np.nan, None], pa.float32()),
        "b": pa.array([True, False, True]),
        "s": pa.array(["x", "y", "x"]),
        "c": pa.array(["x", "y", "x"]).dictionary_encode(),
        "t": pa.array([3, 1, 2], pa.timestamp("ns")),
        "list": pa.array([[1], [2], [3]]),
        "__index_level_0__": pa.array([0, 1, 2]),
    }
    table = parquet(tmp_path, columns)
    assert list(table.columns) == ["i", "f", "b", "s", "c", "t"]
    np.testing.assert_equal(table.numbers("i"), [1.0, np.nan, 3.0])
    np.testing.assert_equal(table.numbers("f"), [0.5, np.nan, np.nan])
    assert table.numbers("b").tolist() == [1.0, 0.0, 1.0]
    assert table.texts("s")[1] == table.texts("c")[1] == ["x", "y"]
    assert table.texts("b")[1] == ["true", "false"]
    assert np.argsort(table.times("t")).tolist() == [1, 2, 0]
    assert table.where(1).endswith("a.parquet: row 2")
    for call, message in [
        (lambda: table.numbers("t"), "column 't' must hold numbers; got timestamp"),
        (lambda: table.texts("f"), "column 'f' must hold texts or whole numbers; got float"),
        (lambda: table.texts("i"), r"row 2: column 'i' must be filled"),
        (lambda: table.times("c"), r"column 'c' must hold a time"),
    ]:
        with pytest.raises(DataError, match=message):
            call()
