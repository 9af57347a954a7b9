"""What decided, of a document: its strongest sentences, and in them the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.pictures.records import Record

SHARE = 0.9
MOST = 5

_ROUNDING = 1e-6  # of weights in single precision
_EVEN = 0.02  # of the weight that stands elsewhere than in equal shares, at most


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence.

    Args:
        text: The word.
        start: Its first character in the original text.
        end: One past its last.
        weight: Its weight in its sentence.
    """

    text: str
    start: int
    end: int
    weight: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document.

    Args:
        index: Which one of the document, from 0.
        text: Its text.
        start: Its first character in the original text.
        end: One past its last.
        weight: Its weight in the document.
        words: Its words, in their order.
    """

    index: int
    text: str
    start: int
    end: int
    weight: float
    words: tuple[Word, ...]

    def strongest(self, count: int = 3) -> tuple[Word, ...]:
        """Return the words of most weight, the heaviest first; those of weight 0 are left out."""
        real = [word for word in self.words if word.weight > 0]
        return tuple(sorted(real, key=lambda word: -word.weight)[:count])


def sentences(record: Record) -> tuple[Sentence, ...]:
    """List the sentences of a document with their weights and words, in their order.

    Pieces of words are merged; where several labels were written, weights are those of the first.

    Args:
        record: A record of a document.

    Returns:
        All its sentences.

    Raises:
        UserError: No document was read.
    """
    record.document()
    record = record.merge_words()
    document = record.document()
    rows = len(record.written.tokens)
    of_words = record.weights()[0].tolist() if rows else [0.0] * len(document.tokens)
    of_sentences = (
        record.sentence_weights()[0].tolist() if rows else [0.0] * len(document.sentences)
    )
    found = []
    for index, (one, weight) in enumerate(zip(document.sentences, of_sentences, strict=True)):
        pairs = zip(
            document.tokens[one.first : one.last], of_words[one.first : one.last], strict=True
        )
        words = tuple(Word(*token, share) for token, share in pairs)
        text = document.sentence_text(index)
        found.append(Sentence(index, text, one.start, one.end, weight, words))
    return tuple(found)


def strongest(
    found: Sequence[Sentence], *, share: float = SHARE, most: int = MOST
) -> tuple[Sentence, ...]:
    """Choose the sentences that decided: the fewest that hold a share of the weight together.

    Args:
        found: The sentences of a document.
        share: The share of the weight, from 0 to 1.
        most: No more than so many.

    Returns:
        The chosen ones, the heaviest first; those of weight 0 are left out.
    """
    ordered = sorted(found, key=lambda sentence: -sentence.weight)
    total = sum(sentence.weight for sentence in found)
    chosen: list[Sentence] = []
    held = 0.0
    for sentence in ordered[:most]:
        if sentence.weight <= 0 or held >= share * total - _ROUNDING:
            break
        chosen.append(sentence)
        held += sentence.weight
    return tuple(chosen)


def are_even(found: Sequence[Sentence]) -> bool:
    """Say whether all sentences weigh about the same, so that none of them decided.

    Args:
        found: The sentences of a document.

    Returns:
        Whether there are several, with at most 2 % of the weight elsewhere than in equal shares.
    """
    total = sum(sentence.weight for sentence in found)
    if len(found) < 2 or total <= 0:
        return False
    equal = 1 / len(found)
    return 0.5 * sum(abs(one.weight / total - equal) for one in found) <= _EVEN
