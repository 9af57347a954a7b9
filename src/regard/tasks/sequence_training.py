"""What `regard train`, `evaluate`, `check` and `new` do for models of sequences of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import checked, read_config
from regard.data.labelled import in_order
from regard.data.labels import label_shares
from regard.data.planted_series import write_planted_series
from regard.data.series import Sequences, read_sequences
from regard.errors import DataError, UserError
from regard.models.sequences import build_sequence_model
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.classification_metrics import label_scores
from regard.tasks.runs import new_config, one_file, run_data, set_up, train_run, write_config
from regard.tasks.sequence_job import SequenceDataset, SequenceJob
from regard.tasks.sequence_results import Numbers
from regard.tasks.sequence_settings import (
    ColumnSettings,
    PredictorSettings,
    SequenceDataSettings,
    SequenceSettings,
)
from regard.tasks.sequences import (
    SequenceClassifier,
    SequenceReader,
    SequenceRegressor,
    load_sequences,
)
from regard.tasks.value_metrics import value_scores
from regard.training.loop import Outcome, RunOptions


def train_sequences(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a model of sequences from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, SequenceSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: SequenceSettings, *, root: Path) -> SequenceJob:
    """Read the data and build the model.

    Args:
        settings: The config.
        root: The folder that relative names start from.

    Returns:
        The job, ready to be trained.

    Raises:
        RegardError: The data or a setting is wrong.
    """
    set_up(settings.training)
    train = read_part("train", settings, settings.data.features, root=root)
    dev = read_part("dev", settings, list(train.features), root=root)
    return job_of(settings, train, dev)


def job_of(settings: SequenceSettings, train: Sequences, dev: Sequences) -> SequenceJob:
    """Build a model for sequences that were read, standardised by those for training.

    Args:
        settings: The config.
        train: The sequences for training.
        dev: Those by which the best model is chosen.

    Returns:
        The job.

    Raises:
        DataError: There is but one label, or one is unknown.
        UserError: Numbers are far too large or too small.
    """
    own = PredictorSettings(
        task="sequences",
        target=settings.target,
        labels=[] if train.labels is None else list(_labels(train)),
        features=list(train.features),
        columns=_columns(settings.data),
        model=settings.model,
    )
    model = build_sequence_model(settings.model, features=len(train.features), outputs=own.outputs)
    data, other = (SequenceDataset.of(part, own) for part in (train, dev))
    model.inputs.fit(torch.tensor(train.values))
    if train.targets is not None:
        model.targets.fit(torch.tensor(train.targets))
    model = model.to(choose_device(settings.training.device))
    return SequenceJob(settings, SequenceReader(model, own), data=data, dev=other)


def _columns(data: SequenceDataSettings) -> ColumnSettings:
    return ColumnSettings(**{name: getattr(data, name) for name in ColumnSettings.model_fields})


def _labels(train: Sequences) -> tuple[str, ...]:
    found = set(train.labels or ())
    if len(found) < 2:
        raise DataError(
            f"labels must be at least two; got {len(found)} ({', '.join(found)}). Check the column "
            "of the label.",
            where=train.file,
        )
    return in_order(found)


def read_part(
    name: str, settings: SequenceSettings, features: list[str] | None, *, root: Path
) -> Sequences:
    """Read the sequences of a part of the data.

    Args:
        name: "train", "dev" or "test".
        settings: Files and columns, and whether numbers may be missing.
        features: The columns of numbers; None for all others.
        root: The folder that relative names start from.

    Returns:
        The sequences.

    Raises:
        UserError: The settings name no such part.
        DataError: A file is wrong.
    """
    file = getattr(settings.data, name)
    if file is None:
        raise UserError("needs a table of sequences: this model names no test file.", where=name)
    missing = settings.model.missing == "mean"
    return _read(root / file, settings.data, settings.target, features, missing=missing)


def _read(
    file: Path, own: ColumnSettings, target: str, features: list[str] | None, *, missing: bool
) -> Sequences:
    read = read_sequences(
        file,
        columns=own.columns(features),
        labelled=target == "label",
        encoding=own.encoding,
        separator=own.separator,
    )
    read.check_numbers(missing=missing)
    return read


@dataclass(frozen=True, slots=True)
class SequenceEvaluation:
    """How a model scores on sequences whose labels or values are known.

    Args:
        scores: Accuracy, macro-F1 and calibration error, in percent; of values their errors.
        written: The label or the values of each sequence.
        sequences: The sequences.
    """

    scores: dict[str, float]
    written: list[str]
    sequences: Sequences

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        return {**self.scores, "sequences": len(self.sequences), "sha256": self.sequences.sha256}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each score."""
        percent = "accuracy" in self.scores
        found = [
            f"{name:<17} {value:7.2f}" if percent else f"{name:<17} {value:10.4g}"
            for name, value in self.scores.items()
        ]
        return [*found, f"sequences {len(self.sequences):7}   SHA-256 {self.sequences.sha256}"]


