"""What the loop needs to know of what it trains."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn


class Loss(NamedTuple):
    """A loss summed over a batch.

    Args:
        total: The sum, to be divided by `Job.size`.
        shown: Further sums for the log, by name.
    """

    total: Tensor
    shown: dict[str, float]


class Job(Protocol):
    """A model, its data and its evaluation."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    @property
    def metric(self) -> str:
        """Name of the metric by which evaluations are compared."""

    @property
    def higher_is_better(self) -> bool:
        """Which way it is compared."""

    @property
    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on: settings, data, vocabulary."""

    def steps(self, epoch: int) -> int:
        """Count the batches of an epoch."""

    def batches(self, epoch: int, start: int) -> Generator[Any, None, None]:
        """Load the batches of an epoch from a place on; a pure function of seed and epoch."""

    def size(self, batch: Any) -> int:
        """Count what the loss is divided by; zero where there is nothing to learn."""

    def loss(self, batch: Any) -> Loss:
        """Compute the loss of a batch on the model's device."""

    def split(self, batch: Any) -> tuple[Any, Any] | None:
        """Halve a batch that does not fit into memory; None where it cannot be halved."""

    def describe(self, batch: Any) -> str:
        """Say which examples a batch holds (file and lines) and how long the longest is."""

    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        """Evaluate the model; `poll` must be called often and may raise to stop."""

    def write(self, folder: Path) -> None:
        """Write what belongs to the model beside its weights: settings, tokenizers, card."""
