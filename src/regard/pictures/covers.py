"""What is laid over a picture in vector graphics: a cover of light and dark, borders, a frame."""

from __future__ import annotations

import base64
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.pictures.colours import to_hex
from regard.pictures.raster import upsample, write_png

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regard.pictures.gaze import Gaze
    from regard.pictures.picture import Picture

DIM, LIT, HAZE = (10, 16, 26), (255, 255, 255), 0.3
"""The colours laid over no weight and over the most, and how opaque the second is."""

_SMOOTH_SIDE = 96  # pixels of a smooth cover: the renderer fills in between
_LEVELS = 63
_FINEST = 4.0  # pixels of a cell below which its border would hide it


class Area(NamedTuple):
    """Where the grid lies in a panel, in pixels."""

    x: float
    y: float
    width: float
    height: float

    def attributes(self) -> str:
        """Return the attributes of an element that takes this place."""
        place = f'x="{self.x:.5g}" y="{self.y:.5g}" ' if self.x or self.y else ""
        return f'{place}width="{self.width:.5g}" height="{self.height:.5g}"'


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


def smooth(gaze: Gaze, area: Area) -> Iterator[str]:
    """Cover a picture with weights interpolated between the centres of cells.

    Args:
        gaze: Where a word looked.
        area: Where the grid lies.

    Yields:
        An image.
    """
    factor = max(math.ceil(_SMOOTH_SIDE / max(gaze.grid.shape)), 1)
    levels = _levels(gaze, upsample(gaze.grid, factor))
    colours = [veil(i / _LEVELS) for i in range(_LEVELS + 1)]
    palette = np.array([(*c[:3], round(255 * c[3])) for c in colours], dtype=np.uint8)
    data = base64.b64encode(write_png(levels, palette)).decode("ascii")
    href = f'href="data:image/png;base64,{data}"'
    yield f'<image {area.attributes()} preserveAspectRatio="none" {href}/>'


def _levels(gaze: Gaze, weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.asarray(np.rint(_LEVELS * np.clip(weights / gaze.top, 0, 1)), dtype=np.uint8)


def cells(gaze: Gaze, area: Area) -> Iterator[str]:
    """Cover a picture with the cells as they are.

    Args:
        gaze: Where a word looked.
        area: Where the grid lies.

    Yields:
        A group with a path for each level of weight.
    """
    shapes: dict[int, list[str]] = defaultdict(list)
    for (row, column), level in np.ndenumerate(_levels(gaze, gaze.grid)):
        shapes[int(level)].append(f"M{column} {row}h1v1h-1z")
    rows, columns = gaze.grid.shape
    turn = f"{area.width / columns:.6g} 0 0 {area.height / rows:.6g} {area.x:.5g} {area.y:.5g}"
    yield f'<g shape-rendering="crispEdges" transform="matrix({turn})">'
    for step, subpaths in sorted(shapes.items()):
        red, green, blue, opacity = veil(step / _LEVELS)
        fill = f'fill="{to_hex((red, green, blue))}" fill-opacity="{opacity:g}"'
        yield f'<path {fill} d="{"".join(subpaths)}"/>'
    yield "</g>"


def outside(area: Area, size: tuple[float, float]) -> str:
    """Cover what the grid leaves out as dark as what has no weight.

    Args:
        area: Where the grid lies.
        size: Width and height of the panel.

    Returns:
        A path.
    """
    panel = f"M0 0h{size[0]:.5g}v{size[1]:.5g}h-{size[0]:.5g}z"
    hole = f"M{area.x:.5g} {area.y:.5g}h{area.width:.5g}v{area.height:.5g}h-{area.width:.5g}z"
    return f'<path d="{panel}{hole}" fill="{to_hex(DIM)}" fill-rule="evenodd"/>'


def borders(picture: Picture, area: Area) -> str:
    """Draw the borders of cells, where they are not too fine.

    Args:
        picture: What was looked at.
        area: Where the grid lies.

    Returns:
        The data of a path; "" for a fine grid.
    """
    across, down = area.width / picture.columns, area.height / picture.rows
    if min(across, down) < _FINEST:
        return ""
    lines = [
        f"M{area.x + i * across:.5g} {area.y:.5g}v{area.height:.5g}"
        for i in range(1, picture.columns)
    ]
    lines += [
        f"M{area.x:.5g} {area.y + i * down:.5g}h{area.width:.5g}" for i in range(1, picture.rows)
    ]
    return "".join(lines)


def frame(gaze: Gaze, area: Area) -> Iterator[str]:
    """Frame the strongest cell, so that the picture does not rest on brightness alone.

    Args:
        gaze: Where a word looked.
        area: Where the grid lies.

    Yields:
        A white line on a black one; nothing where no cell stands out.
    """
    if gaze.strongest is None:
        return
    rows, columns = gaze.grid.shape
    row, column = divmod(gaze.strongest, columns)
    across, down = area.width / columns, area.height / rows
    place = (
        f'x="{area.x + column * across + 1:.5g}" y="{area.y + row * down + 1:.5g}" '
        f'width="{max(across - 2, 1):.5g}" height="{max(down - 2, 1):.5g}" fill="none"'
    )
    yield f'<rect {place} stroke="#000" stroke-opacity="0.75" stroke-width="3.2"/>'
    yield f'<rect {place} stroke="#fff" stroke-width="1.6"/>'
