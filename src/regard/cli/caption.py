"""`regard caption`: pictures in, sentences out, and where the model looked for every word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.common import (
    device_option,
    force_option,
    json_option,
    load_torch,
    set_threads,
    threads_option,
    write_json,
    write_lines,
)
from regard.cli.decoding import (
    changed,
    check_decoding,
    decoding_options,
    drawn_from,
    search_options,
)
from regard.cli.pictures import (
    check_picture,
    look_lines,
    numbered,
    picture_files,
    picture_options,
)
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.captioning import Caption, Captioner

_AT_ONCE = 128  # pictures described before the first caption is written


@click.command("caption")
@click.argument("images", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", default="scenes", show_default=True, help="A bundled name, or a folder.")
@search_options("Captions of each picture.")
@click.option("--batch-size", type=click.IntRange(1, 4096), default=32, show_default=True)
@picture_options(several="images", shown="a single image")
@decoding_options
@force_option
@json_option
@device_option
@threads_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    images: tuple[Path, ...],
    model: str,
    beam: int | None,
    nbest: int,
    batch_size: int,
    picture: Path | None,
    show: bool | None,
    force: bool,
    as_json: bool,
    device: str,
    threads: int | None,
    decoding: dict[str, Any],
) -> None:
    """Describe IMAGES: files, or folders of them.

    For a single image: the caption, and where the model looked for each of its words. For several:
    the file, a tab, and its caption. With --nbest: score, tab, caption. With --sample the captions
    are drawn at random, and one --seed gives the same ones.
    """
    check_decoding(decoding, beam)
    files = list(picture_files(images))
    if picture is not None:
        check_picture(picture, len(files), force=force, inputs=files)
    load_torch()
    set_threads(threads)
    captioner = changed(_captioner(model, device), decoding, "caption")
    drawn = drawn_from(decoding)
    shown = len(files) == 1 if show is None else show
    number = 0
    for start in range(0, len(files), _AT_ONCE):
        part = files[start : start + _AT_ONCE]
        results = captioner(
            list(part), beam=beam, nbest=nbest, batch_size=batch_size, generator=drawn
        )
        for file, result in zip(part, results, strict=True):
            number += 1
            if picture is not None:
                result.save(numbered(picture, number, len(files)), overwrite=force)
            if as_json:
                write_json(_as_table(file, result))
            else:
                write_lines(*_as_lines(file, result, nbest, show=shown, alone=len(files) == 1))


def _captioner(model: str, device: str) -> Captioner:
    from regard.tasks import load
    from regard.tasks.captioning import Captioner

    captioner = load(model, device=device)
    if not isinstance(captioner, Captioner):
        raise UserError("must be a model that describes pictures; choose another.", where=model)
    return captioner


def _as_table(file: Path, result: Caption) -> dict[str, Any]:
    import json

    return {
        "image": str(file),
        "caption": result.text,
        "tokens": list(result.tokens),
        "score": result.score,
        "log_prob": result.log_prob,
        "truncated": result.truncated,
        "record": None if result.looked is None else json.loads(result.looked.to_json()),
        "alternatives": [
            {"caption": one.text, "tokens": list(one.tokens), "score": one.score}
            for one in result.alternatives
        ],
    }


def _as_lines(file: Path, result: Caption, nbest: int, *, show: bool, alone: bool) -> Iterator[str]:
    from regard.pictures.lettering import visible

    name = "" if alone else f"{visible(str(file))}\t"
    if nbest > 1:
        for one in (result, *result.alternatives):
            yield f"{name}{one.score:.4f}\t{one.text}"
    else:
        yield f"{name}{result.text}"
    if show:
        yield from look_lines(result)
