"""What all tasks share: finding a model, opening its folder, choosing a device."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import read_table
from regard.errors import ConfigError, EnvironmentFault, FileFormatError, UserError, did_you_mean
from regard.saving import MANIFEST, read_json, verify_folder

CONFIG = "config.json"
BUNDLED = Path(__file__).resolve().parent.parent / "bundled"
TASKS = {
    "translation": "regard.tasks.translation_training",
    "captioning": "regard.tasks.captioning_training",
    "classification": "regard.tasks.classification_training",
    "image_classification": "regard.tasks.image_classification_training",
    "sequences": "regard.tasks.sequence_training",
    "answering": "regard.tasks.answering_training",
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A model's folder that was verified.

    Args:
        name: What a person calls the model.
        folder: Where it lies.
        config: Its settings.
    """

    name: str
    folder: Path
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskKind:
    """What the command needs of a task.

    Args:
        name: The task's name.
        summary: What it does, in a line.
        load: Opens a model: `load(opened, device)`.
        train: Trains from a config: `train(path, changes, options)`.
        evaluate: Scores a model on files.
        check: Checks a config and its data without training.
        new: Writes a config and generated data into a folder.
    """

    name: str
    summary: str
    load: Callable[..., Any]
    train: Callable[..., Any]
    evaluate: Callable[..., Any]
    check: Callable[..., Any]
    new: Callable[..., Any]


def task_kind(name: str) -> TaskKind:
    """Return a task by its name.

    Args:
        name: The name, as a config gives it.

    Returns:
        What the command needs of it.

    Raises:
        UserError: There is no such task.
    """
    if name not in TASKS:
        raise UserError(f"must be known; got {name!r}; {did_you_mean(name, TASKS)}", where="task")
    kind: TaskKind = importlib.import_module(TASKS[name]).TASK
    return kind


def config_kind(path: Path) -> TaskKind:
    """Return the task that a config names.

    Args:
        path: The config, a TOML file.

    Returns:
        What the command needs of the task.

    Raises:
        ConfigError: The file cannot be read, or names no task that exists.
    """
    name = read_table(path).get("task")
    if not isinstance(name, str) or name not in TASKS:
        known = did_you_mean(str(name), TASKS)
        raise ConfigError(f"task: must name a task; got {name!r}; {known}", where=str(path))
    return task_kind(name)


def bundled_models() -> dict[str, Path]:
    """Return the models that come with regard, by name."""
    return {path.parent.name: path.parent for path in sorted(BUNDLED.glob(f"*/{MANIFEST}"))}


def find_model(name: str | Path) -> Path:
    """Find a model: a folder that exists, else a bundled name.

    A run's folder stands for its model, or for its newest checkpoint while it has none.

    Args:
        name: The folder or the name.

    Returns:
        The folder that holds the manifest.

    Raises:
        UserError: There is no such model.
    """
    folder = Path(name)
    if _is(folder.is_dir):
        checkpoints = sorted(folder.glob("checkpoints/step-*"), reverse=True)
        for candidate in (folder, folder / "model", *checkpoints):
            if (candidate / MANIFEST).is_file():
                return candidate
        raise FileFormatError(
            "must hold a model; there is no manifest.json. Name a run or a model.",
            where=str(folder),
        )
    known = bundled_models()
    if str(name) not in known and _is(folder.exists):
        raise UserError("must be a folder; it is a file. Name its folder.", where=str(folder))
    if str(name) not in known:
        advice = did_you_mean(str(name), known) if known else "name a folder: none is bundled"
        raise UserError(
            f"must be a folder or a bundled name; got {str(name)[:200]!r}; {advice}",
            where="model",
        )
    return known[str(name)]


def _is(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except (OSError, ValueError):  # a name that no file can have
        return False


def open_model(name: str | Path) -> Opened:
    """Find a model, verify its folder and read its settings.

    Args:
        name: A folder or a bundled name.

    Returns:
        The folder, with its settings.

    Raises:
        UserError: There is no such model.
        FileFormatError: The folder is damaged.
    """
    folder = find_model(name)
    verify_folder(folder)
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or config.get("task") not in list(TASKS):
        raise FileFormatError(
            f"task must be one of {', '.join(TASKS)}; got {_shown(config)}. Update regard.",
            where=str(folder / CONFIG),
        )
    return Opened(Path(name).name or str(name), folder, config)


def _shown(config: object) -> str:
    return repr(config.get("task"))[:80] if isinstance(config, dict) else "no table"


def load(name: str | Path, *, device: str = "auto") -> Any:
    """Load a model: a folder that exists, else a bundled name.

    Args:
        name: A model's folder, a run's folder, or the name of a bundled model.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".

    Returns:
        The task that the model serves: a `Translator`, a `Captioner`, a `DocumentClassifier`, an
        `ImageClassifier`, a `SequenceClassifier`, a `SequenceRegressor` or an `Answerer`.

    Raises:
        UserError: There is no such model.
        FileFormatError: The folder is damaged.
        EnvironmentFault: The device is not there.

    Example:
        >>> translator = load("en-zh")
        >>> translator("Tom chases Jerry").tokens
        ('汤姆', '追逐', '杰瑞')
    """
    opened = open_model(name)
    return task_kind(opened.config["task"]).load(opened, choose_device(device))


def choose_device(name: str) -> torch.device:
    """Turn a device's name into a device that is there.

    Args:
        name: "auto" takes a CUDA device where there is one.

    Returns:
        The device.

    Raises:
        UserError: The name is none.
        EnvironmentFault: The device is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(
            f"must be auto, cpu, cuda, cuda:N or mps; got {name[:80]!r}. Use auto.", where="device"
        ) from None
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise EnvironmentFault(f"must be there; got {name}, which is not. Use cpu.", where="device")
    return device
