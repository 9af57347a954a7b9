"""Cut normalised text into the segments that pieces never cross."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator

from regard.errors import MissingExtraError

Segment = tuple[int, int, bool]
"""Start and end in the normalised text, and whether white space (or nothing) stands before it."""


def words(text: str) -> Iterator[Segment]:
    """Words, numbers and single punctuation marks of languages that write spaces.

    A word keeps its combining marks, joiners and inner apostrophes (`don't`), a number its
    inner points and commas (`1,234.5`), an emoji its joined parts and skin tone.

    Args:
        text: Normalised text.

    Yields:
        Each segment; the first one counts as standing after a space.
    """
    for match in _pattern().finditer(text):
        start, end = match.span()
        yield start, end, start == 0 or text[start - 1] == " "


def chinese(text: str) -> Iterator[Segment]:
    """Words of Chinese text, as jieba cuts them.

    Args:
        text: Normalised text.

    Yields:
        Each segment; only one with a real space before it counts as standing after a space.

    Raises:
        MissingExtraError: The package rjieba is not installed.
    """
    cut = _jieba()
    for start, end in _runs(text):
        place = start
        for word in _whole(cut(text[start:end]), text[start:end]):
            yield place, place + len(word), place == start > 0
            place += len(word)


def characters(text: str) -> Iterator[Segment]:
    """Single characters.

    Args:
        text: Normalised text.

    Yields:
        Each character but the spaces; only one with a real space before it counts as such.
    """
    for place, character in enumerate(text):
        if character != " ":
            yield place, place + 1, place > 0 and text[place - 1] == " "


SEGMENTERS: dict[str, Callable[[str], Iterator[Segment]]] = {
    "words": words,
    "chinese": chinese,
    "characters": characters,
    "bpe": words,
    "unigram": words,
}
"""How each kind of tokenizer cuts text before it looks for pieces."""


def _runs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for run in text.split(" "):
        if run:
            yield start, start + len(run)
        start += len(run) + 1


def _whole(segments: list[str], run: str) -> list[str]:
    """Trust the cut only when it gives the text back."""
    return segments if "".join(segments) == run else list(run)


@functools.cache
def _pattern() -> re.Pattern[str]:
    # Each branch is decided by its next character, so matching never goes back: linear.
    marks = _marks()
    letter = rf"[\w{marks}]"
    inner = rf"[\w{marks}\u200c\u200d]"
    symbol = rf"[^\w\s{marks}]"
    return re.compile(
        rf"{letter}{inner}*(?:['\u2019](?={letter}){inner}+|(?<=\d)[.,](?=\d){inner}+)*"
        rf"|[\U0001F1E6-\U0001F1FF]{{2}}"
        rf"|{symbol}(?:[{marks}\U0001F3FB-\U0001F3FF]|\u200d(?={symbol})[^\u200d])*"
    )


@functools.cache
def _marks() -> str:
    r"""The combining marks as the inside of a character class; `\w` leaves them out."""
    codes = (*range(0x20000), *range(0xE0100, 0xE01F0))
    marks = [c for c in codes if unicodedata.category(chr(c)).startswith("M")]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@functools.cache
def _jieba() -> Callable[[str], list[str]]:
    try:
        import rjieba  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError(
            "rjieba must be installed to cut Chinese into words; it is not. "
            "Run: pip install 'regard[translate]'."
        ) from error
    cut: Callable[[str], list[str]] = rjieba.cut
    return cut
