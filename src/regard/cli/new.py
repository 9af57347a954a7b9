"""`regard new`: a config and sample data to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import force_option, write_lines


@click.command("new")
@click.argument("task")
@click.argument("folder", type=click.Path(path_type=Path))
@force_option
def command(task: str, folder: Path, force: bool) -> None:
    """Write a config for TASK and generated data into FOLDER.

    TASK is: translation, captioning, classification, image_classification, sequences or
    answering.
    """
    from regard.tasks.base import task_kind

    write_lines(*map(str, task_kind(task).new(folder, overwrite=force)))
