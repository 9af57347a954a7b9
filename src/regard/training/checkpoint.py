"""Checkpoints: folders that hold everything a training needs to go on as if it had never stopped.

A checkpoint is a model's folder (settings, tokenizers, `model.safetensors`) with
`training.safetensors` (optimizer, random state) and `training.json` (where it stands).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import Tensor, nn, optim

from regard.errors import FileFormatError
from regard.saving import (
    check_safetensors,
    load_tensors,
    read_json,
    remove_folder,
    save_tensors,
    verify_folder,
    write_folder,
)
from regard.training.job import Job

MODEL = "model.safetensors"
TRAINING = "training.safetensors"
PROGRESS = "training.json"
Model = TypeVar("Model", bound=nn.Module)
_NEVER = (FileFormatError, OSError)


@dataclass
class Progress:
    """Where a training stands.

    Args:
        step: Steps made.
        epoch: Epochs finished.
        position: Batches of this epoch that were seen.
        best: The best metric so far, negated where lower is better, or None.
        best_step: The step whose weights gave it.
        waiting: Evaluations since then.
        not_finite: Steps in a row that were not finite.
        skipped: Batches that held nothing to learn.
        rejected: Steps that were not applied because something was not finite.
        split: Batches that were halved because memory did not suffice.
        finished: Whether early stopping has ended the training.
        epoch_ends: Steps at which epochs ended.
        sums: What the log averages over the steps since its last line.
        log_bytes: Size of the log when the checkpoint was saved, or None where it is not known.
        identity: What must be the same for the run to go on.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    step: int = 0
    epoch: int = 0
    position: int = 0
    best: float | None = None
    best_step: int = 0
    waiting: int = 0
    not_finite: int = 0
    skipped: int = 0
    rejected: int = 0
    split: int = 0
    finished: bool = False
    epoch_ends: list[int] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)
    log_bytes: int | None = None
    identity: dict[str, Any] = field(default_factory=dict)

    def needs(self, *, select: str, average: int) -> set[int]:
        """Return the steps whose weights may become the model.

        Args:
            select: "best", "last" or "average".
            average: How many epochs are averaged.
        """
        if select == "average":
            return set(self.epoch_ends[-average:])
        return {self.best_step} if select == "best" and self.best is not None else set()


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
        return sorted(int(p.name[5:]) for p in found if p.name[5:].isdecimal())

    def save(self, job: Job, optimizer: optim.Optimizer, progress: Progress) -> None:
        """Save a checkpoint whole, or leave everything as it was.

        Args:
            job: The model and what belongs to it.
            optimizer: Its optimizer.
            progress: Where the training stands.

        Raises:
            EnvironmentFault: The disk is full or cannot be written to.
        """

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
        progress = read_progress(folder)
        load_weights(job.model, folder / MODEL)
        _restore_training(job.model, optimizer, folder / TRAINING)
        return progress

    def newest(self) -> tuple[int | None, dict[int, str]]:
        """Find the newest checkpoint that is whole.

        Returns:
            Its step, or None where there is none, and what is wrong with later ones.
        """
        faults: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                verify_folder(self.path(step))
            except FileFormatError as error:
                faults[step] = f"checkpoint step {step}: {error.message}"
                continue
            return step, faults
        return None, faults

    def set_aside(self, step: int) -> Path:
        """Rename a damaged checkpoint, so that it counts no more but can be looked at.

        Args:
            step: Which one.

        Returns:
            Where it lies now.
        """
        aside = self.folder / f"damaged-{self.path(step).name}"
        with contextlib.suppress(OSError):
            if aside.exists():
                remove_folder(aside)
            self.path(step).rename(aside)
        return aside

    def rotate(self, *, keep: int, select: str, average: int) -> None:
        """Remove old checkpoints, except the newest, their best ones and those that they need.

        A checkpoint needs those whose weights may become the model when training goes on from it:
        were they removed, falling back to it would lead nowhere.

        Args:
            keep: How many of the newest stay, at least 1.
            select: Which weights become the model: "best", "last" or "average".
            average: How many epochs are averaged.
        """
        steps = self.steps()
        kept = set(steps[-keep:])
        for step in sorted(kept):
            with contextlib.suppress(*_NEVER):  # a damaged one needs nothing
                progress = read_progress(self.path(step))
                kept |= {progress.best_step, *progress.needs(select=select, average=average)}
        for step in steps:
            if step not in kept:
                with contextlib.suppress(OSError):  # it costs room, nothing else
                    remove_folder(self.path(step))

    def averaged(self, steps: list[int]) -> dict[str, Tensor]:
        """Average the weights of some checkpoints, in double precision.

        Args:
            steps: Which ones, at least one.

        Returns:
            The mean of each floating-point tensor; others are those of the last checkpoint.

        Raises:
            FileFormatError: One of them is damaged.
        """
        totals: dict[str, Tensor] = {}
        last: dict[str, Tensor] = {}
        for step in steps:
            verify_folder(self.path(step))
            last = load_tensors(self.path(step) / MODEL)
            for name, tensor in last.items():
                if tensor.is_floating_point():
                    totals[name] = totals.get(name, torch.zeros(())) + tensor.double()
        means = {name: (sum_ / len(steps)).to(last[name].dtype) for name, sum_ in totals.items()}
        return {**last, **means}


