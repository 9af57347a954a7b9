"""Cut a text into sentences, as spans of the text itself: English, Chinese, and both mixed."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator

from regard.data.normalisation import is_blank

Span = tuple[int, int]
"""First character of a stretch of a text, and one past its last."""

_WIDE_MARKS = "。！？；｡…"
_CLOSERS = "\"'”’»」』）)\\]】》〉"
_MARKS = re.compile(rf"([.!?{_WIDE_MARKS}]+)([{_CLOSERS}]*)")
_BREAK = re.compile(r"<(?:br|p|/p) ?/?>", re.IGNORECASE)
_GOES_ON = "，,、:：;；"
_LONGEST_WORD = 24  # characters that are looked at before a point
_WORD_BEFORE = re.compile(r"[\w.]*\Z")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")

_TITLES = """
mr mrs ms mx dr prof rev fr hon gen col maj capt cpt sgt lt cmdr gov sen rep pres st mt ft messrs
mme mlle vs v e.g i.e cf viz fig figs eq eqs vol vols ch chap sec pp p ed eds al approx ca
"""  # something always follows them

_OFTEN_LAST = """
etc inc ltd co corp jr sr no nos dept est ave blvd rd jan feb mar apr jun jul aug sep sept oct nov
dec mon tue tues wed thu thur thurs fri sat sun min max hr hrs lb lbs oz
"""  # abbreviations and words alike: no end before a small letter or a number


def by_marks(text: str) -> Iterator[Span]:
    r"""Sentences that end with a mark such as `.`, `?!`, `…` or `。`, or at an empty line.

    `<br>`, `<br />`, `<p>` and `</p>`, which text from the web has, stand for empty lines.

    Quotes and brackets that close behind the mark belong to the sentence. No sentence ends after
    an abbreviation (`Dr.`, `e.g.`), an initial, a number at its beginning (`2.`), within a number
    (`3.14`), nor where a quoted question goes on (`"Why?" he asked`). A line break is white space
    in text with spaces, and an end behind a Chinese or Japanese character.

    Args:
        text: Any string.

    Yields:
        The span of each sentence, without white space at its ends.

    Example:
        >>> text = 'Dr. Li paid 3.50 euros. "Why?" she asked. 没人知道。'
        >>> [text[start:end] for start, end in by_marks(text)]
        ['Dr. Li paid 3.50 euros.', '"Why?" she asked.', '没人知道。']
    """
    for start, stop in _untagged(text):
        begin = start
        for match in _MARKS.finditer(text, start, stop):
            if _ends(text, match, (begin, stop)):
                yield from _trimmed(text, begin, match.end())
                begin = match.end()
        yield from _trimmed(text, begin, stop)


def by_lines(text: str) -> Iterator[Span]:
    """Sentences that stand on a line each.

    Args:
        text: Any string.

    Yields:
        The span of each line that is not blank, without white space at its ends.
    """
    for start, stop in _lines(text):
        yield from _trimmed(text, start, stop)


def whole(text: str) -> Iterator[Span]:
    """The whole text as one sentence: for attention over words alone.

    Args:
        text: Any string.

    Yields:
        One span, or none where the text is blank.
    """
    yield from _trimmed(text, 0, len(text))


SENTENCES: dict[str, Callable[[str], Iterator[Span]]] = {
    "marks": by_marks,
    "lines": by_lines,
    "none": whole,
}
"""How a text is cut into sentences, by name."""


def _lines(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _untagged(text: str) -> Iterator[Span]:
    """Cut paragraphs at the tags of lines and paragraphs, which are left out."""
    for start, stop in _paragraphs(text):
        begin = start
        for match in _BREAK.finditer(text, start, stop):
            yield begin, match.start()
            begin = match.end()
        yield begin, stop


def _paragraphs(text: str) -> Iterator[Span]:
    """Join lines up to an empty one, or to one that ends with a character of a wide script."""
    begin: int | None = None
    for start, stop in _lines(text):
        line = text[start:stop].rstrip()
        begin = start if begin is None else begin
        if not line or _is_wide(line[-1]):
            yield begin, stop
            begin = None
    if begin is not None:
        yield begin, len(text)


def _trimmed(text: str, start: int, stop: int) -> Iterator[Span]:
    part = text[start:stop]
    if not is_blank(part):
        start += len(part) - len(part.lstrip())
        yield start, start + len(part.strip())


def _ends(text: str, match: re.Match[str], within: Span) -> bool:
    """Whether a sentence that begins with `within` ends with these marks."""
    marks, closers = match.groups()
    end, stop = match.end(), within[1]
    after = text[end] if end < stop else ""
    following = _next_visible(text, end, stop)
    if not following:
        return True
    if after in _GOES_ON:
        return False
    dots = marks.strip(".…") == "" and marks != "."
    if following.islower() and (closers or dots):  # "Why?" he asked; well ... perhaps
        return False
    if any(mark in _WIDE_MARKS for mark in marks):
        return True
    if after.isspace():
        return marks != "." or not _is_abbreviation(text, match.start(), within[0], following)
    before = text[match.start() - 1] if match.start() > within[0] else ""
    return _is_wide(after) and (marks != "." or not before.isdigit())


def _is_abbreviation(text: str, point: int, begin: int, following: str) -> bool:
    """Whether the point belongs to the word before it, and the sentence goes on."""
    first = max(begin, point - _LONGEST_WORD)
    found = _WORD_BEFORE.search(text[first:point])
    word = found.group() if found else ""
    lower = word.lower()
    if lower in _words(_TITLES) or (len(word) == 1 and word.isupper() and word != "I"):
        return True
    if word.isdigit() and not text[begin : point - len(word)].strip():
        return True  # the number of an item
    is_short = lower in _words(_OFTEN_LAST) or _ACRONYM.search(word) is not None
    return is_short and (following.islower() or following.isdigit())


def _next_visible(text: str, start: int, stop: int) -> str:
    """Return the next character that is no white space; white space is passed once a mark."""
    while start < stop and text[start].isspace():
        start += 1
    return text[start] if start < stop else ""


@functools.cache
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
