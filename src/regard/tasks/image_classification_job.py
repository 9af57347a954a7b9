"""What the training loop knows of a classifier of pictures: batches, loss, evaluation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import halves, loader, mixed_plan
from regard.data.labelled import label_places
from regard.data.labelled_images import LabelledImages
from regard.models.picture_classifier import PictureModel
from regard.tasks.base import CONFIG
from regard.tasks.classification_metrics import label_scores
from regard.tasks.image_classification import ImageClassifier
from regard.tasks.image_classification_settings import ImageClassificationSettings
from regard.tasks.labels import balancing_weights, label_loss, label_targets
from regard.tasks.runs import comparable, first_places
from regard.tasks.sight import kept_sources
from regard.training.job import Loss

_AT_ONCE = 64  # pictures of the development set


class Batch(NamedTuple):
    """A batch of pictures.

    Args:
        source: What the model reads of each; descriptions in the precision in which they are kept.
        targets: For each picture one where a label holds.
        examples: Which pictures of the data these are.
    """

    source: Tensor
    targets: Tensor
    examples: list[int]


class ImageDataset(torch.utils.data.Dataset[tuple[int, Tensor, list[int]]]):
    """What a model reads of pictures, with their labels, as a map-style dataset.

    Args:
        images: The pictures.
        places: The places of each picture's labels.
        read: From a picture's place to what the model reads of it.
    """

    def __init__(
        self,
        images: LabelledImages,
        places: Sequence[list[int]],
        read: Callable[[int], Tensor],
    ) -> None:
        self.images, self.places, self.read = images, places, read

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[int, Tensor, list[int]]:
        return index, self.read(index), self.places[index]

    def where(self, index: int) -> str:
        """Name the place of a picture's label."""
        return self.images.where(index)


class Collate:
    """Puts pictures into a batch.

    Args:
        labels: How many labels there are.
    """

    def __init__(self, labels: int) -> None:
        self.labels = labels

    def __call__(self, items: Sequence[tuple[int, Tensor, list[int]]]) -> Batch:
        """Stack what is read."""
        return Batch(
            torch.stack([source for _, source, _ in items]),
            label_targets([places for _, _, places in items], self.labels),
            [index for index, _, _ in items],
        )


class ImageClassificationJob:
    """What the training loop needs to know of a classifier: see `regard.training.Job`.

    Args:
        settings: The config.
        classifier: The model, and what describes pictures.
        data: The training data.
        dev: The development data.
    """

    def __init__(
        self,
        settings: ImageClassificationSettings,
        classifier: ImageClassifier,
        *,
        data: ImageDataset,
        dev: ImageDataset,
    ) -> None:
        self.settings, self.classifier = settings, classifier
        self.model: PictureModel = classifier.model
        self.metric: str = settings.metric
        self.higher_is_better = settings.metric != "loss"
        self.data, self.dev = data, dev
        self.identity = _identity(settings, data.images, dev.images)
        own = classifier.settings
        self._collate = Collate(len(own.labels))
        self._weights = None
        if settings.balanced:
            self._weights = balancing_weights(data.places, len(own.labels), several=own.several)
        self._steps = len(self._plan(0))

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch; every epoch has as many."""
        return self._steps

    def batches(self, epoch: int, start: int) -> Generator[Batch, None, None]:
        """Load the batches of an epoch from a place on."""
        loaded = loader(
            self.data,
            self._plan(epoch),
            start=start,
            workers=self.settings.training.workers,
            collate=self._collate,
            timeout=300,  # seconds; a worker that says nothing for so long hangs
        )
        with contextlib.closing(loaded):
            yield from loaded

    def size(self, batch: Batch) -> int:
        """Count the pictures."""
        return len(batch.examples)

    def loss(self, batch: Batch) -> Loss:
        """Compute the loss of a batch, summed over its pictures."""
        return Loss(self._loss(batch, self._logits(batch)), {})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        return halves(batch)

    def describe(self, batch: Batch) -> str:
        """Say which pictures a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        return f"{len(places)} pictures: {first_places(places)}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Score the development set: loss of a picture, accuracy, macro-F1, calibration."""
        total = 0.0
        found = []
        for start in range(0, len(self.dev), _AT_ONCE):
            poll()
            chosen = range(start, min(start + _AT_ONCE, len(self.dev)))
            batch = self._collate([self.dev[i] for i in chosen])
            logits = self._logits(batch)
            total += float(self._loss(batch, logits))
            found.append(self.classifier.probabilities(logits))
        several = self.classifier.settings.several
        scores = label_scores(np.concatenate(found), self.dev.places, several=several)
        return {"loss": total / len(self.dev), **scores}

    def write(self, folder: Path) -> None:
        """Write settings and a card beside the weights."""
        own = self.classifier.settings
        (folder / CONFIG).write_text(own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        data = self.identity["data"]
        labels = ", ".join(self.classifier.settings.labels[:20])
        return (
            "# Classifier of pictures\n\n"
            f"Trained by `regard train` on {len(self.data):,} pictures (SHA-256 {data['train']}), "
            f"chosen on {len(self.dev):,} (SHA-256 {data['dev']}), seed "
            f"{self.settings.training.seed}.\n\n"
            f"Labels: {labels}.\n"
        )

    def _plan(self, epoch: int) -> list[list[int]]:
        rows, columns = self.classifier.grid
        own = self.settings.training
        return mixed_plan(
            [(rows * columns,)] * len(self.data),
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _logits(self, batch: Batch) -> Tensor:
        logits: Tensor = self.model(self.classifier.on_device(batch.source)).logits
        return logits.float()

    def _loss(self, batch: Batch, logits: Tensor) -> Tensor:
        """Cross entropy, of one label or of each; smoothed and balanced in training only."""
        training = self.model.training
        return label_loss(
            logits,
            batch.targets,
            several=self.classifier.settings.several,
            smoothing=self.settings.training.label_smoothing if training else 0.0,
            weights=self._weights if training else None,
        )


def image_dataset(images: LabelledImages, classifier: ImageClassifier, cache: Path) -> ImageDataset:
    """Find the labels of pictures, and make what the model reads of them once.

    Args:
        images: The pictures.
        classifier: Knows the labels, and how pictures are described.
        cache: Where what is read is kept.

    Returns:
        The dataset.

    Raises:
        DataError: A label is not known.
    """
    places = label_places(images, classifier.settings.labels)
    return ImageDataset(images, places, kept_sources(classifier, images, cache))


def _identity(
    settings: ImageClassificationSettings, images: LabelledImages, dev: LabelledImages
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test", "images", "cache"))
    table["data"].update(train=images.sha256, dev=dev.sha256)
    return table
