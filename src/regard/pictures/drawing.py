"""What every vector picture shares: fonts, inks, and how much room a text takes."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import Final

from regard.pictures.lettering import is_right_to_left, visible

FONTS: Final = (
    "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Helvetica Neue', Arial, "
    "'PingFang SC', 'Hiragino Sans', 'Microsoft YaHei', 'Noto Sans CJK SC', "
    "'Noto Sans Arabic', 'Noto Sans Hebrew', sans-serif"
)
TEXT: Final = "#1f2933"
QUIET: Final = "#5b6773"
PAPER: Final = "#ffffff"

_LONGEST_LABEL = 24


def label(text: str) -> str:
    """Make a token visible and short.

    Args:
        text: Any text.

    Returns:
        Text of at most some 24 letters, with an ellipsis where it was cut.
    """
    return shorten(visible(text), _LONGEST_LABEL * 0.62)


def shorten(text: str, room: float) -> str:
    """Cut a text to a width, with an ellipsis at the cut.

    Args:
        text: Visible text.
        room: The width in ems.

    Returns:
        Text of this width, and the ellipsis beyond it.
    """
    kept = ""
    for character in text:
        if width_of(kept + character, 1.0) > room:
            return kept + "…"
        kept += character
    return text


def width_of(text: str, font: float) -> float:
    """Estimate a text's width on the safe side: which font draws it is not known.

    Args:
        text: Visible text.
        font: The size of the letters, in pixels.

    Returns:
        Pixels.
    """
    return font * sum(_em(character) for character in text)


def _em(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    wide = unicodedata.east_asian_width(character)
    if wide in "WF":
        return 1.3 if 0x1F000 <= ord(character) < 0x20000 else 1.03
    if wide == "A" and not character.isalpha():
        return 1.0
    if character in "mwMW@%&":
        return 0.95
    if character in "iljtf.,;:'!|()[] ":
        return 0.4
    return 0.75 if character.isupper() else 0.62


def escaped(text: str) -> str:
    """Put a text where it stays text: in an element or an attribute.

    Args:
        text: Visible text.

    Returns:
        The text with the characters of markup spelled out.
    """
    return escape(text, quote=True)


def flow(text: str, room: float) -> list[str]:
    """Break a text into lines, at spaces and between characters that need none.

    Args:
        text: Any text; runs of white space count as one space.
        room: The width of a line in ems.

    Returns:
        Visible lines; none where the text is empty. A word wider than a line is cut.

    Example:
        >>> flow("a black cat sleeps", 5.0)
        ['a black', 'cat', 'sleeps']
        >>> flow("黑猫睡觉。", 4.2)
        ['黑猫睡', '觉。']
    """
    lines = [""]
    for word in text.split():
        lines[-1] += " " * bool(lines[-1])
        for atom in _atoms(visible(word), room):
            if width_of(lines[-1] + atom, 1.0) > room and lines[-1].strip():
                lines.append("")
            lines[-1] += atom
    return [line.strip() for line in lines if line.strip()]


def _atoms(word: str, room: float) -> list[str]:
    """Cut a word into what must stay on one line."""
    atoms: list[str] = []
    for character in word:
        category = unicodedata.category(character)
        stays = category[0] == "M" or category in ("Pe", "Pf", "Po", "Cf")
        wide = unicodedata.east_asian_width(character) in "WF"
        before = bool(atoms) and unicodedata.east_asian_width(atoms[-1][-1]) in "WF"
        if atoms and (stays or not (wide or before)) and width_of(atoms[-1], 1.0) < room - 1.4:
            atoms[-1] += character
        else:
            atoms.append(character)
    return atoms


def text_element(
    text: str, place: str, *, anchor: str, fill: str = TEXT, reverse: bool | None = None
) -> str:
    """Write a text element that runs in the direction of its text.

    Args:
        text: Visible text.
        place: The attributes that say where it stands, and how large.
        anchor: "start" for its left end, "middle", or "end" for its right end.
        fill: Its colour.
        reverse: Whether it runs from the right; as its first letter does when not given.

    Returns:
        The element.
    """
    direction = ""
    if is_right_to_left(text) if reverse is None else reverse:  # its start is its right end
        direction = ' direction="rtl"'
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
    return f'<text {place} text-anchor="{anchor}"{direction} fill="{fill}">{escaped(text)}</text>'
