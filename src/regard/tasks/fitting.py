"""Fitting a model in memory, for those who keep it themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from regard.errors import DivergedError
from regard.tasks.sequence_job import SequenceJob, collate
from regard.training.schedule import factor
from regard.training.settings import TrainingSettings
from regard.training.steps import Stepper


def plain(table: dict[str, Any]) -> dict[str, Any]:
    """Turn NumPy's numbers into Python's, which settings are strict about.

    Args:
        table: Names and values, such as a search over parameters gives them.

    Returns:
        The same, with plain numbers.
    """
    return {
        name: plain(value)
        if isinstance(value, dict)
        else value.item()
        if isinstance(value, np.generic)
        else value
        for name, value in table.items()
    }


@contextlib.contextmanager
def own_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from PyTorch's global generators as from fresh ones, and put them back.

    Args:
        seed: What the fresh ones are seeded with.
        device: Where a model draws: the CPU's generator and this device's are borrowed.
    """
    if device.type != "cuda":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
        return
    with torch.random.fork_rng(devices=[device]), torch.cuda.device(device):
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        yield


def fit_in_memory(job: SequenceJob, settings: TrainingSettings) -> None:
    """Make all steps of a training in memory: no checkpoints, no log, no evaluation.

    Args:
        job: The model and its data; the model is left in evaluation mode.
        settings: Epochs, rate and optimizer.

    Raises:
        DivergedError: The loss or a gradient is not finite.
        EnvironmentFault: A batch does not fit into memory.
    """
    stepper, features = Stepper(job, settings), len(job.reader.settings.features)
    plans = [job.plan(epoch) for epoch in range(settings.epochs)]
    total, made = sum(map(len, plans)), 0
    job.model.train()
    for plan in plans:
        for chosen in plan:
            rate = settings.learning_rate * factor(
                made, schedule=settings.schedule, warmup=settings.warmup_steps, total=total
            )
            batch = collate([job.data[index] for index in chosen], features=features)
            done = stepper.step(batch, rate)
            if done is not None and not done.finite:
                raise DivergedError(
                    f"loss must be finite; got none at step {made + 1}. Lower learning_rate."
                )
            made += 1
    job.model.eval()
