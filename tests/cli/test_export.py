"""`regard export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_other_tasks_are_refused_in_one_line(refused: Any, tmp_path: Path) -> None:
    said = refused("export", "topics", tmp_path / "out")
    assert "must be a translator" in said
    assert not (tmp_path / "out").exists()


def test_an_unknown_model(refused: Any, tmp_path: Path) -> None:
    assert "en-zh" in refused("export", "en-zhh", tmp_path / "out")


@pytest.mark.compiled
def test_the_bundled_translator_is_written(regard: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    result = regard("export", "en-zh", tmp_path / "out")
    assert result.code == 0
    names = [line.split("\t")[0] for line in result.out.splitlines()]
    assert {"encoder.onnx", "step.onnx", "export.json"} < set(names)
