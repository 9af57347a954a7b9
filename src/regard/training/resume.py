"""Whether a run may begin in a folder, and from where it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from torch import optim

from regard.errors import FileFormatError, ResumeError, UserError
from regard.saving import MANIFEST, verify_folder
from regard.training.checkpoint import Checkpoints, Progress, read_progress
from regard.training.identity import compare
from regard.training.job import Job
from regard.training.lock import LOCK
from regard.training.settings import TrainingSettings

MODEL_FOLDER = "model"


class Resumed(NamedTuple):
    """Where a run goes on from.

    Args:
        progress: Where it stood.
        notices: What a person should know about it.
    """

    progress: Progress
    notices: list[str]


def check_new(folder: Path) -> None:
    """Refuse to begin a run in a folder that holds something.

    Args:
        folder: The run's folder.

    Raises:
        UserError: It holds a run, or anything else.
    """
    steps = Checkpoints(folder).steps()
    if steps:
        raise UserError(
            f"must be empty to begin a run; it holds one of {steps[-1]} steps. Add --resume, or "
            "choose another folder.",
            where=str(folder),
        )
    found = sorted(path.name for path in Path(folder).iterdir() if path.name != LOCK)
    if found and found != ["checkpoints"]:
        raise UserError(
            f"must be empty to begin a run; it holds {found[0]}. Add --resume to use it all the "
            "same, or choose another folder.",
            where=str(folder),
        )


def resume(
    folder: Path,
    job: Job,
    optimizer: optim.Optimizer,
    *,
    settings: TrainingSettings,
    allowed: tuple[str, ...],
) -> Resumed | None:
    """Go on from the newest checkpoint that is whole.

    Args:
        folder: The run's folder.
        job: The model, which takes the checkpoint's weights.
        optimizer: Its optimizer, which takes the checkpoint's state.
        settings: How the run is trained.
        allowed: Fields of the job's identity that may differ from the checkpoint's.

    Returns:
        Where the run stood, or None where it had saved nothing yet.

    Raises:
        ResumeError: No checkpoint is whole, or something has changed.
    """
    checkpoints = Checkpoints(folder)
    step, faults = checkpoints.newest()
    if step is None:
        _check_nothing_lost(folder, faults)
        return None
    before = read_progress(checkpoints.path(step))
    # Compared first: a changed model would be refused by its weights, which say less.
    compare(before.identity, job.identity, allowed=allowed)
    for needed in sorted(before.needs(select=settings.select, average=settings.average)):
        _check_needed(checkpoints, needed)
    progress = checkpoints.restore(step, job, optimizer)
    progress.identity = job.identity
    notices = []
    for damaged, fault in faults.items():
        aside = checkpoints.set_aside(damaged)
        notices.append(f"{fault} It is now {aside.name}; the run goes on from step {step}.")
    return Resumed(progress, notices)


def _check_nothing_lost(folder: Path, faults: dict[int, str]) -> None:
    if faults:
        newest = faults[max(faults)]
        raise ResumeError(
            f"one checkpoint must be whole; none of {len(faults)} is: {newest} Or train into "
            "another folder.",
            where=str(folder),
        )
    if (Path(folder) / MODEL_FOLDER / MANIFEST).exists():
        raise ResumeError(
            "must hold a checkpoint to go on from; it holds a finished model only. Train into "
            "another folder.",
            where=str(folder),
        )


def _check_needed(checkpoints: Checkpoints, step: int) -> None:
    try:
        verify_folder(checkpoints.path(step))
    except FileFormatError as error:
        raise ResumeError(
            f"checkpoint step {step} must be whole, as its weights may become the model; "
            f"{error.message} Or train into another folder.",
            where=str(checkpoints.folder),
        ) from None
