"""What a model looked at, as plain data (`Record`), and how it is drawn.

A record is drawn in a terminal, as an SVG or PNG file, as one HTML page and in a notebook: as a
matrix where a text was read, and as a strip of pictures where a picture was. This package loads
no torch, and a renderer loads when it is first called.

Example:
    >>> import numpy as np
    >>> from regard.pictures import Map, Record, Text, Token, render_svg
    >>> read = Text("Tom", (Token("Tom", 0, 3),), "en")
    >>> written = Text("汤姆", (Token("汤姆", 0, 2),), "zh")
    >>> record = Record("translation", read, written, (Map("attention", np.ones((1, 1))),))
    >>> render_svg(record).startswith("<svg")
    True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from regard.pictures.heads import join
from regard.pictures.picture import Picture
from regard.pictures.records import Map, Record
from regard.pictures.series import Series
from regard.pictures.texts import Document, Passage, Text, Token

if TYPE_CHECKING:
    from regard.pictures.html import render as render_html
    from regard.pictures.png import render as render_png
    from regard.pictures.strip import render as render_strip
    from regard.pictures.svg import render as render_svg
    from regard.pictures.terminal import detect_colour
    from regard.pictures.terminal import render as render_terminal

__all__ = [
    "Document",
    "Map",
    "Passage",
    "Picture",
    "Record",
    "Series",
    "Text",
    "Token",
    "detect_colour",
    "join",
    "render_html",
    "render_png",
    "render_strip",
    "render_svg",
    "render_terminal",
]

_NAMES = {
    "detect_colour": ("regard.pictures.terminal", "detect_colour"),
    "render_html": ("regard.pictures.html", "render"),
    "render_png": ("regard.pictures.png", "render"),
    "render_strip": ("regard.pictures.strip", "render"),
    "render_svg": ("regard.pictures.svg", "render"),
    "render_terminal": ("regard.pictures.terminal", "render"),
}


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'regard.pictures' has no attribute {name!r}")
    module, attribute = _NAMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