def load_model(build: Callable[[], Model], path: Path) -> Model:
    """Build a model and load its weights, unless the file is too small for a model of its size.

    Args:
        build: Builds the model. It is called for the meta device first, where nothing is allocated:
            settings within their bounds may still ask for more memory than there is.
        path: The safetensors file.

    Returns:
        The model, with the weights of the file.

    Raises:
        FileFormatError: The weights are not those of this model.
    """
    check_safetensors(path)
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in build().parameters())
    size = path.stat().st_size
    if count > size:
        raise FileFormatError(
            f"must hold the weights of this model, which are {count:,} numbers; got {size:,} "
            "bytes. The settings are of another model.",
            where=str(path),
        )
    model = build()
    load_weights(model, path)
    return model


def load_weights(model: nn.Module, path: Path) -> None:
    """Load a model's weights from a file, all of them and no others.

    Args:
        model: The model.
        path: The safetensors file; another precision is turned into that of the model.

    Raises:
        FileFormatError: Names, shapes or kinds differ from the model's.
    """
    tensors = load_tensors(path)
    own = model.state_dict()
    wrong = [f"{name} is in one of them only" for name in sorted(set(tensors) ^ set(own))]
    wrong = wrong or [
        f"{name} is {_kind(tensor)}, not {_kind(own[name])}"
        for name, tensor in tensors.items()
        if _kind(tensor) != _kind(own[name])
    ]
    if wrong:
        more = f", and {len(wrong) - 1} more differ" if len(wrong) > 1 else ""
        raise FileFormatError(
            f"must hold the weights of this model; {wrong[0]}{more}.", where=str(path)
        )
    model.load_state_dict(tensors)


def read_progress(folder: Path) -> Progress:
    """Read where a training stood when it saved a checkpoint.

    Args:
        folder: The checkpoint.

    Returns:
        Where it stood.

    Raises:
        FileFormatError: The file is missing or is not of this version.
    """
    path = Path(folder) / PROGRESS
    try:
        # As JSON again: from objects, a strict check takes dataclasses only.
        return TypeAdapter(Progress).validate_json(json.dumps(read_json(path)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "it"
        raise FileFormatError(f"{name[:80]} is not of this version.", where=str(path)) from None


def _kind(tensor: Tensor) -> str:
    sort = "real" if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
    return f"{sort} {list(tensor.shape)}"


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
    if "random.cpu" not in tensors:
        raise FileFormatError("must hold the random state; it does not.", where=str(path))
    optimizer.state.clear()
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            owner, _, key = name.removeprefix("optimizer.").rpartition(".")
            if owner not in parameters:
                raise FileFormatError(f"{owner} is not in the model.", where=str(path))
            # The step too: a fused optimizer counts on the device.
            optimizer.state[parameters[owner]][key] = tensor.to(parameters[owner].device)
    torch.set_rng_state(tensors["random.cpu"])
    for place in range(torch.cuda.device_count()):  # pragma: no cover - no such device in the tests
        if f"random.cuda.{place}" in tensors:
            torch.cuda.set_rng_state(tensors[f"random.cuda.{place}"], place)
