"""A document in a terminal: its strongest sentences, a bar for each, their words shaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from regard.pictures.blocks import Look, folded
from regard.pictures.colours import paint
from regard.pictures.evidence import Sentence
from regard.pictures.gaze import number
from regard.pictures.lettering import cells, fit, isolate
from regard.pictures.passages import Excerpt, Piece, broken, excerpt, named_words, pieces, window

if TYPE_CHECKING:
    from regard.pictures.records import Record

_BAR = 6  # columns
_NUMBER = 7
_LINES = 8  # of one sentence
_STEPS = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def lines(record: Record, look: Look) -> Iterator[str]:
    """Draw the strongest sentences of a document, and say what is left out.

    The words of most weight are named below each sentence, so that nothing rests on colour.

    Args:
        record: A record whose `read` is a document.
        look: How the terminal shows things.

    Yields:
        Lines without their ends; none is wider than the terminal.
    """
    found = excerpt(record)
    yield isolate(fit(found.heading, look.width))
    yield ""
    for sentence in found.shown:
        yield from _sentence(found, sentence, look)
        yield ""
    yield from folded(found.remark, look.width)
    if found.shown and look.colour != "none":
        yield _legend(found, look)


def _sentence(found: Excerpt, sentence: Sentence, look: Look) -> Iterator[str]:
    gutter = min(_BAR + _NUMBER + 2, look.width // 2)
    room = look.width - gutter
    every = broken(pieces(sentence), room, cells)
    before, shown = window(every, _LINES)
    after = len(every) - before - len(shown)
    head = fit(f"{_bar(sentence.weight / found.bar)} {number(sentence.weight)}", gutter - 1)
    starts = [head + " " * (gutter - cells(head))]
    if before:
        yield f"{starts.pop()}… {_lines(before)} before"[: look.width]
    for line in shown:
        start = starts.pop() if starts else " " * gutter
        yield start + _painted(line, found, look, room)
    if after:
        yield " " * gutter + fit(f"… {_lines(after)} more", room)
    named = named_words(sentence)
    yield from (" " * gutter + line for line in folded(f"<- {named or '-'}", room))


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _bar(part: float) -> str:
    eighths = round(min(max(part, 0.0), 1.0) * _BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)


def _painted(line: list[Piece], found: Excerpt, look: Look, room: int) -> str:
    parts = []
    for index, piece in enumerate(line):
        text = fit(piece.text, room)
        parts.append(" " if piece.spaced and index else "")
        if piece.weight is None:
            parts.append(text)
        else:
            value = piece.weight / found.top
            parts.append(paint(text, value, depth=look.colour, theme=look.theme))
    return isolate("".join(parts))


def _legend(found: Excerpt, look: Look) -> str:
    steps = "".join(
        paint(" ", i / (_STEPS - 1), depth=look.colour, theme=look.theme) for i in range(_STEPS)
    )
    return f"0 {steps} {fit(f'{found.top:g} of its sentence', max(look.width - _STEPS - 3, 1))}"
