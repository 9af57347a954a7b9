"""A heat map in a terminal, or in a pipe: rows are written tokens, columns are read ones.

What a caption looked at is drawn by `blocks`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from regard.pictures import document_terminal, series_terminal
from regard.pictures.blocks import Look, lines
from regard.pictures.colours import Depth, Theme, paint, scale_top
from regard.pictures.lettering import cells, fit, isolate, pad, visible
from regard.pictures.picture import Picture
from regard.pictures.series import Series
from regard.pictures.texts import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regard.pictures.records import Record

_SHADES = " ░▒▓█"
_NARROWEST = 20
_LONGEST_HEAD = 16
_MOST_BLOCKS = 8  # beyond it a matrix is only paper
_SOURCES = 3


@dataclass(frozen=True)
class _Sheet:
    """What is drawn, and where there is room for it."""

    weights: NDArray[np.float32]
    rows: list[str]
    columns: list[str]
    best: list[list[tuple[int, float]]]
    width: int
    colour: Depth
    theme: Theme
    numbers: bool

    @cached_property
    def top(self) -> float:
        return scale_top(self.weights)

    @cached_property
    def row_width(self) -> int:
        longest = max((cells(row) for row in self.rows), default=1)
        return min(longest, max(self.width // 4, 5))

    @cached_property
    def room(self) -> int:
        return self.width - self.row_width - 1


def render(
    record: Record,
    *,
    width: int | None = None,
    colour: Depth = "truecolor",
    name: str | None = None,
    numbers: bool = False,
    theme: Theme = "dark",
) -> str:
    """Draw a record for a terminal: a heat map, or a block for each word of a caption.

    Of a document the strongest sentences are shown, their words shaded.

    Columns that do not fit go into further blocks below. What each written token looked at most
    is also said in words, so that the picture does not rest on colour.

    Args:
        record: The record.
        width: Columns of the terminal, at least 20; asked of the terminal when not given.
        colour: "truecolor", "256", or "none" for shade characters.
        name: The map; the mean when it is not given.
        numbers: Whether to write the weights into the cells.
        theme: "dark" draws heavy weights light, "light" draws them dark.

    Returns:
        Lines with a line end each; none is wider than `width`.

    Raises:
        UserError: No map has this name.
    """
    if width is None:
        width = shutil.get_terminal_size().columns
    look = Look(max(width, _NARROWEST), colour, theme, numbers)
    if isinstance(record.read, Series):
        return "\n".join(series_terminal.lines(record, look, name)) + "\n"
    if isinstance(record.read, Document):
        return "\n".join(document_terminal.lines(record, look)) + "\n"
    if isinstance(record.read, Picture):
        heading = isolate(fit(_heading(record, name), look.width))
        return "\n".join([heading, "", *lines(record, look, name)]) + "\n"
    sheet = _Sheet(
        weights=record.weights(name),
        rows=[visible(token.text) for token in record.written.tokens],
        columns=[visible(token.text) for token in record.read_text().tokens],
        best=record.strongest(_SOURCES, name=name),
        width=max(width, _NARROWEST),
        colour=colour,
        theme=theme,
        numbers=numbers,
    )
    heading = isolate(fit(_heading(record, name), sheet.width))
    return "\n".join([heading, "", *_body(sheet)]) + "\n"


def detect_colour(stream: TextIO | None, environ: Mapping[str, str]) -> Depth:
    """Find out how many colours an output can show.

    `NO_COLOR` wins over `FORCE_COLOR`, which wins over `TERM=dumb` and over what kind of output
    it is; anything but a terminal gets no colour.

    Args:
        stream: Where the picture goes.
        environ: The environment.

    Returns:
        "truecolor", "256" or "none".
    """
    if environ.get("NO_COLOR"):
        return "none"
    forced = environ.get("FORCE_COLOR", "")
    if forced:
        levels: dict[str, Depth] = {"0": "none", "false": "none", "3": "truecolor"}
        return levels.get(forced, _depth(environ))
    term = environ.get("TERM", "")
    windows = "WT_SESSION" in environ
    if not _is_terminal(stream) or term == "dumb" or not (term or windows):
        return "none"
    return _depth(environ)


def _depth(environ: Mapping[str, str]) -> Depth:
    named = environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    direct = "direct" in environ.get("TERM", "") or "WT_SESSION" in environ
    return "truecolor" if named or direct else "256"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _heading(record: Record, name: str | None) -> str:
    parts = [visible(record.task)]
    read = record.read
    if isinstance(read, Picture):
        parts.append(visible(read.name or "a picture"))
    languages = (None if isinstance(read, Picture) else read.language, record.written.language)
    if languages[0] and languages[1]:
        parts.append(" -> ".join(visible(language) for language in languages if language))
    if len(record.maps) > 1:
        parts.append(f"mean of {len(record.maps)} maps" if name is None else visible(name))
    return "  ".join(parts)


def _body(sheet: _Sheet) -> Iterator[str]:
    blocks = list(_blocks(_column_widths(sheet), sheet.room))
    if len(blocks) > _MOST_BLOCKS:
        yield from _source_list(sheet, _SOURCES)
        return
    sources = [_source(sheet, best[:1], _LONGEST_HEAD) for best in sheet.best]
    used = sum(blocks[0].values()) if len(blocks) == 1 else sheet.width
    beside = sheet.room - used - 2
    fits = max((cells(source) for source in sources), default=0) <= beside
    for block in blocks:
        yield _head(sheet, block)
        for row, source in enumerate(sources):
            yield _row(sheet, row, block) + (f"  {source}" if fits else "")
        yield ""
    if not fits:
        yield from _source_list(sheet, 1)
    yield _legend(sheet)


def _column_widths(sheet: _Sheet) -> list[int]:
    least = (5 if sheet.colour == "none" else 4) if sheet.numbers else 3
    most = max(min(_LONGEST_HEAD, sheet.room // 3 - 2), least)
    widths = [min(max(cells(column), least), most) + 2 for column in sheet.columns]
    widest = max(widths, default=0)
    # Equal cells compare best; uneven ones are for when that is what makes them fit.
    return [widest] * len(widths) if widest * len(widths) <= sheet.room else widths


def _blocks(widths: list[int], room: int) -> Iterator[dict[int, int]]:
    block: dict[int, int] = {}
    for column, width in enumerate(widths):
        if block and sum(block.values()) + width > room:
            yield block
            block = {}
        block[column] = width
    yield block


def _head(sheet: _Sheet, block: dict[int, int]) -> str:
    heads = (f" {pad(sheet.columns[j], w - 2, align='centre')} " for j, w in block.items())
    return " " * (sheet.row_width + 1) + "".join(heads)


def _row(sheet: _Sheet, row: int, block: dict[int, int]) -> str:
    drawn = "".join(_cell(sheet, (row, column), width) for column, width in block.items())
    return f"{pad(sheet.rows[row], sheet.row_width, align='right')} {drawn}"


def _cell(sheet: _Sheet, place: tuple[int, int], width: int) -> str:
    weight = float(sheet.weights[place])
    best = sheet.best[place[0]]
    marked = bool(best) and best[0][0] == place[1]
    if sheet.colour == "none":
        return f" {_plain_cell(sheet, weight, width - 2, marked=marked)} "
    text = _number(weight) if sheet.numbers else ""
    return _paint(sheet, text[:width].center(width), weight / sheet.top)


def _paint(sheet: _Sheet, text: str, value: float) -> str:
    return paint(text, value, depth=sheet.colour, theme=sheet.theme)


def _plain_cell(sheet: _Sheet, weight: float, width: int, *, marked: bool) -> str:
    if sheet.numbers:
        return (_number(weight) + "*" * marked)[:width].center(width)
    part = min(weight / sheet.top, 1.0)
    filled = _SHADES[0 if part < 0.05 else min(1 + int(part * 4), 4)] * width
    middle = (width - 1) // 2
    return filled[:middle] + "*" + filled[middle + 1 :] if marked else filled


def _source_list(sheet: _Sheet, count: int) -> Iterator[str]:
    room = sheet.width - sheet.row_width - len(" <- ")
    each = max(room // count - len("  0.00 "), 4)
    for label, best in zip(sheet.rows, sheet.best, strict=True):
        tried = (_source(sheet, best[:kept], each) for kept in range(count, 0, -1))
        source = next(text for text in tried if cells(text) <= room)
        yield f"{pad(label, sheet.row_width, align='right')} <- {source}"
    yield ""


def _source(sheet: _Sheet, best: list[tuple[int, float]], longest: int) -> str:
    """Say what a row looked at: "chases 0.93"."""
    parts = (f"{isolate(fit(sheet.columns[j], longest))} {_number(w)}" for j, w in best)
    return "  ".join(parts) or "-"


def _number(weight: float) -> str:
    return f"{weight:.2f}" if weight < 9.995 else f"{weight:.0e}"


def _legend(sheet: _Sheet) -> str:
    top = f"{sheet.top:g}"
    if sheet.colour == "none":
        ramp = "" if sheet.numbers else f"0 {_SHADES.strip()} {top}  "
        return f"{ramp}* most"
    steps = "".join(_paint(sheet, " ", i / 9) for i in range(10))
    return f"0 {steps} {top}"
