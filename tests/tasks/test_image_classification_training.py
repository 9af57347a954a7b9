"""Training, going on, evaluating, checking and beginning: classifiers of pictures."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from regard.config import read_config
from regard.data.deciding import DecidingScenes, read_deciding, write_deciding
from regard.data.images import open_image
from regard.data.scenes import Scenes
from regard.errors import ConfigError, DataError, ResumeError, UserError
from regard.tasks import load
from regard.tasks.base import task_kind
from regard.tasks.image_classification import ImageClassifier
from regard.tasks.image_classification_settings import ImageClassificationSettings
from regard.tasks.image_classification_training import (
    build_job,
    check_image_classification,
    evaluate_image_classification,
    new_image_classification,
    train_image_classification,
)
from regard.training import RunOptions

CONFIG = """
task = "image_classification"
metric = "loss"
[data]
train = "scenes"
dev = "scenes"
test = "scenes"
splits = ["train", "dev", "test"]
[model]
dropout = 0.0
attention_dim = 16
[model.picture]
network = "small"
height = 32
width = 32
dim = 16
layers = 2
[training]
epochs = 3
batch_sentences = 16
learning_rate = 0.01
label_smoothing = 0.0
threads = 1
device = "cpu"
"""
COUNTS = {"train": 60, "dev": 12, "test": 12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small scenes and a config; nothing may be written into the scenes."""
    made = tmp_path_factory.mktemp("pictures")
    scenes = Scenes(width=32, height=32, most_things=2, smallest=0.25, largest=0.36)
    write_deciding(made / "scenes", COUNTS, seed=1, deciding=DecidingScenes(scenes))
    (made / "config.toml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "run"
    train_image_classification(folder / "config.toml", [], RunOptions(where, quiet=True))
    return where


def job(folder: Path, *changes: str) -> Any:
    settings = read_config(folder / "config.toml", ImageClassificationSettings, changes=changes)
    return build_job(settings, root=folder)


def weights_of(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def test_a_trained_classifier_is_loaded_and_scored(folder: Path, run: Path) -> None:
    classifier = load(run)
    assert isinstance(classifier, ImageClassifier)
    assert classifier.settings.labels == ["cross", "heart", "other", "star"]
    found = evaluate_image_classification(str(run), [])
    assert len(found.written) == 12
    assert {*found.table()} == {"accuracy", "macro_f1", "calibration_error", "pictures", "sha256"}
    assert any(line.startswith("accuracy") for line in found.lines())
    results = classifier(list(found.images.paths))
    assert found.written == [result.label for result in results]
    right = [
        (result.label,) == labels
        for result, labels in zip(results, found.images.labels, strict=True)
    ]
    assert found.scores["accuracy"] == pytest.approx(100 * sum(right) / 12)
    every = evaluate_image_classification(str(run), [str(folder / "scenes")])
    assert len(every.written) == 84  # every split of the file
    with pytest.raises(UserError, match="must be left out for a classifier"):
        evaluate_image_classification(str(run), [], beam=3)


def test_it_learns_and_looks_at_what_decides(tmp_path: Path) -> None:
    """A red or a blue square decides, or none, beside a grey one: easy enough for seconds."""
    rows = []
    colours = {"red": (200, 30, 30), "blue": (30, 30, 200), "none": (90, 90, 90)}
    for index in range(120):
        random = np.random.default_rng(index)
        pixels = np.full((32, 32, 3), 230, np.uint8)
        places = random.permutation(16)[:2]
        label = [*colours][index % 3]
        for place, colour in zip(places, (label, "none"), strict=True):
            top, left = 8 * (place // 4), 8 * (place % 4)
            pixels[top + 1 : top + 7, left + 1 : left + 7] = colours[colour]
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
        split, cell = "train" if index < 80 else "dev", int(places[0])
        rows.append({"image": f"{index}.png", "label": label, "split": split, "cell": cell})
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = CONFIG.replace('"scenes"', '"labels.jsonl"').replace("epochs = 3", "epochs = 12")
    (tmp_path / "config.toml").write_text(config.replace('"dev", "test"', '"dev", "dev"'))
    changes = ["model.picture.parts={rows=4, columns=4}"]  # a part sees itself alone
    options = RunOptions(tmp_path / "run", quiet=True)
    train_image_classification(tmp_path / "config.toml", changes, options)
    found = evaluate_image_classification(str(tmp_path / "run"), [])
    assert found.scores["accuracy"] == 100.0
    cells = {row["image"]: row["cell"] for row in rows if row["label"] != "none"}
    results = load(tmp_path / "run")(list(found.images.paths))
    hits = [
        result.record.strongest(1)[0][0][0] == cells[result.image]
        for result in results
        if result.image in cells
    ]
    assert len(hits) > 20
    assert sum(hits) >= 0.95 * len(hits)


def test_two_runs_are_the_same_to_the_bit(folder: Path, run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    changes = ["training.workers=1", "training.checkpoint_steps=3"]
    options = RunOptions(again, quiet=True)
    train_image_classification(folder / "config.toml", changes, options)
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
        train_image_classification(folder / "config.toml", changes, RunOptions(where, quiet=True))
    monkeypatch.undo()
    options = RunOptions(where, resume=True, quiet=True)
    train_image_classification(folder / "config.toml", changes, options)
    assert weights_of(where) == weights_of(run)


def test_t6_what_changes_the_result_is_in_the_identity(
    folder: Path, run: Path, tmp_path: Path
) -> None:
    ours = job(folder).identity
    same = ["training.workers=2", "data.test=other.jsonl", f"data.cache={tmp_path / 'cache'}"]
    assert job(folder, *same).identity == ours
    for change in ("training.seed=2", "balanced=true", "model.gated=true"):
        assert job(folder, change).identity != ours, change
    options = RunOptions(run, resume=True, quiet=True)
    with pytest.raises(ResumeError, match="gated"):
        train_image_classification(folder / "config.toml", ["model.gated=true"], options)
    moved = tmp_path / "moved"
    shutil.copytree(folder / "scenes", moved / "scenes")
    shutil.copy(folder / "config.toml", moved)
    assert job(moved).identity == ours
    Image.new("RGB", (32, 32)).save(moved / "scenes" / "images" / "train-00000.png")
    assert job(moved).identity != ours


def test_pixels_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = job(folder)
    shown = first.data[3][1]
    picture = open_image(first.data.images.paths[3])
    assert shown.dtype == torch.uint8
    assert torch.equal(shown.float(), first.classifier.pixels([picture])[0])

    def never(*_: object) -> None:
        raise AssertionError("a picture was resized again")

    monkeypatch.setattr(ImageClassifier, "pixels", never)
    assert torch.equal(job(folder).data[3][1], shown)


def test_the_loss_is_a_sum_over_pictures_and_halves_add_up(folder: Path) -> None:
    made = job(folder)
    made.model.eval()
    batch = next(made.batches(0, 0))
    whole = made.loss(batch).total
    halves = made.split(batch)
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert made.size(batch) == sum(map(made.size, halves)) == len(batch.examples) == 16
    assert whole.item() == pytest.approx(made.size(batch) * math.log(4), rel=0.2)
    assert "labels.jsonl:" in made.describe(batch)
    assert "16 pictures: " in made.describe(batch)
    single = halves[0]
    while len(single.examples) > 1:
        single = made.split(single)[0]
    assert made.split(single) is None


def test_batches_are_bounded_by_their_cells(folder: Path) -> None:
    made = job(folder, "training.batch_tokens=320")  # 64 cells a picture
    assert {len(batch.examples) for batch in made.batches(0, 0)} == {5}
    assert made.steps(0) == made.steps(1) == 12


@pytest.mark.parametrize(
    "change",
    [
        "model.pooling=mean",
        "model.pooling=max",
        "model.gated=true",
        "model.selection=sparsemax",
        "model.selection=entmax",
        "model.projection=8",
        "model.picture.parts={rows=2, columns=2}",
        "balanced=true",
        "training.label_smoothing=0.1",
    ],
)
def test_what_looks_is_one_line_of_the_config(change: str, folder: Path) -> None:
    made = job(folder, change)
    made.model.train()
    batch = next(made.batches(0, 0))
    (made.loss(batch).total / made.size(batch)).backward()
    describer = made.model.describer
    assert all(p.grad is not None and p.grad.isfinite().all() for p in describer.parameters())


def test_a_network_that_stays_as_it_is_describes_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.models.lite0 import Lite0

    monkeypatch.setattr("regard.tasks.image_classification_training.load_published", lambda _: None)
    calls = SimpleNamespace(count=0)
    original = Lite0.scales

    def scales(self: Any, pixels: Any) -> Any:
        calls.count += 1
        return original(self, pixels)

    monkeypatch.setattr(Lite0, "scales", scales)
    shutil.copytree(folder / "scenes", tmp_path / "scenes")
    config = CONFIG.replace('"small"', '"lite0"').replace("height = 32", "height = 64")
    (tmp_path / "config.toml").write_text(config)
    changes = ["training.batch_sentences=7", "model.projection=8"]
    made = job(tmp_path, *changes)
    assert calls.count == 72  # every picture of two parts
    assert made.data[0][1].dtype == torch.float16
    assert made.data[0][1].shape == (2, 1280)
    assert not any("network" in name for name in made.model.state_dict())
    assert made.loss(next(made.batches(0, 0))).total.isfinite()
    torch.manual_seed(1)  # the same network
    again = job(tmp_path, *changes)
    assert calls.count == 72
    assert torch.equal(again.data[5][1], made.data[5][1])


def test_folders_of_labels_divided_by_content(tmp_path: Path) -> None:
    for index in range(60):
        noise = np.random.default_rng(index).integers(0, 99, (20, 20, 3)) + 150 * (index % 2)
        path = tmp_path / "all" / ("dark", "light")[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise.astype(np.uint8)).save(path)
    config = CONFIG.replace('"scenes"', '"all"')
    config = config.replace('["train", "dev", "test"]', '"content"')
    (tmp_path / "config.toml").write_text(config)
    lines = check_image_classification(tmp_path / "config.toml", [])
    assert not [line for line in lines if line.startswith("warning")]
    assert lines[-1].endswith("8 x 8 cells, 2 labels")
    where = tmp_path / "run"
    train_image_classification(tmp_path / "config.toml", [], RunOptions(where, quiet=True))
    found = evaluate_image_classification(str(where), [])
    assert found.scores["accuracy"] == 100.0
    made = job(tmp_path)
    assert len(made.data) + len(made.dev) + len(found.written) == 60
    assert evaluate_image_classification(str(where), [str(tmp_path / "all")]).written
    with pytest.raises(UserError, match='or use splits = "content"'):
        job(tmp_path, 'data.splits=["train", "dev"]')


def test_any_number_of_labels_is_learnt(tmp_path: Path) -> None:
    rows = []
    for index in range(40):
        marks = {"red": bool(index & 1), "blue": bool(index & 2)}
        image = Image.new("RGB", (32, 32), "white")
        image.paste("grey", (index % 8, index // 8, index % 8 + 3, index // 8 + 3))
        for number, (colour, holds) in enumerate(marks.items()):
            if holds:
                image.paste(colour, (16 * number, 16, 16 * number + 14, 30))
        image.save(tmp_path / f"{index}.png")
        rows.append({"image": f"{index}.png", "labels": [c for c, holds in marks.items() if holds]})
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = CONFIG.replace('"scenes"', '"labels.jsonl"').replace("epochs = 3", "epochs = 12")
    config = config.replace('splits = ["train", "dev", "test"]\n', "")
    (tmp_path / "config.toml").write_text(config)
    options = RunOptions(tmp_path / "run", quiet=True)
    train_image_classification(tmp_path / "config.toml", ["balanced=true"], options)
    found = evaluate_image_classification(str(tmp_path / "run"), [])
    assert found.scores["accuracy"] == 100.0
    assert set(found.written) == {"red", "blue", "blue, red", ""}


def test_files_to_score(folder: Path, run: Path, tmp_path: Path) -> None:
    images = shutil.copytree(folder / "scenes", tmp_path / "scenes")
    apart = tmp_path / "apart.tsv"
    rows = json.loads(f"[{','.join((images / 'labels.jsonl').read_text().splitlines())}]")
    apart.write_text("name\tkind\n" + "".join(f"{r['image']}\t{r['label']}\n" for r in rows[:9]))
    for name in ("images",):
        shutil.copytree(images / name, tmp_path / name)
    reading = {"source_column": "name", "target_column": "kind"}
    found = evaluate_image_classification(str(run), [str(apart)], reading=reading)
    assert len(found.written) == 9
    (tmp_path / rows[0]["image"]).write_bytes(b"")
    with pytest.raises(DataError, match=r"got 1 of 9, the first in .*apart\.tsv:2: images/train-0"):
        evaluate_image_classification(str(run), [str(apart)], reading=reading)
    apart.write_text(f"{rows[1]['image']}\thart\n")
    with pytest.raises(DataError, match=r"apart\.tsv:1: label .* got 'hart'; did you mean 'heart'"):
        evaluate_image_classification(str(run), [str(apart)])
    with pytest.raises(UserError, match=r"takes one file .* got 2"):
        evaluate_image_classification(str(run), [str(apart), str(apart)])
    (tmp_path / "apart.jsonl").write_text(json.dumps({"image": rows[1]["image"], "labels": []}))
    with pytest.raises(DataError, match="one for each picture, or a list"):
        evaluate_image_classification(str(run), [str(tmp_path / "apart.jsonl")])


def test_check_says_what_is_there(folder: Path) -> None:
    lines = check_image_classification(folder / "config.toml", [])
    assert lines[0].startswith(
        f"train: {folder / 'scenes' / 'labels.jsonl'}: 60 images, 4 labels ("
    )
    assert "test: test: 12 images" in lines
    assert lines[-1].endswith("8 x 8 cells, 4 labels")
    assert not [line for line in lines if line.startswith("warning")]
    leaky = ['data.splits=["train", "train", "test"]']
    lines = check_image_classification(folder / "config.toml", leaky)
    assert "warning: 60 of the 60 pictures of dev are in train" in lines


def test_d9_settings_that_are_wrong_are_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"poling.*did you mean 'pooling'"):
        job(folder, "model.poling=mean")
    with pytest.raises(ConfigError, match="splits"):
        job(folder, "data.splits=contents")
    with pytest.raises(UserError, match="splits must name one for test"):
        check_image_classification(folder / "config.toml", ['data.splits=["train", "dev"]'])
    with pytest.raises(DataError, match="split must be one of the file's; got 'val'"):
        job(folder, 'data.splits=["train", "val"]')


def test_new_writes_a_config_that_check_likes(tmp_path: Path, monkeypatch: Any) -> None:
    small = {"train": 40, "dev": 5, "test": 5}
    monkeypatch.setattr(
        "regard.tasks.image_classification_training.write_deciding",
        lambda folder, counts, **own: write_deciding(folder, small, **own),
    )
    config, labels = task_kind("image_classification").new(tmp_path / "demo")
    assert labels == tmp_path / "demo" / "scenes" / "labels.jsonl"
    assert len(read_deciding(labels)) == 50
    assert check_image_classification(config, [])[-1].startswith("model: ")
    with pytest.raises(UserError, match="exists already"):
        new_image_classification(tmp_path / "demo")
    new_image_classification(tmp_path / "demo", overwrite=True)
