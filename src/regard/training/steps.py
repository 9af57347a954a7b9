"""One step: loss, gradient, clipping, optimizer; on any device and in any precision."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn, optim

from regard.errors import EnvironmentFault
from regard.training.job import Job
from regard.training.settings import TrainingSettings


class Made(NamedTuple):
    """What a step gave.

    Args:
        finite: Whether loss and gradient were finite, and so the step was applied.
        split: Whether the batch was halved because memory did not suffice.
        sums: Sums for the log.
    """

    finite: bool
    split: bool
    sums: dict[str, float]


class Stepper:
    """Make the steps of a training.

    Args:
        job: The model and its loss.
        settings: Optimizer, precision and clipping.
    """

    def __init__(self, job: Job, settings: TrainingSettings) -> None:
        self.job, self.settings = job, settings
        self.optimizer = _optimizer(job.model, settings)

    def step(self, batch: Any, rate: float) -> Made | None:
        """Make a step, unless the batch holds nothing to learn or something is not finite.

        Args:
            batch: The batch.
            rate: The learning rate.

        Returns:
            What it gave, or None where there was nothing to learn.

        Raises:
            EnvironmentFault: There is not enough memory, even for half the batch.
        """
        size = self.job.size(batch)
        if size == 0:
            return None
        self.optimizer.zero_grad(set_to_none=True)
        sums, split = self._gradient(batch, size)
        norm = self._norm()
        finite = math.isfinite(sums["loss"]) and math.isfinite(norm)
        if finite:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.step()
        return Made(finite, split, {**sums, "count": float(size)})

    def _gradient(self, batch: Any, size: int) -> tuple[dict[str, float], bool]:
        try:
            return self._backward(batch, size), False
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            halves = self.job.split(batch)
            if halves is None:
                raise self._too_large(batch) from error
        # Outside of the handler, which keeps alive what the failed attempt had allocated.
        self.optimizer.zero_grad(set_to_none=True)
        sums: dict[str, float] = {}
        for half in halves:
            for name, value in self._half(half, size).items():
                sums[name] = sums.get(name, 0.0) + value
        return sums, True

    def _half(self, half: Any, size: int) -> dict[str, float]:
        try:
            return self._backward(half, size)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise self._too_large(half) from error

    def _backward(self, batch: Any, size: int) -> dict[str, float]:
        device = next(self.job.model.parameters()).device.type
        half = self.settings.precision == "bfloat16"
        with torch.autocast(device, dtype=torch.bfloat16, enabled=half):
            total, shown = self.job.loss(batch)
        torch.autograd.backward(total / size)
        return {"loss": float(total.detach()), **shown}

    def _norm(self) -> float:
        gradients = [p.grad for p in self.job.model.parameters() if p.grad is not None]
        norm: Tensor = nn.utils.get_total_norm(gradients)
        limit = self.settings.clip_norm
        if limit and math.isfinite(float(norm)):
            nn.utils.clip_grads_with_norm_(self.job.model.parameters(), limit, norm)
        return float(norm)

    def _too_large(self, batch: Any) -> EnvironmentFault:
        return EnvironmentFault(
            f"a batch must fit into memory; this did not: {self.job.describe(batch)}. Lower "
            "batch_tokens.",
            where="memory",
        )


def _optimizer(model: nn.Module, settings: TrainingSettings) -> optim.Optimizer:
    # Fused: one pass over each parameter, on CPU and CUDA alike.
    if settings.optimizer == "sgd":
        return optim.SGD(model.parameters(), lr=settings.learning_rate, fused=True)
    kind = optim.AdamW if settings.optimizer == "adamw" else optim.Adam
    return kind(
        model.parameters(),
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        weight_decay=settings.weight_decay if settings.optimizer == "adamw" else 0.0,
        fused=True,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory did not suffice, on the CPU or on a device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return "allocate memory" in str(error) or "out of memory" in str(error)
