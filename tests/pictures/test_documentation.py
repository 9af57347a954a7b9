"""The page of the documentation about pictures: its examples run and draw what is shown there."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def structure(drawn):
    """Return elements and texts; the bytes of a JPEG may differ between versions of Pillow."""
    root = ET.fromstring(drawn)
    return [(element.tag, element.text) for element in root.iter()]


def run_example(place):
    codes = re.findall(r"```python\n(.*?)```", (DOCS / "pictures.md").read_text("utf-8"), re.DOTALL)
    assert len(codes) == 3
    exec(compile(codes[place], "pictures.md", "exec"), {"__name__": "pictures"})


def test_the_example_of_a_document_is_drawn(capsys):
    run_example(1)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "0.90    The cup broke!" in drawn
    assert "<- broke 0.80" in drawn


def test_the_example_of_a_series_is_drawn(capsys):
    run_example(2)
    assert "<- step 3 0.80" in capsys.readouterr().out


def test_the_example_draws_the_picture_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_example(0)
    drawn = (tmp_path / "strip.svg").read_text("utf-8")
    assert structure(drawn) == structure((DOCS / "images" / "strip.svg").read_text("utf-8"))
    assert "Cells of a grid of 6 × 8." in (tmp_path / "cells.svg").read_text("utf-8")
