"""Training, going on, evaluating, checking and beginning: models of sequences."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import read_config
from regard.data.planted_series import SeriesPlanter, write_planted_series
from regard.errors import ConfigError, DataError, FileFormatError, ResumeError, UserError
from regard.tasks import load
from regard.tasks.base import Opened, task_kind
from regard.tasks.sequence_settings import SequenceSettings
from regard.tasks.sequence_training import (
    build_job,
    check_sequences,
    evaluate_sequences,
    new_sequences,
    read_part,
    train_sequences,
)
from regard.tasks.sequences import SequenceClassifier, SequenceRegressor, load_sequences
from regard.training import RunOptions

pa = pytest.importorskip("pyarrow")

CONFIG = """
task = "sequences"
[data]
train = "train.csv"
dev = "dev.csv"
test = "test.csv"
order = "step"
features = ["first", "second"]
[model]
input_dim = 16
encoder = {kind = "convolution", hidden_dim = 16, layers = 2}
dropout = 0.1
[training]
epochs = 6
batch_tokens = 700
learning_rate = 0.01
label_smoothing = 0.0
threads = 1
device = "cpu"
"""
COUNTS = {"train": 240, "dev": 30, "test": 60}
VALUE = ["target=value", "data.label=height"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short series and a config; nothing may be written into it."""
    made = tmp_path_factory.mktemp("series")
    write_planted_series(made, COUNTS, seed=1, planter=SeriesPlanter(shortest=12, longest=24))
    (made / "config.toml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "run"
    train_sequences(folder / "config.toml", [], RunOptions(where, quiet=True))
    return where


@pytest.fixture(scope="module")
def value_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "values"
    train_sequences(folder / "config.toml", [*VALUE, "metric=r2"], RunOptions(where, quiet=True))
    return where


def job(folder: Path, *changes: str) -> Any:
    settings = read_config(folder / "config.toml", SequenceSettings, changes=changes)
    return build_job(settings, root=folder)


def weights_of(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def events(file: Path) -> dict[str, list[int]]:
    found = defaultdict(list)
    for row in csv.DictReader(file.read_text().splitlines()):
        found[row["sequence"]].append(int(row["event"]))
    return found


def test_it_learns_and_looks_at_what_decides(folder: Path, run: Path) -> None:
    classifier = load(run)
    assert isinstance(classifier, SequenceClassifier)
    found = evaluate_sequences(str(run), [])
    assert found.scores["accuracy"] >= 90.0
    assert len(found.written) == 60
    true, right, count = events(folder / "test.csv"), 0, 0
    for result in classifier(folder / "test.csv"):
        if any(true[result.name]):
            count += 1
            right += true[result.name][result.strongest(1)[0][0]]
    assert count >= 35
    assert right >= 0.95 * count


def test_it_foretells_values(folder: Path, value_run: Path) -> None:
    regressor = load(value_run)
    assert isinstance(regressor, SequenceRegressor)
    found = evaluate_sequences(str(value_run), [])
    assert found.scores["r2"] >= 0.8
    assert {*found.table()} == {"rmse", "mae", "r2", "sequences", "sha256"}
    assert found.lines()[0].startswith("rmse ")
    results = regressor(folder / "test.csv")
    assert [f"{one.value:.6g}" for one in results] == found.written
    assert results[0].values == {"height": results[0].value}


def test_several_values_are_learnt(folder: Path, tmp_path: Path) -> None:
    changes = ["target=value", 'data.label=["height", "label2"]', "training.epochs=1"]
    for name in ("train", "dev", "test"):
        rows = (folder / f"{name}.csv").read_text().splitlines()
        doubled = [f"{row},{'label2' if not n else float(row.split(',')[-2]) * 100 + 7}"
                   for n, row in enumerate(rows)]  # fmt: skip
        (tmp_path / f"{name}.csv").write_text("\n".join(doubled))
    (tmp_path / "config.toml").write_text(CONFIG)
    where = tmp_path / "run"
    train_sequences(tmp_path / "config.toml", changes, RunOptions(where, quiet=True))
    one = load(where)(np.zeros((12, 2)))
    assert list(one.values) == ["height", "label2"]
    assert one.values["label2"] > 50 * one.values["height"]  # in the units of the data
    with pytest.raises(UserError, match="value must be one; got 2"):
        _ = one.value
    assert "\t" in evaluate_sequences(str(where), []).written[0]


def test_the_scores_are_said(run: Path, folder: Path) -> None:
    found = evaluate_sequences(str(run), [str(folder / "dev.csv")])
    table = found.table()
    assert {*table} == {"accuracy", "macro_f1", "calibration_error", "sequences", "sha256"}
    assert table["sequences"] == 30
    assert any(line.startswith("accuracy") for line in found.lines())
    again = evaluate_sequences(str(run), [], reading={"target_column": "label"})
    assert again.scores == evaluate_sequences(str(run), []).scores
    for reading, message in (
        ({"header": True}, "--header: must be left out for sequences"),
        ({"source_column": 1}, "--source-column: must be left out"),
        ({"target_column": "lable"}, "did you mean 'label'"),
    ):
        with pytest.raises(UserError, match=message):
            evaluate_sequences(str(run), [], reading=reading)
    with pytest.raises(UserError, match="--beam: must be left out"):
        evaluate_sequences(str(run), [], beam=3)


def test_what_is_foretold_is_what_was_scored_in_training(folder: Path, value_run: Path) -> None:
    notes = evaluate_sequences(str(value_run), [str(folder / "dev.csv")])
    best = max(
        row["r2"] for row in map(eval_line, (value_run / "log.jsonl").read_text().splitlines())
        if row and "r2" in row
    )  # fmt: skip
    assert notes.scores["r2"] == pytest.approx(best, rel=1e-4)


def eval_line(line: str) -> dict[str, Any]:
    row = json.loads(line)
    return row.get("metrics", row)


def test_two_runs_are_the_same_to_the_bit(folder: Path, run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    changes = ["training.workers=1", "training.checkpoint_steps=7"]
    train_sequences(folder / "config.toml", changes, RunOptions(again, quiet=True))
    assert weights_of(again) == weights_of(run)


def test_t4_a_run_that_was_stopped_in_its_second_epoch_goes_on(
    folder: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "stopped"
    made = job(folder)
    stop = made.steps(0) + made.steps(1) // 2
    from regard.training import loop

    original = loop.Stepper.step
    seen = SimpleNamespace(steps=0)

    def step(self: Any, batch: Any, rate: float) -> Any:
        if seen.steps == stop + 1:
            raise KeyboardInterrupt
        seen.steps += 1
        return original(self, batch, rate)

    monkeypatch.setattr(loop.Stepper, "step", step)
    changes = [f"training.checkpoint_steps={stop}"]
    with pytest.raises(KeyboardInterrupt):
        train_sequences(folder / "config.toml", changes, RunOptions(where, quiet=True))
    monkeypatch.undo()
    options = RunOptions(where, resume=True, quiet=True)
    train_sequences(folder / "config.toml", changes, options)
    assert weights_of(where) == weights_of(run)


def test_t6_what_changes_the_result_is_in_the_identity(folder: Path, run: Path) -> None:
    ours = job(folder).identity
    assert job(folder, "training.workers=2", "data.test=other.csv").identity == ours
    for change in ("training.seed=2", "model.pooling=mean", "data.max_steps=9"):
        assert job(folder, change).identity != ours, change
    options = RunOptions(run, resume=True, quiet=True)
    with pytest.raises(ResumeError, match="max_steps"):
        train_sequences(folder / "config.toml", ["data.max_steps=9"], options)


@pytest.mark.parametrize("changes", [[], VALUE])
def test_the_loss_is_a_sum_over_sequences_and_halves_add_up(
    folder: Path, changes: list[str]
) -> None:
    made = job(folder, *changes)
    batch = next(made.batches(0, 0))
    assert batch.values.shape[0] * batch.values.shape[1] <= 700
    whole = made.loss(batch).total
    halves = made.split(batch)
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert made.size(batch) == sum(map(made.size, halves)) == len(batch.examples)
    expected = math.log(4) if not changes else 1.0  # of standardised values, their spread
    assert whole.item() == pytest.approx(made.size(batch) * expected, rel=0.5)
    single = halves[0]
    while len(single.examples) > 1:
        single = made.split(single)[0]
    assert made.split(single) is None
    assert "train.csv:" in made.describe(batch)
    assert f"{made.size(batch)} sequences of at most " in made.describe(batch)


@pytest.mark.parametrize(
    "change",
    [
        "model.pooling=feed_forward",
        "model.pooling=multihead",
        "model.pooling=max",
        "model.selection=sparsemax",
        "model.gated=true",
        "model.missing=mean",
        "model.encoder={kind='embedding'}",
        "model.encoder={kind='lstm', hidden_dim=8}",
        "model.encoder={kind='transformer', num_heads=2, layers=1, hidden_dim=8}",
        "training.precision=bfloat16",
        "training.label_smoothing=0.1",
        "data.max_steps=5",
    ],
)
def test_what_reads_is_one_line_of_the_config(change: str, folder: Path) -> None:
    made = job(folder, change)
    made.model.train()
    batch = next(made.batches(0, 0))
    (made.loss(batch).total / made.size(batch)).backward()
    gradient = made.model.projection.weight.grad
    assert gradient.isfinite().all()
    assert gradient.any()


def test_steps_of_a_fixed_place_bound_what_is_read(folder: Path) -> None:
    made = job(folder, "model.pooling=step", "model.steps=15")
    assert made.reader.settings.limit == 15
    assert max(made.data.lengths) == 15
    lines = check_sequences(folder / "config.toml", ["model.pooling=step", "model.steps=15"])
    assert any("of train have more than 15 steps; the rest is not read" in one for one in lines)
    with pytest.raises(ConfigError, match="steps must be given for pooling"):
        job(folder, "model.pooling=step")


def test_check_says_what_is_there(folder: Path) -> None:
    lines = check_sequences(folder / "config.toml", [])
    assert any(line.startswith("train: 240 sequences of 12 to 24 steps, 0 num") for line in lines)
    assert any(line.startswith("test: ") and "bump" in line for line in lines)
    assert "features: first, second" in lines
    assert "not read: height, event" in lines
    assert lines[-1].endswith("steps an epoch")
    assert not [line for line in lines if line.startswith("warning")]
    lines = check_sequences(folder / "config.toml", [f"data.dev={folder / 'train.csv'}"])
    assert "warning: 240 of the 240 sequences of dev are in train" in lines
    assert any(one.startswith("train: height 0 to ") for one in check_sequences(
        folder / "config.toml", VALUE))  # fmt: skip


SMALL = "sequence,step,first,second,label\na,1,1,2,x\na,2,3,4,x\nb,1,5,6,y\n"


def small(folder: Path, train: str = SMALL, dev: str = SMALL) -> Path:
    (folder / "config.toml").write_text(CONFIG.replace('test = "test.csv"\n', ""))
    (folder / "train.csv").write_text(train)
    (folder / "dev.csv").write_text(dev)
    return folder


def test_d9_data_that_is_wrong_is_named(folder: Path, tmp_path: Path) -> None:
    assert len(job(small(tmp_path)).data) == 2
    with pytest.raises(DataError, match=r"dev\.csv:4: label must be one of .* got 'z'"):
        job(small(tmp_path, dev=SMALL.replace("y", "z")))
    with pytest.raises(DataError, match=r"labels must be at least two; got 1 \(x\)"):
        job(small(tmp_path, train=SMALL.replace("y", "x")))
    with pytest.raises(DataError, match=r"train\.csv:3: 'second' must be a number in every step"):
        job(small(tmp_path, train=SMALL.replace("4", "")))
    with pytest.raises(DataError, match=r"dev\.csv: table must have the column 'second'"):
        job(small(tmp_path, dev=SMALL.replace("second", "other")))
    job(small(tmp_path, train=SMALL.replace("4", "")), "model.missing=mean")
    with pytest.raises(UserError, match="values must be finite, and differ by"):
        job(small(tmp_path, train=SMALL.replace("4", "1e100")))
    settings = read_config(tmp_path / "config.toml", SequenceSettings)
    with pytest.raises(UserError, match="test: needs a table of sequences"):
        read_part("test", settings, None, root=tmp_path)
    for change, message in (
        ("model.poling=mean", "did you mean 'pooling'"),
        ("metric=rmse", "metric must be one of loss, accuracy, macro_f1"),
        ('data.label=["a", "b"]', "must be one column"),
        ("target=values", "target"),
        ("model.encoder.kind=grru", "did you mean 'gru'"),
    ):
        with pytest.raises(ConfigError, match=message):
            job(folder, change)


def test_doubtful_tables_are_said(tmp_path: Path) -> None:
    rows = SMALL.replace("a,1,1", "a,9,1") + "b,1,7,,y\n"
    lines = check_sequences(small(tmp_path, train=rows) / "config.toml", ["model.missing=mean"])
    warnings = [line for line in lines if line.startswith("warning: ") and "train" in line]
    assert "1 sequences are not in the order of their times in train" in warnings[0]
    assert "1 sequences of train have two steps of the same time" in warnings[1]
    assert "1 numbers missing" in lines[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"labels":', '"labls":', "labels: must be given"),
        ('"target": "label"', '"target": "value"', "none for values; got 4"),
        ('"max_steps": 10000', '"max_steps": 1e9', "max_steps"),
        ('"hidden_dim": 16', '"hidden_dim": 1000000000', "hidden_dim"),
        ('"first"', '""', "features"),
    ],
)
def test_k8_a_config_that_is_hostile(run: Path, old: str, new: str, message: str) -> None:
    text = (run / "model" / "config.json").read_text()
    assert old in text
    opened = Opened("x", run / "model", json.loads(text.replace(old, new, 1)))
    with pytest.raises((ConfigError, FileFormatError), match=message):
        load_sequences(opened, torch.device("cpu"))


def test_new_writes_a_config_that_check_likes(tmp_path: Path, monkeypatch: Any) -> None:
    few = {"train": 60, "dev": 5, "test": 5}
    monkeypatch.setattr(
        "regard.tasks.sequence_training.write_planted_series",
        lambda folder, counts, **own: write_planted_series(folder, few, **own),
    )
    config, *files = task_kind("sequences").new(tmp_path / "demo")
    assert [file.name for file in files] == ["train.csv", "dev.csv", "test.csv"]
    assert check_sequences(config, [])[-1].startswith("model: ")
    assert check_sequences(config, VALUE)[-1].startswith("model: ")
    with pytest.raises(UserError, match="exists already"):
        new_sequences(tmp_path / "demo")
    new_sequences(tmp_path / "demo", overwrite=True)
