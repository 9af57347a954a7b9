"""Sequences of numbers: a label or values for each, and the steps that decided."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import checked
from regard.data.batches import reading_plan
from regard.data.padding import pad_vectors
from regard.data.series import Sequences, as_sequences, read_sequences
from regard.errors import UserError
from regard.models.sequences import SequenceModel, SequenceReading, build_sequence_model
from regard.tasks.base import CONFIG, Opened
from regard.tasks.labels import label_probabilities
from regard.tasks.sequence_results import (
    Numbers,
    SequenceClassification,
    SequenceRegression,
    Weights,
)
from regard.tasks.sequence_settings import PredictorSettings
from regard.training.checkpoint import MODEL, load_model

MOST_STEPS = 1 << 15
"""Padded steps that are read at once, which bounds the memory it takes."""

Several: TypeAlias = str | Path | Sequence[Any]
"""The file of a table, or a list of arrays `(steps, features)`."""
Array: TypeAlias = NDArray[Any] | Tensor
"""An array `(steps, features)`, which is one sequence, or `(sequences, steps, features)`."""


class Read(NamedTuple):
    """What a model made of one sequence: its scores or standardised values, and its weights."""

    place: int
    outputs: Tensor
    weights: Weights


class SequenceReader:
    """A model that reads sequences, with what it knows of its columns.

    Args:
        model: The model.
        settings: Features, labels, and how tables are read.
    """

    def __init__(self, model: SequenceModel, settings: PredictorSettings) -> None:
        self.model, self.settings = model.eval(), settings

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    def sequences(self, given: Several | Array) -> Sequences:
        """Take what a person gives for sequences.

        Args:
            given: An array `(steps, features)`; an array `(sequences, steps, features)`; a list of
                arrays; or the file of a table.

        Returns:
            The sequences.

        Raises:
            UserError: It is none of them, or a number is wrong.
            DataError: The table is wrong.
        """
        own = self.settings
        if isinstance(given, str | Path):
            columns = own.columns.columns(own.features, labelled=False)
            made = read_sequences(
                given,
                columns=columns,
                encoding=own.columns.encoding,
                separator=own.columns.separator,
            )
        else:
            arrays = [given] if is_one(given) else list(given)
            made = as_sequences(arrays, features=own.features)
        made.check_numbers(missing=own.model.missing == "mean")
        return made

    def read(self, sequences: Sequences, *, batch_size: int = 64) -> Iterator[Read]:
        """Let the model read sequences, those of similar length at once.

        Args:
            sequences: The sequences, whose numbers were checked.
            batch_size: How many are read at once, at most; fewer of very long ones.

        Returns:
            What it made of each, those with fewest steps first.

        Raises:
            UserError: `batch_size` is below 1.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Use 64.")
        limit = self.settings.limit
        lengths = np.minimum(sequences.lengths, limit).tolist()
        for chosen in reading_plan(lengths, tokens=MOST_STEPS, max_sentences=batch_size):
            with torch.inference_mode():
                reading = self.reading([sequences[i][:limit] for i in chosen])
            weights = reading.weights.float().cpu().numpy()
            for row, index in enumerate(chosen):
                own = weights[row, ..., : lengths[index]].copy()
                yield Read(index, reading.outputs[row], own)

    def reading(self, arrays: Sequence[Numbers]) -> SequenceReading:
        """Let the model read a batch of arrays `(steps, features)`."""
        values, mask = pad_vectors(arrays, features=len(self.settings.features))
        reading: SequenceReading = self.model(self.moved(values), mask.to(self.device))
        return reading

    def moved(self, values: Tensor) -> Tensor:
        """Put numbers of 64 bits where the model lives, in 32 where a device has no more."""
        single = self.device.type == "mps"
        return values.float().to(self.device) if single else values.to(self.device)

    def probabilities(self, outputs: Tensor) -> Numbers:
        """Turn scores into the probabilities of the labels."""
        return label_probabilities(outputs, several=False)

    def values(self, outputs: Tensor) -> Numbers:
        """Turn standardised values into those of the data."""
        made = self.model.targets.back(self.moved(outputs.cpu().double()))
        return np.asarray(made.cpu().numpy(), dtype=np.float64)

    def cut(self, sequences: Sequences) -> int:
        """Count the sequences that have more steps than are read."""
        return int((sequences.lengths > self.settings.limit).sum())


