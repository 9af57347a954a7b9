"""`regard view`: a saved record in the terminal, or as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.common import check_output, force_option, write_lines
from regard.cli.pictures import ENDINGS
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.pictures import Record


@click.command("view")
@click.argument("path", type=click.Path(path_type=Path), metavar="RECORD")
@click.option(
    "--map", "name", help="One of its heads, layers, hops or steps; else all or the mean."
)
@click.option("--words/--pieces", "words", default=True, help="Words whole, or as they were cut.")
@click.option("--numbers", is_flag=True, help="Write the weights into the cells.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help=f"Save it: {', '.join(ENDINGS)}.",
)
@force_option
def command(
    *, path: Path, name: str | None, words: bool, numbers: bool, picture: Path | None, force: bool
) -> None:
    """Show RECORD, a file of weights (.json) that another verb or `record.save` wrote.

    In the terminal it shows the mean over its maps, or the one that --map names. As SVG or PNG a
    recording of many heads becomes small panels, a row a layer; as HTML a page where one is
    chosen among them.
    """
    from regard.pictures import Record

    record = Record.load(path)
    if words:
        record = record.merge_words()
    if name is not None:
        record.weights(name)  # an unknown name is refused before anything is drawn
    if picture is None:
        write_lines(*_drawn(record, name, numbers=numbers))
        return
    if picture.suffix.lower() not in ENDINGS:
        raise UserError(
            f"must end in {', '.join(ENDINGS)}; got {picture.name!r}.", where="--picture"
        )
    check_output(picture, force=force, inputs=[path])
    _chosen(record, name).save(picture, overwrite=force)


def _chosen(record: Record, name: str | None) -> Record:
    """Leave the map that was named alone in the record."""
    if name is None:
        return record
    from dataclasses import replace

    return replace(record, maps=tuple(one for one in record.maps if one.name == name))


def _drawn(record: Record, name: str | None, *, numbers: bool) -> list[str]:
    from regard.pictures import detect_colour, render_terminal

    columns = shutil.get_terminal_size().columns
    colour = detect_colour(sys.stdout, os.environ)
    drawn = render_terminal(record, width=columns, colour=colour, name=name, numbers=numbers)
    lines = drawn.rstrip("\n").split("\n")
    if name is None and len(record.maps) > 1:
        lines += ["", f"The mean of {len(record.maps)} maps; --map names one of them:"]
        lines += [f"  {one.name}" for one in record.maps[:20]]
        lines += [f"  and {len(record.maps) - 20} more"] * (len(record.maps) > 20)
    return lines
