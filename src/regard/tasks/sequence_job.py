"""What the training loop knows of a model of sequences: batches, loss, evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import halves, loader, plan, reading_plan
from regard.data.labelled import unknown_label
from regard.data.padding import pad_vectors
from regard.data.series import Sequences
from regard.models.sequences import SequenceModel
from regard.tasks.base import CONFIG
from regard.tasks.classification_metrics import label_scores
from regard.tasks.runs import comparable, first_places
from regard.tasks.sequence_results import Numbers
from regard.tasks.sequence_settings import PredictorSettings, SequenceSettings
from regard.tasks.sequences import MOST_STEPS, SequenceReader
from regard.tasks.value_metrics import value_scores
from regard.training.job import Loss

_AT_ONCE = 64  # sequences of the development set


class Batch(NamedTuple):
    """A batch of sequences.

    Args:
        values: Their numbers, padded.
        mask: True where there is a step.
        targets: The place of the label of each, or its values.
        examples: Which sequences of the data these are.
    """

    values: Tensor
    mask: Tensor
    targets: Tensor
    examples: list[int]


class SequenceDataset(torch.utils.data.Dataset[tuple[int, Numbers, Numbers]]):
    """Sequences with what is to be learnt of them, as a map-style dataset.

    Args:
        sequences: The sequences.
        targets: The place of the label of each, or its values, `(sequences, targets)`.
        limit: Steps beyond so many are not read.
    """

    def __init__(self, sequences: Sequences, targets: Numbers, *, limit: int) -> None:
        self.sequences, self.targets, self.limit = sequences, targets, limit
        self.lengths: list[int] = np.minimum(sequences.lengths, limit).tolist()

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, index: int) -> tuple[int, Numbers, Numbers]:
        return index, self.sequences[index][: self.limit], self.targets[index]

    def where(self, index: int) -> str:
        """Name the place of a sequence."""
        return self.sequences.where(index)

    @classmethod
    def of(cls, sequences: Sequences, settings: PredictorSettings) -> SequenceDataset:
        """Turn labels and values into what a model learns.

        Args:
            sequences: The sequences.
            settings: Knows the labels.

        Returns:
            The dataset.

        Raises:
            DataError: A label is not known; its place is named.
        """
        if sequences.targets is not None:
            return cls(sequences, sequences.targets, limit=settings.limit)
        place = {label: index for index, label in enumerate(settings.labels)}
        labels = sequences.labels or ()
        for index, label in enumerate(labels):
            if label not in place:
                raise unknown_label(label, settings.labels, where=sequences.where(index))
        targets = np.array([[place[label]] for label in labels], dtype=np.float64)
        return cls(sequences, targets, limit=settings.limit)


def collate(items: Sequence[tuple[int, Numbers, Numbers]], *, features: int) -> Batch:
    """Put sequences into a batch.

    Args:
        items: Number, steps and targets of each.
        features: How many numbers a step has.

    Returns:
        The batch.
    """
    values, mask = pad_vectors([steps for _, steps, _ in items], features=features)
    targets = torch.from_numpy(np.stack([targets for _, _, targets in items]))
    return Batch(values, mask, targets, [index for index, _, _ in items])


class SequenceJob:
    """What the training loop needs to know of a model of sequences: see `regard.training.Job`.

    Args:
        settings: The config.
        reader: The model.
        data: The training data.
        dev: The development data.
    """

    def __init__(
        self,
        settings: SequenceSettings,
        reader: SequenceReader,
        *,
        data: SequenceDataset,
        dev: SequenceDataset,
    ) -> None:
        self.settings, self.reader = settings, reader
        self.model: SequenceModel = reader.model
        self.metric: str = settings.metric
        self.higher_is_better = settings.metric in ("accuracy", "macro_f1", "r2")
        self.data, self.dev = data, dev
        self.identity = _identity(settings, data, dev)
        self._collate = partial(collate, features=len(reader.settings.features))

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch."""
        return len(self.plan(epoch))

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        """Load the batches of an epoch from a place on."""
        loaded = loader(
            self.data,
            self.plan(epoch),
            start=start,
            workers=self.settings.training.workers,
            collate=self._collate,
            timeout=300,  # seconds; a worker that says nothing for so long hangs
        )
        with contextlib.closing(loaded):
            yield from loaded

    def size(self, batch: Batch) -> int:
        """Count the sequences."""
        return len(batch.examples)

    def loss(self, batch: Batch) -> Loss:
        """Compute the loss of a batch, summed over its sequences."""
        return Loss(self._loss(batch, self._outputs(batch)), {})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        return halves(batch)

    def describe(self, batch: Batch) -> str:
        """Say which sequences a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        longest = batch.mask.shape[1]
        return f"{len(places)} sequences of at most {longest:,} steps: {first_places(places)}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Score the development set: the loss of a sequence, and the task's own metrics."""
        total, found = 0.0, torch.zeros(len(self.dev), self.reader.settings.outputs)
        lengths = self.dev.lengths
        for chosen in reading_plan(lengths, tokens=MOST_STEPS, max_sentences=_AT_ONCE):
            poll()
            batch = self._collate([self.dev[index] for index in chosen])
            outputs = self._outputs(batch)
            total += float(self._loss(batch, outputs))
            found[chosen] = outputs.cpu()
        scores = _scores(self.reader, found, self.dev.targets)
        return {"loss": total / len(self.dev), **scores}

    def write(self, folder: Path) -> None:
        """Write settings and a card beside the weights."""
        own = self.reader.settings
        (folder / CONFIG).write_text(own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        data, own = self.identity["data"], self.reader.settings
        said = own.labels if own.target == "label" else own.columns.targets
        return (
            "# Model of sequences of numbers\n\n"
            f"Trained by `regard train` on {len(self.data):,} sequences (SHA-256 {data['train']}), "
            f"chosen on {len(self.dev):,} (SHA-256 {data['dev']}), seed "
            f"{self.settings.training.seed}.\n\n"
            f"Reads: {', '.join(own.features[:20])}.\n\n"
            f"{'Labels' if own.target == 'label' else 'Values'}: {', '.join(said[:20])}.\n"
        )

    def plan(self, epoch: int) -> list[list[int]]:
        """Say which sequences each batch of an epoch holds."""
        own = self.settings.training
        return plan(
            [(length,) for length in self.data.lengths],
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _outputs(self, batch: Batch) -> Tensor:
        values, mask = self.reader.moved(batch.values), batch.mask.to(self.reader.device)
        outputs: Tensor = self.model(values, mask).outputs
        return outputs.float()

    def _loss(self, batch: Batch, outputs: Tensor) -> Tensor:
        """Cross entropy of the label, smoothed in training; squared error of the values."""
        targets = self.reader.moved(batch.targets)
        if self.settings.target == "value":
            wanted = self.model.targets(targets).to(outputs.dtype)
            errors: Tensor = (outputs - wanted).square().mean(dim=1)
            return errors.sum()
        smoothing = self.settings.training.label_smoothing if self.model.training else 0.0
        return nn.functional.cross_entropy(
            outputs, targets[:, 0].long(), label_smoothing=smoothing, reduction="sum"
        )


def _scores(reader: SequenceReader, outputs: Tensor, targets: Numbers) -> dict[str, float]:
    """Score what a model says: its labels in percent, or the errors of its values."""
    if reader.settings.target == "value":
        return value_scores(reader.values(outputs), targets)
    truth = [[int(place)] for place in targets[:, 0]]
    return label_scores(reader.probabilities(outputs), truth, several=False)


def _identity(
    settings: SequenceSettings, data: SequenceDataset, dev: SequenceDataset
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test"))
    table["data"].update(train=data.sequences.sha256, dev=dev.sequences.sha256)
    return table
