"""A picture that was read: a small copy of it, and the grid of cells that a model looked at."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from regard.errors import UserError
from regard.pictures.raster import read_size

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

Box: TypeAlias = tuple[float, float, float, float]

MEDIA_TYPES: Final = ("image/jpeg", "image/png")
LARGEST_COPY: Final = 2 << 20
"""Bytes of a copy: a photo of 640 pixels takes a twentieth of it."""

NOT_LOOKING: Final = "not looking"

_LONGEST_SIDE = 2048  # pixels of a copy
_MOST_CELLS = 10_000
_LARGEST = 10_000_000  # pixels of a side


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a model read cell by cell.

    The columns of a record's weights are the cells in row-major order, and one more where
    `sentinel` is set: the weight of not looking at the picture at all (the adaptive attention
    of Lu et al.). The cells divide the picture evenly, or the part of it that was read.

    Args:
        width: Pixels of the picture as a person sees it, turned upright.
        height: The same, downwards.
        rows: Cells of the grid, downwards.
        columns: Cells of the grid, across.
        data: A copy for display, JPEG or PNG, without Exif metadata; `from_image` makes one.
        media_type: "image/jpeg" or "image/png".
        name: What a person calls it, such as a file name.
        sentinel: Whether a last weight stands for not looking.
        box: Where the edges of the grid lie: left, top, right and bottom in pixels of the upright
            picture, inside it for a crop, beyond it where something was added around. All of the
            picture when not given.

    Raises:
        UserError: A number is out of its range, or the copy is not what it is said to be.

    References:
        Xu et al., "Show, Attend and Tell", ICML 2015. Lu et al., "Knowing When to Look", CVPR
        2017.
    """

    width: int
    height: int
    rows: int
    columns: int
    data: bytes = field(repr=False)
    media_type: str
    name: str = ""
    sentinel: bool = False
    box: Box | None = None

    def __post_init__(self) -> None:
        for name in ("width", "height", "rows", "columns"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= _LARGEST:
                raise UserError(f"{name} must be 1 to {_LARGEST}; got {value!r}. Count pixels.")
        if self.rows * self.columns > _MOST_CELLS:
            raise UserError(
                f"rows * columns must be at most {_MOST_CELLS}; got {self.rows * self.columns}. "
                "Pool the weights to a coarser grid."
            )
        self._check_copy()
        if self.box is not None:
            object.__setattr__(self, "box", _checked_box(self.box, self.width, self.height))

    def _check_copy(self) -> None:
        if self.media_type not in MEDIA_TYPES:
            raise UserError(
                f"media_type must be one of {', '.join(MEDIA_TYPES)}; "
                f"got {str(self.media_type)[:40]!r}. Use Picture.from_image."
            )
        if not isinstance(self.data, bytes) or len(self.data) > LARGEST_COPY:
            size = len(self.data) if isinstance(self.data, bytes) else type(self.data).__name__
            raise UserError(
                f"data must be at most {LARGEST_COPY} bytes; got {size}. Use Picture.from_image."
            )
        try:
            width, height = read_size(self.data, self.media_type)
        except ValueError as error:
            raise UserError(
                f"data must be a plain {self.media_type}; {error}. Use Picture.from_image."
            ) from error
        if max(width, height) > _LONGEST_SIDE:
            raise UserError(
                f"data must have at most {_LONGEST_SIDE} pixels a side; got {width} by {height}. "
                "Use Picture.from_image."
            )
        self._check_shape(width, height)

    def _check_shape(self, width: int, height: int) -> None:
        across, down = width / self.width, height / self.height
        expected = (self.width * down, self.height * across)
        if min(abs(expected[0] - width), abs(expected[1] - height)) > 1:
            raise UserError(
                f"data must have the shape of the picture, {self.width} by {self.height}; "
                f"got {width} by {height}. Turn the picture upright first."
            )

    @property
    def cells(self) -> int:
        """The number of weights for each written token."""
        return self.rows * self.columns + self.sentinel

    @property
    def area(self) -> Box:
        """Left, top, width and height of the grid, as parts of the picture's."""
        left, top, right, bottom = self.box or (0.0, 0.0, self.width, self.height)
        width, height = self.width, self.height
        return left / width, top / height, (right - left) / width, (bottom - top) / height

    def grid(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Lay the weights of one written token out as the grid, the sentinel left off.

        Args:
            weights: One weight for each cell.

        Returns:
            Weights of shape (rows, columns).
        """
        return weights[: self.rows * self.columns].reshape(self.rows, self.columns)

    def cell(self, index: int) -> str:
        """Name a cell by its numbers, from 1.

        Args:
            index: The column of the weights.

        Returns:
            Such as "row 2, column 3", or "not looking".
        """
        if index >= self.rows * self.columns:
            return NOT_LOOKING
        row, column = divmod(index, self.columns)
        return f"row {row + 1}, column {column + 1}"

    def place(self, index: int) -> str:
        """Say in words where in the picture a cell lies.

        Args:
            index: The column of the weights.

        Returns:
            Such as "top left", "centre", or "not looking".
        """
        if index >= self.rows * self.columns:
            return NOT_LOOKING
        row, column = divmod(index, self.columns)
        x, y, width, height = self.area
        down = ("top", "", "bottom")[_third(y + height * (row + 0.5) / self.rows)]
        across = ("left", "", "right")[_third(x + width * (column + 0.5) / self.columns)]
        return f"{down} {across}".strip() or "centre"

    @classmethod
    def from_image(
        cls,
        image: Image.Image,
        *,
        rows: int,
        columns: int,
        name: str = "",
        sentinel: bool = False,
        box: Box | None = None,
        longest: int = 640,
    ) -> Picture:
        """Make a picture from a PIL image: upright, on white, and no larger than a screen needs.

        Drawings of at most 256 colours are kept exactly, as PNG; photos become JPEG.

        Args:
            image: Any image of 8 or 16 bits a channel; of an animation, the frame it is at.
            rows: Cells of the grid, downwards.
            columns: Cells of the grid, across.
            name: What a person calls it.
            sentinel: Whether a last weight stands for not looking.
            box: Where the edges of the grid lie, where it does not cover the whole picture.
            longest: Pixels of the copy's longer side; it is never enlarged.

        Returns:
            The picture.

        Raises:
            UserError: The image has a mode that cannot be shown, or the grid is out of range.
        """
        from PIL import Image, ImageOps  # noqa: PLC0415 - only here

        if not 1 <= longest <= _LONGEST_SIDE:
            raise UserError(f"longest must be 1 to {_LONGEST_SIDE}; got {longest}. Use 640.")
        upright = _on_white(ImageOps.exif_transpose(image))
        width, height = upright.size
        scale = min(1.0, longest / max(width, height))
        size = (max(round(width * scale), 1), max(round(height * scale), 1))
        if size != upright.size:
            upright = upright.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        data, media_type = _encode(upright)
        return cls(width, height, rows, columns, data, media_type, name, sentinel, box)


def _third(place: float) -> int:
    """Return 0, 1 or 2: the third of the picture in which a place from 0 to 1 lies."""
    return min(max(int(3 * place), 0), 2)


def _checked_box(box: Sequence[float], width: int, height: int) -> Box:
    try:
        left, top, right, bottom = (float(edge) for edge in box)
    except (TypeError, ValueError) as error:
        raise UserError("box must be 4 numbers: left, top, right and bottom.") from error
    # Comparisons with NaN are false, and the infinite overlaps without end.
    inside = right > 0 and left < width and bottom > 0 and top < height
    ordered = left < right <= left + 100 * width and top < bottom <= top + 100 * height
    if not (inside and ordered):
        raise UserError(
            f"box must be left < right, top < bottom, and lie over the picture of {width} by "
            f"{height} pixels; got ({left:g}, {top:g}, {right:g}, {bottom:g})."
        )
    return left, top, right, bottom


def _on_white(image: Image.Image) -> Image.Image:
    from PIL import Image  # noqa: PLC0415

    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image, dtype=np.uint32) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise UserError(
            f"image must have 8 or 16 bits a channel; got mode {image.mode!r}. Convert it first."
        )
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    flat = image.convert("RGB")
    flat.info.clear()  # no metadata finds its way into the copy
    return flat


def _encode(image: Image.Image) -> tuple[bytes, str]:
    stream = io.BytesIO()
    if image.getcolors(256) is not None:
        image.save(stream, "PNG", optimize=True)
        if stream.tell() <= LARGEST_COPY:
            return stream.getvalue(), "image/png"
        stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85, optimize=True)
    return stream.getvalue(), "image/jpeg"
