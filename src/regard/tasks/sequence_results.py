"""What is said of a sequence of numbers, and which of its steps decided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import UserError
from regard.pictures.records import Map, Record
from regard.pictures.series import MOST_FEATURES, Series
from regard.pictures.texts import Text, Token

Weights = NDArray[np.float32]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceResult:
    """What a model says of a sequence, and which steps decided.

    Args:
        name: What the sequence is called: in its table, or its number.
        weights: The weight of each step that was read, `(steps,)`, or `(heads, steps)`; they sum
            to one.
        truncated: Whether it has more steps than are read.
        read: The numbers of the steps that were read, `(steps, features)`.
        features: What they are called.
        written: What was said, each label or value by itself.
        details: What else a record of it holds.
    """

    name: str
    weights: Weights
    truncated: bool
    read: Numbers
    features: tuple[str, ...]
    written: tuple[str, ...]
    details: dict[str, str | float]

    @property
    def record(self) -> Record:
        """What was read and said, and the weights between; of very many features the first."""
        features = self.features[:MOST_FEATURES]
        tokens, place = [], 0
        for said in self.written:
            tokens.append(Token(said, place, place + len(said)))
            place += len(said) + len(", ")
        heads = self.weights[np.newaxis] if self.weights.ndim == 1 else self.weights
        names = [f"head {n}" for n in range(1, len(heads) + 1)] if len(heads) > 1 else ["steps"]
        maps = [
            Map(name, np.tile(row, (len(tokens), 1)))
            for name, row in zip(names, heads, strict=True)
        ]
        return Record(
            "sequences",
            Series.of(self.read[:, : len(features)], features),
            Text(", ".join(self.written), tuple(tokens)),
            tuple(maps),
            {"sequence": self.name, **self.details},
        )

    def save(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Save the chart or the numbers, by the ending: see `Record.save`.

        Args:
            path: The file.
            overwrite: Whether it may be replaced.

        Raises:
            UserError: The ending is unknown, or the file exists.
            EnvironmentFault: The disk is full, or the folder cannot be written to.
        """
        self.record.save(path, overwrite=overwrite)

    def _repr_html_(self) -> str:
        return self.record._repr_html_()

    def strongest(self, count: int = 3) -> list[tuple[int, float]]:
        """List the steps of most weight, of which those without weight are left out.

        Args:
            count: How many.

        Returns:
            Step (from 0) and weight, the heaviest first; of several heads the mean.
        """
        weights = self.weights if self.weights.ndim == 1 else self.weights.mean(axis=0)
        order = np.argsort(-weights, kind="stable")[: max(count, 0)]
        return [(int(step), float(weights[step])) for step in order if weights[step] > 0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceClassification(SequenceResult):
    """The label of a sequence, and which steps decided: see `SequenceResult`.

    Args:
        label: The most probable label.
        probability: Its probability.
        probabilities: That of every label; they sum to one.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceRegression(SequenceResult):
    """The values of a sequence, and which steps decided: see `SequenceResult`.

    Args:
        values: The values by name, in the units of the training data.
    """

    values: dict[str, float]

    @property
    def value(self) -> float:
        """The value, where there is but one.

        Raises:
            UserError: There are several.
        """
        if len(self.values) > 1:
            raise UserError(f"value must be one; got {len(self.values)}. Use values.")
        return next(iter(self.values.values()))
