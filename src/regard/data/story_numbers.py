"""Stories as numbers: a vocabulary of words and answers, and what a question is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.normalisation import normalise
from regard.data.segments import SEGMENTERS
from regard.data.stories import Stories
from regard.errors import UserError, did_you_mean

Numbers = NDArray[np.int64]

PADDING, UNKNOWN = 0, 1
_FIRST = 2  # the id of the first word
_KINDS = ("words", "chinese", "characters")


class StoryWords:
    """The words of stories and the answers to questions, as ids; case does not count.

    Id 0 is padding, 1 a word that is not known; words follow, and answers that are no word: an
    answer such as "apple,milk" is one of its own.

    Args:
        words: The words.
        answers: The answers.
        kind: How a sentence is cut: "words", "chinese" or "characters". Punctuation is left out.

    Raises:
        UserError: There is no such kind.

    Example:
        >>> words = StoryWords(["garden", "in", "mary"], ["garden", "milk"])
        >>> words.encode("Mary is in the garden."), words.answer_ids, words.size
        ([4, 1, 3, 1, 2], (2, 5), 6)
    """

    def __init__(
        self, words: Sequence[str], answers: Sequence[str], *, kind: str = "words"
    ) -> None:
        if kind not in _KINDS:
            raise UserError(f"kind must be known; got {kind!r}; {did_you_mean(kind, _KINDS)}.")
        self.words, self.answers, self.kind = tuple(words), tuple(answers), kind
        known = set(self.words)
        entries = [*self.words, *(answer for answer in self.answers if answer not in known)]
        ids = {entry: place for place, entry in enumerate(entries, start=_FIRST)}
        self.size = _FIRST + len(entries)
        self.answer_ids = tuple(ids[answer] for answer in self.answers)
        self._ids = {word: ids[word] for word in self.words}
        self._places = {answer: place for place, answer in enumerate(self.answers)}

    @classmethod
    def learn(cls, parts: Iterable[Stories], *, kind: str = "words") -> StoryWords:
        """Learn words and answers from stories; the same stories give the same ids.

        Args:
            parts: The training stories.
            kind: How a sentence is cut.

        Returns:
            The vocabulary, sorted.
        """
        words: set[str] = set()
        answers: set[str] = set()
        for part in parts:
            texts = {one for story in part.stories for one in story}
            texts |= {question.text for question in part.questions}
            words |= {word for text in texts for word in cut(text, kind)}
            answers |= {_normal(question.answer) for question in part.questions}
        return cls(sorted(words), sorted(answers), kind=kind)

    def encode(self, text: str) -> list[int]:
        """Turn a sentence into ids.

        Args:
            text: The sentence.

        Returns:
            An id for each word.
        """
        return [self._ids.get(word, UNKNOWN) for word in cut(text, self.kind)]

    def answer_place(self, answer: str) -> int:
        """Find an answer among the answers.

        Args:
            answer: The answer.

        Returns:
            Its place, or -1 where it is none of them.
        """
        return self._places.get(_normal(answer), -1)


def _normal(text: str) -> str:
    return normalise(text, lowercase=True).text.strip()


def cut(text: str, kind: str) -> list[str]:
    """Cut a sentence into words, without punctuation.

    Args:
        text: The sentence.
        kind: "words", "chinese" or "characters".

    Returns:
        The words, in lower case.
    """
    text = _normal(text)
    found = [text[start:end] for start, end, _ in SEGMENTERS[kind](text)]
    return [word for word in found if any(map(str.isalnum, word))]


class StoryRows(NamedTuple):
    """Some questions as numbers, each distinct sentence among them once.

    Args:
        sentences: The words of each distinct sentence, padded with 0; the first has none.
        memory: For each question the sentences before it, the newest first, as rows of
            `sentences`; 0 where there is none.
        questions: The row of each question's own text.
        answers: The place of each answer; -1 for one that is not known.
    """

    sentences: Numbers
    memory: Numbers
    questions: Numbers
    answers: Numbers


class NumberedStories:
    """Stories as numbers: for each question the last sentences before it.

    Args:
        stories: The stories.
        words: The vocabulary.
        memory: Most sentences that are kept before a question.

    Attributes:
        sizes: How many sentences each question has before it, of those that are kept.
        forgotten: How many questions have more sentences before them than are kept.
    """

    def __init__(self, stories: Stories, words: StoryWords, *, memory: int) -> None:
        self.stories = stories
        places: dict[tuple[int, ...], int] = {(): 0}

        def place(text: str) -> int:
            return places.setdefault(tuple(words.encode(text)), len(places))

        told = [[place(text) for text in story] for story in stories.stories]
        asked = stories.questions
        self.sizes = np.array([min(one.known, memory) for one in asked], dtype=np.int64)
        self.forgotten = sum(one.known > memory for one in asked)
        self._memory = np.zeros((len(asked), int(self.sizes.max(initial=0))), dtype=np.int64)
        for row, one in zip(self._memory, asked, strict=True):
            newest = told[one.story][: one.known][::-1][:memory]
            row[: len(newest)] = newest
        self._questions = np.array([place(one.text) for one in asked], dtype=np.int64)
        self.answers = np.array([words.answer_place(one.answer) for one in asked], dtype=np.int64)
        self._lengths = np.array([len(ids) for ids in places], dtype=np.int64)
        self._table = np.zeros((len(places), int(self._lengths.max())), dtype=np.int64)
        for row, ids in zip(self._table, places, strict=True):
            row[: len(ids)] = ids

    def __len__(self) -> int:
        return len(self.answers)

    def where(self, index: int) -> str:
        """Name the file and line of a question."""
        return self.stories.where(index)

    def supporting(self, index: int) -> tuple[int, ...]:
        """Return the places in memory, from 0 for the newest, of what a question follows from."""
        question = self.stories.questions[index]
        found = (question.known - 1 - place for place in question.supporting)
        return tuple(place for place in found if place < self.sizes[index])

    def rows(self, chosen: Sequence[int]) -> StoryRows:
        """Return some questions, their memory trimmed to the longest story among them.

        Args:
            chosen: Which questions.

        Returns:
            The questions as numbers.
        """
        which = np.asarray(chosen, dtype=np.int64)
        memory = self._memory[which, : int(self.sizes[which].max(initial=0))]
        questions = self._questions[which]
        every = np.concatenate([[0], memory.ravel(), questions])  # the empty one comes first
        distinct, places = np.unique(every, return_inverse=True)
        table = self._table[distinct, : int(self._lengths[distinct].max())]
        slots, own = np.split(places[1:], [memory.size])
        return StoryRows(table, slots.reshape(memory.shape), own, self.answers[which])
