"""Write generated pictures as a person's data would be: PNG files, and a file that lists them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from regard.errors import EnvironmentFault, UserError
from regard.saving import write_file


class Drawn(NamedTuple):
    """A picture, and what is said of it.

    Args:
        name: Its file, relative to that of the list.
        image: The picture.
        row: Its line of the list, without the name.
    """

    name: str
    image: Image.Image
    row: Mapping[str, Any]


def picture_name(split: str, index: int) -> str:
    """Name the file of a generated picture."""
    return f"images/{split}-{index:05}.png"


def write_drawn(file: Path, drawn: Iterable[Drawn], *, overwrite: bool = False) -> list[Path]:
    """Write pictures, and the list of them when all are there.

    Args:
        file: The list, JSONL; its folder is made where it does not exist.
        drawn: The pictures.
        overwrite: Whether a list that exists may be replaced.

    Returns:
        The list, then the pictures.

    Raises:
        UserError: The list exists already.
        EnvironmentFault: Something cannot be written.
    """
    lines, paths = [], []
    if file.exists() and not overwrite:
        raise UserError("exists already. Choose another folder, or use --force.", where=str(file))
    try:
        (file.parent / "images").mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # until all pictures are there
        for one in drawn:
            stream = io.BytesIO()
            one.image.save(stream, "PNG")
            paths.append(file.parent / one.name)
            paths[-1].write_bytes(stream.getvalue())
            lines.append(json.dumps({"image": one.name, **one.row}, ensure_ascii=False) + "\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnvironmentFault(f"cannot be written: {reason}.", where=str(file.parent)) from error
    write_file(file, "".join(lines))
    return [file, *paths]
