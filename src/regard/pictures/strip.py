"""The strip of a caption as vector graphics: the picture once more for each word, lit by weight.

What a word did not look at is dimmed, as in Show, Attend and Tell; what it looked at keeps its
colours and turns a little whiter, so that it stands out of a dark photo too. Thin lines show the
borders of the cells: no more is claimed than the grid holds.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from regard.errors import UserError
from regard.pictures.colours import to_hex
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
from regard.pictures.raster import upsample, write_png

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regard.pictures.records import Record

Style: TypeAlias = Literal["smooth", "grid"]

DIM, LIT, HAZE = (10, 16, 26), (255, 255, 255), 0.3
"""The colours laid over no weight and over the most, and how opaque the second is."""

_MOST_PANELS = 120
_WIDEST = 1000.0  # of the whole strip
_NARROWEST = 440.0
_SIDE = 172.0  # the longer side of a panel
_MARGIN, _GAP = 26.0, 16.0
_SMOOTH_SIDE = 96  # pixels of a smooth veil: the renderer fills in between
_LEVELS = 63
_FINEST = 4.0  # pixels of a cell below which its border would hide it


@dataclass(frozen=True)
class _Plan:
    """Where everything stands, in pixels."""

    gazes: Gazes
    sentence: str
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

    @cached_property
    def reverse(self) -> bool:
        return is_right_to_left(self.sentence)

    @cached_property
    def key(self) -> str:
        """Part of the names of shared elements, so that two strips fit on one page."""
        picture = self.gazes.picture
        parts = (picture.width, picture.height, picture.rows, picture.columns)
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
    """Draw where each word of a caption looked: one panel a word, after the picture alone.

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
    sentence, task = record.written.text, visible(record.task)
    heading = f"{task} ({visible(name)})" if name is not None else task
    plan = _Plan(gazes(record, name), sentence, heading, style, opacity)
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
    if plan.style == "grid":
        return f"Cells of a grid of {size}."
    return f"Smoothed from a grid of {size} cells: it shows no more than these."


def _definitions(plan: _Plan) -> Iterator[str]:
    picture, (width, height) = plan.gazes.picture, plan.size
    data = base64.b64encode(picture.data).decode("ascii")
    yield (
        f'<defs><symbol id="photo-{plan.key}" viewBox="0 0 {width:.5g} {height:.5g}" '
        f'preserveAspectRatio="none"><image width="{width:.5g}" height="{height:.5g}" '
        f'preserveAspectRatio="none" href="data:{picture.media_type};base64,{data}"/></symbol>'
    )
    across, down = width / picture.columns, height / picture.rows
    lines = [f"M{i * across:.5g} 0v{height:.5g}" for i in range(1, picture.columns)]
    lines += [f"M0 {i * down:.5g}h{width:.5g}" for i in range(1, picture.rows)]
    drawn = "".join(lines) if min(across, down) >= _FINEST else ""
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
        yield from _smooth(plan, gaze) if plan.style == "smooth" else _cells(plan, gaze)
        yield f'<use href="#lines-{plan.key}"/>'
        yield from _outline(plan, gaze)
    yield f'<rect {area} fill="none" stroke="#000" stroke-opacity="0.25"/></g>'
    yield from _labels(plan, (x + width / 2, y + height), gaze)


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


# What is laid over the picture


def veil(value: float) -> tuple[int, int, int, float]:
    """Return what is laid over a cell: dark where the weight is low, a white haze where high.

    Args:
        value: The weight as a part of the strongest, 0 to 1.

    Returns:
        Red, green, blue, and the opacity before that of the whole.

    Example:
        >>> veil(0.0), veil(1.0)
        ((10, 16, 26, 1.0), (255, 255, 255, 0.3))
    """
    opacity = (1 - value) + HAZE * value
    mixed = (
        round((low * (1 - value) + high * HAZE * value) / opacity)
        for low, high in zip(DIM, LIT, strict=True)
    )
    red, green, blue = mixed
    return red, green, blue, round(opacity, 3)