class SequenceClassifier:
    """A model that gives sequences of numbers a label, and shows which steps decided.

    Args:
        reader: The model, and how sequences reach it.
        name: What a person calls the model.
    """

    def __init__(self, reader: SequenceReader, *, name: str = "") -> None:
        self.reader, self.name = reader, name

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it knows."""
        return tuple(self.reader.settings.labels)

    @overload
    def __call__(self, given: Several, *, batch_size: int = 64) -> list[SequenceClassification]: ...

    @overload
    def __call__(
        self, given: Array, *, batch_size: int = 64
    ) -> SequenceClassification | list[SequenceClassification]: ...

    def __call__(
        self, given: Several | Array, *, batch_size: int = 64
    ) -> SequenceClassification | list[SequenceClassification]:
        """Classify a sequence, or many at once.

        What is beyond `max_steps` is not read, with a warning.

        Args:
            given: An array `(steps, features)`; or an array `(sequences, steps, features)`, a list
                of arrays, or the file of a table, for several.
            batch_size: How many are read at once.

        Returns:
            A `SequenceClassification`, or a list in the order of the sequences.

        Raises:
            UserError: A number or a shape is wrong.
            DataError: The table is wrong.
        """
        results = self.classify(self.reader.sequences(given), batch_size=batch_size)
        return results[0] if is_one(given) else results

    def classify(
        self, sequences: Sequences, *, batch_size: int = 64
    ) -> list[SequenceClassification]:
        """Classify sequences that were read from a table, or made of arrays.

        Args:
            sequences: The sequences.
            batch_size: How many are read at once.

        Returns:
            A result for each.
        """
        _warn(self.reader, sequences)
        found: dict[int, SequenceClassification] = {}
        for one in self.reader.read(sequences, batch_size=batch_size):
            probabilities = self.reader.probabilities(one.outputs)
            best = int(probabilities.argmax())
            found[one.place] = SequenceClassification(
                **_common(self.reader, sequences, one),
                written=(self.labels[best],),
                details={"probability": round(float(probabilities[best]), 6), "model": self.name},
                label=self.labels[best],
                probability=float(probabilities[best]),
                probabilities=dict(zip(self.labels, map(float, probabilities), strict=True)),
            )
        return [found[index] for index in range(len(sequences))]


class SequenceRegressor:
    """A model that foretells values of sequences of numbers, and shows which steps decided.

    Args:
        reader: The model, and how sequences reach it.
        name: What a person calls the model.
    """

    def __init__(self, reader: SequenceReader, *, name: str = "") -> None:
        self.reader, self.name = reader, name

    @property
    def targets(self) -> tuple[str, ...]:
        """What the values are called."""
        return self.reader.settings.columns.targets

    @overload
    def __call__(self, given: Several, *, batch_size: int = 64) -> list[SequenceRegression]: ...

    @overload
    def __call__(
        self, given: Array, *, batch_size: int = 64
    ) -> SequenceRegression | list[SequenceRegression]: ...

    def __call__(
        self, given: Several | Array, *, batch_size: int = 64
    ) -> SequenceRegression | list[SequenceRegression]:
        """Foretell the values of a sequence, or of many at once.

        What is beyond `max_steps` is not read, with a warning.

        Args:
            given: An array `(steps, features)`; or an array `(sequences, steps, features)`, a list
                of arrays, or the file of a table, for several.
            batch_size: How many are read at once.

        Returns:
            A `SequenceRegression`, or a list in the order of the sequences.

        Raises:
            UserError: A number or a shape is wrong.
            DataError: The table is wrong.
        """
        results = self.foretell(self.reader.sequences(given), batch_size=batch_size)
        return results[0] if is_one(given) else results

    def foretell(self, sequences: Sequences, *, batch_size: int = 64) -> list[SequenceRegression]:
        """Foretell the values of sequences that were read from a table, or made of arrays.

        Args:
            sequences: The sequences.
            batch_size: How many are read at once.

        Returns:
            A result for each.
        """
        _warn(self.reader, sequences)
        found: dict[int, SequenceRegression] = {}
        for one in self.reader.read(sequences, batch_size=batch_size):
            row = self.reader.values(one.outputs)
            values = dict(zip(self.targets, map(float, row), strict=True))
            found[one.place] = SequenceRegression(
                **_common(self.reader, sequences, one),
                written=tuple(f"{name} {value:.4g}" for name, value in values.items()),
                details={"model": self.name},
                values=values,
            )
        return [found[index] for index in range(len(sequences))]


def is_one(given: Several | Array) -> bool:
    """Say whether what was given is one sequence: an array of one or two axes."""
    return isinstance(given, np.ndarray | Tensor) and given.ndim < 3


def _common(reader: SequenceReader, sequences: Sequences, one: Read) -> dict[str, Any]:
    limit = reader.settings.limit
    return {
        "name": sequences.names[one.place],
        "weights": one.weights,
        "truncated": int(sequences.lengths[one.place]) > limit,
        "read": sequences[one.place][:limit],
        "features": sequences.features,
    }


def _warn(reader: SequenceReader, sequences: Sequences) -> None:
    cut = reader.cut(sequences)
    if cut:
        warnings.warn(
            f"sequences are read up to {reader.settings.limit:,} steps; {cut} of {len(sequences)} "
            "are longer and were cut",
            UserWarning,
            stacklevel=4,
        )


def load_sequences(opened: Opened, device: torch.device) -> SequenceClassifier | SequenceRegressor:
    """Open a model of sequences.

    Args:
        opened: Its folder, verified.
        device: Where it shall live.

    Returns:
        A classifier, or what foretells values.

    Raises:
        FileFormatError: A file of it is wrong.
    """
    settings = checked(opened.config, PredictorSettings, where=str(opened.folder / CONFIG))

    def build() -> SequenceModel:
        return build_sequence_model(
            settings.model, features=len(settings.features), outputs=settings.outputs
        )

    reader = SequenceReader(load_model(build, opened.folder / MODEL).to(device), settings)
    kind = SequenceClassifier if settings.target == "label" else SequenceRegressor
    return kind(reader, name=opened.name)
