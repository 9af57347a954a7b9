"""What the training loop knows of a classifier of documents: batches, loss, evaluation."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import loader, packed_plan
from regard.data.labelled import Documents, label_places
from regard.models.documents import DocumentModel
from regard.tasks.base import CONFIG
from regard.tasks.classification import TOKENS, DocumentClassifier
from regard.tasks.classification_metrics import Numbers, label_scores
from regard.tasks.classification_settings import ClassificationSettings
from regard.tasks.labels import balancing_weights, label_loss, label_targets
from regard.tasks.runs import comparable, first_places
from regard.training.job import Loss

_AT_ONCE = 64  # documents of the development set


class Example(NamedTuple):
    """A document as numbers: the ids of its words, how many each sentence has, its labels."""

    ids: array[int]
    words: tuple[int, ...]
    labels: list[int]


class Batch(NamedTuple):
    """A batch of documents, laid out flat.

    Args:
        tokens: The words of all sentences.
        words: How many each sentence has.
        sentences: How many sentences each document has.
        targets: For each document one where a label holds.
        examples: Which documents of the data these are.
    """

    tokens: Tensor
    words: Tensor
    sentences: Tensor
    targets: Tensor
    examples: list[int]


class DocumentDataset(torch.utils.data.Dataset[tuple[int, Example]]):
    """Encoded documents, as a map-style dataset.

    Args:
        documents: The documents and where they came from.
        examples: Each of them, encoded.
        cut: How many are longer than what is read of them.
    """

    def __init__(self, documents: Documents, examples: Sequence[Example], cut: int) -> None:
        self.documents, self.examples, self.cut = documents, examples, cut

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> tuple[int, Example]:
        return index, self.examples[index]

    def where(self, index: int) -> str:
        """Name the file and line of a document."""
        return self.documents.where(index)


class Collate:
    """Puts documents into a batch.

    Args:
        labels: How many labels there are.
    """

    def __init__(self, labels: int) -> None:
        self.labels = labels

    def __call__(self, items: Sequence[tuple[int, Example]]) -> Batch:
        """Lay documents out flat."""
        ids = array("i")
        for _, example in items:
            ids += example.ids
        words = [count for _, example in items for count in example.words]
        return Batch(
            torch.tensor(ids, dtype=torch.int64),
            torch.tensor(words, dtype=torch.int64),
            torch.tensor([len(example.words) for _, example in items], dtype=torch.int64),
            label_targets([example.labels for _, example in items], self.labels),
            [index for index, _ in items],
        )


class ClassificationJob:
    """What the training loop needs to know of a classifier: see `regard.training.Job`.

    Args:
        settings: The config.
        classifier: The model and the tokenizer.
        data: The training data.
        dev: The development data.
        vectors: SHA-256 of the vectors that the model began with; None where there are none.
    """

    def __init__(
        self,
        settings: ClassificationSettings,
        classifier: DocumentClassifier,
        *,
        data: DocumentDataset,
        dev: DocumentDataset,
        vectors: str | None = None,
    ) -> None:
        self.settings, self.classifier = settings, classifier
        self.model: DocumentModel = classifier.model
        self.metric: str = settings.metric
        self.higher_is_better = settings.metric != "loss"
        self.data, self.dev = data, dev
        self.identity = _identity(settings, classifier, (data, dev), vectors)
        self._collate = Collate(len(classifier.settings.labels))
        self._sizes = [len(example.ids) for example in data.examples]
        self._weights = self._balance() if settings.balanced else None

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch."""
        return len(self._plan(epoch))

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
        """Count the documents."""
        return len(batch.sentences)

    def loss(self, batch: Batch) -> Loss:
        """Compute the loss of a batch, summed over its documents."""
        return Loss(self._loss(batch, self._logits(batch)), {})

    def split(self, batch: Batch) -> tuple[Batch, Batch] | None:
        """Halve a batch."""
        half = len(batch.examples) // 2
        if half == 0:
            return None
        items = [self.data[index] for index in batch.examples]
        return self._collate(items[:half]), self._collate(items[half:])

    def describe(self, batch: Batch) -> str:
        """Say which documents a batch holds."""
        places = [self.data.where(index) for index in batch.examples]
        longest = max((self._sizes[index] for index in batch.examples), default=0)
        return f"{len(places)} documents of at most {longest:,} words: {first_places(places)}"

    @torch.no_grad()
    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Score the development set: loss of a document, accuracy, macro-F1, calibration."""
        total = 0.0
        found: dict[int, Numbers] = {}
        examples = self.dev.examples
        order = sorted(range(len(examples)), key=lambda i: len(examples[i].ids))
        for start in range(0, len(order), _AT_ONCE):
            poll()
            chosen = order[start : start + _AT_ONCE]
            batch = self._collate([self.dev[i] for i in chosen])
            logits = self._logits(batch)
            total += float(self._loss(batch, logits))
            found.update(zip(chosen, self.classifier.probabilities(logits), strict=True))
        probabilities = np.stack([found[i] for i in range(len(examples))])
        truth = [example.labels for example in examples]
        several = self.classifier.settings.several
        return {"loss": total / len(order), **label_scores(probabilities, truth, several=several)}

    def write(self, folder: Path) -> None:
        """Write settings, tokenizer and a card beside the weights."""
        own = self.classifier.settings
        (folder / CONFIG).write_text(own.model_dump_json(indent=1) + "\n", encoding="utf-8")
        self.classifier.tokenizer.save(folder / TOKENS)
        (folder / "card.md").write_text(self._card(), encoding="utf-8")

    def _card(self) -> str:
        data = self.identity["data"]
        labels = ", ".join(self.classifier.settings.labels[:20])
        return (
            "# Classifier of documents\n\n"
            f"Trained by `regard train` on {len(self.data):,} documents (SHA-256 {data['train']}), "
            f"chosen on {len(self.dev):,} (SHA-256 {data['dev']}), seed "
            f"{self.settings.training.seed}.\n\n"
            f"Labels: {labels}.\n"
        )

    def _plan(self, epoch: int) -> list[list[int]]:
        own = self.settings.training
        return packed_plan(
            self._sizes,
            tokens=own.batch_tokens,
            seed=own.seed,
            epoch=epoch,
            max_sentences=own.batch_sentences,
        )

    def _logits(self, batch: Batch) -> Tensor:
        tokens = batch.tokens.to(self.classifier.device, non_blocking=True)
        logits: Tensor = self.model(tokens, batch.words, batch.sentences).logits
        return logits.float()

    def _balance(self) -> Tensor:
        own = self.classifier.settings
        labels = [example.labels for example in self.data.examples]
        return balancing_weights(labels, len(own.labels), several=own.several)

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


def encode_documents(documents: Documents, classifier: DocumentClassifier) -> DocumentDataset:
    """Turn documents into numbers.

    Args:
        documents: The documents.
        classifier: Knows the labels, and how texts are cut.

    Returns:
        The dataset.

    Raises:
        DataError: A label is not known.
    """
    places = label_places(documents, classifier.settings.labels)
    examples, cut = [], 0
    for text, spans, labels in zip(documents.texts, documents.spans, places, strict=True):
        document = classifier.read(text, spans)
        cut += document.left_out + document.shortened > 0
        ids = array("i", (i for sentence in document.sentences for i in sentence.ids))
        words = tuple(len(sentence.ids) for sentence in document.sentences)
        examples.append(Example(ids, words, labels))
    return DocumentDataset(documents, examples, cut)


def _identity(
    settings: ClassificationSettings,
    classifier: DocumentClassifier,
    parts: tuple[DocumentDataset, DocumentDataset],
    vectors: str | None,
) -> dict[str, Any]:
    table = comparable(settings, files=("train", "dev", "test", "vectors"))
    data, dev = parts
    table["data"].update(train=data.documents.sha256, dev=dev.documents.sha256, vectors=vectors)
    table["tokens"] = classifier.tokenizer.sha256
    return table
