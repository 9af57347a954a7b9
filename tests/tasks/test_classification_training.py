"""Training, going on, evaluating, checking and beginning: classifiers of documents."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.config import read_config
from regard.data.planted import Planted, read_evidence, write_planted
from regard.errors import ConfigError, DataError, ResumeError, UserError
from regard.pictures.evidence import sentences
from regard.tasks import load
from regard.tasks.base import task_kind
from regard.tasks.classification import DocumentClassifier
from regard.tasks.classification_settings import ClassificationSettings
from regard.tasks.classification_training import (
    build_job,
    check_classification,
    evaluate_classification,
    new_classification,
    train_classification,
)
from regard.training import RunOptions

CONFIG = """
task = "classification"
metric = "loss"
[data]
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
language = "en"
[tokens]
lowercase = true
[model]
embedding_dim = 24
dropout = 0.1
[model.words]
encoder = {kind = "embedding"}
attention_dim = 16
[model.sentences]
encoder = {kind = "embedding"}
attention_dim = 16
[training]
epochs = 5
batch_tokens = 800
learning_rate = 0.02
label_smoothing = 0.0
threads = 1
device = "cpu"
"""
COUNTS = {"train": 400, "dev": 40, "test": 60}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short letters and a config; nothing may be written into it."""
    made = tmp_path_factory.mktemp("letters")
    write_planted(made, COUNTS, seed=1, planted=Planted(shortest=1, longest=5))
    (made / "config.toml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "run"
    train_classification(folder / "config.toml", [], RunOptions(where, quiet=True))
    return where


def test_marked_places_are_scored_where_the_file_has_them(run: Path, folder: Path) -> None:
    evaluation = evaluate_classification(str(run), (str(folder / "test.jsonl"),))
    found = evaluation.table()["evidence"]
    known = sum(one is not None for one in read_evidence(folder / "test.jsonl"))
    assert found["words, attention"]["documents"] == known
    assert found["words, attention"]["auc"] > 95
    assert any(line.startswith("marked sentences, gradient: auc ") for line in evaluation.lines())
    bare = folder.parent / "bare.jsonl"
    bare.write_text('{"text": "The lamp was late.", "label": "delivery"}\n')
    assert "evidence" not in evaluate_classification(str(run), (str(bare),)).table()


def job(folder: Path, *changes: str) -> Any:
    settings = read_config(folder / "config.toml", ClassificationSettings, changes=changes)
    return build_job(settings, root=folder)


def weights_of(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def test_it_learns_and_looks_at_what_decides(folder: Path, run: Path) -> None:
    classifier = load(run)
    assert isinstance(classifier, DocumentClassifier)
    found = evaluate_classification(str(run), [])
    assert found.scores["accuracy"] >= 95.0
    assert len(found.written) == 60
    documents, evidence = found.documents, read_evidence(folder / "test.jsonl")
    right_sentence = right_word = count = 0
    for result, true in zip(classifier(list(documents.texts)), evidence, strict=True):
        if true is None:
            continue
        count += 1
        every = sentences(result.record)
        best = max(every, key=lambda one: one.weight)
        right_sentence += (best.start, best.end) == true.sentence
        (word,) = best.strongest(1)
        right_word += any(word.start < end and start < word.end for start, end in true.words)
    assert count >= 40
    assert right_sentence >= 0.95 * count
    assert right_word >= 0.95 * count


def test_the_scores_are_said(run: Path, folder: Path) -> None:
    found = evaluate_classification(str(run), [str(folder / "dev.jsonl")])
    table = found.table()
    expected = {"accuracy", "macro_f1", "calibration_error", "documents", "sha256", "evidence"}
    assert {*table} == expected
    assert table["documents"] == 40
    assert any(line.startswith("accuracy") for line in found.lines())
    with pytest.raises(UserError, match="must be left out for a classifier"):
        evaluate_classification(str(run), [], beam=3)


def test_a_file_with_other_columns_is_evaluated(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.tsv"
    file.write_text("text\tkind\nThe lamp was broken.\tquality\n\tquality\n")
    reading = {"source_column": "text", "target_column": "kind"}
    found = evaluate_classification(str(run), [str(file)], reading=reading)
    assert found.written[0] == "quality"
    assert "1 of them blank" in found.lines()[-1]
    file.write_text("text\tkind\nThe lamp was broken.\tqualty\n")
    with pytest.raises(DataError, match=r"new\.tsv:2: label .* got 'qualty'; did you mean"):
        evaluate_classification(str(run), [str(file)], reading=reading)
    listed = tmp_path / "listed.jsonl"
    listed.write_text('{"text": "x", "labels": ["quality"]}\n')
    with pytest.raises(DataError, match="one for each document, or a list"):
        evaluate_classification(str(run), [str(listed)])


def test_two_runs_are_the_same_to_the_bit(folder: Path, run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    changes = ["training.workers=1", "training.checkpoint_steps=7"]
    train_classification(folder / "config.toml", changes, RunOptions(again, quiet=True))
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
        train_classification(folder / "config.toml", changes, RunOptions(where, quiet=True))
    monkeypatch.undo()
    options = RunOptions(where, resume=True, quiet=True)
    train_classification(folder / "config.toml", changes, options)
    assert weights_of(where) == weights_of(run)


def test_t6_what_changes_the_result_is_in_the_identity(folder: Path, run: Path) -> None:
    ours = job(folder).identity
    assert job(folder, "training.workers=2", "data.test=other.jsonl").identity == ours
    for change in ("training.seed=2", "balanced=true", "model.flat=true", "data.max_words=9"):
        assert job(folder, change).identity != ours, change
    options = RunOptions(run, resume=True, quiet=True)
    with pytest.raises(ResumeError, match="max_words"):
        train_classification(folder / "config.toml", ["data.max_words=9"], options)


def test_the_loss_is_a_sum_over_documents_and_halves_add_up(folder: Path) -> None:
    made = job(folder)
    batch = next(made.batches(0, 0))
    whole = made.loss(batch).total
    halves = made.split(batch)
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert made.size(batch) == sum(map(made.size, halves)) == len(batch.examples)
    assert whole.item() == pytest.approx(made.size(batch) * math.log(5), rel=0.1)
    single = halves[0]
    while len(single.examples) > 1:
        single = made.split(single)[0]
    assert made.split(single) is None
    assert "train.jsonl:" in made.describe(batch)
    assert f"{made.size(batch)} documents of at most " in made.describe(batch)


def test_a_batch_holds_no_padding(folder: Path) -> None:
    made = job(folder)
    for batch in made.batches(0, 0):
        assert len(batch.tokens) == batch.words.sum() <= 800
        assert len(batch.words) == batch.sentences.sum()
        assert (batch.tokens != 0).all()


def test_rare_labels_count_as_much_where_that_is_asked(tmp_path: Path) -> None:
    rows = [("a", "one two")] * 9 + [("b", "three four")]
    text = "".join(f"{label}\t{text}\n" for label, text in rows)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(text)
    config = CONFIG.replace("jsonl", "tsv").replace('test = "test.tsv"\n', "")
    (tmp_path / "config.toml").write_text(config)
    made, plain = job(tmp_path, "balanced=true"), job(tmp_path)
    for one in (made, plain):
        one.model.output.weight.data.zero_()
        one.model.output.bias.data.zero_()
        one.model.train()
    batch = next(made.batches(0, 0))
    assert made.loss(batch).total.item() == pytest.approx(10 * math.log(2), rel=1e-5)
    made.loss(batch).total.backward()
    plain.loss(batch).total.backward()
    assert made.model.output.bias.grad.abs().max() < 1e-5  # both labels pull alike
    assert plain.model.output.bias.grad.abs().max() > 1.0
    made.model.eval()
    plain.model.eval()
    assert made.loss(batch).total.item() == pytest.approx(plain.loss(batch).total.item())


def test_any_number_of_labels_is_learnt(tmp_path: Path) -> None:
    words = {"cat": "animal", "dog": "animal", "oak": "plant", "fern": "plant"}
    rows = []
    for first in ("cat", "oak", "stone"):
        for second in ("dog", "fern", "sand"):
            labels = sorted({words[w] for w in (first, second) if w in words})
            rows.append({"text": f"I see a {first}. There is a {second}.", "labels": labels})
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (tmp_path / "config.toml").write_text(CONFIG.replace("epochs = 5", "epochs = 40"))
    where = tmp_path / "run"
    changes = ["balanced=true", "training.checkpoint_steps=1000"]
    train_classification(tmp_path / "config.toml", changes, RunOptions(where, quiet=True))
    found = evaluate_classification(str(where), [])
    assert found.scores["accuracy"] == 100.0
    assert found.scores["micro_f1"] == 100.0
    result = load(where)("I see a cat. There is a fern.")
    assert result.labels == ("animal", "plant")
    assert load(where)("I see a stone. There is a sand.").labels == ()
    assert set(found.written) == {"animal", "plant", "animal, plant", ""}


@pytest.mark.parametrize(
    "change",
    [
        "model.flat=true",
        "model.words.pooling=max",
        "model.sentences.pooling=mean",
        "model.words.selection=sparsemax",
        "model.words.encoder={kind='convolution', hidden_dim=8, layers=1}",
        "model.sentences.encoder={kind='transformer', num_heads=2, layers=1, hidden_dim=8}",
        "model.sentences.projection=6",
        "data.sentences=none",
        "tokens.kind=bpe",
        "tokens.kind=characters",
    ],
)
def test_what_reads_is_one_line_of_the_config(change: str, folder: Path) -> None:
    made = job(folder, change)
    made.model.train()
    batch = next(made.batches(0, 0))
    (made.loss(batch).total / made.size(batch)).backward()
    gradient = made.model.words.encoder.embedding.weight.grad
    assert gradient.isfinite().all()
    assert gradient.any()


def test_it_begins_with_vectors(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(f"lamp {' '.join(['0.5'] * 24)}\nother {' '.join(['1'] * 24)}\n")
    made = job(folder, f"data.vectors={file}")
    place = made.classifier.tokenizer.encode("a lamp", whole=True).ids[-1]
    assert made.model.words.encoder.embedding.weight[place].tolist() == [0.5] * 24
    assert made.identity != job(folder).identity
    lines = check_classification(folder / "config.toml", [f"data.vectors={file}"])
    assert any(line.startswith("vectors: of 1 of ") for line in lines)
    with pytest.raises(UserError, match="embedding_dim must be the size of the vectors, 24; got 8"):
        job(folder, f"data.vectors={file}", "model.embedding_dim=8")


def test_check_says_what_is_there(folder: Path, tmp_path: Path) -> None:
    lines = check_classification(folder / "config.toml", [])
    assert any(line.startswith("train: 400 documents, 0 blank") for line in lines)
    assert any(line.startswith("test: ") and "quality" in line for line in lines)
    assert lines[-1].endswith("steps an epoch")
    assert not [line for line in lines if line.startswith("warning")]
    leaky = [f"data.dev={folder / 'train.jsonl'}", "data.max_sentences=2"]
    lines = check_classification(folder / "config.toml", leaky)
    assert "warning: 400 of the 400 documents of dev are in train" in lines
    assert any("documents of train have more than 2 sentences" in line for line in lines)


def test_d9_data_that_is_wrong_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").write_bytes((folder / f"{name}.jsonl").read_bytes())
    (tmp_path / "dev.jsonl").write_text('{"text": "x", "label": "spam"}\n')
    with pytest.raises(DataError, match=r"dev\.jsonl:1: label .* got 'spam'"):
        job(tmp_path)
    (tmp_path / "dev.jsonl").write_text('{"text": "x", "labels": ["praise"]}\n')
    with pytest.raises(DataError, match="labels must be as in the training data"):
        job(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"text": "x", "label": "praise"}\n')
    (tmp_path / "dev.jsonl").write_text('{"text": "x", "label": "praise"}\n')
    with pytest.raises(DataError, match="labels must be at least two; got 1"):
        job(tmp_path)
    (tmp_path / "train.jsonl").write_text('{"text": " ", "label": 1}\n{"text": "", "label": 2}\n')
    with pytest.raises(DataError, match="every text is blank"):
        job(tmp_path)
    with pytest.raises(ConfigError, match=r"poling.*did you mean 'pooling'"):
        job(folder, "model.words.poling=mean")


def test_blank_documents_are_left_out_of_training(folder: Path, tmp_path: Path) -> None:
    content = (folder / "train.jsonl").read_text() + '{"text": " ", "label": "praise"}\n'
    (tmp_path / "more.jsonl").write_text(content)
    made = job(folder, f"data.train={tmp_path / 'more.jsonl'}")
    assert len(made.data) == 400


def test_new_writes_a_config_that_check_likes(tmp_path: Path, monkeypatch: Any) -> None:
    small = {"train": 60, "dev": 5, "test": 5}
    monkeypatch.setattr(
        "regard.tasks.classification_training.write_planted",
        lambda folder, counts, **own: write_planted(folder, small, **own),
    )
    config, *files = task_kind("classification").new(tmp_path / "demo")
    assert [file.name for file in files] == ["train.jsonl", "dev.jsonl", "test.jsonl"]
    assert check_classification(config, [])[-1].startswith("model: ")
    with pytest.raises(UserError, match="exists already"):
        new_classification(tmp_path / "demo")
    new_classification(tmp_path / "demo", overwrite=True)
