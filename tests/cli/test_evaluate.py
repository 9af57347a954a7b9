"""`regard evaluate`: which columns it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sacrebleu")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.tsv"
    path.write_text("id\tfrom\tto\n1\ta b c d e\te d c b a\n2\tb c d e a\ta e d c b\n")
    return path


def test_columns_may_be_named_or_counted(table: Path, regard: Any, reversal_run: Any) -> None:
    named = ["--source-column", "from", "--target-column", "to"]
    counted = ["--source-column", "1", "--target-column", "2", "--header"]
    for columns in (named, counted):
        result = regard("evaluate", reversal_run.run, table, *columns, "--json", "--threads", 1)
        assert result.code == 0
        assert json.loads(result.out)["pairs"] == 2


def test_d9_a_column_that_is_not_there(table: Path, refused: Any, reversal_run: Any) -> None:
    line = refused("evaluate", reversal_run.run, table, "--source-column", "form")
    assert "column 'form' must stand once in the header; got 0 times; did you mean 'from'?" in line
