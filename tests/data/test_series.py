"""Sequences from tables and arrays: grouped, ordered, the same for every way to write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.series import Sequences, SeriesColumns, as_sequences, read_sequences
from regard.errors import DataError, ShapeError, UserError

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - behind the skip

MIXED = """\
sequence,t,x,y,label,note
b,2,20,0.5,up,n
a,1,1,1.5,down,n
b,1,10,-1,up,n
a,2,2,,down,n
a,2,3,3,down,n
"""
COLUMNS = SeriesColumns(order="t", targets=("label",))


def read(
    folder: Path, content: str = MIXED, columns: SeriesColumns = COLUMNS, **own: Any
) -> Sequences:
    file = folder / "a.csv"
    file.write_text(content, encoding="utf-8")
    return read_sequences(file, columns=columns, **own)


def test_rows_become_steps_in_the_order_of_time(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.names, found.features, found.labels) == (("b", "a"), ("x", "y"), ("up", "down"))
    np.testing.assert_equal(found[0], [[10.0, -1.0], [20.0, 0.5]])
    np.testing.assert_equal(found[1], [[1.0, 1.5], [2.0, np.nan], [3.0, 3.0]])
    assert found.lengths.tolist() == [2, 3]
    assert (found.unsorted, found.repeated, found.unused) == (1, 1, ("note",))
    assert found.where(0, 1).endswith("a.csv:2")
    assert found.where(1, 2).endswith("a.csv:6")


def test_without_times_the_file_is_in_order(tmp_path: Path) -> None:
    found = read(tmp_path, columns=SeriesColumns(targets=("label",), features=("x",)))
    assert found[0].tolist() == [[20.0], [10.0]]
    assert (found.unsorted, found.unused) == (0, ("t", "y", "note"))
    plain = read(tmp_path, columns=SeriesColumns())
    assert plain.features == ("t", "x", "y")
    assert plain.labels is plain.targets is None


def test_d10_two_spellings_of_a_label_are_one(tmp_path: Path) -> None:
    content = "sequence,x,label\na,1,caf\u00e9\na,2,cafe\u0301\nb,3,tea\n"
    found = read(tmp_path, content, SeriesColumns(targets=("label",)))
    assert found.labels == ("caf\u00e9", "tea")


def test_dates_order_too(tmp_path: Path) -> None:
    content = "sequence,d,x\na,2024-03-01,2\na,2024-02-01,1\na,2024-03-01,3\n"
    found = read(tmp_path, content, SeriesColumns(order="d"))
    assert found[0].tolist() == [[1.0], [2.0], [3.0]]
    assert (found.unsorted, found.repeated) == (1, 1)


def test_values_may_be_several(tmp_path: Path) -> None:
    content = "sequence,x,height,weight\na,1,2,3\na,2,2,3\nb,3,4,5.5\n"
    columns = SeriesColumns(targets=("height", "weight"))
    found = read(tmp_path, content, columns, labelled=False)
    assert found.targets.tolist() == [[2.0, 3.0], [4.0, 5.5]]
    assert (found.labels, found.features) == (None, ("x",))
    with pytest.raises(UserError, match="label must be one column; got 2"):
        read(tmp_path, content, columns)


def test_the_hash_is_that_of_what_was_read(tmp_path: Path) -> None:
    first = read(tmp_path).sha256
    assert read(tmp_path, "\ufeff" + MIXED.replace("\n", "\r\n") + "\n").sha256 == first
    assert read(tmp_path, MIXED.replace(",,", ",NA,")).sha256 == first
    rows = [row.split(",") for row in MIXED.splitlines()]
    columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    for name in ("t", "x", "y"):
        columns[name] = [float(cell) if cell else None for cell in columns[name]]
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert read_sequences(tmp_path / "a.parquet", columns=COLUMNS).sha256 == first
    for old, new in (("20,", "21,"), ("up", "on"), ("b,", "c,"), ("x,", "z,"), (",1,1", ",3,1")):
        assert read(tmp_path, MIXED.replace(old, new)).sha256 != first, new


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (MIXED.replace("10,-1,up", "10,-1,on"), COLUMNS,
         r"a\.csv:2: column 'label' must be the same .* got 'on' and 'up' in 'b'"),
        (MIXED, SeriesColumns(sequence="sequnce"), "did you mean 'sequence'"),
        (MIXED, SeriesColumns(targets=("lable",)), "did you mean 'label'"),
        (MIXED, SeriesColumns(order="time"), "must have the column 'time'"),
        (MIXED, SeriesColumns(features=("x", "note")), r"csv:2: column 'note' must hold a num"),
        (MIXED, SeriesColumns(features=("x", "x")), "features must differ"),
        (MIXED, SeriesColumns(features=("x", "label"), targets=("label",)), "features must differ"),
        ("sequence,note\na,x\n", SeriesColumns(), "1 to 4096 columns of numbers .* got 0"),
        (MIXED.replace("b,2,20", ",2,20"), COLUMNS, r"a\.csv:2: column 'sequence' must be filled"),
        (MIXED.replace("0.5,up", "0.5,"), COLUMNS, r"a\.csv:2: column 'label' must be filled"),
        (MIXED.replace("down", "d" * 201), COLUMNS, "label must have 1 to 200 characters; got 201"),
    ],
)  # fmt: skip
def test_d9_what_is_wrong_is_named(
    tmp_path: Path, content: str, columns: SeriesColumns, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, content, columns)


def test_d9_values_that_are_wrong_are_named(tmp_path: Path) -> None:
    columns = SeriesColumns(targets=("v",))
    for cell, message in (
        ("2", r"a\.csv:3: column 'v' must be the same .* got 1 and 2 in 'a'"),
        ("", r"a\.csv:3: column 'v' must be filled"),
        ("x", r"a\.csv:3: column 'v' must hold a number"),
    ):
        with pytest.raises(DataError, match=message):
            read(tmp_path, f"sequence,x,v\na,1,1\na,2,{cell}\n", columns, labelled=False)


def test_numbers_that_are_missing_or_infinite_are_named(tmp_path: Path) -> None:
    found = read(tmp_path)
    found.check_numbers(missing=True)
    with pytest.raises(DataError, match=r"a\.csv:5: 'y' must be a number in every step"):
        found.check_numbers(missing=False)
    made = as_sequences([np.zeros((2, 1)), [[0.0], [np.inf]]], features=["speed"])
    with pytest.raises(DataError, match=r"sequence '1', step 2: 'speed' must be finite"):
        made.check_numbers(missing=True)
    as_sequences([]).check_numbers(missing=False)


def test_arrays_are_sequences() -> None:
    made = as_sequences([np.arange(6).reshape(3, 2), np.zeros((0, 2)), [[7, 8]]])
    assert made.lengths.tolist() == [3, 0, 1]
    assert made[2].tolist() == [[7.0, 8.0]]
    assert (made.features, made.names) == (("0", "1"), ("0", "1", "2"))
    assert as_sequences([[1.0, 2.0]])[0].tolist() == [[1.0], [2.0]]
    assert as_sequences([], features=["a", "b"]).values.shape == (0, 2)
    with pytest.raises(ShapeError, match=r"sequence 1 must have 2 features; got 3"):
        as_sequences([np.zeros((1, 2)), np.zeros((1, 3))])
    with pytest.raises(ShapeError, match=r"must have shape \(steps, features\).* got \(1, 1, 1\)"):
        as_sequences([np.zeros((1, 1, 1))])
    with pytest.raises(UserError, match=r"sequence 0 must be an array of numbers; got str"):
        as_sequences(["abc"])
