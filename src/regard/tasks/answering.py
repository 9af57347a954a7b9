"""Answering: a story and a question in, the answer out, and the sentences that it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import checked
from regard.data.normalisation import is_blank
from regard.data.stories import Question, Stories
from regard.data.story_numbers import NumberedStories, StoryRows, StoryWords
from regard.errors import FileFormatError, UserError
from regard.models.memory_network import Asked, MemoryNetwork, MemoryReading
from regard.pictures.records import Detail, Map, Record
from regard.pictures.texts import Text, Token
from regard.tasks.answering_settings import AnswererSettings
from regard.tasks.base import CONFIG, Opened
from regard.tasks.output import Looked
from regard.training.checkpoint import MODEL, load_model

_AT_ONCE = 500  # questions
SUPPORT = "* "
"""What stands before a sentence that the answer is known to follow from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Looked):
    """An answer, and the sentences that it came from; see `Looked` for the record.

    `truncated` says that the story has more sentences than the model's memory: the last are read.

    Args:
        question: The question.
        answer: The most probable answer.
        probability: Its probability.
        probabilities: The probability of every answer; they sum to one.
        sentences: The sentences that were read, the oldest first.
        weights: The weight of each of them in each hop, `(hops, sentences)`.
    """

    question: str
    answer: str
    probability: float
    probabilities: dict[str, float]
    sentences: tuple[str, ...]
    weights: NDArray[np.float32]


class Answerer:
    """A model that answers questions about a story and shows where it looked.

    Args:
        model: The model.
        words: Its vocabulary.
        settings: What it is made of.
        name: What a person calls the model.
    """

    def __init__(
        self, model: MemoryNetwork, words: StoryWords, settings: AnswererSettings, *, name: str = ""
    ) -> None:
        self.model, self.words = model.eval(), words
        self.settings, self.name = settings, name

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    @overload
    def __call__(
        self, story: str | Sequence[str], question: str, *, supporting: Sequence[int] = ()
    ) -> Answer: ...

    @overload
    def __call__(
        self, story: str | Sequence[str], question: list[str], *, supporting: Sequence[int] = ()
    ) -> list[Answer]: ...

    def __call__(
        self,
        story: str | Sequence[str],
        question: str | list[str],
        *,
        supporting: Sequence[int] = (),
    ) -> Answer | list[Answer]:
        """Answer a question about a story, or several.

        Args:
            story: Its sentences, the oldest first, or a text with one in each line.
            question: The question, or a list of them.
            supporting: Which sentences the answer is known to follow from, from 0: the record
                marks them.

        Returns:
            One answer, or a list in the order of the questions.

        Raises:
            UserError: A supporting sentence is none of the story's.
        """
        given = story.split("\n") if isinstance(story, str) else list(story)
        wrong = [place for place in supporting if not 0 <= place < len(given)]
        if wrong:
            raise UserError(
                f"supporting must name sentences from 0 to {len(given) - 1}; got {wrong[0]}. "
                "Count them from 0."
            )
        told = [place for place, one in enumerate(given) if not is_blank(one)]
        facts = tuple(new for new, place in enumerate(told) if place in set(supporting))
        asked = question if isinstance(question, list) else [question]
        questions = tuple(Question(0, len(told), one, "", facts, 0) for one in asked)
        stories = Stories((tuple(given[place].strip() for place in told),), questions, "story")
        found = self.answer(stories)
        return found if isinstance(question, list) else found[0]

    def number(self, stories: Stories) -> NumberedStories:
        """Turn stories into numbers, as the model reads them."""
        return NumberedStories(stories, self.words, memory=self.settings.model.memory)

    def answer(self, stories: Stories) -> list[Answer]:
        """Answer the questions of stories.

        Args:
            stories: The stories; what they give as answers is not looked at.

        Returns:
            An answer for each question.
        """
        numbered = self.number(stories)
        found: list[Answer] = []
        for start in range(0, len(stories), _AT_ONCE):
            chosen = range(start, min(start + _AT_ONCE, len(stories)))
            reading = self.read(numbered.rows(chosen))
            chances = reading.logits[0].double().softmax(dim=-1).cpu().numpy()
            weights = reading.weights[0].float().cpu().numpy()
            for index, row, own in zip(chosen, chances, weights, strict=True):
                size = int(numbered.sizes[index])
                read = own[:, :size][:, ::-1]  # the oldest first
                found.append(self._answer(stories, index, row, read))
        return found

    @torch.inference_mode()
    def read(self, rows: StoryRows) -> MemoryReading:
        """Let the model read stories as numbers: scores of answers, weights of sentences."""
        reading: MemoryReading = self.model(as_tensors(rows, self.device))
        return reading

    def _answer(
        self,
        stories: Stories,
        index: int,
        chances: NDArray[np.float64],
        weights: NDArray[np.float32],
    ) -> Answer:
        question = stories.questions[index]
        first = question.known - weights.shape[1]
        best = int(chances.argmax())
        answer = Answer(
            question=question.text,
            answer=self.words.answers[best],
            probability=float(chances[best]),
            probabilities=dict(zip(self.words.answers, map(float, chances), strict=True)),
            sentences=stories.told(index)[first:],
            weights=np.array(weights, dtype=np.float32),
            looked=None,
            truncated=first > 0,
        )
        facts = [place - first for place in question.supporting if place >= first]
        return dataclasses.replace(answer, looked=self._record(answer, facts))

    def _record(self, answer: Answer, facts: Sequence[int]) -> Record:
        shown = [
            (SUPPORT if place in facts else "") + sentence
            for place, sentence in enumerate(answer.sentences)
        ]
        hops = [f"hop {hop}" for hop in range(1, len(answer.weights) + 1)]
        details: dict[str, Detail] = {
            "question": answer.question,
            "answer": answer.answer,
            "probability": round(answer.probability, 6),
            "model": self.name,
        }
        if facts:
            lines = ", ".join(str(place + 1) for place in sorted(facts))
            details["supporting facts"] = f"lines {lines}, marked *"
        read = _lines(shown, self.settings.language)
        return Record(
            "answering", read, _lines(hops, None), (Map("hops", answer.weights),), details
        )


