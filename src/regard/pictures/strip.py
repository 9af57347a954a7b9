"""The strip of a caption or of labels: the picture once more for each, lit by weight.

What a word did not look at is dimmed, as in Show, Attend and Tell; what it looked at keeps its
colours and turns a little whiter, so that it stands out of a dark photo too. Thin lines show the
borders of the cells: no more is claimed than the grid holds.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from regard.errors import UserError
from regard.pictures.colours import to_hex
from regard.pictures.covers import Area, borders, cells, frame, outside, smooth, veil
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
from regard.pictures.gaze import Gaze, Gazes, gazes, number
from regard.pictures.lettering import is_right_to_left, visible

if TYPE_CHECKING:
    from regard.pictures.records import Record

Style: TypeAlias = Literal["smooth", "grid"]

_MOST_PANELS = 120
_WIDEST = 1000.0  # of the whole strip
_NARROWEST = 440.0
_SIDE = 172.0  # the longer side of a panel
_MARGIN, _GAP = 26.0, 16.0


@dataclass(frozen=True)
class _Plan:
    """Where everything stands, in pixels."""

    gazes: Gazes
    heading: str
    style: Style
    opacity: float

    @cached_property
    def panels(self) -> tuple[Gaze, ...]:
        return self.gazes.drawn[:_MOST_PANELS]

    @cached_property
    def size(self) -> tuple[float, float]:
        """Width and height of a panel; one so narrow that it would vanish is widened."""
        picture = self.gazes.picture
        scale = _SIDE / max(picture.width, picture.height)
        return max(picture.width * scale, 12.0), max(picture.height * scale, 12.0)

    @cached_property
    def area(self) -> Area:
        """Where the grid lies in a panel."""
        x, y, width, height = self.gazes.picture.area
        return Area(x * self.size[0], y * self.size[1], width * self.size[0], height * self.size[1])

    @property
    def is_whole(self) -> bool:
        """Whether the grid covers just the picture."""
        return self.gazes.picture.box is None

    @cached_property
    def slot(self) -> float:
        return max(self.size[0], 112.0)

    @cached_property
    def per_row(self) -> int:
        count = len(self.panels) + 1
        most = int((_WIDEST - 2 * _MARGIN + _GAP) / (self.slot + _GAP))
        return math.ceil(count / math.ceil(count / most))

    @cached_property
    def step(self) -> float:
        """From one row of panels to the next."""
        return self.size[1] + (80 if self.gazes.picture.sentinel else 64)

    @cached_property
    def width(self) -> float:
        row = self.per_row * (self.slot + _GAP) - _GAP
        return max(row + 2 * _MARGIN, _NARROWEST)

    @cached_property
    def foot(self) -> float:
        """The height at which the sentence begins."""
        return _MARGIN + math.ceil((len(self.panels) + 1) / self.per_row) * self.step

    @property
    def sentence(self) -> str:
        return self.gazes.sentence

    @property
    def unit(self) -> str:
        return self.gazes.unit

    @cached_property
    def reverse(self) -> bool:
        return is_right_to_left(self.sentence)

    @cached_property
    def key(self) -> str:
        """Part of the names of shared elements, so that two strips fit on one page."""
        picture = self.gazes.picture
        parts = (picture.width, picture.height, picture.rows, picture.columns, picture.box)
        return f"{zlib.crc32(picture.data + repr(parts).encode()):08x}"

    def corner(self, index: int) -> tuple[float, float]:
        """Return the top left corner of a panel."""
        row, place = divmod(index, self.per_row)
        offset = place * (self.slot + _GAP) + (self.slot - self.size[0]) / 2
        x = self.width - _MARGIN - offset - self.size[0] if self.reverse else _MARGIN + offset
        return x, _MARGIN + row * self.step


def render(
    record: Record, *, name: str | None = None, style: Style = "smooth", opacity: float = 0.75
) -> str:
    """Draw where each word of a caption, or label, looked: one panel each, after the picture alone.

    Pieces are merged into words. Where all words have the same map, or no map says anything,
    that is said instead of being drawn for each word. Words of a right-to-left caption run from
    the right.

    Args:
        record: A record whose `read` is a picture.
        name: The map; the mean when it is not given.
        style: "smooth" interpolates between the cells and says so, "grid" draws them as they are.
        opacity: How much is laid over the picture, 0 to 1.

    Returns:
        A complete SVG document.

    Raises:
        UserError: A text was read, or an argument is out of its range.

    References:
        Xu et al., "Show, Attend and Tell", ICML 2015.
    """
    if style not in get_args(Style):
        raise UserError(f"style must be 'smooth' or 'grid'; got {style!r}. Choose one of them.")
    if not 0 <= opacity <= 1:
        raise UserError(f"opacity must be 0 to 1; got {opacity}. 0.75 is usual.")
    task = visible(record.task)
    heading = f"{task} ({visible(name)})" if name is not None else task
    plan = _Plan(gazes(record, name), heading, style, opacity)
    body = [*_definitions(plan), *_panels(plan), *_below(plan)]
    height = plan.foot + _foot_height(plan)
    return "\n".join([*_opening(plan, height), *body, "</svg>"]) + "\n"


def _opening(plan: _Plan, height: float) -> Iterator[str]:
    width = math.ceil(plan.width)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{math.ceil(height)}" '
        f'viewBox="0 0 {width} {math.ceil(height)}" role="img" direction="ltr" '
        f'font-family="{FONTS}" font-size="15">'
    )
    name = _name(plan)
    yield f"<title>{escaped(f'{plan.heading}: {name} → {visible(plan.sentence)}')}</title>"
    yield f"<desc>{escaped(_description(plan))}</desc>"
    yield f'<rect width="100%" height="100%" fill="{PAPER}"/>'


def _name(plan: _Plan) -> str:
    name = plan.gazes.picture.name
    return visible(name) if name else "the picture"


def _description(plan: _Plan) -> str:
    said = (f"{gaze.word}: {_said(gaze)}" for gaze in plan.panels[:20])
    return " ".join(filter(None, [_resolution(plan), plan.gazes.verdict, "; ".join(said)]))


def _said(gaze: Gaze) -> str:
    aside = "" if gaze.aside is None else f", not looking {number(gaze.aside)}"
    return gaze.said + aside


def _resolution(plan: _Plan) -> str:
    picture = plan.gazes.picture
    size = f"{picture.rows} × {picture.columns}"
    part = "" if plan.is_whole else " What lies outside the grid was not read."
    if plan.style == "grid":
        return f"Cells of a grid of {size}.{part}"
    return f"Smoothed from a grid of {size} cells: it shows no more than these.{part}"


def _definitions(plan: _Plan) -> Iterator[str]:
    picture, (width, height) = plan.gazes.picture, plan.size
    data = base64.b64encode(picture.data).decode("ascii")
    yield (
        f'<defs><symbol id="photo-{plan.key}" viewBox="0 0 {width:.5g} {height:.5g}" '
        f'preserveAspectRatio="none"><image width="{width:.5g}" height="{height:.5g}" '
        f'preserveAspectRatio="none" href="data:{picture.media_type};base64,{data}"/></symbol>'
    )
    if not plan.is_whole:
        rect = f'<rect width="{width:.5g}" height="{height:.5g}"/>'
        yield f'<clipPath id="clip-{plan.key}">{rect}</clipPath>'
    drawn = borders(picture, plan.area)
    yield (
        f'<g id="lines-{plan.key}" fill="none"><path d="{drawn}" stroke="#000" '
        f'stroke-opacity="0.2" stroke-width="1.4"/><path d="{drawn}" stroke="#fff" '
        'stroke-opacity="0.4" stroke-width="0.6"/></g></defs>'
    )


def _panels(plan: _Plan) -> Iterator[str]:
    yield from _panel(plan, 0, None)
    for index, gaze in enumerate(plan.panels, start=1):
        yield from _panel(plan, index, gaze)


def _panel(plan: _Plan, index: int, gaze: Gaze | None) -> Iterator[str]:
    (x, y), (width, height) = plan.corner(index), plan.size
    title = _name(plan) if gaze is None else f"{gaze.word}: {_said(gaze)}"
    area = f'width="{width:.5g}" height="{height:.5g}"'
    yield f'<g transform="translate({x:.5g} {y:.6g})"><title>{escaped(title)}</title>'
    yield f'<use href="#photo-{plan.key}" {area}/>'
    if gaze is not None:
        yield from _cover(plan, gaze)
    yield f'<rect {area} fill="none" stroke="#000" stroke-opacity="0.25"/></g>'
    yield from _labels(plan, (x + width / 2, y + height), gaze)


def _cover(plan: _Plan, gaze: Gaze) -> Iterator[str]:
    clip = "" if plan.is_whole else f' clip-path="url(#clip-{plan.key})"'
    yield f'<g{clip}><g opacity="{plan.opacity:.3g}">'
    if not plan.is_whole:
        yield outside(plan.area, plan.size)
    yield from smooth(gaze, plan.area) if plan.style == "smooth" else cells(gaze, plan.area)
    yield f'</g><use href="#lines-{plan.key}"/>'
    yield from frame(gaze, plan.area)
    yield "</g>"


def _labels(plan: _Plan, foot: tuple[float, float], gaze: Gaze | None) -> Iterator[str]:
    x, y = foot
    if gaze is None:
        place = f'x="{x:.5g}" y="{y + 20:.6g}" font-size="12"'
        yield text_element(shorten(_name(plan), plan.slot / 12), place, anchor="middle", fill=QUIET)
        return
    place = f'x="{x:.5g}" y="{y + 21:.6g}"'
    yield text_element(shorten(gaze.word, plan.slot / 15), place, anchor="middle")
    lines = [gaze.said] + ([] if gaze.aside is None else [f"not looking {number(gaze.aside)}"])
    for row, line in enumerate(lines):
        place = f'x="{x:.5g}" y="{y + 38 + 15 * row:.6g}" font-size="11"'
        yield text_element(line, place, anchor="middle", fill=QUIET)


# What stands below the panels


def _lines(plan: _Plan) -> list[tuple[str, float, str, bool]]:
    """List the lines below: text, size, colour, and whether it is the sentence."""
    room = plan.width - 2 * _MARGIN
    lines = [(line, 18.0, TEXT, True) for line in flow(plan.sentence, room / 18)]
    left_out = len(plan.gazes.drawn) - len(plan.panels)
    notes = [plan.gazes.verdict]
    if left_out:
        notes.append(f"{left_out} more {plan.unit}s are not drawn.")
    for note in filter(None, notes):
        lines += [(line, 15.0, TEXT, False) for line in flow(note, room / 15)]
    return lines


def _legend_lines(plan: _Plan) -> list[str]:
    if not plan.panels:
        return []
    framed = any(gaze.strongest is not None for gaze in plan.panels)
    words = (
        f"Weight of a cell, as a part of the largest of its {plan.unit}, which stands under it. "
        + _resolution(plan)
    )
    words += " The frame is around the cell of most weight." if framed else ""
    return flow(words, (plan.width - 2 * _MARGIN) / 11)


def _foot_height(plan: _Plan) -> float:
    text = sum(size * 1.5 for _, size, _, _ in _lines(plan))
    legend = _legend_lines(plan)
    return text + (42 + 16 * len(legend) if legend else 0) + _MARGIN - 4


def _below(plan: _Plan) -> Iterator[str]:
    y = plan.foot
    for line, size, fill, is_sentence in _lines(plan):
        y += size * 1.5
        reverse = plan.reverse and is_sentence
        x, anchor = (plan.width - _MARGIN, "end") if reverse else (_MARGIN, "start")
        place = f'x="{x:.5g}" y="{y - size * 0.4:.6g}" font-size="{size:g}"'
        yield text_element(line, place, anchor=anchor, fill=fill, reverse=reverse)
    yield from _legend(plan, y + 18)


def _legend(plan: _Plan, y: float) -> Iterator[str]:
    lines = _legend_lines(plan)
    if not lines:
        return
    stops = []
    for i in range(9):
        red, green, blue, opacity = veil(i / 8)
        colour = to_hex((red, green, blue))
        opacity *= plan.opacity
        stops.append(f'<stop offset="{i / 8}" stop-color="{colour}" stop-opacity="{opacity:.3g}"/>')
    x, width = _MARGIN + 14, 150
    yield f'<linearGradient id="veil-{plan.key}">{"".join(stops)}</linearGradient>'
    bar = f'x="{x:g}" y="{y:.6g}" width="{width}" height="10" rx="3"'
    yield f'<rect {bar} fill="#8f9aa6"/><rect {bar} fill="url(#veil-{plan.key})"/>'
    common = f'y="{y + 9:.6g}" font-size="11" fill="{QUIET}"'
    yield f'<text x="{_MARGIN:g}" {common}>0</text>'
    yield f'<text x="{x + width + 8:g}" {common}>the largest of the {plan.unit}</text>'
    for row, line in enumerate(lines):
        place = f'x="{_MARGIN:g}" y="{y + 29 + 16 * row:.6g}" font-size="11"'
        yield text_element(line, place, anchor="start", fill=QUIET)
