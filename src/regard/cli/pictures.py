"""What the verbs that show where a model looked have in common."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.common import Function, check_output
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.pictures import Record
    from regard.tasks.output import Looked

ENDINGS = (".svg", ".html", ".json", ".png")


def picture_options(*, several: str, shown: str) -> Callable[[Function], Function]:
    """Return the options that say where a picture goes: `picture` and `show`.

    Args:
        several: What there may be several of.
        shown: For what the picture is shown by default.
    """

    def added(function: Function) -> Function:
        function = click.option(
            "--show/--plain",
            default=None,
            help=f"With or without the picture; by default with it for {shown}.",
        )(function)
        return click.option(
            "--picture",
            type=click.Path(path_type=Path),
            help=(
                "Save where the model looked: .svg, .html, .png or .json; numbered for several "
                f"{several}."
            ),
        )(function)

    return added


def check_picture(picture: Path, count: int, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a file for pictures that has a wrong ending, exists, or is an input.

    Args:
        picture: The file; numbered where there are several pictures.
        count: How many.
        force: Whether files may be replaced.
        inputs: Files that are read.
    """
    if picture.suffix.lower() not in ENDINGS:
        raise UserError(
            f"must end in {', '.join(ENDINGS)}; got {picture.name!r}.", where="--picture"
        )
    for number in range(1, count + 1):
        check_output(numbered(picture, number, count), force=force, inputs=inputs)


def picture_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Name the pictures that a person gave: files, and what is in folders, sorted.

    Args:
        paths: Files and folders.

    Yields:
        The files.

    Raises:
        UserError: A folder holds none.
    """
    from regard.data import images

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(one for one in path.rglob("*") if one.suffix.lower() in images.ENDINGS)
        if not found:
            known = ", ".join(images.ENDINGS)
            raise UserError(f"must hold pictures ({known}); it holds none.", where=str(path))
        yield from found


def numbered(picture: Path, number: int, count: int) -> Path:
    """Return the file of a picture: the one that was asked for, or with its number."""
    return picture if count == 1 else picture.with_stem(f"{picture.stem}-{number}")


def look_lines(result: Looked) -> Iterator[str]:
    """Draw where the model looked, below an empty line, for the terminal at hand."""
    if result.looked is not None and result.looked.written.tokens:
        yield from record_lines(result.looked)


def record_lines(record: Record) -> Iterator[str]:
    """Draw a record, below an empty line, for the terminal at hand."""
    from regard.pictures import detect_colour, render_terminal

    columns = shutil.get_terminal_size().columns
    colour = detect_colour(sys.stdout, os.environ)
    yield ""
    yield render_terminal(record, width=columns, colour=colour).rstrip("\n")
