"""A series as vector graphics: a line for each feature, its steps shaded by their weight."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from regard.pictures.colours import shade, to_hex
from regard.pictures.drawing import (
    FONTS,
    PAPER,
    QUIET,
    TEXT,
    escaped,
    flow,
    shorten,
    text_element,
)
from regard.pictures.series import Chart, Trace, chart

if TYPE_CHECKING:
    from regard.pictures.records import Record

_WIDTH = 860.0
_MARGIN = 28.0
_LEFT = 150.0  # where the steps begin: room for names and numbers
_PANEL = 92.0
_BETWEEN = 16.0
_FONT = 15.0
_SMALL = 12.0
_FOOT = 74.0
_LEGEND = 160.0
_COLUMNS = 600
_ROOM = _WIDTH - _LEFT - _MARGIN
_DEEPEST = 0.7  # of the ramp: a line must be seen on it


def render(record: Record, *, name: str | None = None) -> str:
    """Draw a series in SVG.

    Each feature has a panel with a scale of its own; behind its line every step is shaded by its
    weight. Where there are more steps than columns, a column stands for several: its shade is
    their weight together, and the line runs from their smallest to their largest number.

    Args:
        record: A record whose `read` is a series.
        name: The map; the mean when it is not given.

    Returns:
        A complete SVG document.

    Raises:
        UserError: No map has this name.
    """
    found = chart(record, columns=_COLUMNS, name=name)
    heading = flow(found.heading, (_WIDTH - 2 * _MARGIN) / _FONT)
    remark = flow(found.remark, (_WIDTH - 2 * _MARGIN) / _SMALL)
    head = _MARGIN + 22.0 * len(heading) + 8.0
    panels = len(found.traces) * (_PANEL + _BETWEEN)
    height = math.ceil(head + panels + _FOOT + 18.0 * len(remark))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:g}" height="{height}" '
        f'viewBox="0 0 {_WIDTH:g} {height}" role="img" direction="ltr" '
        f'font-family="{FONTS}" font-size="{_FONT:g}">',
        f"<title>{escaped(found.heading)}</title>",
        f"<desc>{escaped(_description(found))}</desc>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_lines(heading, _MARGIN + _FONT, _FONT, 22.0, TEXT),
        *_panels(found, head),
        *_axis(found, head + panels),
        *_legend(found, head + panels + 38.0),
        *_lines(remark, head + panels + _FOOT, _SMALL, 18.0, QUIET),
        "</svg>",
    ]) + "\n"  # fmt: skip


def _description(found: Chart) -> str:
    names = ", ".join(trace.name for trace in found.traces)
    return f"{found.count} steps of {names}. Most weight: {found.named or 'none'}. {found.remark}"


def _lines(lines: list[str], top: float, size: float, step: float, fill: str) -> Iterator[str]:
    for index, line in enumerate(lines):
        place = f'x="{_MARGIN:g}" y="{top + index * step:g}" font-size="{size:g}"'
        yield text_element(line, place, anchor="start", fill=fill, reverse=False)


def _panels(found: Chart, top: float) -> Iterator[str]:
    for index, trace in enumerate(found.traces):
        y = top + index * (_PANEL + _BETWEEN)
        yield from _shades(found, y)
        yield from _line(trace, found, y)
        name = shorten(trace.name, (_LEFT - _MARGIN - 14) / 13.0)
        place = f'x="{_MARGIN:g}" y="{y + _PANEL / 2 + 4:g}" font-size="13"'
        yield text_element(name, place, anchor="start")
        for value, at in ((trace.high, y + 11), (trace.low, y + _PANEL - 3)):
            place = f'x="{_LEFT - 8:g}" y="{at:g}" font-size="11"'
            yield text_element(f"{value:.4g}", place, anchor="end", fill=QUIET)


def _shades(found: Chart, y: float) -> Iterator[str]:
    wide = _ROOM / max(len(found.weights), 1)
    box = f'x="{_LEFT:g}" y="{y:g}" width="{_ROOM:g}" height="{_PANEL:g}" rx="4"'
    yield f'<rect {box} fill="{to_hex(shade(0.0))}"/>'
    for column, weight in enumerate(found.weights):
        colour = to_hex(shade(_DEEPEST * min(weight / found.top, 1.0)))
        x = _LEFT + column * wide
        box = f'x="{x:.6g}" y="{y:g}" width="{wide + 0.05:.5g}" height="{_PANEL:g}"'
        yield f'<rect {box} fill="{colour}"><title>{escaped(found.said(column))}</title></rect>'


def _line(trace: Trace, found: Chart, y: float) -> Iterator[str]:
    wide = _ROOM / max(len(found.weights), 1)
    parts: list[list[str]] = [[]]
    for column, between in enumerate(trace.ranges):
        if between is None:  # a gap where numbers are missing
            parts.append([])
            continue
        x = _LEFT + (column + 0.5) * wide
        for value in dict.fromkeys(between):
            parts[-1].append(f"{x:.6g},{y + 6 + (_PANEL - 12) * (1 - trace.height(value)):.5g}")
    for points in filter(None, parts):
        if len(points) == 1:  # a point alone draws no line
            across, down = points[0].split(",")
            place = f'cx="{across}" cy="{down}" r="1.6"'
            yield f'<circle {place} fill="{TEXT}" pointer-events="none"/>'
            continue
        yield (
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{TEXT}" '
            'stroke-width="1.5" stroke-linejoin="round" pointer-events="none"/>'
        )


def _axis(found: Chart, y: float) -> Iterator[str]:
    if not found.count:
        return
    marks = sorted({1, *(round(found.count * part / 4) for part in range(1, 5))} - {0})
    for step in marks:
        x = _LEFT + _ROOM * (step - 0.5) / found.count
        place = f'x="{x:.6g}" y="{y:g}" font-size="11"'
        yield text_element(str(step), place, anchor="middle", fill=QUIET)


def _legend(found: Chart, y: float) -> Iterator[str]:
    stops = "".join(
        f'<stop offset="{i / 8}" stop-color="{to_hex(shade(_DEEPEST * i / 8))}"/>' for i in range(9)
    )
    yield f'<linearGradient id="scale">{stops}</linearGradient>'
    box = f'x="{_LEFT:g}" y="{y - 8:g}" width="{_LEGEND:g}" height="8" rx="4"'
    yield f'<rect {box} fill="url(#scale)"/>'
    zero = f'x="{_LEFT - 8:g}" y="{y:g}" font-size="11"'
    yield text_element("0", zero, anchor="end", fill=QUIET)
    what = "" if found.steps == 1 else f" of {found.steps} steps together"
    said = f"{found.top:g}{what}; most: {found.named or 'none'}"
    place = f'x="{_LEFT + _LEGEND + 10:g}" y="{y:g}" font-size="11"'
    yield text_element(said, place, anchor="start", fill=QUIET, reverse=False)
