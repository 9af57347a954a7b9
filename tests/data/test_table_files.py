"""Files of tables: whatever writes them, and what is none of them."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import table_files
from regard.data.table_files import read_table
from regard.data.tables import Table
from regard.errors import DataError, MissingExtraError

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


@pytest.mark.parametrize(
    ("content", "own"),
    [
        (b"\xef\xbb\xbfx,y\r\n1,2\r\n\r\n3,4\r\n", {}),
        (b"x\ty\n1\t2\n   \n3\t4", {"name": "a.tsv"}),
        (b"x;y\n1;2\n\n3;4\n", {"separator": ";", "name": "a.txt"}),
        ("x,y\n1,2\n\n3,4\n".encode("utf-16"), {"encoding": "utf-16"}),
    ],
)
def test_d1_d2_d3_files_of_any_kind(tmp_path: Path, content: bytes, own: Any) -> None:
    table = csv(tmp_path, content, **own)
    assert table.numbers("y").tolist() == [2.0, 4.0]
    assert table.where(1).endswith(":4")


def test_cells_that_hold_line_breaks(tmp_path: Path) -> None:
    table = csv(tmp_path, 'x,note\n1,"two\nlines, ""quoted"""\n2,\n')
    assert table.numbers("x").tolist() == [1.0, 2.0]
    assert table.column("note")[0].as_py() == 'two\nlines, "quoted"'
    assert table.where(1).endswith("a.csv: row 2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "file must hold a table; it is empty"),
        (" \n\n", "file must hold a table; it is empty"),
        ("x,y\n", "must have a row below the names"),
        ("x,x\n1,2\n", "column 'x' must stand once in the header; got 2 times"),
        ("x,y\n1,2\n\n3\n", r"a\.csv:4: row must have 2 cells as the first line has; got 1: '3'"),
        ("x,y\n1,2,3\n", r"a\.csv:2: row must have 2 cells .* got 3: '1,2,3'"),
        ('x,y\n"1,2\n', r"a\.csv:2: row must have 2 cells .* Look for a missing sep"),
        (b"x,y\n1,\xff\n", r"a\.csv:2: text must be utf-8; got a byte that is not"),
        (b"x,y\n1,\x00\n", r"a\.csv:2: text must hold no NUL"),
    ],
)
def test_d9_a_table_that_is_none(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        csv(tmp_path, content)


def test_k6_what_is_no_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    for content in (b"", b"PAR1", b"x,y\n1,2\n", b"PAR1" + b"\0" * 60 + b"PAR1"):
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.parquet: file must be Parquet"):
            read_table(file)
    pq.write_table(pa.table([[1], [2]], names=["x", "x"]), file)
    with pytest.raises(DataError, match="column 'x' must stand once"):
        read_table(file)
    pq.write_table(pa.table({"x": list(range(1000))}), file)
    whole = file.read_bytes()
    for place in range(4, len(whole), len(whole) // 40):  # cut anywhere, or with a bit turned
        file.write_bytes(whole[:place])
        with pytest.raises(DataError, match="file must be Parquet"):
            read_table(file)
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with contextlib.suppress(DataError):
            read_table(file)


def test_c2_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "b.parquet").mkdir()
    with pytest.raises(DataError, match="must be a file; it is a folder"):
        read_table(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"must end in \.csv.* got '\.xlsx'"):
        read_table(tmp_path / "a.xlsx")


def test_tables_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "MAX_COLUMNS", 3)
    with pytest.raises(DataError, match=r"at most 3 columns .* got 4 columns and 2 rows"):
        csv(tmp_path, "a,b,c,d\n1,2,3,4\n")
    monkeypatch.setattr(table_files, "MAX_CELLS", 5)
    with pytest.raises(DataError, match="and 5 cells; got 1 columns and 9 rows"):
        parquet(tmp_path, {"x": list(range(9))})


def test_c6_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[tables\]'"):
        csv(tmp_path, "x\n1\n")


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_a_table_or_a_fault(tmp_path_factory: Any, text: str, header: bool) -> None:
    folder = tmp_path_factory.mktemp("any")
    content = (("x,y\n" if header else "") + text).encode("utf-8", errors="surrogatepass")
    with contextlib.suppress(DataError):
        table = csv(folder, content)
        for name in table.columns:
            assert len(table.numbers(name)) == table.rows
