"""`regard data`: what is in a person's files, before anything is trained."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import write_lines
from regard.errors import DataError


@click.group("data")
def command() -> None:
    """Look at data before a training."""


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--image", help="Key or column of a picture's name.")
@click.option("--caption", help="Key or column of the captions.")
@click.option("--header", is_flag=True, help="Whether a TSV's first line holds names.")
@click.option("--encoding", default="utf-8-sig", show_default=True, help="Of the captions.")
@click.option(
    "--max-bad", type=click.FloatRange(0.0, 1.0), default=0.001, help="Share that may be broken."
)
def check(
    *,
    folder: Path,
    image: str | None,
    caption: str | None,
    header: bool,
    encoding: str,
    max_bad: float,
) -> None:
    """Open every picture of FOLDER, which holds captions.jsonl or captions.tsv, or is that file.

    Says what is broken, what stands twice, and what several splits share; exit code 2 if more is
    broken than --max-bad allows.
    """
    from regard.data.captions import CaptionColumns, read_captions
    from regard.data.checking import check_images

    columns = CaptionColumns(image=_number(image), caption=_number(caption), header=header)
    report = check_images(
        read_captions(folder, columns=columns, encoding=encoding), max_bad=max_bad
    )
    write_lines(*report.lines())
    if not report.ok:
        raise DataError(
            f"at most {max_bad:.1%} of the pictures may be broken; got {len(report.bad)} of "
            f"{report.images}. Mend or remove them.",
            where=str(folder),
        )


def _number(value: str | None) -> str | int | None:
    return int(value) if value is not None and value.isdecimal() else value