def _lines(lines: Sequence[str], language: str | None) -> Text:
    """Take each line of a text for a token."""
    tokens, place = [], 0
    for line in lines:
        tokens.append(Token(line, place, place + len(line)))
        place += len(line) + 1
    return Text("\n".join(lines), tuple(tokens), language)


def as_tensors(rows: StoryRows, device: torch.device) -> Asked:
    """Put stories as numbers onto a device."""
    return Asked(*(torch.from_numpy(part).to(device) for part in rows[:3]))


def load_restarts(opened: Opened) -> tuple[MemoryNetwork, StoryWords, AnswererSettings]:
    """Open all restarts of a model, of which one was chosen.

    Args:
        opened: Its folder, verified.

    Returns:
        The restarts as one model, their vocabulary and settings.

    Raises:
        FileFormatError: A file of it is wrong.
    """
    where = str(Path(opened.folder) / CONFIG)
    settings = checked(opened.config, AnswererSettings, where=where)
    words = StoryWords(settings.words, settings.answers, kind=settings.kind)

    def build() -> MemoryNetwork:
        return MemoryNetwork(
            settings.model, words=words.size, answers=words.answer_ids, restarts=settings.restarts
        )

    model = load_model(build, opened.folder / MODEL)
    if not 0 <= int(model.chosen) < settings.restarts:
        raise FileFormatError(
            f"chosen must be from 0 to {settings.restarts - 1}; got {int(model.chosen)}. Train it "
            "again.",
            where=str(opened.folder / MODEL),
        )
    return model.eval(), words, settings


def load_answerer(opened: Opened, device: torch.device) -> Answerer:
    """Open a model that answers.

    Args:
        opened: Its folder, verified.
        device: Where it shall live.

    Returns:
        The model, with the restart that was chosen.

    Raises:
        FileFormatError: A file of it is wrong.
    """
    model, words, settings = load_restarts(opened)
    single = model.restart(int(model.chosen))
    return Answerer(single.to(device), words, settings, name=opened.name)
