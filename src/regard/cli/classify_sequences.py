"""`regard classify` with a model of sequences: a table in, a label or values for each out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.classify_pictures import Shape
from regard.cli.common import write_json, write_lines
from regard.cli.pictures import check_picture, numbered, record_lines
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.sequence_results import SequenceResult
    from regard.tasks.sequences import SequenceClassifier, SequenceRegressor


def classify_sequences(
    model: SequenceClassifier | SequenceRegressor,
    path: Path | None,
    shape: Shape,
    *,
    unused: dict[str, object],
) -> None:
    """Read the sequences of a table and write what is said of each.

    Args:
        model: The model.
        path: The table.
        shape: How results are written.
        unused: Options that count for other models, with what was given.

    Raises:
        UserError: There is no table, or such an option was given.
    """
    for option, given in unused.items():
        if given:
            raise UserError("counts for models of texts or pictures; leave it out.", where=option)
    if path is None:
        raise UserError(
            "needs --file, a table of sequences (.csv, .tsv, .parquet).", where="classify"
        )
    results: Sequence[SequenceResult] = model(path, batch_size=shape.batch_size)
    if shape.picture is not None:
        check_picture(shape.picture, len(results), force=shape.force, inputs=[path])
    shown = len(results) == 1 if shape.show is None else shape.show
    for number, result in enumerate(results, start=1):
        if shape.picture is not None:
            file = numbered(shape.picture, number, len(results))
            result.save(file, overwrite=shape.force)
        if shape.as_json:
            write_json(_as_table(result))
        else:
            write_lines(_as_line(result), *(record_lines(result.record) if shown else ()))


def _as_table(result: SequenceResult) -> dict[str, Any]:
    table: dict[str, Any] = {"sequence": result.name}
    for name in ("label", "probability", "probabilities", "values"):
        if hasattr(result, name):
            table[name] = getattr(result, name)
    import json

    table |= {"truncated": result.truncated, "weights": result.weights.tolist()}
    return {**table, "record": json.loads(result.record.to_json())}


def _as_line(result: SequenceResult) -> str:
    """Name, what is said, and the steps of most weight, counted from 1."""
    from regard.data.normalisation import normalise
    from regard.tasks.sequence_results import SequenceClassification, SequenceRegression

    said: list[str] = []
    if isinstance(result, SequenceClassification):
        said = [result.label, f"{result.probability:.4f}"]
    if isinstance(result, SequenceRegression):
        said = [f"{value:.6g}" for value in result.values.values()]
    steps = " ".join(f"{step + 1}:{weight:.3f}" for step, weight in result.strongest(3))
    name = normalise(result.name, form="none").text
    return "\t".join([name, *said, steps])