def _smooth(plan: _Plan, gaze: Gaze) -> Iterator[str]:
    factor = max(math.ceil(_SMOOTH_SIDE / max(gaze.grid.shape)), 1)
    levels = _levels(gaze, upsample(gaze.grid, factor))
    colours = [veil(i / _LEVELS) for i in range(_LEVELS + 1)]
    palette = np.array([(*c[:3], round(255 * c[3])) for c in colours], dtype=np.uint8)
    data = base64.b64encode(write_png(levels, palette)).decode("ascii")
    width, height = plan.size
    yield (
        f'<image width="{width:.5g}" height="{height:.5g}" preserveAspectRatio="none" '
        f'opacity="{plan.opacity:.3g}" href="data:image/png;base64,{data}"/>'
    )


def _levels(gaze: Gaze, weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.asarray(np.rint(_LEVELS * np.clip(weights / gaze.top, 0, 1)), dtype=np.uint8)


def _cells(plan: _Plan, gaze: Gaze) -> Iterator[str]:
    shapes: dict[int, list[str]] = defaultdict(list)
    for (row, column), level in np.ndenumerate(_levels(gaze, gaze.grid)):
        shapes[int(level)].append(f"M{column} {row}h1v1h-1z")
    width, height = plan.size
    picture = plan.gazes.picture
    yield (
        f'<g opacity="{plan.opacity:.3g}" shape-rendering="crispEdges" '
        f'transform="scale({width / picture.columns:.6g} {height / picture.rows:.6g})">'
    )
    for step, subpaths in sorted(shapes.items()):
        red, green, blue, opacity = veil(step / _LEVELS)
        fill = f'fill="{to_hex((red, green, blue))}" fill-opacity="{opacity:g}"'
        yield f'<path {fill} d="{"".join(subpaths)}"/>'
    yield "</g>"


def _outline(plan: _Plan, gaze: Gaze) -> Iterator[str]:
    """Frame the strongest cell, so that the picture does not rest on brightness alone."""
    if gaze.strongest is None:
        return
    picture, (width, height) = plan.gazes.picture, plan.size
    row, column = divmod(gaze.strongest, picture.columns)
    across, down = width / picture.columns, height / picture.rows
    frame = (
        f'x="{column * across + 1:.5g}" y="{row * down + 1:.5g}" '
        f'width="{max(across - 2, 1):.5g}" height="{max(down - 2, 1):.5g}" fill="none"'
    )
    yield f'<rect {frame} stroke="#000" stroke-opacity="0.75" stroke-width="3.2"/>'
    yield f'<rect {frame} stroke="#fff" stroke-width="1.6"/>'


# What stands below the panels


def _lines(plan: _Plan) -> list[tuple[str, float, str, bool]]:
    """List the lines below: text, size, colour, and whether it is the sentence."""
    room = plan.width - 2 * _MARGIN
    lines = [(line, 18.0, TEXT, True) for line in flow(plan.sentence, room / 18)]
    left_out = len(plan.gazes.drawn) - len(plan.panels)
    notes = [plan.gazes.verdict]
    if left_out:
        notes.append(f"{left_out} more words are not drawn.")
    for note in filter(None, notes):
        lines += [(line, 15.0, TEXT, False) for line in flow(note, room / 15)]
    return lines


def _legend_lines(plan: _Plan) -> list[str]:
    if not plan.panels:
        return []
    framed = any(gaze.strongest is not None for gaze in plan.panels)
    words = (
        "Weight of a cell, as a part of the largest of its word, which stands under it. "
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
    yield f'<text x="{x + width + 8:g}" {common}>the largest of the word</text>'
    for row, line in enumerate(lines):
        place = f'x="{_MARGIN:g}" y="{y + 29 + 16 * row:.6g}" font-size="11"'
        yield text_element(line, place, anchor="start", fill=QUIET)
