"""What the pictures of a document show: the strongest sentences, cut into lines of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regard.pictures.colours import scale_top
from regard.pictures.evidence import MOST, Sentence, are_even, sentences, strongest
from regard.pictures.gaze import number
from regard.pictures.lettering import visible
from regard.pictures.records import Record

EVEN = "All sentences weigh about the same: none of them decided."

_NAMED = 3  # words of a sentence that are named
_LEAST = 0.1  # of the strongest word's weight, to be named
_LONGEST_WORD = 60  # characters of one piece of a line


class Piece(NamedTuple):
    """A stretch of a sentence that stays on one line.

    Args:
        text: Visible text.
        weight: The weight of the word, or None for what stands between words.
        spaced: Whether there is white space before it.
    """

    text: str
    weight: float | None
    spaced: bool


@dataclass(frozen=True)
class Excerpt:
    """The sentences of a document that are shown.

    Args:
        heading: What was said of the document, and how sure that is.
        shown: The strongest sentences, in the order of the document.
        count: How many sentences it has in all.
        rest: The weight of those that are not shown.
        top: The weight of a word that is drawn in the strongest colour.
        bar: The weight of a sentence whose bar is full.
        even: Whether all sentences weigh about the same.
    """

    heading: str
    shown: tuple[Sentence, ...]
    count: int
    rest: float
    top: float
    bar: float
    even: bool

    @property
    def remark(self) -> str:
        """What is not shown, in words."""
        if not self.count:
            return "Nothing was read."
        if not self.shown:
            return f"None of {self.count:,} sentences has any weight."
        verdict = f" {EVEN}" if self.even else ""
        if len(self.shown) == self.count:
            return f"All of the document: {_counted(self.count)}.{verdict}"
        left = self.count - len(self.shown)
        return (
            f"The strongest {len(self.shown)} of {_counted(self.count)}; {left:,} left out, which "
            f"hold {number(max(self.rest, 0.0))} of the weight.{verdict}"
        )


def _counted(count: int) -> str:
    return f"{count:,} sentence{'' if count == 1 else 's'}"


def excerpt(record: Record, *, most: int = MOST) -> Excerpt:
    """Choose what a picture of a document shows.

    Args:
        record: A record of a document.
        most: Most sentences.

    Returns:
        The excerpt.

    Raises:
        UserError: No document was read.
    """
    every = sentences(record)
    chosen = strongest(every, most=most)
    words = [word.weight for sentence in chosen for word in sentence.words]
    said = visible(record.written.text) if record.written.text else "no label"
    probability = record.details.get("probability")
    sure = f"  {number(probability)}" if isinstance(probability, float) else ""
    return Excerpt(
        heading=f"{visible(record.task)}  {said}{sure}",
        shown=tuple(sorted(chosen, key=lambda sentence: sentence.index)),
        count=len(every),
        rest=sum(one.weight for one in every) - sum(one.weight for one in chosen),
        top=scale_top(np.array(words, dtype=np.float32)),
        bar=scale_top(np.array([one.weight for one in chosen], dtype=np.float32)),
        even=are_even(every),
    )


def pieces(sentence: Sentence) -> list[Piece]:
    """Cut a sentence into its words and what stands between them.

    Args:
        sentence: The sentence.

    Returns:
        The pieces, visible; long words are cut into several.
    """
    found: list[Piece] = []
    reached = sentence.start
    for word in sentence.words:
        gap = sentence.text[max(reached - sentence.start, 0) : word.start - sentence.start]
        between = gap.strip()
        found += _cut(between, None, spaced=gap[:1].isspace())
        spaced = gap[-1:].isspace() or word.text[:1].isspace()
        if word.text.strip():
            found += _cut(word.text.strip(), word.weight, spaced=spaced)
        reached = max(reached, word.end)
    rest = sentence.text[max(reached - sentence.start, 0) :]
    return found + _cut(rest.strip(), None, spaced=rest[:1].isspace())


def _cut(text: str, weight: float | None, *, spaced: bool) -> list[Piece]:
    shown = visible(" ".join(text.split())) if text else ""
    parts = [shown[i : i + _LONGEST_WORD] for i in range(0, len(shown), _LONGEST_WORD)]
    return [Piece(part, weight, spaced and not i) for i, part in enumerate(parts)]


def broken(
    line: Sequence[Piece], room: float, measure: Callable[[str], float]
) -> list[list[Piece]]:
    """Break pieces into lines.

    Args:
        line: The pieces of a sentence.
        room: The width of a line.
        measure: The width of a text.

    Returns:
        Lines that are no wider, unless a single piece is.
    """
    lines: list[list[Piece]] = [[]]
    used = 0.0
    for piece in line:
        width = measure(piece.text) + (measure(" ") if piece.spaced and lines[-1] else 0.0)
        if lines[-1] and used + width > room:
            lines.append([])
            used, width = 0.0, measure(piece.text)
        lines[-1].append(piece)
        used += width
    return lines


def window(lines: Sequence[list[Piece]], most: int) -> tuple[int, list[list[Piece]]]:
    """Choose the lines of a long sentence around the one of most weight.

    Args:
        lines: Its lines.
        most: Most lines.

    Returns:
        How many lines are before them, and the lines.
    """
    if len(lines) <= most:
        return 0, list(lines)
    weights = [max((piece.weight or 0.0 for piece in line), default=0.0) for line in lines]
    best = weights.index(max(weights))
    first = min(max(best - most // 2, 0), len(lines) - most)
    return first, list(lines[first : first + most])


def named_words(sentence: Sentence) -> str:
    """Name the words of a sentence that stand out, so that nothing rests on colour.

    Args:
        sentence: The sentence.

    Returns:
        Words and weights, such as "delivered 0.94, late 0.06"; nothing where none has any.
    """
    words = sentence.strongest(_NAMED)
    kept = [word for word in words if word.weight >= _LEAST * words[0].weight]
    return ", ".join(
        f"{visible(word.text.strip() or word.text)} {number(word.weight)}" for word in kept
    )
