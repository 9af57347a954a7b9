"""The little about files of pixels that needs no imaging library: a size, a PNG, an upsampling."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PNG = b"\x89PNG\r\n\x1a\n"
_REFUSED_CHUNKS = (b"eXIf", b"acTL")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # start of frame, any coding
_PIXELS = 0xDA  # after it come no more segments that matter
_CUT = "it is cut off, or more follows it"


def read_size(data: bytes, media_type: str) -> tuple[int, int]:
    """Read the size of a picture from its header, without decoding a pixel.

    Exif metadata and animations are refused: some programs turn a picture as Exif says and
    others do not, and weights must lie over the same pixels in all of them.

    Args:
        data: The file.
        media_type: "image/jpeg" or "image/png".

    Returns:
        Width and height in pixels.

    Raises:
        ValueError: It is not such a file, or must not be used; the message says why.
    """
    width, height = _png_size(data) if media_type == "image/png" else _jpeg_size(data)
    if not (width and height):
        raise ValueError("it has no pixels")
    return width, height


def _png_size(data: bytes) -> tuple[int, int]:
    if not data.startswith(_PNG) or data[12:16] != b"IHDR" or len(data) < 33:
        raise ValueError("it does not begin as a PNG")
    place = len(_PNG)
    while place + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        if kind in _REFUSED_CHUNKS:
            raise ValueError("it holds Exif metadata or an animation")
        place += 12 + length
    if place != len(data):
        raise ValueError(_CUT)
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    if not data.startswith(b"\xff\xd8\xff"):
        raise ValueError("it does not begin as a JPEG")
    place, size = 2, None
    while place + 9 <= len(data):
        mark, kind, length = struct.unpack_from(">BBH", data, place)
        if mark != 0xFF or length < 2:
            raise ValueError("its segments are broken")
        if kind == 0xE1 and data[place + 4 : place + 8] == b"Exif":
            raise ValueError("it holds Exif metadata")
        if kind in _FRAMES:
            size = struct.unpack_from(">HH", data, place + 5)
        if kind == _PIXELS and size:
            return size[1], size[0]
        place += 2 + length
    raise ValueError(_CUT)


def write_png(levels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Write an indexed PNG with transparency.

    Args:
        levels: An index into the palette for each pixel, of shape (height, width).
        palette: Red, green, blue and opacity of at most 256 colours.

    Returns:
        The file.
    """
    height, width = levels.shape
    above = np.vstack([np.zeros((1, width), dtype=np.uint8), levels[:-1]])
    lines = np.full((height, width + 1), 2, dtype=np.uint8)  # filter 2: less the line above
    lines[:, 1:] = levels - above  # wraps, as the format wants it
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette[:, :3].tobytes()),
        (b"tRNS", palette[:, 3].tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return _PNG + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def upsample(grid: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """Interpolate linearly between the centres of cells; beyond the outer centres it is flat.

    No value lies outside those of the grid, and at the centre of a cell stands its own (for an
    odd factor exactly).

    Args:
        grid: One value for each cell.
        factor: Pixels for each cell, in both directions.

    Returns:
        The values of shape (rows * factor, columns * factor).

    Example:
        >>> import numpy as np
        >>> upsample(np.array([[0.0, 1.0]], dtype=np.float32), 2)[0].tolist()
        [0.0, 0.25, 0.75, 1.0]
    """
    down, across = ((np.arange(n * factor) + 0.5) / factor - 0.5 for n in grid.shape)
    wide = [np.interp(across, np.arange(grid.shape[1]), row) for row in grid]
    tall = [np.interp(down, np.arange(grid.shape[0]), column) for column in np.array(wide).T]
    return np.array(tall, dtype=np.float32).T
