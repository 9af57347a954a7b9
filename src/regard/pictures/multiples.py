"""All heads and layers of a record as small multiples, in SVG."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from regard.pictures.colours import shade
from regard.pictures.drawing import FONTS, PAPER, QUIET, escaped, label, text_element, width_of
from regard.pictures.heads import Row, rows_of
from regard.pictures.lettering import is_right_to_left, visible
from regard.pictures.raster import write_png

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regard.pictures.records import Record

_MARGIN = 24.0
_PANEL = 72.0  # the longer side of a panel, in pixels
_GAP = 10.0
_FONT = 12.0
_MOST = 64  # cells of a panel's side; beyond, several weights share one, the largest of them
_PALETTE = np.array([(*shade(i / 255)[:3], 255) for i in range(256)], dtype=np.uint8)


def render(record: Record) -> str:
    """Draw every map of a record as a small panel: a row a layer, a column a head.

    Each panel is shaded up to its own largest weight, which its title says: panels show where
    heads look, not how strongly one does beside another. Of long texts a cell shows the largest of
    the weights that share it.

    Args:
        record: A record of texts.

    Returns:
        A complete SVG document.

    Raises:
        UserError: A picture was read.
    """
    rows = rows_of(record)
    tall, wide = _sides(record)
    names = [label(row.name) if row.name else "" for row in rows]
    left = _MARGIN + max((width_of(name, _FONT) + _GAP for name in names if name), default=0.0)
    head = _MARGIN + _FONT + _GAP
    most = max(len(row.maps) for row in rows)
    width = left + most * (wide + _GAP) - _GAP + _MARGIN
    height = head + len(rows) * (tall + _GAP) - _GAP + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{math.ceil(width)}" '
        f'height="{math.ceil(height)}" viewBox="0 0 {math.ceil(width)} {math.ceil(height)}" '
        f'role="img" direction="ltr" font-family="{FONTS}" font-size="{_FONT:g}">',
        f"<title>{escaped(_title(record))}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_heads(rows, left, wide),
    ]
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = head + number * (tall + _GAP)
        if name:
            at = f'x="{left - _GAP:.5g}" y="{y + tall / 2 + 4:.6g}"'
            parts.append(text_element(name, at, anchor="end"))
        parts += _panels(record, row, (left, y), (wide, tall))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _title(record: Record) -> str:
    read, written = visible(record.read_text().text), visible(record.written.text)
    return f"{visible(record.task)}, {len(record.maps)} maps: {read} → {written}"


def _sides(record: Record) -> tuple[float, float]:
    """Return height and width of a panel: square cells, the longer side of a fixed length."""
    tall, wide = max(len(record.written.tokens), 1), max(record.columns, 1)
    cell = _PANEL / max(tall, wide)
    return max(tall * cell, 4.0), max(wide * cell, 4.0)


def _heads(rows: tuple[Row, ...], left: float, wide: float) -> Iterator[str]:
    if not any(row.name for row in rows):
        return
    for number in range(max(len(row.maps) for row in rows)):
        x = left + number * (wide + _GAP) + wide / 2
        at = f'x="{x:.6g}" y="{_MARGIN + _FONT:.5g}"'
        yield text_element(str(number + 1), at, anchor="middle", fill=QUIET)


def _panels(
    record: Record, row: Row, corner: tuple[float, float], size: tuple[float, float]
) -> Iterator[str]:
    reverse = is_right_to_left(record.read_text().text)
    for place, index in enumerate(row.maps):
        one = record.maps[index]
        top = float(one.weights.max(initial=0.0))
        weights = one.weights[:, ::-1] if reverse else one.weights
        copy = base64.b64encode(_pixels(weights, top)).decode("ascii")
        x = corner[0] + place * (size[0] + _GAP)
        said = escaped(f"{visible(one.name)}: up to {top:.3f}")
        yield (
            f'<image x="{x:.6g}" y="{corner[1]:.6g}" width="{size[0]:.5g}" height="{size[1]:.5g}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{copy}"><title>{said}</title></image>'
        )


def _pixels(weights: NDArray[np.float32], top: float) -> bytes:
    small = shrunk(weights, _MOST)
    if not small.size:
        small = np.zeros((1, 1), dtype=np.float32)
    levels = np.rint(small * (255 / top if top else 0.0)).astype(np.uint8)
    return write_png(levels, _PALETTE)


def shrunk(weights: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Let several weights share a cell, the largest of them, so that no side is longer.

    Args:
        weights: A matrix.
        most: The longest side.

    Returns:
        A matrix of at most so many rows and columns.
    """
    for axis in (0, 1):
        count = weights.shape[axis]
        if count > most:
            starts = np.arange(most) * count // most
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
