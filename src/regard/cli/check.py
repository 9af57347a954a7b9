"""`regard check`: a config and its data, without training."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import load_torch, write_lines


@click.command("check")
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]...")
def command(config: Path, changes: tuple[str, ...]) -> None:
    """Check CONFIG and its data: every field, every file, what they share."""
    load_torch()
    from regard.tasks.base import config_kind

    write_lines(*config_kind(config).check(config, changes))
