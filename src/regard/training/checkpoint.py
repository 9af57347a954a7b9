"""Checkpoints: folders that hold everything a training needs to go on as if it had never stopped.

A checkpoint is a model's folder (settings, tokenizers, `model.safetensors`) with
`training.safetensors` (optimizer, random state) and `training.json` (where it stands).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn, optim

from regard.errors import FileFormatError
from regard.saving import (
    load_tensors,
    read_json,
    remove_leftovers,
    save_tensors,
    verify_folder,
    write_folder,
)
from regard.training.job import Job

MODEL = "model.safetensors"
TRAINING = "training.safetensors"
PROGRESS = "training.json"


@dataclass
class Progress:
    """Where a training stands.

    Args:
        step: Steps made.
        epoch: Epochs finished.
        position: Batches of this epoch that were seen.
        best: The best metric so far, or None.
        best_step: The step whose weights gave it.
        waiting: Evaluations since then.
        not_finite: Steps in a row that were not finite.
        skipped: Batches that held nothing to learn.
        rejected: Steps that were not applied because something was not finite.
        epoch_ends: Steps at which epochs ended.
        sums: What the log averages over the steps since its last line.
        identity: What must be the same for the run to go on.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    best: float | None = None
    best_step: int = 0
    waiting: int = 0
    not_finite: int = 0
    skipped: int = 0
    rejected: int = 0
    finished: bool = False
    epoch_ends: list[int] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)


def versions() -> dict[str, str]:
    """Return the versions that a manifest names."""
    try:
        own = version("regard")
    except PackageNotFoundError:  # pragma: no cover - run from a bare tree
        own = "unknown"
    return {"regard": own, "torch": torch.__version__}


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: The run's folder; checkpoints lie in its `checkpoints`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder) / "checkpoints"

    def path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint."""
        return self.folder / f"step-{step:09d}"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, in order."""
        found = self.folder.glob("step-*")
        return sorted(int(p.name[5:]) for p in found if p.name[5:].isdigit())

    def save(self, job: Job, optimizer: optim.Optimizer, progress: Progress) -> None:
        """Save a checkpoint whole, or leave everything as it was.

        Args:
            job: The model and what belongs to it.
            optimizer: Its optimizer.
            progress: Where the training stands.

        Raises:
            EnvironmentFault: The disk is full or cannot be written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)

        def fill(folder: Path) -> None:
            job.write(folder)
            save_tensors(folder / MODEL, job.model.state_dict())
            save_tensors(folder / TRAINING, _training_tensors(job.model, optimizer))
            _write_progress(folder, progress)

        target = self.path(progress.step)
        write_folder(target, fill, versions=versions(), overwrite=True)

    def restore(self, step: int, job: Job, optimizer: optim.Optimizer) -> Progress:
        """Load a checkpoint into a model and its optimizer, and the random state.

        Args:
            step: Which one.
            job: The model.
            optimizer: Its optimizer.

        Returns:
            Where the training stood.

        Raises:
            FileFormatError: The checkpoint is damaged or belongs to another model.
        """
        folder = self.path(step)
        verify_folder(folder)
        load_weights(job.model, folder / MODEL)
        _restore_training(job.model, optimizer, folder / TRAINING)
        return read_progress(folder)

    def newest(self) -> tuple[int | None, list[str]]:
        """Find the newest checkpoint that is whole.

        Returns:
            Its step, or None where there is none, and what is wrong with those that are not.
        """
        remove_leftovers(self.folder)
        faults = []
        for step in reversed(self.steps()):
            try:
                verify_folder(self.path(step))
            except FileFormatError as error:
                faults.append(f"checkpoint step {step}: {error.message}")
                continue
            return step, faults
        return None, faults

    def rotate(self, protected: set[int], keep: int) -> None:
        """Remove old checkpoints, except the newest and those that are protected.

        Args:
            protected: Steps that are never removed.
            keep: How many of the newest stay.
        """
        steps = self.steps()
        for step in steps[: -keep or None]:
            if step not in protected:
                # Renamed first, so that no one reads a folder that is half removed.
                doomed = self.folder / f".step-{step:09d}.removed.tmp"
                shutil.rmtree(doomed, ignore_errors=True)
                self.path(step).rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)

    def averaged(self, steps: list[int]) -> dict[str, Tensor]:
        """Average the weights of some checkpoints, in double precision.

        Args:
            steps: Which ones.

        Returns:
            The mean of each floating-point tensor; others are those of the last checkpoint.
        """
        loaded = [load_tensors(self.path(step) / MODEL) for step in steps]
        mean: dict[str, Tensor] = {}
        for name, last in loaded[-1].items():
            if last.is_floating_point():
                total = sum((tensors[name].double() for tensors in loaded), torch.zeros(()))
                mean[name] = (total / len(loaded)).to(last.dtype)
            else:
                mean[name] = last
        return mean


def load_weights(model: nn.Module, path: Path) -> None:
    """Load a model's weights from a file, all of them and no others.

    Args:
        model: The model.
        path: The safetensors file; half precision is widened to that of the model.

    Raises:
        FileFormatError: Names or shapes differ from the model's.
    """
    tensors = load_tensors(path)
    own = model.state_dict()
    wrong = sorted(set(tensors) ^ set(own)) or [
        name for name, tensor in tensors.items() if tensor.shape != own[name].shape
    ]
    if wrong:
        raise FileFormatError(
            f"must hold the weights of this model; {wrong[0]} and {len(wrong) - 1} more differ.",
            where=str(path),
        )
    model.load_state_dict(tensors)


def read_progress(folder: Path) -> Progress:
    """Read where a training stood when it saved a checkpoint."""
    content = read_json(folder / PROGRESS)
    try:
        return Progress(**content)
    except TypeError:
        raise FileFormatError("is not of this version.", where=str(folder / PROGRESS)) from None


def _write_progress(folder: Path, progress: Progress) -> None:
    text = json.dumps(asdict(progress), indent=1, sort_keys=True, allow_nan=False)
    (folder / PROGRESS).write_text(text + "\n", encoding="utf-8")


def _training_tensors(model: nn.Module, optimizer: optim.Optimizer) -> dict[str, Tensor]:
    tensors = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():  # pragma: no cover - no such device in the tests
        for place, state in enumerate(torch.cuda.get_rng_state_all()):
            tensors[f"random.cuda.{place}"] = state
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = torch.as_tensor(value)
    return tensors


def _restore_training(model: nn.Module, optimizer: optim.Optimizer, path: Path) -> None:
    tensors = load_tensors(path)
    parameters = dict(model.named_parameters())
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            parameter, _, key = name.removeprefix("optimizer.").rpartition(".")
            if parameter not in parameters:
                raise FileFormatError(f"{parameter} is not in the model.", where=str(path))
            device = "cpu" if key == "step" else parameters[parameter].device
            optimizer.state[parameters[parameter]][key] = tensor.to(device)
    torch.set_rng_state(tensors["random.cpu"])
    cuda = [name for name in tensors if name.startswith("random.cuda.")]
    if cuda and torch.cuda.is_available():  # pragma: no cover - no such device in the tests
        torch.cuda.set_rng_state_all([tensors[name] for name in sorted(cuda)])
