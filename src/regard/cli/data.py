"""`regard data`: what is in a person's files, before anything is trained."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.common import write_lines
from regard.errors import DataError, UserError


@click.group("data")
def command() -> None:
    """Look at data before a training."""


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--image", help="Key or column of a picture's name.")
@click.option("--caption", help="Key or column of the captions.")
@click.option("--label", help="Key or column of the labels, where pictures have labels.")
@click.option("--header", is_flag=True, help="Whether a TSV's first line holds names.")
@click.option("--encoding", default="utf-8-sig", show_default=True, help="Of the file.")
@click.option(
    "--max-bad", type=click.FloatRange(0.0, 1.0), default=0.001, help="Share that may be broken."
)
def check(
    *,
    folder: Path,
    image: str | None,
    caption: str | None,
    label: str | None,
    header: bool,
    encoding: str,
    max_bad: float,
) -> None:
    """Open every picture of FOLDER, and say what is broken, what stands twice, what splits share.

    FOLDER holds captions.jsonl, captions.tsv, labels.jsonl, labels.tsv, or a folder of pictures for
    each label; or it is such a file. Exit code 2 if more is broken than --max-bad allows.
    """
    from regard.data.captions import CaptionColumns, read_captions
    from regard.data.checking import check_images
    from regard.data.labelled_images import LabelColumns, holds_labels, read_labelled_images
    from regard.data.listed import Images

    if label is not None and caption is not None:
        raise UserError("takes --caption or --label, not both; leave one out.", where="data check")
    images: Images
    if label is not None or (caption is None and holds_labels(folder)):
        labels = LabelColumns(image=_number(image), label=_number(label), header=header)
        images = read_labelled_images(folder, columns=labels, encoding=encoding)
    else:
        columns = CaptionColumns(image=_number(image), caption=_number(caption), header=header)
        images = read_captions(folder, columns=columns, encoding=encoding)
    report = check_images(images, max_bad=max_bad)
    write_lines(*report.lines())
    if not report.ok:
        raise DataError(
            f"at most {max_bad:.1%} of the pictures may be broken; got {len(report.bad)} of "
            f"{report.images}. Mend or remove them.",
            where=str(folder),
        )


def _number(value: str | None) -> str | int | None:
    return int(value) if value is not None and value.isdecimal() else value
