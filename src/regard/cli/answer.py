"""`regard answer`: a story and questions in, answers out, and where the model looked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from regard.cli.pictures import check_picture, look_lines, numbered, picture_options
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.answering import Answer, Answerer

_ENDS = ("?", "？", "؟")


@dataclass(frozen=True)
class _Shown:
    """How answers are shown."""

    show: bool | None
    as_json: bool
    picture: Path | None
    force: bool


@click.command("answer")
@click.argument("story", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--model", required=True, help="A run's folder, or a model's.")
@click.option("--question", "questions", multiple=True, help="What to ask; may be repeated.")
@click.option("--encoding", default="utf-8-sig", show_default=True, help="Of the file.")
@picture_options(several="questions", shown="a single question, and in a terminal")
@force_option
@json_option
@device_option
@threads_option
def command(  # noqa: PLR0913 - one argument for each option
    *,
    story: Path,
    model: str,
    questions: tuple[str, ...],
    encoding: str,
    picture: Path | None,
    show: bool | None,
    force: bool,
    as_json: bool,
    device: str,
    threads: int | None,
) -> None:
    """Answer questions about STORY, a file of a sentence a line, or standard input ("-").

    The lines may be numbered, as those of the bAbI tasks; questions among them are left out. For
    each --question: its answer, a tab, the probability, and for a single one below it the sentences
    of the story, with the weight of each in every hop.

    Without --question, lines are read from the terminal: one that ends in "?" asks, any other
    goes on with the story.
    """
    load_torch()
    from regard.data.stories import read_story, story_of
    from regard.data.text import split_lines

    set_threads(threads)
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if not questions and (str(story) == "-" or not terminal):
        raise UserError("needs --question where it is not asked in a terminal.", where="answer")
    if picture is not None:
        count = max(1, len(questions))
        inputs = [] if str(story) == "-" else [story]
        check_picture(picture, count, force=force, inputs=inputs)
    if str(story) == "-":
        lines = split_lines(standard_input(), encoding=encoding, where="standard input")
        told = story_of([line for line in lines if line.strip()], where="standard input")
    else:
        told = read_story(story, encoding=encoding)
    answerer = _answerer(model, device)
    shown = _Shown(show, as_json, picture, force)
    if questions:
        _answer_all(answerer, told, questions, shown)
    else:
        _talk(answerer, list(told), shown)


def _answerer(model: str, device: str) -> Answerer:
    from regard.tasks import load
    from regard.tasks.answering import Answerer

    answerer = load(model, device=device)
    if not isinstance(answerer, Answerer):
        raise UserError("must be a model that answers; choose another.", where=model)
    return answerer


def _answer_all(
    answerer: Answerer, told: Sequence[str], questions: Sequence[str], shown: _Shown
) -> None:
    alone = len(questions) == 1
    for number, answer in enumerate(answerer(told, list(questions)), start=1):
        if shown.picture is not None:
            file = numbered(shown.picture, number, len(questions))
            answer.save(file, overwrite=shown.force)
        _say(answer, shown, drawn=alone if shown.show is None else shown.show)


def _talk(answerer: Answerer, told: list[str], shown: _Shown) -> None:
    """Read lines until there are no more: sentences, and questions."""
    sys.stderr.write(f"{len(told)} sentences. A line goes on with the story, one with ? asks.\n")
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return
        text = line.strip()
        if text.endswith(_ENDS):
            answer = answerer(told, text)
            if shown.picture is not None:
                answer.save(shown.picture, overwrite=True)
            _say(answer, shown, drawn=shown.show is not False)
            sys.stdout.flush()
        elif text:
            told.append(text)


def _say(answer: Answer, shown: _Shown, *, drawn: bool) -> None:
    if shown.as_json:
        write_json(_as_table(answer))
    else:
        write_lines(*_as_lines(answer, drawn=drawn))


def _as_lines(answer: Answer, *, drawn: bool) -> Iterator[str]:
    yield f"{answer.answer}\t{answer.probability:.4f}"
    if drawn and answer.sentences:
        yield from look_lines(answer)


def _as_table(answer: Answer) -> dict[str, Any]:
    import json

    return {
        "question": answer.question,
        "answer": answer.answer,
        "probability": answer.probability,
        "probabilities": answer.probabilities,
        "truncated": answer.truncated,
        "sentences": list(answer.sentences),
        "weights": [[round(float(one), 6) for one in hop] for hop in answer.weights],
        "record": json.loads(answer.record.to_json()),
    }
