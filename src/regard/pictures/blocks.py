"""Where each word of a caption looked, in a terminal: a small block of the grid for each word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from regard.pictures.colours import Depth, Theme, paint, paint_pair
from regard.pictures.gaze import Gaze, Gazes, gazes, number
from regard.pictures.lettering import cells, fit, isolate, pad, visible

if TYPE_CHECKING:
    from regard.pictures.records import Record

_NARROWEST = 18  # columns of a block: room for "bottom right 0.31"
_GAP = 2
_ENLARGED = 10  # grids of at most so many columns are drawn at twice the size
_LISTED = 3  # cells of a word in the table
_STEPS = 10


@dataclass(frozen=True)
class Look:
    """How a terminal shows things.

    Args:
        width: Columns of the terminal.
        colour: How many colours it has.
        theme: The background that the colours stand on.
        numbers: Whether cells are listed with their weights instead of being drawn.
    """

    width: int
    colour: Depth
    theme: Theme
    numbers: bool


@dataclass(frozen=True)
class _Sheet:
    """What is drawn, and where there is room for it."""

    gazes: Gazes
    look: Look

    @cached_property
    def scale(self) -> int:
        """Columns of the terminal, and half lines, for each cell."""
        return 2 if self.gazes.picture.columns <= _ENLARGED else 1

    @cached_property
    def block(self) -> int:
        """Columns of the terminal for each word."""
        return max(self.gazes.picture.columns * self.scale, _NARROWEST)

    @cached_property
    def is_table(self) -> bool:
        no_room = self.block > self.look.width
        return self.look.colour == "none" or self.look.numbers or no_room


def lines(record: Record, look: Look, name: str | None) -> Iterator[str]:
    """Draw the caption, a block of half blocks for each word, and what must be said of them.

    The blocks show the true grid, nothing between its cells. Without colour, where numbers are
    asked for, and where a block has no room, a table names the strongest cells instead.

    Args:
        record: A record whose `read` is a picture.
        look: How the terminal shows things.
        name: The map; the mean when it is not given.

    Yields:
        Lines without their ends; none is wider than the terminal.
    """
    sheet = _Sheet(gazes(record, name), look)
    sentence = list(folded(sheet.gazes.sentence, look.width))
    yield from sentence
    if sentence:
        yield ""
    yield from _table(sheet) if sheet.is_table else _blocks(sheet)
    yield from folded(sheet.gazes.verdict, look.width)
    if sheet.gazes.drawn:
        yield from _legend(sheet)


def folded(text: str, width: int) -> Iterator[str]:
    """Fold a text at its spaces into lines of a width; a longer word is cut.

    Args:
        text: Any text.
        width: Columns of the terminal.

    Yields:
        Visible lines.
    """
    line = ""
    for word in text.split():
        rest = visible(word)
        if line and cells(f"{line} {rest}") <= width:
            line, rest = f"{line} {rest}", ""
        elif line:
            yield isolate(line)
            line = ""
        while cells(rest) > width:
            head = fit(rest, width).removesuffix("…")
            yield isolate(head)
            rest = rest[len(head) :]
        line = line or rest
    if line:
        yield isolate(line)


# Blocks


def _blocks(sheet: _Sheet) -> Iterator[str]:
    words = sheet.gazes.drawn
    across = max((sheet.look.width + _GAP) // (sheet.block + _GAP), 1)
    for first in range(0, len(words), across):
        row = words[first : first + across]
        yield _beside(pad(word.word, sheet.block) for word in row)
        for parts in zip(*(_block(sheet, word) for word in row), strict=True):
            yield _beside(parts)
        yield _beside(pad(word.said, sheet.block) for word in row)
        if sheet.gazes.picture.sentinel:
            aside = (f"not looking {number(word.aside or 0.0)}" for word in row)
            yield _beside(pad(text, sheet.block) for text in aside)
        yield ""


def _beside(parts: Iterator[str] | tuple[str, ...]) -> str:
    return (" " * _GAP).join(parts).rstrip()


def _block(sheet: _Sheet, word: Gaze) -> Iterator[str]:
    look, scale = sheet.look, sheet.scale
    values = np.repeat(word.grid / word.top, scale, axis=0)
    space = " " * (sheet.block - scale * values.shape[1])
    for line in range(0, len(values), 2):
        pair = values[line : line + 2]
        lower = pair[1].tolist() if len(pair) == 2 else [None] * pair.shape[1]
        halves = zip(pair[0].tolist(), lower, strict=True)
        yield "".join(paint_pair(h, scale, look.colour, look.theme) for h in halves) + space


# A table


def _table(sheet: _Sheet) -> Iterator[str]:
    words = sheet.gazes.drawn
    longest = max((cells(word.word) for word in words), default=1)
    width = min(longest, max(sheet.look.width // 4, 5))
    room = sheet.look.width - width - len(" <- ")
    for word in words:
        yield f"{pad(word.word, width, align='right')} <- {_listed(sheet, word, room)}"
    if words:
        yield ""


def _listed(sheet: _Sheet, word: Gaze, room: int) -> str:
    if word.strongest is None:
        return fit(word.said, room)
    picture = sheet.gazes.picture
    weights = word.grid.ravel().tolist() + ([] if word.aside is None else [word.aside])
    order = sorted(range(len(weights)), key=lambda i: -weights[i])[:_LISTED]
    parts = []
    for index in order:
        row, column = divmod(index, picture.columns)
        numbers = f" ({row + 1},{column + 1})" if index < word.grid.size else ""
        parts.append(f"{picture.place(index)}{numbers} {number(weights[index])}")
    tried = ("  ".join(parts[:count]) for count in range(len(parts), 1, -1))
    return next((text for text in tried if cells(text) <= room), fit(parts[0], room))


def _legend(sheet: _Sheet) -> Iterator[str]:
    picture, look = sheet.gazes.picture, sheet.look
    part = "" if picture.box is None else ", over the part of the picture that was read"
    grid = f"grid of {picture.rows} x {picture.columns} cells{part}"
    if sheet.is_table:
        yield from folded(f"place (row,column) weight; {grid}", look.width)
        return
    steps = "".join(
        paint(" ", i / (_STEPS - 1), depth=look.colour, theme=look.theme) for i in range(_STEPS)
    )
    words = f"the largest of the {sheet.gazes.unit}"
    yield f"0 {steps} {fit(words, max(look.width - _STEPS - 3, 1))}"
    yield from folded(grid, look.width)
