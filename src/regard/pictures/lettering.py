"""How the text of a token is shown: visible, measured, and in the right direction."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"
_ELLIPSIS = "…"
_LONGEST = 200


def visible(text: str) -> str:
    r"""Make characters that cannot be seen, or that do something, visible.

    Control characters become their pictures, so that an escape sequence in a token does
    nothing; format characters, private ones and halves of a surrogate pair become code points
    or U+FFFD. Spaces are shown where a token has nothing else.

    Args:
        text: Any text.

    Returns:
        Text that is safe in a terminal and legal in XML.

    Example:
        >>> visible("a\x1b[31m")
        'a␛[31m'
        >>> visible("  ")
        '␣␣'
    """
    if not text:
        return "∅"
    if text.isspace() and all(unicodedata.category(c) == "Zs" for c in text):
        return "␣" * len(text)
    shown = "".join(_visible_character(c) for c in text[:_LONGEST])
    if len(text) > _LONGEST:
        shown += _ELLIPSIS
    if all(c in _JOINERS for c in shown):
        return "".join(_code_point(c) for c in shown)
    return "◌" + shown if unicodedata.category(shown[0])[0] == "M" else shown


def _visible_character(character: str) -> str:
    number, category = ord(character), unicodedata.category(character)
    if number < 0x20:
        return chr(0x2400 + number)
    if number == 0x7F:
        return "␡"
    if category == "Cs":
        return "\ufffd"
    if category in ("Cc", "Co", "Zl", "Zp") or _is_noncharacter(number):
        return _code_point(character)
    # Flags of regions are spelled with tag characters; emoji and Persian need the joiners.
    is_format = category == "Cf" and character not in _JOINERS
    if is_format and not 0xE0020 <= number <= 0xE007F:
        return _code_point(character)
    return character


def _is_noncharacter(number: int) -> bool:
    return number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF


def _code_point(character: str) -> str:
    return f"⟨{ord(character):04X}⟩"


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    Args:
        text: Text without control characters.

    Returns:
        The width: two for a wide character, none for a combining mark.
    """
    from rich.cells import cell_len  # noqa: PLC0415

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Shorten a text to a width, with an ellipsis at the cut.

    Args:
        text: Text without control characters.
        width: Columns of a terminal, at least one.

    Returns:
        Text of at most this width.

    Example:
        >>> fit("attention", 5), fit("汤姆追逐", 5)
        ('atte…', '汤姆…')
    """
    if cells(text) <= width:
        return text
    kept = ""
    for character in text:
        if cells(kept + character) > width - 1:
            break
        kept += character
    return kept + _ELLIPSIS


def pad(text: str, width: int, *, align: str = "left") -> str:
    """Fit a text into exactly this width, its direction kept to itself.

    Args:
        text: Text without control characters.
        width: Columns of a terminal, at least one.
        align: "left", "right" or "centre".

    Returns:
        Text of this width.
    """
    shown = fit(text, width)
    space = width - cells(shown)
    left = {"left": 0, "right": space, "centre": space // 2}[align]
    return " " * left + isolate(shown) + " " * (space - left)


def isolate(text: str) -> str:
    """Wrap right-to-left text so that it does not reorder what stands beside it.

    Args:
        text: Text without characters that set a direction.

    Returns:
        The text, between an isolate and its end where it needs one.
    """
    return f"\u2068{text}\u2069" if has_right_to_left(text) else text


def has_right_to_left(text: str) -> bool:
    """Say whether any character is written from right to left.

    Args:
        text: Any text.

    Returns:
        Whether there is one.
    """
    return any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text)


def is_right_to_left(text: str) -> bool:
    """Say whether a text as a whole runs from right to left: its first letter decides.

    Args:
        text: Any text.

    Returns:
        Whether it does; a text without letters does not.
    """
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False
