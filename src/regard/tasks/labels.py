"""What the tasks share whose output is a label: probabilities, what is said, the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from regard.pictures.texts import Text, Token
from regard.tasks.classification_metrics import Numbers, predicted
from regard.tasks.output import Looked

Label = Annotated[str, Field(min_length=1, max_length=200)]
Labels = Annotated[list[Label], Field(min_length=1, max_length=100_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Looked):
    """A label, and what decided; see `Looked` for the record.

    Args:
        label: The most probable label.
        probability: Its probability.
        labels: The labels that hold: the most probable one, or all of at least a half where there
            may be several.
        probabilities: The probability of every label; they sum to one where there is but one.
    """

    label: str
    probability: float
    labels: tuple[str, ...]
    probabilities: dict[str, float]


class Verdict(NamedTuple):
    """What is said of one input: see `Labelled`."""

    label: str
    probability: float
    labels: tuple[str, ...]
    probabilities: dict[str, float]

    @property
    def written(self) -> Text:
        """The labels that hold as a text, each a token; the most probable one where none does."""
        tokens, place = [], 0
        labels = self.labels or (self.label,)
        for label in labels:
            tokens.append(Token(label, place, place + len(label)))
            place += len(label) + len(", ")
        return Text(", ".join(labels), tuple(tokens))


def label_probabilities(logits: Tensor, *, several: bool) -> Numbers:
    """Turn scores of labels into their probabilities.

    Args:
        logits: A score for each label, in the last axis.
        several: Whether any number of labels may hold.

    Returns:
        The probabilities: each by itself where several may hold, else summing to one.
    """
    logits = logits.double()
    made = logits.sigmoid() if several else logits.softmax(dim=-1)
    return np.asarray(made.cpu().numpy())


def verdicts(probabilities: Numbers, known: Sequence[str], *, several: bool) -> list[Verdict]:
    """Say which labels hold.

    Args:
        probabilities: A row for each input, a column for each label.
        known: The labels.
        several: Whether any number of them may hold.

    Returns:
        What is said of each input.
    """
    found = []
    for row, said in zip(probabilities, predicted(probabilities, several=several), strict=True):
        best = int(row.argmax())
        labels = tuple(label for label, holds in zip(known, said, strict=True) if holds)
        table = dict(zip(known, map(float, row), strict=True))
        found.append(Verdict(known[best], float(row[best]), labels, table))
    return found


def label_targets(labels: Sequence[Sequence[int]], count: int) -> Tensor:
    """Put the labels of a batch into a matrix.

    Args:
        labels: The places of each input's labels.
        count: How many labels there are.

    Returns:
        For each input one where a label holds, else zero.
    """
    targets = torch.zeros(len(labels), count)
    for row, places in enumerate(labels):
        targets[row, list(places)] = 1.0
    return targets


def label_loss(
    logits: Tensor, targets: Tensor, *, several: bool, smoothing: float, weights: Tensor | None
) -> Tensor:
    """Compute the cross entropy of one label, or of each, summed over the inputs.

    Args:
        logits: A score for each label.
        targets: One where a label holds.
        several: Whether any number of labels may hold.
        smoothing: Share of the probability that is spread over the labels.
        weights: How much each label counts; None for all alike.

    Returns:
        The sum.
    """
    targets = targets.to(logits.device)
    weights = None if weights is None else weights.to(logits.device)
    if several:
        soft = targets * (1.0 - smoothing) + 0.5 * smoothing
        return nn.functional.binary_cross_entropy_with_logits(
            logits, soft, pos_weight=weights, reduction="sum"
        )
    return nn.functional.cross_entropy(
        logits,
        targets.argmax(dim=1),
        weight=weights,
        label_smoothing=smoothing,
        reduction="sum",
    )


def balancing_weights(labels: Sequence[Sequence[int]], count: int, *, several: bool) -> Tensor:
    """Weigh labels by how rare they are: all labels then count as much together.

    Args:
        labels: The places of each training input's labels.
        count: How many labels there are.
        several: Whether any number of them may hold.

    Returns:
        How much each counts in `label_loss`.
    """
    seen = torch.zeros(count)
    for places in labels:
        seen[list(places)] += 1
    total = float(len(labels))
    if several:
        return (total - seen).clamp(min=1.0) / seen
    return total / (count * seen)
