"""One declared normalisation of a person's text, which remembers where each character was."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import UserError, did_you_mean

FORMS = {"nfc": "NFC", "nfkc": "NFKC", "none": None}
"""The normalisations by name; all of them clean control characters and white space."""

SPACE_MARK = "\u2581"
"""Stands in a piece for the white space before it; typed by a person it becomes `_`."""

_LONGEST_CLUSTER = 32  # canonical reordering is quadratic in the number of marks on one letter
_DROPPED = (
    "\u200b\u2060\ufeff"  # zero width space, word joiner, byte order mark
    "\u00ad"  # soft hyphen
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
)
_DROP = re.compile(f"[{_DROPPED}]")
_BLANK = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]")
_VISIBLE = re.compile(f"[^\\s{_DROPPED}\x00-\x1f\x7f-\x9f]")
_UNCLEAN = re.compile(
    f"[{_DROPPED}{SPACE_MARK}\ud800-\udfff\x00-\x1f\x7f-\x9f\u2028\u2029]|[^\\S ]|  |^ | $"
)


@dataclass(frozen=True, slots=True)
class Normalised:
    """Normalised text and the place of each of its characters in the original.

    Args:
        text: The normalised text: single spaces, none at either end.
        starts: Where each character's source begins in the original; None if nothing moved.
        ends: Where each character's source ends in the original; None if nothing moved.
    """

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def spans(self, places: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Where slices of the normalised text lie in the original.

        Args:
            places: First character of each slice, and one past its last; the slice may be
                empty before a character, not behind the last.

        Returns:
            The same in the original.
        """
        starts, ends = self.starts, self.ends
        if starts is None or ends is None:
            return tuple(places)
        return tuple((starts[a], ends[b - 1] if a < b else starts[a]) for a, b in places)


def is_blank(text: str) -> bool:
    """Whether normalising would leave nothing of a text.

    Args:
        text: Any string.

    Returns:
        True where there are only white space, control and zero-width characters.
    """
    return _VISIBLE.search(text) is None


def check_form(form: str) -> None:
    """Refuse a normalisation that does not exist.

    Args:
        form: Its name.

    Raises:
        UserError: It is not one of `FORMS`.
    """
    if form not in FORMS:
        raise UserError(
            f"normalisation must be one of {', '.join(FORMS)}; got {form!r}; "
            f"{did_you_mean(str(form), FORMS)}."
        )


def normalise(text: str, *, form: str = "nfc", lowercase: bool = False) -> Normalised:
    r"""Clean and normalise text, keeping the place of every character.

    In this order: lone surrogates become U+FFFD; zero-width characters (not the joiners ZWJ
    and ZWNJ, which carry meaning), soft hyphens and bidirectional controls are dropped; the
    Unicode form is applied; control characters and all white space become spaces; runs of
    spaces become one and those at the ends go; U+2581 becomes `_`. Lower case is taken
    letter by letter, so a Greek final sigma is an ordinary sigma.

    Args:
        text: Any string.
        form: `nfc`, `nfkc` or `none`.
        lowercase: Whether to take lower case.

    Returns:
        The normalised text with its alignment.

    Raises:
        UserError: The text is not a string, or the form is unknown.

    Example:
        >>> normalise("  cafe\u0301\t noir ").text
        'café noir'
        >>> normalise("  cafe\u0301\t noir ").spans([(3, 4)])
        ((5, 7),)
    """
    check_form(form)
    if not isinstance(text, str):
        raise UserError(f"text must be a string; got {type(text).__name__}. Decode bytes first.")
    if not lowercase and _is_clean(text, form):
        return Normalised(text)
    return _rewrite(text, form, lowercase=lowercase)


def _is_clean(text: str, form: str) -> bool:
    unicode_form = FORMS[form]
    if _UNCLEAN.search(text):
        return False
    return (
        unicode_form is None or text.isascii() or unicodedata.is_normalized(unicode_form, text)  # type: ignore[arg-type]
    )


def _rewrite(text: str, form: str, *, lowercase: bool) -> Normalised:
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, written in _clusters(text, form, lowercase=lowercase):
        exact = len(written) == end - start  # one for one: each character keeps its own place
        for offset, character in enumerate(written):
            blank = _BLANK.match(character) is not None
            first = start + offset if exact else start
            last = first + 1 if exact else end
            if blank and characters and characters[-1] == " ":
                ends[-1] = last
            elif not blank or characters:
                characters.append(" " if blank else character)
                starts.append(first)
                ends.append(last)
    if characters and characters[-1] == " ":
        del characters[-1], starts[-1], ends[-1]
    return Normalised("".join(characters), starts, ends)


def _clusters(text: str, form: str, *, lowercase: bool) -> list[tuple[int, int, str]]:
    """Cut into letters with their marks, which the Unicode forms treat one by one."""
    found: list[tuple[int, int, str]] = []
    start, previous, cluster = 0, -1, ""
    for place, raw in enumerate(text):
        if _DROP.match(raw):
            continue
        character = "\ufffd" if "\ud800" <= raw <= "\udfff" else raw
        if cluster and (len(cluster) >= _LONGEST_CLUSTER or not _joins(character, form)):
            found.append((start, previous + 1, _write(cluster, form, lowercase)))
            cluster = ""
        if not cluster:
            start = place
        cluster += character
        previous = place
    if cluster:
        found.append((start, previous + 1, _write(cluster, form, lowercase)))
    return found


@functools.lru_cache(maxsize=16384)
def _write(cluster: str, form: str, lowercase: bool) -> str:
    unicode_form = FORMS[form]
    written = cluster.replace(SPACE_MARK, "_")
    if unicode_form is not None:
        written = unicodedata.normalize(unicode_form, written)  # type: ignore[arg-type]
    if lowercase:
        written = written.lower()
        if unicode_form is not None:
            written = unicodedata.normalize(unicode_form, written)  # type: ignore[arg-type]
    return written


@functools.lru_cache(maxsize=16384)
def _joins(character: str, form: str) -> bool:
    """Whether a character can combine with the one before it."""
    if FORMS[form] is None or character.isascii():
        return False
    decomposed = unicodedata.normalize("NFKD" if form == "nfkc" else "NFD", character)
    return unicodedata.combining(decomposed[0]) != 0 or decomposed[0] in _second_halves()


@functools.cache
def _second_halves() -> frozenset[str]:
    """Characters that are no marks and yet compose with the one before: jamo, Indic vowels."""
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(0x30000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(seconds)
