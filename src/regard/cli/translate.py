"""`regard translate`: text in, translations out, and where the model looked."""

from __future__ import annotations

import sys
import warnings
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
    standard_input,
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
from regard.cli.pictures import check_picture, look_lines, numbered, picture_options
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.translation import Translation, Translator

_AT_ONCE = 256  # sentences translated before the first is written


@click.command("translate")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--model", default="en-zh", show_default=True, help="A bundled name, or a folder.")
@click.option("--file", "path", type=click.Path(path_type=Path), help="Translate a file's lines.")
@click.option("--encoding", default="utf-8-sig", show_default=True, help="Of the file.")
@search_options("Translations of each text.")
@click.option("--batch-size", type=click.IntRange(1, 4096), default=64, show_default=True)
@picture_options(several="texts", shown="texts on the command line")
@decoding_options
@force_option
@json_option
@device_option
@threads_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    texts: tuple[str, ...],
    model: str,
    path: Path | None,
    encoding: str,
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
    """Translate TEXT, the lines of a file, or those of standard input ("-").

    For each text on the command line: the translation, its words, and a picture of which word came
    from which. For lines of a file: one line for each line. With --nbest: score, tab, translation.
    A score is the logarithm of the probability, divided by a length penalty. With --sample the
    translations are drawn at random, and one --seed gives the same ones. Standard input is read to
    its end first.
    """
    check_decoding(decoding, beam)
    lines = _lines(texts, path, encoding)
    if picture is not None:
        check_picture(picture, len(lines), force=force, inputs=[path] if path else [])
    load_torch()
    set_threads(threads)
    translator = changed(_translator(model, device), decoding, "translate")
    drawn = drawn_from(decoding)
    shown = bool(texts) and texts != ("-",) if show is None else show
    longest, number, cut = translator.settings.decoding.maximum_length, 0, 0
    for start in range(0, len(lines), _AT_ONCE):
        part = lines[start : start + _AT_ONCE]
        for result in translator(
            part, beam=beam, nbest=nbest, batch_size=batch_size, generator=drawn
        ):
            number, cut = number + 1, cut + (len(result.tokens) >= longest)
            if picture is not None:
                result.save(numbered(picture, number, len(lines)), overwrite=force)
            if as_json:
                write_json(_as_table(result))
            else:
                write_lines(*_as_lines(result, nbest=nbest, show=shown))
    if cut:
        warnings.warn(
            f"translations have at most {longest} tokens; {cut} of {number} were ended there",
            stacklevel=1,
        )


def _translator(model: str, device: str) -> Translator:
    from regard.tasks import load
    from regard.tasks.translation import Translator

    translator = load(model, device=device)
    if not isinstance(translator, Translator):
        raise UserError("must be a model that translates; choose another.", where=model)
    return translator


def _lines(texts: tuple[str, ...], path: Path | None, encoding: str) -> list[str]:
    from regard.data.text import read_lines, split_lines

    if texts and path is not None:
        raise UserError("takes texts or --file, not both; leave one out.", where="translate")
    if texts and texts != ("-",):
        return list(texts)
    if path is not None and str(path) != "-":
        return read_lines(path, encoding=encoding)
    if sys.stdin is None or (sys.stdin.isatty() and not texts and path is None):
        raise UserError('needs a text; try: regard translate "Tom chases Jerry"', where="translate")
    return split_lines(standard_input(), encoding=encoding, where="standard input")


def _as_table(result: Translation) -> dict[str, Any]:
    import json

    return {
        "source": result.source,
        "translation": result.text,
        "tokens": list(result.tokens),
        "score": result.score,
        "log_prob": result.log_prob,
        "truncated": result.truncated,
        "record": None if result.looked is None else json.loads(result.looked.to_json()),
        "alternatives": [
            {"translation": one.text, "tokens": list(one.tokens), "score": one.score}
            for one in result.alternatives
        ],
    }


def _as_lines(result: Translation, *, nbest: int, show: bool) -> Iterator[str]:
    if nbest > 1:
        for one in (result, *result.alternatives):
            yield f"{one.score:.4f}\t{one.text}"
    else:
        yield result.text
    if not show:
        return
    yield " ".join(token for token in result.tokens if token.strip())
    yield from look_lines(result)
