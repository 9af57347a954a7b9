"""Texts as models of documents read them: sentences of words that know where they stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regard.data.sentences import SENTENCES, Span
from regard.data.tokens import Tokenizer
from regard.errors import UserError, did_you_mean

MAX_SENTENCES = 5_000
MAX_WORDS = 500

_CHARACTERS = 100  # no language writes a word with more
_WHOLE = ("words", "chinese", "characters")  # tokenizers whose pieces are words


class Sentence(NamedTuple):
    """A sentence as a model reads it.

    Args:
        start: Its first character in the original text.
        end: One past its last.
        ids: The ids of its words.
        offsets: First character of each word in the original text, and one past its last.
    """

    start: int
    end: int
    ids: list[int]
    offsets: tuple[Span, ...]


class Document(NamedTuple):
    """A text as a model reads it.

    Args:
        text: The original text.
        sentences: Its sentences, of which some may have no word.
        left_out: How many sentences more it has than are read.
        shortened: How many of its sentences are longer than what is read of them.
    """

    text: str
    sentences: tuple[Sentence, ...]
    left_out: int
    shortened: int

    @property
    def words(self) -> int:
        """How many words are read."""
        return sum(len(sentence.ids) for sentence in self.sentences)


def encode_document(
    tokenizer: Tokenizer,
    text: str,
    *,
    rule: str = "marks",
    spans: Sequence[Span] | None = None,
    max_sentences: int = MAX_SENTENCES,
    max_words: int = MAX_WORDS,
) -> Document:
    """Cut a text into sentences and those into words.

    A tokenizer of words gives one token a word, and a word that is not known is `UNK`; one of
    subwords gives its pieces.

    Args:
        tokenizer: How sentences are cut into words.
        text: The text.
        rule: How the text is cut into sentences: one of `SENTENCES`.
        spans: The sentences themselves, where they are known.
        max_sentences: Sentences beyond so many are left out.
        max_words: Words of a sentence beyond so many are left out.

    Returns:
        The document; all its offsets are those of the text.

    Raises:
        UserError: A setting is out of range, or the text is none.

    Example:
        >>> tokenizer = Tokenizer.train(["It rains. It pours."], kind="words")
        >>> document = encode_document(tokenizer, "It  rains. It snows.")
        >>> [document.text[start:end] for start, end in document.sentences[0].offsets]
        ['It', 'rains', '.']
    """
    _check_document(text, rule, max_sentences, max_words)
    places = list(SENTENCES[rule](text) if spans is None else spans)
    sentences, shortened = [], 0
    for start, end in places[:max_sentences]:
        # Less of a huge sentence is looked at, so that what is read of it bounds the work.
        part = text[start : min(end, start + max_words * _CHARACTERS)]
        ids, _, offsets = tokenizer.encode(part, whole=tokenizer.kind in _WHOLE)
        shortened += len(ids) > max_words or len(part) < end - start
        own = tuple((start + first, start + last) for first, last in offsets[:max_words])
        sentences.append(Sentence(start, end, ids[:max_words], own))
    return Document(text, tuple(sentences), max(len(places) - max_sentences, 0), shortened)


def _check_document(text: object, rule: str, max_sentences: int, max_words: int) -> None:
    if not isinstance(text, str):
        raise UserError(
            f"text must be a string, or a list of strings; got {type(text).__name__}. Decode "
            "bytes, and leave None out."
        )
    if rule not in SENTENCES:
        raise UserError(f"sentences must be known; got {rule!r}; {did_you_mean(rule, SENTENCES)}.")
    for name, value in (("max_sentences", max_sentences), ("max_words", max_words)):
        if value < 1:
            raise UserError(f"{name} must be at least 1; got {value}. Raise it.")
