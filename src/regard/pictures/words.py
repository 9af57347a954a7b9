"""Merging the pieces of a tokenizer into words."""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from regard.pictures.picture import Picture
from regard.pictures.records import Map, Record
from regard.pictures.texts import Document, Text, Token

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Scripts that are written without spaces: touching segments there may be different words.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x2E80, 0x312F),  # radicals, CJK punctuation, kana, Bopomofo
    (0x3190, 0xA4CF),  # CJK, Yi
    (0xA9E0, 0xA9FF),  # Myanmar
    (0xAA60, 0xAA7F),  # Myanmar
    (0xF900, 0xFAFF),  # CJK compatibility
    (0xFF00, 0xFF9F),  # full width Latin, half width Katakana
    (0x1AFF0, 0x1B16F),  # kana
    (0x20000, 0x3FFFF),  # CJK
)
_ZERO_WIDTH_JOINER = "\u200d"


def merge_words(record: Record) -> Record:
    """Merge the pieces of each word; `Record.merge_words` explains the rule.

    Args:
        record: The record; it is not changed.

    Returns:
        A record whose tokens are words.
    """
    rows, read = groups_of(record.written), record.read
    columns = list(range(record.columns)) if isinstance(read, Picture) else groups_of(read)
    maps = tuple(Map(m.name, _merge(m.weights, rows, columns)) for m in record.maps)
    over = tuple(
        Map(m.name, _merge(m.weights, rows, list(range(m.weights.shape[1]))))
        for m in record.sentence_maps
    )
    return dataclasses.replace(
        record,
        read=read if isinstance(read, Picture) else _words(read, columns),
        written=_words(record.written, rows),
        maps=maps,
        sentence_maps=over,
    )


def groups_of(text: Text) -> list[int]:
    """List the index of the first piece of each word of a text."""
    starts: list[int] = []
    begin = end = 0
    first = {one.first for one in text.sentences} if isinstance(text, Document) else set()
    for index, token in enumerate(text.tokens):
        if starts and index not in first and _same_word(text.text, (begin, end), token):
            end = max(end, token.end)
        else:
            starts.append(index)
            begin, end = token.start, token.end
    return starts


def _same_word(text: str, word: tuple[int, int], piece: Token) -> bool:
    begin, end = word
    if begin == end or piece.start == piece.end:
        return False  # a mark that is not in the text
    if begin <= piece.start < end:
        return True  # the bytes of one character
    if piece.start != end:
        return False
    before, after = text[end - 1], text[end]
    if unicodedata.category(after)[0] == "M" or _ZERO_WIDTH_JOINER in (before, after):
        return not before.isspace()  # one cannot be shown without the other
    return _is_spaced_letter(before) and _is_spaced_letter(after)


def _is_spaced_letter(character: str) -> bool:
    if unicodedata.category(character)[0] not in "LNM":
        return False
    return not any(low <= ord(character) <= high for low, high in _UNSPACED)


def _words(text: Text, starts: list[int]) -> Text:
    ends = [*starts[1:], len(text.tokens)]
    words = [_word(text, first, last) for first, last in zip(starts, ends, strict=False)]
    if isinstance(text, Document):
        place = {token: word for word, token in enumerate([*starts, len(text.tokens)])}
        moved = (
            one._replace(first=place[one.first], last=place[one.last]) for one in text.sentences
        )
        return dataclasses.replace(text, tokens=tuple(words), sentences=tuple(moved))
    return dataclasses.replace(text, tokens=tuple(words))


def _word(text: Text, first: int, last: int) -> Token:
    pieces = text.tokens[first:last]
    start, end = pieces[0].start, max(piece.end for piece in pieces)
    # A lone piece also sheds its tokenizer's marks: the word is what stands in the text.
    return Token(text.text[start:end].strip() or pieces[0].text, start, end)


def _merge(
    weights: NDArray[np.float32], rows: list[int], columns: list[int]
) -> NDArray[np.float32]:
    merged = weights.astype(np.float64)
    if columns:
        merged = np.add.reduceat(merged, columns, axis=1)
    if rows:
        sizes = np.diff([*rows, len(merged)])
        merged = np.add.reduceat(merged, rows, axis=0) / sizes[:, None]
    return merged.astype(np.float32)
