"""Classification of pictures: a picture in, its label out, and the cells that decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import checked
from regard.errors import UserError
from regard.models.describers import PictureSettings, build_describer
from regard.models.grids import Describer
from regard.models.picture_classifier import PictureModel, PictureReading, build_picture_model
from regard.pictures.picture import Picture
from regard.pictures.records import Detail, Map, Record
from regard.tasks.base import CONFIG, Opened
from regard.tasks.classification_metrics import Numbers
from regard.tasks.image_classification_settings import ImageClassifierSettings
from regard.tasks.labels import Labelled, Verdict, label_probabilities, verdicts
from regard.tasks.networks import load_published
from regard.tasks.sight import Seen, Shown, Sight, see
from regard.training.checkpoint import MODEL, load_model


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageClassification(Labelled):
    """A label of a picture, and what decided; see `Labelled` for what it shares.

    Args:
        image: The picture's name.
    """

    image: str


class ImageClassifier(Sight):
    """A model that classifies pictures and shows what decided.

    Args:
        model: The model.
        describer: What describes the cells of a picture.
        settings: Labels, and what the model is made of.
        name: What a person calls the model.
    """

    def __init__(
        self,
        model: PictureModel,
        describer: Describer,
        settings: ImageClassifierSettings,
        *,
        name: str = "",
    ) -> None:
        self.model, self.describer = model.eval(), describer.eval()
        self.settings, self.name = settings, name

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    @property
    def picture(self) -> PictureSettings:
        """How pictures are described."""
        return self.settings.model.picture

    @property
    def sees_pixels(self) -> bool:
        """Whether the model itself reads pixels, its describer being trained with it."""
        return self.model.describer is not None

    @overload
    def __call__(self, image: Shown, *, batch_size: int = 32) -> ImageClassification: ...

    @overload
    def __call__(
        self, image: list[Shown], *, batch_size: int = 32
    ) -> list[ImageClassification]: ...

    def __call__(
        self, image: Shown | list[Shown], *, batch_size: int = 32
    ) -> ImageClassification | list[ImageClassification]:
        """Classify a picture, or many at once.

        Args:
            image: A file, a PIL image, or a list of them.
            batch_size: How many pictures are read at once.

        Returns:
            One result, or a list in the order of the pictures.

        Raises:
            UserError: `batch_size` is below 1, or a file is no picture.
        """
        shown = image if isinstance(image, list) else [image]
        read = self._read(shown, batch_size)
        found = [result for seen, reading in read for result in self._results(seen, reading)]
        return found if isinstance(image, list) else found[0]

    def rate(self, images: Sequence[Shown], *, batch_size: int = 32) -> Numbers:
        """Return the probabilities of the labels alone, without a record of each picture.

        Args:
            images: Files, or PIL images.
            batch_size: How many pictures are read at once.

        Returns:
            A row for each picture, a column for each label.

        Raises:
            UserError: `batch_size` is below 1, or a file is no picture.
        """
        read = self._read(images, batch_size)
        rows = [self.probabilities(reading.logits) for _, reading in read]
        return np.concatenate([np.zeros((0, len(self.settings.labels))), *rows])

    @torch.inference_mode()
    def reading(self, sources: Tensor) -> PictureReading:
        """Let the model read what `sources` made: scores of labels, weights of cells."""
        reading: PictureReading = self.model(self.on_device(sources))
        return reading

    def probabilities(self, logits: Tensor) -> Numbers:
        """Turn scores into the probabilities of the labels."""
        return label_probabilities(logits, several=self.settings.several)

    def _read(
        self, images: Sequence[Shown], batch_size: int
    ) -> Iterator[tuple[list[Seen], PictureReading]]:
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Use 32.")
        for start in range(0, len(images), batch_size):
            seen = [see(one) for one in images[start : start + batch_size]]
            yield seen, self.reading(self.sources([one.image for one in seen]))

    def _results(self, seen: Sequence[Seen], reading: PictureReading) -> list[ImageClassification]:
        own = self.settings
        said = verdicts(self.probabilities(reading.logits), own.labels, several=own.several)
        weights = reading.weights.float().cpu().numpy()
        return [self._result(*row) for row in zip(seen, said, weights, strict=True)]

    def _result(
        self, seen: Seen, verdict: Verdict, weights: NDArray[np.float32]
    ) -> ImageClassification:
        return ImageClassification(
            image=seen.name,
            label=verdict.label,
            probability=verdict.probability,
            labels=verdict.labels,
            probabilities=verdict.probabilities,
            looked=self._record(seen, verdict, weights),
        )

    def _record(self, seen: Seen, verdict: Verdict, weights: NDArray[np.float32]) -> Record:
        rows, columns = self.grid
        picture = Picture.from_image(seen.image, rows=rows, columns=columns, name=seen.name)
        written = verdict.written
        rows_of = (np.tile(one, (len(written.tokens), 1)) for one in np.atleast_2d(weights))
        names = ["cells"] if weights.ndim == 1 else [f"head {n + 1}" for n in range(len(weights))]
        maps = tuple(Map(name, matrix) for name, matrix in zip(names, rows_of, strict=True))
        details: dict[str, Detail] = {"probability": round(verdict.probability, 6)}
        for label in verdict.labels if len(verdict.labels) > 1 else ():
            details[f"probability of {label}"] = round(verdict.probabilities[label], 6)
        details["model"] = self.name
        return Record("image classification", picture, written, maps, details)


def load_image_classifier(opened: Opened, device: torch.device) -> ImageClassifier:
    """Open a classifier of pictures.

    Args:
        opened: Its folder, verified.
        device: Where it shall live.

    Returns:
        The classifier.

    Raises:
        FileFormatError: A file of it is wrong.
        MissingExtraError: The published weights of its network are not installed.
    """
    settings = checked(opened.config, ImageClassifierSettings, where=str(opened.folder / CONFIG))
    describer = build_describer(settings.model.picture)
    load_published(describer)

    def build() -> PictureModel:
        return build_picture_model(settings.model, describer, labels=len(settings.labels))

    model = load_model(build, opened.folder / MODEL)
    return ImageClassifier(model.to(device), describer.to(device), settings, name=opened.name)
