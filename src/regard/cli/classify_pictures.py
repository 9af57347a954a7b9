"""`regard classify` with a model of pictures: files and folders in, labels out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.cli.common import write_json, write_lines
from regard.cli.pictures import check_picture, look_lines, numbered, picture_files
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.image_classification import ImageClassification, ImageClassifier

_AT_ONCE = 128  # pictures classified before the first label is written


class Shape(NamedTuple):
    """How results are written.

    Args:
        picture: Where drawings go; None draws none.
        show: Whether the terminal shows them; by default for a single picture.
        force: Whether files may be replaced.
        as_json: Whether JSON is written.
        batch_size: How many pictures are read at once.
    """

    picture: Path | None
    show: bool | None
    force: bool
    as_json: bool
    batch_size: int


def classify_pictures(classifier: ImageClassifier, given: tuple[str, ...], shape: Shape) -> None:
    """Classify pictures and write what is said of them.

    Args:
        classifier: The model.
        given: Files, or folders of them.
        shape: How it is written.

    Raises:
        UserError: There are none, or one is no picture.
    """
    if not given:
        raise UserError("needs a picture, or a folder of them.", where="classify")
    files = list(picture_files(tuple(map(Path, given))))
    if shape.picture is not None:
        check_picture(shape.picture, len(files), force=shape.force, inputs=files)
    alone = len(files) == 1
    shown = alone if shape.show is None else shape.show
    number = 0
    for start in range(0, len(files), _AT_ONCE):
        part = files[start : start + _AT_ONCE]
        results = classifier(list(part), batch_size=shape.batch_size)
        for file, result in zip(part, results, strict=True):
            number += 1
            if shape.picture is not None:
                name = numbered(shape.picture, number, len(files))
                result.save(name, overwrite=shape.force)
            if shape.as_json:
                write_json(_as_table(file, result))
            else:
                write_lines(*_as_lines(file, result, show=shown, alone=alone))


def _as_table(file: Path, result: ImageClassification) -> dict[str, Any]:
    import json

    return {
        "image": str(file),
        "label": result.label,
        "probability": result.probability,
        "labels": list(result.labels),
        "probabilities": result.probabilities,
        "record": json.loads(result.record.to_json()),
    }


def _as_lines(file: Path, result: ImageClassification, *, show: bool, alone: bool) -> Iterator[str]:
    from regard.pictures.lettering import visible

    name = "" if alone else f"{visible(str(file))}\t"
    yield f"{name}{', '.join(result.labels) or '-'}\t{result.probability:.4f}"
    if show:
        yield from look_lines(result)