def evaluate_sequences(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> SequenceEvaluation:
    """Let a model read sequences whose labels or values are known, and score the result.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: A table of sequences; none for the test file of the run's config.
        beam: Must be left out: nothing is searched for.
        device: Where to run.
        reading: `target_column`, of label or value.

    Returns:
        Scores, and what the model said.

    Raises:
        UserError: There are no files, or one is wrong.
    """
    given = dict(reading or {})
    for option in ("source_column", "header"):
        if option in given:
            raise UserError(
                "must be left out for sequences, whose columns the model knows by name.",
                where=f"--{option.replace('_', '-')}",
            )
    if beam is not None:
        raise UserError("must be left out for sequences; nothing is searched.", where="--beam")
    opened = open_model(model)
    predictor = load_sequences(opened, choose_device(device))
    own = predictor.reader.settings
    data, root = run_data(Path(model), SequenceDataSettings, SequenceDataSettings(train="", dev=""))
    if not files and data.test is None:
        raise UserError("needs a table of sequences: this model names no test file.", where="test")
    changed = {"label": str(given["target_column"])} if given else {}
    columns = checked({**own.columns.model_dump(), **changed}, ColumnSettings, where="evaluate")
    file = one_file(files) if files else root / str(data.test)
    missing = own.model.missing == "mean"
    sequences = _read(file, columns, own.target, own.features, missing=missing)
    targets = SequenceDataset.of(sequences, own).targets
    return SequenceEvaluation(*_scored(predictor, sequences, targets), sequences)


def _scored(
    predictor: SequenceClassifier | SequenceRegressor, sequences: Sequences, targets: Numbers
) -> tuple[dict[str, float], list[str]]:
    if isinstance(predictor, SequenceClassifier):
        found = predictor.classify(sequences)
        probabilities = np.array([list(one.probabilities.values()) for one in found])
        truth = [[int(place)] for place in targets[:, 0]]
        return label_scores(probabilities, truth, several=False), [one.label for one in found]
    values = np.array([list(one.values.values()) for one in predictor.foretell(sequences)])
    written = ["\t".join(f"{value:.6g}" for value in row) for row in values]
    return value_scores(values, targets), written


def check_sequences(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, SequenceSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    own = job.reader.settings
    parts = {"train": job.data.sequences, "dev": job.dev.sequences}
    if settings.data.test is not None:
        parts["test"] = read_part("test", settings, own.features, root=path.parent)
        SequenceDataset.of(parts["test"], own)
    lines: list[str] = []
    for name, sequences in parts.items():
        lines += _described(name, sequences, job.reader)
        if name != "train":
            lines += _leaks(name, parts["train"], sequences)
    lines.append(f"features: {', '.join(own.features[:20])}{_more(own.features)}")
    if unused := parts["train"].unused:
        lines.append(f"not read: {', '.join(unused[:20])}{_more(unused)}")
    count = sum(parameter.numel() for parameter in job.model.parameters())
    return [*lines, f"model: {count:,} parameters; {job.steps(0)} steps an epoch"]


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 20} more" if len(names) > 20 else ""


def _described(name: str, sequences: Sequences, reader: SequenceReader) -> list[str]:
    lengths = sequences.lengths
    gone = int(np.isnan(sequences.values).sum())
    lines = [
        f"{name}: {len(sequences):,} sequences of {lengths.min():,} to {lengths.max():,} steps, "
        f"{gone:,} numbers missing, SHA-256 {sequences.sha256[:16]}",
        f"{name}: {_targets(sequences, reader)}",
    ]
    doubts = {
        f"are not in the order of their times in {name}, and were sorted": sequences.unsorted,
        f"of {name} have two steps of the same time": sequences.repeated,
        f"of {name} have more than {reader.settings.limit:,} steps; the rest is not read": (
            reader.cut(sequences)
        ),
    }
    return lines + [f"warning: {n:,} sequences {what}" for what, n in doubts.items() if n]


def _targets(sequences: Sequences, reader: SequenceReader) -> str:
    if sequences.targets is not None:
        names = reader.settings.columns.targets
        ranges = zip(names, sequences.targets.T, strict=True)
        return ", ".join(f"{name} {row.min():.4g} to {row.max():.4g}" for name, row in ranges)
    return label_shares([(label,) for label in sequences.labels or ()])


def _leaks(name: str, train: Sequences, other: Sequences) -> list[str]:
    known = {train[index].tobytes() for index in range(len(train))}
    shared = sum(other[index].tobytes() in known for index in range(len(other)))
    said = f"warning: {shared} of the {len(other)} sequences of {name} are in train"
    return [said] if shared else []


_CONFIG = """\
# A classifier of the time series that `regard new sequences` wrote beside this file: in each one
# thing happens or nothing, and the column `event`, which no model reads, says where.
# Train it:     regard train {name}
# Use it:       regard classify --model runs/{run} --file {folder}/test.csv
# How strong it is instead: regard train {name} target=value data.label=height
task = "sequences"
target = "label"                 # or value: one number, or several
metric = "loss"                  # or accuracy, macro_f1; rmse, mae, r2

[data]                           # CSV or Parquet, a row a step
train = "train.csv"
dev = "dev.csv"
test = "test.csv"
sequence = "sequence"            # the sequence that a row belongs to
order = "step"                   # numbers or times; leave it out where rows stand in order
label = "label"
features = ["first", "second"]   # leave them out for all other columns of numbers

[model]
input_dim = 32
encoder = {{kind = "convolution", hidden_dim = 32, layers = 2}}
                                 # or embedding (none), rnn, gru, lstm, transformer
pooling = "attention"            # feed_forward, multihead, step, mean, max, last
dropout = 0.1

[training]
epochs = 8
batch_sentences = 32             # sequences in a batch
batch_tokens = 4096              # steps in a batch, at most
learning_rate = 0.005
label_smoothing = 0.0
"""


def new_sequences(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and generated time series, whose evidence is known.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The config and the tables.

    Raises:
        UserError: A file exists already.
        EnvironmentFault: The folder cannot be made.
    """
    config = new_config(folder, overwrite=overwrite)
    counts = {"train": 1200, "dev": 150, "test": 150}
    files = write_planted_series(folder, counts, seed=1, overwrite=overwrite)
    write_config(config, _CONFIG)
    return [config, *files]


TASK = TaskKind(
    name="sequences",
    summary="A sequence of numbers in, its label or values out, and the steps that decided.",
    load=load_sequences,
    train=train_sequences,
    evaluate=evaluate_sequences,
    check=check_sequences,
    new=new_sequences,
)
