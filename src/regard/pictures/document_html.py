"""What the page of a document carries: its sentences, words and weights."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from regard.pictures.codec import round_weights
from regard.pictures.evidence import Sentence, are_even, sentences, strongest
from regard.pictures.lettering import is_right_to_left, visible
from regard.pictures.passages import EVEN

if TYPE_CHECKING:
    from regard.pictures.records import Record

_DIGITS = 4  # what a person compares on a screen


def page_data(record: Record) -> dict[str, object]:
    """Return what the page's script draws a document from.

    Args:
        record: A record whose `read` is a document.

    Returns:
        Plain data; every text in it is visible.
    """
    merged = record.merge_words()
    document = merged.document()
    every = sentences(merged)
    firsts = [one.first for one in document.sentences]
    return {
        "language": document.language and visible(document.language),
        "direction": "rtl" if is_right_to_left(document.text) else "ltr",
        "sentences": [_sentence(*pair) for pair in zip(every, firsts, strict=True)],
        "labels": _labels(merged, every),
    }


def _sentence(sentence: Sentence, first: int) -> dict[str, object]:
    """Return a sentence: its words, what stands before each of them, and behind the last."""
    words, reached = [], sentence.start
    for word in sentence.words:
        gap = sentence.text[max(reached - sentence.start, 0) : max(word.start - sentence.start, 0)]
        words.append([_gap(gap), visible(word.text)])
        reached = max(reached, word.end)
    rest = sentence.text[max(reached - sentence.start, 0) :]
    return {"first": first, "words": words, "rest": _gap(rest)}


def _gap(text: str) -> str:
    if text.isspace():
        return " "
    return visible(" ".join(text.split())) if text else ""


def _labels(record: Record, every: tuple[Sentence, ...]) -> list[dict[str, object]]:
    """Return the weights of each label that was written; of none where none was."""
    rows = [token.text for token in record.written.tokens]
    if not rows:
        nothing = [0.0] * record.columns
        return [_weights("no label", nothing, [0.0] * len(every), every)]
    words = round_weights(record.weights(), _DIGITS)
    over = round_weights(record.sentence_weights(), _DIGITS)
    return [_weights(visible(t), w, s, every) for t, w, s in zip(rows, words, over, strict=True)]


def _weights(
    text: str, words: list[float], over: list[float], every: tuple[Sentence, ...]
) -> dict[str, object]:
    own = [dataclasses.replace(one, weight=w) for one, w in zip(every, over, strict=True)]
    shown = sorted(one.index for one in strongest(own))
    verdict = EVEN if are_even(own) else ""
    return {
        "text": text,
        "words": words,
        "sentences": over,
        "strongest": shown,
        "verdict": verdict,
    }
