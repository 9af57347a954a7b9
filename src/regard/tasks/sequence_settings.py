"""Settings of a config about sequences of numbers, and of a model of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config import Strict
from regard.data.series import MAX_FEATURES, SeriesColumns
from regard.models.sequences import MAX_STEPS, SequenceModelSettings
from regard.training.settings import TrainingSettings

Name = Annotated[str, Field(min_length=1, max_length=1000)]
Names = Annotated[list[Name], Field(min_length=1, max_length=MAX_FEATURES)]

_METRICS = {"label": ("loss", "accuracy", "macro_f1"), "value": ("loss", "rmse", "mae", "r2")}


class ColumnSettings(Strict):
    """Which columns of a table make sequences, and how much of them is read.

    Args:
        sequence: Names the sequence that a row belongs to.
        order: What the steps are ordered by; by default they stand in order.
        label: The label, or the value that is foretold; several values are a list.
        separator: What stands between the cells of a CSV file; by default a comma, in .tsv a tab.
        encoding: How a CSV file is encoded.
        max_steps: Steps of a sequence beyond so many are not read.
    """

    sequence: Name = "sequence"
    order: Name | None = None
    label: Name | Names = "label"
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    encoding: str = "utf-8-sig"
    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 10_000

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of the label or the values."""
        return (self.label,) if isinstance(self.label, str) else tuple(self.label)

    def columns(self, features: list[str] | None, *, labelled: bool = True) -> SeriesColumns:
        """Say which columns to read.

        Args:
            features: Those of the numbers; None for all that are none of the others.
            labelled: Whether those of label or values are read too.
        """
        targets = self.targets if labelled else ()
        chosen = None if features is None else tuple(features)
        return SeriesColumns(self.sequence, self.order, targets, chosen)


class SequenceDataSettings(ColumnSettings):
    """Where the sequences are.

    Args:
        train: A CSV or Parquet file, a row a step.
        dev: The same, for choosing the best model.
        test: The same, for `regard evaluate`.
        features: The columns of the numbers of a step; by default all others that hold numbers.
    """

    train: str
    dev: str
    test: str | None = None
    features: Names | None = None


class SequenceSettings(Strict):
    """A config about sequences of numbers.

    Args:
        task: "sequences".
        target: Whether a sequence has a "label", or one or several numbers as its "value".
        metric: By which evaluations are compared: "loss"; for labels "accuracy" or "macro_f1"; for
            values "rmse", "mae" or "r2".
        data: The sequences.
        model: What the model is made of.
        training: How it is trained.
    """

    task: Literal["sequences"]
    target: Literal["label", "value"] = "label"
    metric: Literal["loss", "accuracy", "macro_f1", "rmse", "mae", "r2"] = "loss"
    data: SequenceDataSettings
    model: SequenceModelSettings = SequenceModelSettings()
    training: TrainingSettings = TrainingSettings(label_smoothing=0.0, batch_sentences=32)

    @model_validator(mode="after")
    def _metric_fits(self) -> SequenceSettings:
        known = _METRICS[self.target]
        if self.metric not in known:
            raise ValueError(
                f"metric must be one of {', '.join(known)} for target = {self.target!r}; got "
                f"{self.metric!r}. Change one"
            )
        if self.target == "label" and len(self.data.targets) > 1:
            raise ValueError(
                f'data.label must be one column for target = "label"; got '
                f"{len(self.data.targets)}. Name one"
            )
        return self


class PredictorSettings(Strict):
    """What the `config.json` of a model of sequences holds.

    Args:
        task: "sequences".
        target: Whether it gives a label, or values.
        labels: The labels, in the order of the model's scores; none for values.
        features: The numbers of a step, in the order in which the model reads them.
        columns: How they are read from a table.
        model: What the model is made of.
    """

    task: Literal["sequences"]
    target: Literal["label", "value"]
    labels: Annotated[list[Name], Field(max_length=100_000)]
    features: Names
    columns: ColumnSettings
    model: SequenceModelSettings

    @model_validator(mode="after")
    def _labels_where_there_are(self) -> PredictorSettings:
        if (len(self.labels) < 2) if self.target == "label" else self.labels:
            raise ValueError(
                f"labels must be two or more for a label, and none for values; got "
                f"{len(self.labels)} for target = {self.target!r}. It is no model's"
            )
        return self

    @property
    def outputs(self) -> int:
        """How many scores or values there are."""
        return len(self.labels) if self.target == "label" else len(self.columns.targets)

    @property
    def limit(self) -> int:
        """How many steps of a sequence are read."""
        fixed = self.model.steps if self.model.pooling == "step" else None
        return min(self.columns.max_steps, fixed or self.columns.max_steps)
