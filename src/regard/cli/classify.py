"""`regard classify`: documents, pictures or sequences in, labels out, and what decided."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.classify_pictures import Shape, classify_pictures
from regard.cli.classify_sequences import classify_sequences
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
from regard.cli.pictures import check_picture, look_lines, numbered, picture_options
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.data.sentences import Span
    from regard.pictures.evidence import Word
    from regard.tasks.classification import Classification, DocumentClassifier
    from regard.tasks.image_classification import ImageClassifier
    from regard.tasks.sequences import SequenceClassifier, SequenceRegressor

_AT_ONCE = 256  # documents classified before the first label is written

_Texts = list[tuple[str, "tuple[Span, ...] | None"]]


@click.command("classify")
@click.argument("texts", nargs=-1, metavar="[TEXT|PICTURE]...")
@click.option("--model", default="topics", show_default=True, help="A bundled name, or a folder.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    help="Classify the lines of a file, the documents of a .jsonl file, or a table of sequences.",
)
@click.option("--whole", is_flag=True, help="Take the file, or standard input, for one document.")
@click.option("--encoding", default="utf-8-sig", show_default=True, help="Of the file.")
@click.option("--batch-size", type=click.IntRange(1, 4096), default=32, show_default=True)
@picture_options(several="documents or pictures", shown="a text, a picture, or with --whole")
@force_option
@json_option
@device_option
@threads_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    texts: tuple[str, ...],
    model: str,
    path: Path | None,
    whole: bool,
    encoding: str,
    batch_size: int,
    picture: Path | None,
    show: bool | None,
    force: bool,
    as_json: bool,
    device: str,
    threads: int | None,
) -> None:
    """Classify TEXT, the documents of a file, or those of standard input ("-").

    The bundled model says of a description of a program what the program is about.

    For each text on the command line: its label, a tab, the probability, and below it the sentences
    that decided, their words shaded. For a file: a line for each of its lines, with label,
    probability and text, separated by tabs. Where a document may have several labels they are
    separated by ", ", and the probability is that of the likeliest.

    With a model of pictures: PICTURE is a file, or a folder of them. For a single one its label, a
    tab, the probability, and below it the picture, lit where the model looked; for several a line
    for each, with file, label and probability.

    With a model of sequences: --file is a table (.csv, .tsv, .parquet), a row a step. For each
    sequence its name, its label and the probability, or its values, and the steps of most weight,
    counted from 1.
    """
    load_torch()
    from regard.tasks.classification import DocumentClassifier
    from regard.tasks.image_classification import ImageClassifier

    set_threads(threads)
    classifier = _classifier(model, device)
    shape = Shape(picture, show, force, as_json, batch_size)
    if isinstance(classifier, ImageClassifier):
        if path is not None or whole:
            option = "--whole" if path is None else "--file"
            raise UserError("counts for documents; name pictures or folders.", where=option)
        classify_pictures(classifier, texts, shape)
        return
    if not isinstance(classifier, DocumentClassifier):
        unused = {"TEXT": texts, "--whole": whole}
        classify_sequences(classifier, path, shape, unused=unused)
        return
    given = _given(texts, path, encoding, whole=whole)
    if picture is not None:
        check_picture(picture, len(given), force=force, inputs=[path] if path else [])
    _classify_documents(classifier, given, shape, alone=whole or (bool(texts) and texts != ("-",)))


def _classify_documents(
    classifier: DocumentClassifier, given: _Texts, shape: Shape, *, alone: bool
) -> None:
    shown = alone if shape.show is None else shape.show
    number = 0
    for start in range(0, len(given), _AT_ONCE):
        part = [classifier.read(*one) for one in given[start : start + _AT_ONCE]]
        for result in classifier.classify(part, batch_size=shape.batch_size):
            number += 1
            if shape.picture is not None:
                file = numbered(shape.picture, number, len(given))
                result.save(file, overwrite=shape.force)
            if shape.as_json:
                write_json(_as_table(result))
            else:
                write_lines(*_as_lines(result, show=shown, alone=alone))


def _classifier(
    model: str, device: str
) -> DocumentClassifier | ImageClassifier | SequenceClassifier | SequenceRegressor:
    from regard.tasks import load
    from regard.tasks.classification import DocumentClassifier
    from regard.tasks.image_classification import ImageClassifier
    from regard.tasks.sequences import SequenceClassifier, SequenceRegressor

    classifier = load(model, device=device)
    kinds = DocumentClassifier | ImageClassifier | SequenceClassifier | SequenceRegressor
    if not isinstance(classifier, kinds):
        raise UserError(
            "must be a model of documents or pictures, or of sequences; choose another.",
            where=model,
        )
    return classifier


def _given(texts: tuple[str, ...], path: Path | None, encoding: str, *, whole: bool) -> _Texts:
    from regard.data.labelled import read_texts
    from regard.data.text import read_lines, split_lines

    if texts and path is not None:
        raise UserError("takes texts or --file, not both; leave one out.", where="classify")
    if texts and texts != ("-",):
        if whole:
            raise UserError("counts for a file or standard input; leave it out.", where="--whole")
        return [(text, None) for text in texts]
    if path is not None and str(path) != "-":
        if not whole:
            return read_texts(path, encoding=encoding)
        lines = read_lines(path, encoding=encoding)
    else:
        if sys.stdin is None or (sys.stdin.isatty() and not texts and path is None):
            raise UserError('needs a text, --file, or "-" for standard input.', where="classify")
        lines = split_lines(standard_input(), encoding=encoding, where="standard input")
    return [("\n".join(lines), None)] if whole else [(line, None) for line in lines]


def _as_table(result: Classification) -> dict[str, Any]:
    import json

    return {
        "text": result.text,
        "label": result.label,
        "probability": result.probability,
        "labels": list(result.labels),
        "probabilities": result.probabilities,
        "truncated": result.truncated,
        "evidence": [
            {
                "sentence": one.text,
                "start": one.start,
                "end": one.end,
                "weight": one.weight,
                "words": [_word(word) for word in one.words],
            }
            for one in result.evidence
        ],
        "record": json.loads(result.record.to_json()),
    }


def _word(word: Word) -> dict[str, Any]:
    return {"word": word.text, "start": word.start, "end": word.end, "weight": word.weight}


def _as_lines(result: Classification, *, show: bool, alone: bool) -> Iterator[str]:
    from regard.data.normalisation import normalise

    line = f"{', '.join(result.labels) or '-'}\t{result.probability:.4f}"
    yield line if alone else f"{line}\t{normalise(result.text, form='none').text}"
    if show:
        yield from look_lines(result)
