"""A pooling inside a model of Keras learns, and looks at the marked number."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "keras_layer.py"


def test_it_learns_and_looks_at_the_mark() -> None:
    pytest.importorskip("keras")
    done = subprocess.run(  # Keras chooses its backend when it is imported
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    error, looked = re.search(r"mean error (\S+); (\d+) %", done.stdout).groups()
    assert float(error) < 0.1
    assert int(looked) > 90
