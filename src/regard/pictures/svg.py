"""An alignment matrix as vector graphics: one file, complete without a network."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from regard.pictures.colours import ink, scale_top, shade, to_hex
from regard.pictures.drawing import (
    FONTS,
    PAPER,
    QUIET,
    escaped,
    label,
    text_element,
    width_of,
)
from regard.pictures.heads import RECORDED
from regard.pictures.lettering import is_right_to_left, visible
from regard.pictures.picture import Picture
from regard.pictures.series import Series
from regard.pictures.texts import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regard.pictures.records import Record

_MARGIN = 28.0
_GAP = 12.0  # between labels and cells
_FOOT = 64.0  # below the cells: room for the legend
_LEGEND_WIDTH = 160.0
_INVISIBLE = 0.5 / 255
_TITLED = 10_000  # beyond as many cells, one path per shade keeps the file small
_SLANT = math.cos(math.radians(45))


@dataclass(frozen=True)
class _Plan:
    """Where everything stands, in pixels."""

    weights: NDArray[np.float32]
    rows: list[str]
    columns: list[str]
    top: float
    cell: float
    font: float
    slanted: bool
    reverse: bool  # the columns run from the right

    @cached_property
    def left(self) -> float:
        widest = max((width_of(row, self.font) for row in self.rows), default=0.0)
        return _MARGIN + widest + _GAP

    @cached_property
    def head(self) -> float:
        widest = max((width_of(column, self.font) for column in self.columns), default=0.0)
        height = (widest + self.font) * _SLANT if self.slanted else self.font * 1.3
        return _MARGIN + height + _GAP

    @cached_property
    def width(self) -> float:
        overhang = 0.0
        if self.slanted:
            count = len(self.columns)
            ends = (
                (self.place(j) + 0.5 - count) * self.cell + width_of(text, self.font) * _SLANT
                for j, text in enumerate(self.columns)
            )
            overhang = max(0.0, *ends, 0.0) + self.font
        cells = self.left + len(self.columns) * self.cell + overhang + _MARGIN
        return max(cells, self.left + _LEGEND_WIDTH * self.unit + 80)

    @cached_property
    def height(self) -> float:
        return self.head + len(self.rows) * self.cell + _FOOT * self.unit

    @cached_property
    def unit(self) -> float:
        """How much larger the legend is drawn, so that a large picture can be shrunk."""
        return max(1.0, len(self.columns) * self.cell / 1200)

    def place(self, column: int) -> int:
        """Return how many cells stand to the left of a column."""
        return len(self.columns) - 1 - column if self.reverse else column

    def corner(self, row: int, column: int) -> tuple[float, float]:
        """Return the top left corner of a cell."""
        return self.left + self.place(column) * self.cell, self.head + row * self.cell


def render(record: Record, *, name: str | None = None) -> str:
    """Draw a record in SVG: an alignment matrix, a strip of a picture, a document, a series.

    Columns are what was read, rows are what was written; the columns run from the right where
    the text does. Labels are text, so they can be searched and copied. All heads and layers of a
    recording become small panels, unless one of them is named.

    Args:
        record: The record.
        name: The map; when it is not given the mean, or all of a recording.

    Returns:
        A complete SVG document.

    Raises:
        UserError: No map has this name.
    """
    if isinstance(record.read, Picture):
        from regard.pictures import strip  # noqa: PLC0415

        return strip.render(record, name=name)
    if isinstance(record.read, Series):
        from regard.pictures import series_svg  # noqa: PLC0415

        return series_svg.render(record, name=name)
    if isinstance(record.read, Document):
        from regard.pictures import document_svg  # noqa: PLC0415

        return document_svg.render(record)
    if name is None and record.task == RECORDED and len(record.maps) > 1:
        from regard.pictures import multiples  # noqa: PLC0415

        return multiples.render(record)
    plan = _plan(record, record.weights(name))
    parts = [
        _opening(plan),
        f"<title>{escaped(_title(record, name))}</title>",
        f"<desc>{escaped(_description(record, plan))}</desc>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_grid(plan),
        *(_cells(plan) if plan.weights.size <= _TITLED else _shade_paths(plan)),
        *_row_labels(plan),
        *_column_labels(plan),
        *_legend(plan),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _plan(record: Record, weights: NDArray[np.float32]) -> _Plan:
    rows = [label(token.text) for token in record.written.tokens]
    read = record.read_text()
    columns = [label(token.text) for token in read.tokens]
    longest = max(len(rows), len(columns), 1)
    cell = min(max(720 / longest, 8.0), 44.0)
    font = min(14.0, cell * 0.8)
    widest = max((width_of(column, font) for column in columns), default=0.0)
    if longest <= 12 and widest + 14 <= 84:
        cell = max(cell, widest + 14)  # a little more room lets the heads stay level
    return _Plan(
        weights=weights,
        rows=rows,
        columns=columns,
        top=scale_top(weights),
        cell=round(cell, 1),
        font=round(font, 1),
        slanted=widest + 6 > cell,
        reverse=is_right_to_left(read.text),
    )


def _title(record: Record, name: str | None) -> str:
    read, written = (visible(text.text) for text in (record.read_text(), record.written))
    which = f" ({visible(name)})" if name is not None else ""
    return f"{visible(record.task)}{which}: {read} → {written}"


def _description(record: Record, plan: _Plan) -> str:
    size = f"A matrix of {len(plan.rows)} written tokens (rows) by {len(plan.columns)} read tokens."
    rows = plan.weights.argmax(axis=1)[:20].tolist() if plan.weights.size else []
    best = [
        f"{plan.rows[i]} looks most at {plan.columns[j]} ({plan.weights[i, j]:.3f})"
        for i, j in enumerate(rows)
        if plan.weights[i, j] > 0
    ]
    return f"{size} {'; '.join(best)}".rstrip()


def _opening(plan: _Plan) -> str:
    width, height = math.ceil(plan.width), math.ceil(plan.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" direction="ltr" '
        f'font-family="{FONTS}" font-size="{plan.font:g}">'
    )


def _grid(plan: _Plan) -> Iterator[str]:
    width, height = len(plan.columns) * plan.cell, len(plan.rows) * plan.cell
    if not plan.weights.size:
        return
    place = f'x="{plan.left:g}" y="{plan.head:g}" width="{width:g}" height="{height:g}"'
    empty = to_hex(shade(0.0))
    if plan.weights.size > _TITLED:
        yield f'<rect {place} fill="{empty}"/>'
        return
    yield (
        f'<pattern id="empty" patternUnits="userSpaceOnUse" x="{plan.left:g}" y="{plan.head:g}" '
        f'width="{plan.cell:g}" height="{plan.cell:g}">{_square(plan, (0.0, 0.0), empty)}</pattern>'
    )
    yield f'<rect {place} fill="url(#empty)"/>'


def _square(plan: _Plan, corner: tuple[float, float], fill: str, title: str = "") -> str:
    gap = 1.5 if plan.cell > 20 else 0.5
    size = plan.cell - 2 * gap
    shape = (
        f'<rect x="{corner[0] + gap:.5g}" y="{corner[1] + gap:.5g}" width="{size:.4g}" '
        f'height="{size:.4g}" rx="{plan.cell / 12:.2g}" fill="{fill}"'
    )
    return f"{shape}><title>{escaped(title)}</title></rect>" if title else f"{shape}/>"


def _visible_cells(plan: _Plan) -> Iterator[tuple[int, int, float]]:
    places = (plan.weights > _INVISIBLE * plan.top).nonzero()
    for row, column in zip(*(axis.tolist() for axis in places), strict=True):
        yield row, column, float(plan.weights[row, column])


def _cells(plan: _Plan) -> Iterator[str]:
    for row, column, weight in _visible_cells(plan):
        corner = plan.corner(row, column)
        colour = shade(weight / plan.top)
        title = f"{plan.columns[column]} → {plan.rows[row]} {weight:.3f}"
        yield _square(plan, corner, to_hex(colour), title)
        if plan.cell >= 36 and 0.005 <= weight < 9.995:
            x, y = corner[0] + plan.cell / 2, corner[1] + plan.cell / 2 + 4
            number = f"{weight:.2f}"
            yield (
                f'<text x="{x:.5g}" y="{y:.5g}" font-size="11" text-anchor="middle" '
                f'pointer-events="none" fill="{to_hex(ink(colour))}">{number}</text>'
            )


def _shade_paths(plan: _Plan) -> Iterator[str]:
    shapes: dict[int, list[str]] = defaultdict(list)
    for row, column, weight in _visible_cells(plan):
        level = min(round(255 * weight / plan.top), 255)
        shapes[level].append(f"M{plan.place(column)} {row}h1v1h-1z")
    yield f'<g transform="translate({plan.left:g} {plan.head:g}) scale({plan.cell:g})">'
    for level, subpaths in sorted(shapes.items()):
        yield f'<path fill="{to_hex(shade(level / 255))}" d="{"".join(subpaths)}"/>'
    yield "</g>"


def _row_labels(plan: _Plan) -> Iterator[str]:
    x = plan.left - _GAP
    for row, text in enumerate(plan.rows):
        y = plan.head + (row + 0.5) * plan.cell + plan.font * 0.36
        yield text_element(text, f'x="{x:.5g}" y="{y:.6g}"', anchor="end")


def _column_labels(plan: _Plan) -> Iterator[str]:
    for column, text in enumerate(plan.columns):
        x, y = plan.corner(0, column)
        x, y = x + plan.cell / 2, y - _GAP
        if plan.slanted:
            turn = f'transform="translate({x + plan.font * 0.3:.6g} {y + 3:.5g}) rotate(-45)"'
            yield text_element(text, turn, anchor="start")
        else:
            yield text_element(text, f'x="{x:.5g}" y="{y:.5g}"', anchor="middle")


def _legend(plan: _Plan) -> Iterator[str]:
    unit = plan.unit
    x, y, width = plan.left, plan.height - (_FOOT / 2 + 2) * unit, _LEGEND_WIDTH * unit
    stops = "".join(
        f'<stop offset="{i / 8}" stop-color="{to_hex(shade(i / 8))}"/>' for i in range(9)
    )
    yield f'<linearGradient id="scale">{stops}</linearGradient>'
    yield (
        f'<rect x="{x:g}" y="{y:.6g}" width="{width:g}" height="{8 * unit:g}" '
        f'rx="{4 * unit:g}" fill="url(#scale)"/>'
    )
    common = f'y="{y + 8 * unit:.6g}" font-size="{11 * unit:.4g}" fill="{QUIET}"'
    yield f'<text x="{x - 8 * unit:g}" {common} text-anchor="end">0</text>'
    yield f'<text x="{x + width + 8 * unit:g}" {common}>{plan.top:g}</text>'
