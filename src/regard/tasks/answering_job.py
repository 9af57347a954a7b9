"""What the training loop knows of a model that answers: batches, loss, evaluation."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.data.batches import loader, mixed_plan
from regard.data.stories import Stories
from regard.data.story_numbers import NumberedStories, StoryWords
from regard.models.memory_network import Asked, Clipping, MemoryNetwork
from regard.tasks.answering import as_tensors
from regard.tasks.answering_settings import AnswererSettings, AnsweringSettings
from regard.tasks.base import CONFIG
from regard.tasks.runs import comparable, first_places
from regard.training.job import Loss

_AT_ONCE = 500  # questions of the development set
_UNKNOWN = -1  # an answer that is none of the model's
_LINEAR_RATE = 0.5  # of the learning rate, while the softmax is left out


class Batch(NamedTuple):
    """A batch of questions.

    Args:
        asked: The questions and their stories.
        answers: The place of each answer.
        examples: Which questions of the data these are.
        linear: Whether the softmax over the memory is left out.
    """

    asked: Asked
    answers: Tensor
    examples: list[int]
    linear: bool


class Questions(torch.utils.data.Dataset[int]):
    """The questions of several files, as a map-style dataset of their own numbers.

    Args:
        parts: The stories of each file, as numbers.
    """

    def __init__(self, stories: Sequence[Stories], words: StoryWords, *, memory: int) -> None:
        self.files = tuple(stories)
        self.sha256 = hashlib.sha256("".join(one.sha256 for one in stories).encode()).hexdigest()
        self.numbered = NumberedStories(joined(stories), words, memory=memory)
        self._places = [(one, index) for one in stories for index in range(len(one))]

    def __len__(self) -> int:
        return len(self.numbered)

    def __getitem__(self, index: int) -> int:
        return index

    def where(self, index: int) -> str:
        """Name the file and line of a question."""
        stories, place = self._places[index]
        return stories.where(place)


def joined(parts: Sequence[Stories]) -> Stories:
    """Put the stories of several files behind each other.

    Args:
        parts: The stories of each file, at least one.

    Returns:
        All of them; their file is the first.
    """
    told = tuple(story for part in parts for story in part.stories)
    questions, first = [], 0
    for part in parts:
        questions += [one._replace(story=one.story + first) for one in part.questions]
        first += len(part.stories)
    return Stories(told, tuple(questions), parts[0].file)


class Collate:
    """Puts questions into a batch.

    Args:
        numbered: The questions as numbers.
        linear: Whether the softmax over the memory is left out.
    """

    def __init__(self, numbered: NumberedStories, *, linear: bool = False) -> None:
        self.numbered, self.linear = numbered, linear

    def __call__(self, chosen: Sequence[int]) -> Batch:
        """Gather stories and answers."""
        rows = self.numbered.rows(chosen)
        asked = as_tensors(rows, torch.device("cpu"))
        return Batch(asked, torch.from_numpy(rows.answers), list(chosen), self.linear)


class AnsweringJob:
    """What the training loop needs to know of a model that answers: see `regard.training.Job`.

    Args:
        settings: The config.
        model: All restarts of the model.
        own: What is written beside its weights.
        data: The training questions.
        dev: The development questions; None to watch the training questions.
    """

    higher_is_better = False

    def __init__(
        self,
        settings: AnsweringSettings,
        model: MemoryNetwork,
        own: AnswererSettings,
        *,
        data: Questions,
        dev: Questions | None,
    ) -> None:
        self.settings, self.model, self.own = settings, model, own
        self.metric: str = settings.metric
        self.data, self.dev = data, dev
        self.identity = _identity(settings, own, (data, dev))
        self._clipping = Clipping(model, settings.clip)
        self._steps = len(self._plan(0))

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch; every epoch has as many."""
        return self._steps

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        """Load the batches of an epoch from a place on."""
        linear = epoch < self.settings.linear_epochs
        loaded = loader(
            self.data,
            self._plan(epoch),
            start=start,
            workers=self.settings.training.workers,
            collate=Collate(self.data.numbered, linear=linear),
            timeout=300,  # seconds; a worker that says nothing for so long hangs
        )
        with contextlib.closing(loaded):
            yield from loaded

    def size(self, batch: Batch) -> int:
        """Count the questions."""
        return len(batch.examples)

    def loss(self, batch: Batch) -> Loss:
        """Compute the loss of a batch, summed over its questions and over the restarts.

        A restart whose loss is not finite is left out, unless that of every one is.
        """
        self._clipping.factor = _LINEAR_RATE if batch.linear else 1.0
        logits = self._logits(batch.asked, linear=batch.linear).float()
        targets = batch.answers.to(logits.device).repeat(self.model.restarts)
        smoothing = self.settings.training.label_smoothing
        every = nn.functional.cross_entropy(
            logits.flatten(0, 1), targets, label_smoothing=smoothing, reduction="none"
        )
        losses = every.view(self.model.restarts, -1).sum(dim=1)
        finite = torch.isfinite(losses)
        if bool(finite.any()):
            losses = losses.masked_fill(~finite, 0.0)
        return Loss(losses.sum(), {"lost_restarts": float((~finite).sum())})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        half = len(batch.examples) // 2
        if half == 0:
            return None
        collate = Collate(self.data.numbered, linear=batch.linear)
        return collate(batch.examples[:half]), collate(batch.examples[half:])

    def describe(self, batch: Batch) -> str:
        """Say which questions a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        sentences = batch.asked.memory.shape[1]
        shown = first_places(places)
        return f"{len(places)} questions about at most {sentences} sentences: {shown}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Choose the restart of the least training error, and score the development questions."""
        trained = self.errors(self.data, poll)
        errors = trained if self.dev is None else self.errors(self.dev, poll)
        chosen = int(trained.argmin())
        self.model.chosen.fill_(chosen)
        return {
            "error": float(errors[chosen]),
            "train_error": float(trained[chosen]),
            "error_mean": float(errors.mean()),
            "error_sd": float(errors.std(correction=1)) if len(errors) > 1 else 0.0,
        }

    @torch.no_grad()
    def errors(self, data: Questions, poll: Callable[[], None]) -> Tensor:
        """Return the error of each restart, in percent; an unknown answer is wrong."""
        collate, wrong = Collate(data.numbered), torch.zeros(self.model.restarts)
        for start in range(0, len(data), _AT_ONCE):
            poll()
            batch = collate(range(start, min(start + _AT_ONCE, len(data))))
            said = self._logits(batch.asked).argmax(dim=-1).cpu()
            wrong += (said != batch.answers).sum(dim=1)
        return 100.0 * wrong / len(data)

    def write(self, folder: Path) -> None:
        """Write settings and a card beside the weights."""
        (folder / CONFIG).write_text(self.own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        answers = ", ".join(self.own.answers[:20])
        return (
            "# Answers to questions about stories\n\n"
            f"Trained by `regard train` on {len(self.data):,} questions (SHA-256 "
            f"{self.data.sha256}), seed {self.settings.training.seed}; of {self.model.restarts} "
            "restarts the one of the least training error answers.\n\n"
            f"Answers: {answers}.\n"
        )

    def _plan(self, epoch: int) -> list[list[int]]:
        own = self.settings.training
        return mixed_plan(
            [(1,)] * len(self.data),
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _logits(self, asked: Asked, *, linear: bool = False) -> Tensor:
        device = self.model.answers.device
        moved = Asked(*(part.to(device) for part in asked[:3]))  # keys and values are the same
        logits: Tensor = self.model(moved, linear=linear).logits
        return logits


def _identity(
    settings: AnsweringSettings, own: AnswererSettings, parts: tuple[Questions, Questions | None]
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test"))
    data, dev = parts
    table["data"].update(train=data.sha256, dev=None if dev is None else dev.sha256)
    table["words"] = hashlib.sha256(json.dumps([own.words, own.answers]).encode()).hexdigest()
    return table
