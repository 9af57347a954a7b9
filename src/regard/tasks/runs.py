"""What the tasks share of a run: how it begins, and what it remembers of its data."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from regard.config import Strict, checked
from regard.errors import FileFormatError, UserError
from regard.saving import read_json, write_file
from regard.training.job import Job
from regard.training.loop import RUN, Outcome, RunOptions, train
from regard.training.settings import TrainingSettings

Data = TypeVar("Data", bound=Strict)

_FREE = ("workers", "checkpoint_steps", "keep", "device")  # these do not change the result


def run_data(folder: Path, kind: type[Data], otherwise: Data) -> tuple[Data, Path]:
    """Read how a run's data files are to be read, and where they lie.

    Args:
        folder: A run's folder, or that of a model.
        kind: The task's data settings.
        otherwise: What to return where no run stands behind the model.

    Returns:
        The settings, and the folder that names in them start from.

    Raises:
        FileFormatError: The note is damaged.
    """
    for notes in (folder / RUN, folder.parent / RUN):  # a run's folder, or the model in it
        if notes.is_file():
            content = read_json(notes)
            if not isinstance(content, dict) or not isinstance(content.get("root"), str):
                raise FileFormatError("must name a root; it is no note of a run.", where=str(notes))
            data = checked(content.get("data") or {}, kind, where=str(notes))
            return data, Path(content["root"])
    return otherwise, Path()


class Trained(Protocol):
    """A task's config, as far as every task's is alike."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def data(self) -> Strict:
        """Where the data are, and how they are read."""

    @property
    def training(self) -> TrainingSettings:
        """How to train."""


def set_up(training: TrainingSettings) -> None:
    """Set seed and threads, before anything is drawn or computed.

    Args:
        training: The settings that hold them.
    """
    torch.manual_seed(training.seed)
    if training.threads:
        torch.set_num_threads(training.threads)


def train_run(job: Job, settings: Trained, options: RunOptions, *, root: Path) -> Outcome:
    """Train, and note in the run's folder where its data lay.

    Args:
        job: What is trained.
        settings: The config.
        options: Folder, resuming, and what may have changed.
        root: The folder that names in the config start from.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` raises.
    """
    data = settings.data.model_dump(mode="json")
    notes = {"task": settings.task, "root": str(root.resolve()), "data": data}
    return train(job, settings.training, options, notes=notes)


def comparable(settings: Strict, *, files: Sequence[str]) -> dict[str, Any]:
    """Return what of a config must be the same for a run to go on.

    Args:
        settings: The config.
        files: Keys of its data that name files and folders: what is in them counts instead.

    Returns:
        A table, to which the hashes of data and tokenizers are added.
    """
    table = settings.model_dump(mode="json")
    table["training"] = {k: v for k, v in table["training"].items() if k not in _FREE}
    for name in files:
        del table["data"][name]
    table["torch"] = torch.__version__.partition("+")[0]
    return table


def first_places(places: Sequence[str]) -> str:
    """Name the first five places of a batch, and say how many more there are."""
    rest = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return ", ".join(places[:5]) + rest


def one_file(files: Sequence[str]) -> Path:
    """Return the one file that was given.

    Args:
        files: What was given, at least one.

    Raises:
        UserError: There are more.
    """
    if len(files) > 1:
        raise UserError(
            f"takes one file for a model of this kind; got {len(files)}. Evaluate them one by one.",
            where="evaluate",
        )
    return Path(files[0])


def is_same(one: Path, other: Path) -> bool:
    """Say whether two names are those of one file that exists."""
    with contextlib.suppress(OSError):
        return one.samefile(other)
    return False


def new_config(folder: Path, *, overwrite: bool) -> Path:
    """Name the config of a sample, which must not exist yet.

    Args:
        folder: The sample's folder.
        overwrite: Whether the config may exist.

    Returns:
        The config's file.

    Raises:
        UserError: It exists already.
    """
    config = folder / "config.toml"
    if config.exists() and not overwrite:
        raise UserError("exists already. Choose another folder, or use --force.", where=str(config))
    return config


def write_config(config: Path, template: str) -> None:
    """Write the config of a sample, in which a person reads how to go on.

    Args:
        config: The file.
        template: Its text; `{name}` is the file, `{run}` the run's name, `{folder}` the folder.

    Raises:
        EnvironmentFault: It cannot be written.
    """
    names = {"name": "config.toml", "run": "NAME", "folder": "."}
    if str(config).isprintable():  # another name cannot be pasted into a shell
        folder = config.parent
        names = {"name": str(config), "run": folder.resolve().name, "folder": str(folder)}
    write_file(config, template.format(**names))
