"""Planted series: what happens in them, and where, is true; no series stands in two splits."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from regard.data.planted_series import KINDS, NOTHING, SeriesPlanter, write_planted_series
from regard.errors import UserError


def test_what_happens_is_where_it_is_said() -> None:
    planter = SeriesPlanter()
    made = [planter.series(index, seed=3) for index in range(200)]
    assert {one.label for one in made} == set(KINDS)
    bigger = []
    for one in made:
        assert 30 <= len(one.values) <= 60
        assert one.values.shape[1] == 2
        if one.label == NOTHING:
            assert (one.start, one.height) == (one.end, 0.0)
            continue
        assert 0 <= one.start < one.end <= len(one.values)
        assert 3.0 <= one.height <= 6.0
        steps = np.abs(np.diff(one.values, axis=0)).max(axis=1)
        bigger.append(one.start - 1 <= steps.argmax() <= one.end)
    assert np.mean(bigger) > 0.6  # the steepest step is one of the event, as a rule


def test_a_series_is_a_function_of_seed_split_and_index() -> None:
    planter = SeriesPlanter(shortest=8, longest=9)
    same = [planter.series(4, seed=1), planter.series(4, seed=1)]
    assert np.array_equal(same[0].values, same[1].values)
    for other in (planter.series(5, seed=1), planter.series(4, seed=2)):
        assert not np.array_equal(other.values, same[0].values)
    seen = {
        split: {planter.series(i, seed=1, split=split).values.tobytes() for i in range(30)}
        for split in ("train", "dev", "test")
    }
    assert not seen["train"] & (seen["dev"] | seen["test"])


def test_files_are_tables(tmp_path: Path) -> None:
    train, dev = write_planted_series(tmp_path / "new", {"train": 3, "dev": 2}, seed=1)
    rows = list(csv.DictReader(train.read_text().splitlines()))
    assert {row["sequence"] for row in rows} == {"train-0", "train-1", "train-2"}
    series = SeriesPlanter().series(0, seed=1)
    own = [row for row in rows if row["sequence"] == "train-0"]
    assert [float(row["first"]) for row in own] == series.values[:, 0].tolist()
    assert [row["event"] == "1" for row in own].index(True) == series.start
    assert {row["label"] for row in own} == {series.label}
    with pytest.raises(UserError, match="exists already"):
        write_planted_series(tmp_path / "new", {"dev": 2}, seed=1)
    write_planted_series(tmp_path / "new", {"dev": 1}, seed=1, overwrite=True)
    assert "dev-1" not in dev.read_text()


def test_what_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="shortest and longest must be from 8 to 10000"):
        SeriesPlanter(shortest=7)
    with pytest.raises(UserError, match="split must be known"):
        SeriesPlanter().series(0, seed=1, split="tset")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="must be a folder; it is a file"):
        write_planted_series(tmp_path / "file", {"train": 1}, seed=1)
