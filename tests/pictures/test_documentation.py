"""The page of the documentation about pictures: its example runs and draws what is shown there."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def structure(drawn):
    """Return elements and texts; the bytes of a JPEG may differ between versions of Pillow."""
    root = ET.fromstring(drawn)
    return [(element.tag, element.text) for element in root.iter()]


def test_the_example_draws_the_picture_of_the_page(tmp_path, monkeypatch):
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "pictures.md").read_text("utf-8"), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "pictures.md", "exec"), {"__name__": "pictures"})
    drawn = (tmp_path / "strip.svg").read_text("utf-8")
    assert structure(drawn) == structure((DOCS / "images" / "strip.svg").read_text("utf-8"))
    assert "Cells of a grid of 6 × 8." in (tmp_path / "cells.svg").read_text("utf-8")
