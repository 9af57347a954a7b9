"""Open a picture as a person sees it, or say in one line why not."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from regard.data.files import read_bytes
from regard.errors import DataError, UserError

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""What is read, told by its content; vector, print and layered formats are not."""

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
"""By which pictures are told from other files of a folder, in any case."""

LARGEST_FILE = 256 * 2**20
MOST_PIXELS = 40_000_000
LONGEST_SIDE = 30_000

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # 16 bits of grey: PIL's own conversion clips
_WHITE = (255, 255, 255)


def open_image(path: str | Path, *, most_pixels: int = MOST_PIXELS) -> Image.Image:
    """Open a picture in the orientation and the colours that a person sees.

    Its size is read before anything is decoded. What EXIF says of its orientation is done, alpha
    lies on white, 16 bits are scaled to 8, CMYK and palettes become RGB, and of an animation the
    first frame is taken. A colour profile is ignored, as in the data that the usual image encoders
    were trained on: pictures of a wide gamut look a little paler than on a screen.

    Args:
        path: The file; its ending does not count.
        most_pixels: Most pixels that the header may announce.

    Returns:
        A picture in mode RGB, whole, without any of the file's other data.

    Raises:
        DataError: The file is missing, no picture of `FORMATS`, too large, or not whole.
    """
    data = read_bytes(Path(path), LARGEST_FILE)
    return decode_image(data, where=str(path), most_pixels=most_pixels)


def decode_image(data: bytes, *, where: str, most_pixels: int = MOST_PIXELS) -> Image.Image:
    """Decode the bytes of a file, as `open_image` does.

    Args:
        data: The bytes.
        where: The place that errors name.
        most_pixels: Most pixels that the header may announce.

    Returns:
        A picture in mode RGB.

    Raises:
        DataError: They are no picture of `FORMATS`, too large, or not whole.
    """
    if most_pixels < 1:
        raise UserError(f"most_pixels must be at least 1; got {most_pixels}. Raise it.")
    with warnings.catch_warnings():
        # PIL warns of sizes that are refused here and of metadata that is not used.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        with _open(data, where) as opened:
            return image_as_seen(opened, where=where, most_pixels=most_pixels)


def image_as_seen(
    image: Image.Image, *, where: str = "image", most_pixels: int = MOST_PIXELS
) -> Image.Image:
    """Bring a PIL image to the orientation and the colours that a person sees.

    Args:
        image: The image, decoded or not.
        where: The place that errors name.
        most_pixels: Most pixels that it may have.

    Returns:
        A picture in mode RGB, as `open_image` gives it.

    Raises:
        DataError: It is too large, or not whole.
    """
    check_image_size(*image.size, where=where, most_pixels=most_pixels)
    try:
        image.load()
        return _upright(_flat(image), _orientation(image))
    except MemoryError:
        raise
    except Exception as error:  # a decoder may fail in any way on a broken file
        raise _broken(error, where) from error


def check_image_size(
    width: int, height: int, *, where: str, most_pixels: int = MOST_PIXELS
) -> None:
    """Refuse a picture that would take too much memory.

    Args:
        width: Its width in pixels.
        height: Its height.
        where: The place that errors name.
        most_pixels: Most pixels it may have.

    Raises:
        DataError: It has too many, or a side is longer than 30,000.
    """
    if width * height > most_pixels:
        raise DataError(
            f"picture must have at most {most_pixels:,} pixels; got {width} x {height} = "
            f"{width * height:,}. Make it smaller.",
            where=where,
        )
    if max(width, height) > LONGEST_SIDE:
        raise DataError(
            f"picture must have sides of at most {LONGEST_SIDE:,} pixels; got {width} x {height}. "
            "Make it smaller, or cut it.",
            where=where,
        )


def _open(data: bytes, where: str) -> Image.Image:
    if not data:
        raise DataError("must be a picture; it is empty. Get it again.", where=where)
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        raise DataError(
            f"must be a picture ({', '.join(FORMATS)}); got a file that begins with "
            f"{data[:12]!r}. Save it in one of these formats.",
            where=where,
        ) from error
    except Image.DecompressionBombError as error:
        pixels = "".join(filter(str.isdigit, str(error).partition("pixels")[0]))
        raise DataError(
            f"picture must have at most {MOST_PIXELS:,} pixels; got {int(pixels or 0):,}. Make it "
            "smaller.",
            where=where,
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # a header may be broken in any way
        raise _broken(error, where) from error


def _broken(error: Exception, where: str) -> DataError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(
        f"must be a whole picture; got: {reason.rstrip('.')}. Get it again, or remove it.",
        where=where,
    )


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # broken metadata of a sound picture: viewers show it as it is, too
        return 1


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    step = _UPRIGHT.get(orientation)
    return image if step is None else image.transpose(step)


def _flat(image: Image.Image) -> Image.Image:
    """Give 8 bits of red, green and blue, with what is transparent on white."""
    if image.mode in _DEEP:
        image = _scaled(image)
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        flat = Image.new("RGB", image.size, _WHITE)
        flat.paste(layer, mask=layer.getchannel("A"))
    else:
        flat = image.convert("RGB")
    flat.info = {}  # else a profile or an orientation would be written with it, and done twice
    return flat


def _scaled(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int32).clip(0, 65535)
    grey = Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8))
    key = image.info.get("transparency")
    if isinstance(key, int):
        grey.putalpha(Image.fromarray(np.where(values == key, 0, 255).astype(np.uint8)))
    return grey
