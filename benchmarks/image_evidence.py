"""Train classifiers on drawn scenes, and see whether they look at what decides.

    python benchmarks/image_evidence.py data FOLDER
    python benchmarks/image_evidence.py train FOLDER --reader attention --seed 1
    python benchmarks/image_evidence.py table FOLDER

In each picture two or three things lie apart, and at most one has a deciding shape (cross, heart or
star), which is its label; in a quarter nothing decides, and the label is `other`. `table` scores
what it finds in FOLDER on 500 new pictures: accuracy, and over those in which something decides how
often the cell of most weight lies on it, and how much of the weight does. A cell lies on a thing
where it overlaps its box; how many cells do, on average, and of how much of the picture, is what a
look at random would reach. Weights of a mean are equal, so that no cell has the most. Writes
`benchmarks/results/image_evidence.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.deciding import LIST, DecidingScenes, read_deciding, write_deciding
from regard.data.labelled_images import read_labelled_images
from regard.data.scene_words import Box
from regard.data.scenes import Scenes
from regard.tasks import load
from regard.tasks.image_classification_training import train_image_classification
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "image_evidence.json"
SEED = 1
COUNTS = {"train": 2_000, "dev": 200, "test": 500}
SCENES = Scenes(smallest=0.25, largest=0.36)
READERS = {
    "attention": [],
    "gated": ["model.gated=true"],
    "sparsemax": ["model.selection=sparsemax"],
    "mean": ["model.pooling=mean"],
    "max": ["model.pooling=max"],
}
CONFIG = """
task = "image_classification"
metric = "loss"
[data]
train = "scenes"
dev = "scenes"
test = "scenes"
splits = ["train", "dev", "test"]
[model]
attention_dim = 64
dropout = 0.05
[model.picture]
network = "small"
height = 64
width = 64
dim = 64
layers = 3
[training]
epochs = 8
batch_sentences = 32
learning_rate = 0.002
warmup_steps = 100
label_smoothing = 0.0
threads = 1
device = "cpu"
"""


def data(folder: Path) -> None:
    """Write the pictures and the config."""
    made = DecidingScenes(SCENES)
    write_deciding(folder / "scenes", COUNTS, seed=SEED, deciding=made, overwrite=True)
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")


def train(folder: Path, reader: str, seed: int, changes: list[str]) -> None:
    """Train one classifier, or go on with it."""
    begun = time.perf_counter()
    every = [*READERS[reader], f"training.seed={seed}", *changes]
    options = RunOptions(folder / f"{reader}-{seed}", resume=True)
    train_image_classification(folder / "config.toml", every, options)
    print(f"{time.perf_counter() - begun:.0f} s")


def score(model: Path, folder: Path) -> dict[str, float]:
    """Score one classifier on the test pictures, in percent."""
    images = read_labelled_images(folder / "scenes", split="test")
    boxes = read_deciding(folder / "scenes" / LIST)
    results = load(model, device="cpu")(list(images.paths))
    right = [result.labels == labels for result, labels in zip(results, images.labels, strict=True)]
    looks = [
        look(result.record, box)
        for name, result in zip(images.names, results, strict=True)
        if (box := boxes[name]) is not None
    ]
    pointing, weight, cells = (100 * float(mean) for mean in np.mean(looks, axis=0))
    return {
        "accuracy": 100 * statistics.mean(right),
        "pointing": pointing,
        "weight": weight,
        "cells": cells,
        "pictures": len(results),
        "with evidence": len(looks),
    }


def look(record: Any, box: Box) -> tuple[float, float, float]:
    """Say whether the strongest cell lies on the thing, its share of weight, and of the cells."""
    picture = record.read
    grid = picture.grid(record.weights()[0])
    left, top, right, bottom = box
    across = np.arange(picture.columns + 1) * picture.width / picture.columns
    down = np.arange(picture.rows + 1) * picture.height / picture.rows
    columns = (across[:-1] < right) & (across[1:] > left)
    rows = (down[:-1] < bottom) & (down[1:] > top)
    on = np.outer(rows, columns)
    most = np.isclose(grid, grid.max())  # of several that weigh most, one is taken by chance
    return float(on[most].mean()), float(grid[on].sum() / grid.sum()), float(on.mean())


def table(folder: Path) -> None:
    """Score every classifier found and write the results."""
    torch.set_num_threads(1)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for reader in READERS:
        runs = sorted(run for run in folder.glob(f"{reader}-*") if (run / "model").is_dir())
        if not runs:
            continue
        rows[reader] = {run.name: score(run / "model", folder) for run in runs}
        print(f"{reader} ({len(runs)} seeds)")
        for figure in ("accuracy", "pointing", "weight", "cells"):
            values = [row[figure] for row in rows[reader].values()]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            print(f"  {figure:10} {statistics.mean(values):6.2f} ± {spread:.2f} %")
    test = read_labelled_images(folder / "scenes", split="test")
    report = {
        "command": "python benchmarks/image_evidence.py table FOLDER",
        "data": {"counts": COUNTS, "seed": SEED, "sha256": test.sha256},
        "versions": {"torch": torch.__version__},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Write the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", choices=list(READERS), default="attention")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("changes", nargs="*", help="key=value, in the place of the config's")
    arguments = parser.parse_intermixed_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.action == "data":
        data(arguments.folder)
    elif arguments.action == "train":
        train(arguments.folder, arguments.reader, arguments.seed, arguments.changes)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
