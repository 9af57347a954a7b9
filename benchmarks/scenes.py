"""Train captioners on generated scenes, and see whether they look at what they name.

    python benchmarks/scenes.py data FOLDER
    python benchmarks/scenes.py train FOLDER --look soft --seed 1
    python benchmarks/scenes.py table FOLDER

Scenes of coloured shapes, whose regions are known, are described by a small network and an LSTM
that looks at 8 x 8 cells. The plain ones hold one or two shapes of a quarter of the side or more,
the crowded ones up to three from 18 % on. The look "near" is soft attention over cells that hardly
see beyond their own pixels. `table` scores what it finds in FOLDER on 1,000 new
scenes: words that are foretold after the true ones before them, words in their place and whole
captions when the captioner writes freely, and whether the cell looked at most for a word that names
a thing lies on that thing; writes `benchmarks/results/scenes.json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.batches import pad
from regard.data.captions import read_captions
from regard.data.framing import overlap_share
from regard.data.images import open_image
from regard.data.scenes import Scenes, read_regions, write_scenes
from regard.data.tokens import Tokenizer
from regard.pictures.picture import Picture
from regard.tasks import load
from regard.tasks.captioning_training import train_captioning
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "scenes.json"
SEED = 1
KINDS = {
    "plain": Scenes(most_things=2, smallest=0.25, largest=0.36),
    "crowded": Scenes(most_things=3, smallest=0.18, largest=0.3),
}
COUNTS = {"train": 24_000, "dev": 300, "test": 1_000}
FIGURES = ("next word", "words", "captions", "on the thing", "centre in its box")
HARD = [
    "model.decoder.selection=sampled",
    "model.reinforce.soft=0.35",
    "model.reinforce.annealed=0.7",
]
LOOKS = {
    "soft": ["model.decoder.selection=softmax"],
    "near": ["model.decoder.selection=softmax", "model.picture.neighbours=0"],
    "hard": HARD,
    "watched": [*HARD, "training.epochs=5", "training.keep=99"],  # for hard_attention.py
    "gumbel": ["model.decoder.selection=gumbel_softmax"],
}
CONFIG = """
task = "captioning"
metric = "bleu"
[data]
train = "{kind}"
dev = "{kind}"
test = "{kind}"
splits = ["train", "dev", "test"]
language = "en"
[model]
item_dim = 128
embedding_dim = 64
dropout = 0.05
[model.picture]
network = "small"
height = 64
width = 64
layers = 3
[model.decoder]
kind = "lstm"
hidden_dim = 128
order = "luong"
attention_dim = 64
[training]
epochs = 9
batch_sentences = 32
batch_tokens = 1024
learning_rate = 0.002
warmup_steps = 300
label_smoothing = 0.0
precision = "bfloat16"
evaluate_epochs = 1
threads = 1
device = "cpu"
[decoding]
beam = 3
maximum_length = 30
"""


def data(folder: Path) -> None:
    """Write the scenes and the configs."""
    for kind, drawn in KINDS.items():
        write_scenes(folder / kind, COUNTS, seed=SEED, scenes=drawn, overwrite=True)
        (folder / f"{kind}.toml").write_text(CONFIG.format(kind=kind), encoding="utf-8")


def train(folder: Path, kind: str, look: str, seed: int) -> None:
    """Train one captioner, or go on with it."""
    changes = [*LOOKS[look], f"training.seed={seed}"]
    options = RunOptions(folder / "runs" / f"{kind}-{look}-{seed}", resume=True)
    train_captioning(folder / f"{kind}.toml", changes, options)


def score(model: Path, scenes: Path) -> dict[str, float]:
    """Score one captioner on the test scenes of a folder, in percent."""
    captioner = load(model, device="cpu")
    images = read_captions(scenes, split="test")
    regions = read_regions(scenes / "captions.jsonl")
    foretold, tokens = forced(captioner, images)
    results = captioner(list(images.paths), beam=1)
    right = places = whole = looked = centred = named = 0
    for name, several, result in zip(images.names, images.captions, results, strict=True):
        wanted, written = several[0].split(), result.text.split()
        right += sum(a == b for a, b in zip(wanted, written, strict=False))
        places += max(len(wanted), len(written))
        whole += wanted == written
        if wanted != written or not isinstance(result.record.read, Picture):
            continue
        found = pointing(result.record, regions[name][0])
        named, looked, centred = named + found[0], looked + found[1], centred + found[2]
    return {
        "next word": 100 * foretold / tokens,
        "words": 100 * right / places,
        "captions": 100 * whole / len(images),
        "on the thing": 100 * looked / max(named, 1),
        "centre in its box": 100 * centred / max(named, 1),
        "named": named,
    }


def forced(captioner: Any, images: Any) -> tuple[int, int]:
    """Count the words, and the end, that are foretold right after the true words before them."""
    right = count = 0
    for start in range(0, len(images), 50):
        places = range(start, min(start + 50, len(images)))
        ids = [captioner.tokenizer.encode(images.captions[i][0]).ids for i in places]
        inputs = pad([[Tokenizer.BOS, *one] for one in ids], value=Tokenizer.PAD)
        outputs = pad([[*one, Tokenizer.EOS] for one in ids], value=Tokenizer.PAD)
        sources = captioner.sources([open_image(images.paths[i]) for i in places])
        with torch.inference_mode():
            decoded = captioner.model(sources, captioner.mask(len(places)), inputs)
            best = captioner.model.logits(decoded.features).argmax(dim=-1)
        real = outputs != Tokenizer.PAD
        right += int(((best == outputs) & real).sum())
        count += int(real.sum())
    return right, count


def pointing(record: Any, regions: Any) -> tuple[int, int, int]:
    """Count words that name things, cells on them, and cells whose centre lies in their box."""
    picture = record.read
    xs = np.linspace(0, picture.width, picture.columns + 1)
    ys = np.linspace(0, picture.height, picture.rows + 1)
    cells = np.array(
        [
            [left, top, right, bottom]
            for top, bottom in itertools.pairwise(ys)
            for left, right in itertools.pairwise(xs)
        ]
    )
    centres = (cells[:, :2] + cells[:, 2:]) / 2
    named = looked = centred = 0
    for region in regions:
        rows = [
            row
            for row, token in enumerate(record.written.tokens)
            if token.start < region.end and token.end > region.start and token.text.strip()
        ]
        weights = record.maps[0].weights[rows].mean(axis=0)
        best = int(weights.argmax())
        named += 1
        looked += any(overlap_share(cells, box)[best] > 0 for box in region.boxes)
        x, y = centres[best]
        centred += any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in region.boxes)
    return named, looked, centred


def table(folder: Path) -> None:
    """Score every captioner found and write the results."""
    torch.set_num_threads(1)
    report = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rows: dict[str, dict[str, dict[str, float]]] = report.get("rows", {})
    for kind, look in itertools.product(KINDS, ("soft", "near", "hard", "gumbel")):
        found = folder.glob(f"runs/{kind}-{look}-*")
        runs = sorted(run for run in found if (run / "model").is_dir())
        if not runs:
            continue
        name = f"{kind}, {look}"
        rows[name] = {run.name: score(run / "model", folder / kind) for run in runs}
        print(f"{name} ({len(runs)} seeds)")
        for figure in FIGURES:
            values = [found[figure] for found in rows[name].values()]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            print(f"  {figure:18} {statistics.mean(values):6.2f} ± {spread:.2f} %")
    report = {
        "command": "python benchmarks/scenes.py table FOLDER",
        "data": {"counts": COUNTS, "seed": SEED},
        "versions": {"torch": torch.__version__},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Write the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", choices=list(KINDS), default="plain")
    parser.add_argument("--look", choices=list(LOOKS), default="soft")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.action == "data":
        data(arguments.folder)
    elif arguments.action == "train":
        train(arguments.folder, arguments.scenes, arguments.look, arguments.seed)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
