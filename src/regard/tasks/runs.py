"""What a run remembers of the data that it was trained on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from regard.config import Strict, checked
from regard.errors import FileFormatError, UserError
from regard.saving import read_json
from regard.training.loop import RUN

Data = TypeVar("Data", bound=Strict)


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
