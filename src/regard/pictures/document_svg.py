"""A document as vector graphics: its strongest sentences, a bar for each, their words shaded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from regard.pictures.colours import ink, shade, to_hex
from regard.pictures.drawing import FONTS, PAPER, QUIET, TEXT, escaped, flow, text_element, width_of
from regard.pictures.evidence import Sentence
from regard.pictures.gaze import number
from regard.pictures.lettering import is_right_to_left, visible
from regard.pictures.passages import Excerpt, Piece, broken, excerpt, named_words, pieces, window

if TYPE_CHECKING:
    from regard.pictures.records import Record

_WIDTH = 860.0
_MARGIN = 28.0
_BAR = 72.0
_GUTTER = _BAR + 58.0  # the bar and its number
_FONT = 15.0
_SMALL = 12.0
_LINE = 27.0
_BETWEEN = 14.0
_SPACE = 0.34 * _FONT
_LINES = 12  # of one sentence
_LEGEND = 160.0
_ROOM = _WIDTH - 2 * _MARGIN - _GUTTER


@dataclass(frozen=True)
class _Block:
    """A sentence, cut into lines."""

    sentence: Sentence
    before: int
    lines: list[list[Piece]]
    after: int

    @cached_property
    def named(self) -> list[str]:
        return flow(named_words(self.sentence) or "no word has any weight", _ROOM / _SMALL)

    @property
    def height(self) -> float:
        cut = bool(self.before) + bool(self.after)
        return (len(self.lines) + cut) * _LINE + len(self.named) * 18.0 + _BETWEEN


def render(record: Record) -> str:
    """Draw a document in SVG: what was said of it, and the sentences that decided.

    The bar and number at the left are a sentence's weight in the document; words are shaded by
    their weight in the sentence, and the strongest are named below it. What is left out is said.

    Args:
        record: A record whose `read` is a document.

    Returns:
        A complete SVG document.

    Raises:
        UserError: No document was read.
    """
    found = excerpt(record)
    blocks = [_block(sentence) for sentence in found.shown]
    heading = flow(found.heading, (_WIDTH - 2 * _MARGIN) / 18.0)
    remark = flow(found.remark, (_WIDTH - 2 * _MARGIN) / _SMALL)
    top = _MARGIN + len(heading) * 24.0 + 14.0
    foot = top + sum(block.height for block in blocks)
    height = foot + len(remark) * 18.0 + (46.0 if blocks else 18.0)
    reverse = is_right_to_left(record.document().text)
    return "\n".join([
        _opening(height),
        f"<title>{escaped(_title(record))}</title>",
        f"<desc>{escaped(' '.join([found.remark, *_said(found)]))}</desc>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_flowed(heading, _MARGIN + 18.0, size=18.0, step=24.0, fill=TEXT),
        *_blocks(blocks, found, top, reverse=reverse),
        *_flowed(remark, foot + 12.0, size=_SMALL, step=18.0, fill=QUIET),
        *(_legend(found, height - 24.0) if blocks else ()),
        "</svg>",
    ]) + "\n"  # fmt: skip


def _block(sentence: Sentence) -> _Block:
    every = broken(pieces(sentence), _ROOM, lambda text: _SPACE if text == " " else _wide(text))
    before, lines = window(every, _LINES)
    return _Block(sentence, before, lines, len(every) - before - len(lines))


def _wide(text: str) -> float:
    return min(width_of(text, _FONT), _ROOM) + 4.0


def _title(record: Record) -> str:
    read, written = (visible(text.text) for text in (record.read_text(), record.written))
    return f"{visible(record.task)}: {read} → {written}"


def _said(found: Excerpt) -> Iterator[str]:
    for one in found.shown:
        yield f"{number(one.weight)}: {visible(one.text)} ({named_words(one) or 'no word'})."


def _opening(height: float) -> str:
    tall = math.ceil(height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:g}" height="{tall}" '
        f'viewBox="0 0 {_WIDTH:g} {tall}" role="img" direction="ltr" '
        f'font-family="{FONTS}" font-size="{_FONT:g}">'
    )


def _flowed(
    lines: list[str], top: float, *, size: float, step: float, fill: str, left: float = _MARGIN
) -> Iterator[str]:
    for index, line in enumerate(lines):
        place = f'x="{left:g}" y="{top + index * step:g}" font-size="{size:g}"'
        yield text_element(line, place, anchor="start", fill=fill, reverse=False)


def _blocks(blocks: list[_Block], found: Excerpt, top: float, *, reverse: bool) -> Iterator[str]:
    left = _MARGIN + _GUTTER
    for block in blocks:
        y = top
        yield from _weight(block.sentence, found, y)
        if block.before:
            yield from _flowed([f"… lines before: {block.before}"], y + 18.0, size=_SMALL,
                               step=0.0, fill=QUIET, left=left)  # fmt: skip
            y += _LINE
        for line in block.lines:
            yield from _words(line, found, y, reverse=reverse)
            y += _LINE
        if block.after:
            yield from _flowed([f"… more lines: {block.after}"], y + 18.0, size=_SMALL,
                               step=0.0, fill=QUIET, left=left)  # fmt: skip
            y += _LINE
        yield from _flowed(block.named, y + 12.0, size=_SMALL, step=18.0, fill=QUIET, left=left)
        top += block.height


def _weight(sentence: Sentence, found: Excerpt, y: float) -> Iterator[str]:
    part = min(sentence.weight / found.bar, 1.0)
    common = f'x="{_MARGIN:g}" y="{y + 7:g}" height="12" rx="3"'
    yield f'<rect {common} width="{_BAR:g}" fill="{to_hex(shade(0.0))}"/>'
    yield f'<rect {common} width="{max(_BAR * part, 1.0):.4g}" fill="{to_hex(shade(0.75))}"/>'
    place = f'x="{_MARGIN + _BAR + 8:g}" y="{y + 18:g}" font-size="{_SMALL:g}"'
    yield text_element(number(sentence.weight), place, anchor="start", fill=QUIET)


def _words(line: list[Piece], found: Excerpt, y: float, *, reverse: bool) -> Iterator[str]:
    x = 0.0
    for index, piece in enumerate(line):
        x += _SPACE if piece.spaced and index else 0.0
        width = _wide(piece.text)
        left = _MARGIN + _GUTTER + (_ROOM - x - width if reverse else x)
        colour = PAPER if piece.weight is None else to_hex(shade(piece.weight / found.top))
        fill = TEXT if piece.weight is None else to_hex(ink(shade(piece.weight / found.top)))
        if piece.weight is not None:
            box = f'x="{left:.5g}" y="{y:.6g}" width="{width:.5g}" height="{_LINE - 4:g}" rx="4"'
            said = escaped(f"{piece.text} {number(piece.weight)}")
            yield f'<rect {box} fill="{colour}"><title>{said}</title></rect>'
        place = f'x="{left + width / 2:.5g}" y="{y + 17:.6g}" pointer-events="none"'
        yield text_element(piece.text, place, anchor="middle", fill=fill)
        x += width


def _legend(found: Excerpt, y: float) -> Iterator[str]:
    stops = "".join(
        f'<stop offset="{i / 8}" stop-color="{to_hex(shade(i / 8))}"/>' for i in range(9)
    )
    yield f'<linearGradient id="scale">{stops}</linearGradient>'
    x = _MARGIN + 18.0
    box = f'x="{x:g}" y="{y - 8:g}" width="{_LEGEND:g}" height="8" rx="4"'
    yield f'<rect {box} fill="url(#scale)"/>'
    common = f'y="{y:g}" font-size="11" fill="{QUIET}"'
    yield f'<text x="{_MARGIN:g}" {common}>0</text>'
    said = f"{found.top:g} of a sentence's weight; a full bar is {found.bar:g} of the document's"
    yield f'<text x="{x + _LEGEND + 10:g}" {common}>{escaped(said)}</text>'
