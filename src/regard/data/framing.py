"""Bring a picture to a size, and remember which part of it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.errors import UserError

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels."""

FILL = (124, 116, 104)
"""The mean colour of ImageNet: zero after the usual normalisation."""

_RESAMPLE = Image.Resampling.BICUBIC


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """A picture at the size of a model's input, and what of the original it shows.

    Args:
        image: The picture at the new size.
        box: Where its edges lie in the original; beyond it where something was added.
        width: Width of the original in pixels.
        height: Height of the original.
    """

    image: Image.Image
    box: Box
    width: int
    height: int

    def cells(self, rows: int, columns: int) -> NDArray[np.float64]:
        """Say where the cells of a grid over the new picture lie in the original.

        Args:
            rows: Rows of the grid.
            columns: Columns of the grid.

        Returns:
            The box of each cell, in row-major order: `(rows * columns, 4)`.
        """
        _check_counts(rows=rows, columns=columns)
        left, top, right, bottom = self.box
        xs = np.linspace(left, right, columns + 1)
        ys = np.linspace(top, bottom, rows + 1)
        grid = np.empty((rows, columns, 4))
        grid[..., 0], grid[..., 2] = xs[:-1], xs[1:]
        grid[..., 1], grid[..., 3] = ys[:-1, None], ys[1:, None]
        return grid.reshape(-1, 4)

    def covered(self, rows: int, columns: int) -> NDArray[np.float64]:
        """Say how much of each cell shows the original, and not what was added.

        Args:
            rows: Rows of the grid.
            columns: Columns of the grid.

        Returns:
            The share of each cell's area, from 0 to 1, in row-major order; `> 0` is a mask of
            the cells that may be attended to.
        """
        return overlap_share(self.cells(rows, columns), (0.0, 0.0, self.width, self.height))


def overlap_share(boxes: NDArray[np.float64], region: Box) -> NDArray[np.float64]:
    """Say how much of each box lies in a region.

    Args:
        boxes: The boxes: `(count, 4)`.
        region: The region.

    Returns:
        The share of each box's area, from 0 to 1.

    Example:
        >>> overlap_share(np.array([[0.0, 0, 2, 2], [4, 0, 6, 2]]), (1, 0, 5, 1)).tolist()
        [0.25, 0.25]
    """
    low = np.maximum(boxes[:, :2], region[:2])
    high = np.minimum(boxes[:, 2:], region[2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    return np.asarray(shared / (boxes[:, 2:] - boxes[:, :2]).prod(axis=1))


def centre_crop(image: Image.Image, *, height: int, width: int, share: float = 1.0) -> Framed:
    """Resize a picture so that it fills a size, and cut off what stands over.

    This is the usual preprocessing of image encoders: the shorter side is resized to
    `height / share`, then the middle is cut out, here in one step. What lies at the ends of a long
    picture is not seen; `letterbox` shows all of it.

    Args:
        image: The picture.
        height: Height of the result in pixels.
        width: Its width.
        share: Part of the shorter side that is kept; 224 / 256 where 256 is resized to, then 224
            cut out.

    Returns:
        The result, and which part of the picture it shows.

    Raises:
        UserError: A size is below 1, or the share not in (0, 1].
    """
    _check_counts(height=height, width=width)
    if not 0 < share <= 1:
        raise UserError(f"share must be above 0 and at most 1; got {share}. Use 0.875.")
    scale = share * min(image.width / width, image.height / height)
    left = (image.width - scale * width) / 2
    top = (image.height - scale * height) / 2
    box = (left, top, left + scale * width, top + scale * height)
    box = (max(0.0, box[0]), max(0.0, box[1]), min(image.width, box[2]), min(image.height, box[3]))
    return Framed(image.resize((width, height), _RESAMPLE, box=box), box, *image.size)


def letterbox(
    image: Image.Image, *, rows: int, columns: int, cell: int, fill: tuple[int, int, int] = FILL
) -> Framed:
    """Fit a whole picture into a grid of square cells, keeping its proportions.

    Args:
        image: The picture.
        rows: Rows of the grid.
        columns: Columns of the grid; `best_grid` chooses both for a picture.
        cell: Side of a cell in pixels: what the encoder makes one vector of, 32 for most.
        fill: Colour of what is added at two sides.

    Returns:
        The result, of `rows * cell` by `columns * cell` pixels, and which box of the picture it is.

    Raises:
        UserError: A number is below 1.
    """
    _check_counts(rows=rows, columns=columns, cell=cell)
    height, width = rows * cell, columns * cell
    scale = min(width / image.width, height / image.height)
    inner = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    offset = ((width - inner[0]) // 2, (height - inner[1]) // 2)
    result = Image.new("RGB", (width, height), fill)
    result.paste(image.resize(inner, _RESAMPLE), offset)
    across, down = image.width / inner[0], image.height / inner[1]  # pixels there per pixel here
    left, top = -offset[0] * across, -offset[1] * down
    return Framed(result, (left, top, left + width * across, top + height * down), *image.size)


def best_grid(width: int, height: int, *, most_cells: int) -> tuple[int, int]:
    """Choose the grid in which a letterboxed picture is largest.

    Args:
        width: Width of the picture.
        height: Its height.
        most_cells: Most cells that the grid may have.

    Returns:
        Rows and columns; of equally good grids the one with the fewest cells.

    Raises:
        UserError: A number is below 1.

    Example:
        >>> best_grid(300, 200, most_cells=49)
        (6, 8)
    """
    _check_counts(width=width, height=height, most_cells=most_cells)
    grids = [
        (rows, columns)
        for rows in range(1, most_cells + 1)
        for columns in range(1, most_cells // rows + 1)
    ]
    return max(grids, key=lambda g: (min(g[1] / width, g[0] / height), -g[0] * g[1]))


def cut(
    image: Image.Image, *, rows: int, columns: int, size: tuple[int, int] | None = None
) -> list[Image.Image]:
    """Cut a picture into equal parts, each to go through an encoder on its own.

    Args:
        image: The picture.
        rows: Parts from top to bottom.
        columns: Parts from left to right.
        size: Height and width of each part in pixels; by default what it has, rounded up.

    Returns:
        The parts in row-major order, all of one size; together they show the whole picture.

    Raises:
        UserError: A number is below 1.
    """
    _check_counts(rows=rows, columns=columns)
    height, width = size or (-(-image.height // rows), -(-image.width // columns))
    _check_counts(height=height, width=width)
    boxes = Framed(image, (0.0, 0.0, image.width, image.height), *image.size).cells(rows, columns)
    return [_part(image, box, (width, height)) for box in boxes.tolist()]


def _part(image: Image.Image, box: Sequence[float], size: tuple[int, int]) -> Image.Image:
    left, top, right, bottom = box
    return image.resize(size, _RESAMPLE, box=(left, top, right, bottom))


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise UserError(f"{name} must be at least 1; got {count}. Raise it.")
