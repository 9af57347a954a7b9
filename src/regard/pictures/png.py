"""A record as PNG: the vector picture, painted by resvg with the fonts of the system."""

from __future__ import annotations

import io
import math
import re
import unicodedata
import warnings
from collections.abc import Iterator
from html import unescape
from types import ModuleType
from typing import TYPE_CHECKING

from regard.errors import MissingExtraError, UserError
from regard.pictures import svg
from regard.pictures.drawing import FONTS, escaped

if TYPE_CHECKING:
    from regard.pictures.records import Record

# resvg takes the first family that exists and, for letters that it lacks, any font at all (a
# serif, a bold one); it knows no "sans-serif" of the system. So each script names its own.
_LATIN = f"{FONTS.removesuffix(', sans-serif')}, 'DejaVu Sans', 'Liberation Sans', FreeSans"
_CHINESE = (
    "'PingFang SC', 'Hiragino Sans', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans SC', "
    "'Source Han Sans SC', 'WenQuanYi Micro Hei', 'WenQuanYi Zen Hei', 'Droid Sans Fallback'"
)
_FAMILIES = (
    (
        re.compile("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff]"),
        "'Noto Sans Arabic', 'Noto Naskh Arabic'",
    ),
    (re.compile("[\u0590-\u05ff]"), "'Noto Sans Hebrew'"),
    (
        re.compile("[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"),
        _CHINESE,
    ),
)
_TEXTS = re.compile(r"<text([^>]*)>([^<]*)</text>")
_OTHER_END = {"start": "end", "end": "start", "middle": "middle"}
_MOST_PIXELS = 16_000_000
_PROBED = 200  # different letters that are looked up
_PROBE = 24  # pixels of a letter


def render(record: Record, *, name: str | None = None, zoom: float = 2.0) -> bytes:
    """Draw a record as PNG: the alignment matrix, or the strip of a picture that was read.

    Args:
        record: The record.
        name: The map; the mean when it is not given.
        zoom: Pixels of the PNG for each of the SVG; fewer where it would become huge.

    Returns:
        The file. A warning names the letters that no font of this system has.

    Raises:
        MissingExtraError: The extra `png` is not installed.
        UserError: No map has this name, or the zoom is out of its range.
    """
    if not 0 < zoom <= 8:
        raise UserError(f"zoom must be above 0 and at most 8; got {zoom}. 2 is usual.")
    resvg = require_resvg()
    drawn = svg.render(record, name=name)
    return paint(drawn, zoom=zoom, resvg=resvg)


def paint(drawn: str, *, zoom: float, resvg: ModuleType) -> bytes:
    """Paint one of our own vector pictures.

    Args:
        drawn: A complete SVG document of this package.
        zoom: Pixels of the PNG for each of the SVG; fewer where it would become huge.
        resvg: The module resvg_py.

    Returns:
        The file.
    """
    width, height = (int(side) for side in re.findall(r' (?:width|height)="(\d+)"', drawn)[:2])
    drawn = _TEXTS.sub(_restated, drawn.replace(FONTS, _LATIN))
    _warn_of_missing_letters(drawn, resvg)
    zoom = min(zoom, math.sqrt(_MOST_PIXELS / (width * height)))
    return bytes(resvg.svg_to_bytes(svg_string=drawn, zoom=zoom))


def require_resvg() -> ModuleType:
    """Return the module that paints.

    Raises:
        MissingExtraError: The extra `png` is not installed.
    """
    try:
        import resvg_py  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError(
            "resvg-py must be installed to write PNG; it is not. Run: pip install 'regard[png]'"
        ) from None
    return resvg_py


def _restated(element: re.Match[str]) -> str:
    """Say a text so that resvg draws it as browsers do.

    It does not turn the anchor around where the direction is "rtl", and takes the direction from
    characters alone.
    """
    attributes, text = element.groups()
    families = [names for letters, names in _FAMILIES if letters.search(text)]
    if families:
        attributes += f' font-family="{", ".join([*families, _LATIN])}"'
    if ' direction="rtl"' in attributes:
        attributes = attributes.replace(' direction="rtl"', "")
        attributes = re.sub('(?<=text-anchor=")[a-z]+', lambda m: _OTHER_END[m[0]], attributes)
        text = f"\u2067{text}\u2069"
    return f"<text{attributes}>{text}</text>"


def _warn_of_missing_letters(drawn: str, resvg: ModuleType) -> None:
    missing = list(_missing_letters(drawn, resvg))
    if not missing:
        return
    shown = "".join(missing[:20]) + ("…" if len(missing) > 20 else "")
    advice = "Install a font that has them, such as Noto Sans"
    if any(unicodedata.east_asian_width(letter) in "WF" for letter in missing):
        advice += " CJK"
    warnings.warn(
        f"{len(missing)} letters are missing from the PNG: no font of this system has {shown} . "
        f"{advice}; the SVG and the HTML page do not depend on it.",
        stacklevel=4,
    )


def _missing_letters(drawn: str, resvg: ModuleType) -> Iterator[str]:
    """Yield the letters that are painted as nothing, or as the box of a letter that is none."""
    import numpy as np  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    texts = unescape("".join(text for _, text in _TEXTS.findall(drawn)))
    letters = [c for c in dict.fromkeys(texts) if unicodedata.category(c)[0] in "LNS"][:_PROBED]
    if not letters:
        return
    probe = _probe(["\U0010fffd", *letters])
    image = Image.open(io.BytesIO(bytes(resvg.svg_to_bytes(svg_string=probe))))
    pixels = np.asarray(image.convert("L")).reshape(len(letters) + 1, _PROBE, -1)
    for letter, box in zip(letters, pixels[1:], strict=True):
        if box.min() == box.max() or (box == pixels[0]).all():
            yield letter


def _probe(letters: list[str]) -> str:
    """Draw each letter alone, one below the other."""
    height = _PROBE * len(letters)
    rows = "".join(
        f'<text x="{_PROBE // 2}" y="{_PROBE * i + 17}">{escaped(letter)}</text>'
        for i, letter in enumerate(letters)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * _PROBE}" height="{height}" '
        f'font-family="{_LATIN}" font-size="14"><rect width="100%" height="100%" '
        f'fill="#fff"/>{rows}</svg>'
    )
