"""Train captioners on NLVR, and see whether words that name objects look at such objects.

    python benchmarks/nlvr.py data NLVR FOLDER
    python benchmarks/nlvr.py train FOLDER --half dev
    python benchmarks/nlvr.py table FOLDER

NLVR is the folder of `dev.tar`, `dev.jsonl.gz`, `test.tar` and `test.jsonl.gz`. One captioner is
trained on the pictures of dev and measured on those of test, one the other way round. Each learns
from the true sentences of its half, and from descriptions that are made of the lists of objects.
`table` forces the 1,103 true sentences of the other half, and sums the attention of each word that
names a shape or a colour over the objects of that shape or colour; the same with uniform and with
random weights. A look falls before its word is known, so the look for the word after it, which has
read it, is given beside it. Writes `benchmarks/results/nlvr.json`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import random
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.images import open_image
from regard.data.tokens import Tokenizer
from regard.tasks import load
from regard.tasks.captioning_training import train_captioning
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "nlvr.json"
HALVES = {"dev": "test", "test": "dev"}
MADE = 10  # descriptions made of each training picture
COLOURS = {"yellow": "Yellow", "black": "Black", "blue": "#0099ff"}
SHAPES = {"circle": "circle", "square": "square", "triangle": "triangle"}
NAMES = {value: name for name, value in (COLOURS | SHAPES).items()}
BOXES = (0, 150, 300)  # where the three boxes begin, of 100 pixels each
CONFIG = """
task = "captioning"
metric = "loss"
[data]
train = "captions.jsonl"
dev = "captions.jsonl"
splits = ["{half}", "{half}-dev"]
images = "images"
language = "en"
[tokens]
lowercase = true
[model]
item_dim = 128
embedding_dim = 64
dropout = 0.1
[model.picture]
network = "small"
height = 64
width = 256
layers = 3
[model.decoder]
kind = "lstm"
hidden_dim = 128
order = "luong"
attention_dim = 64
[training]
epochs = 4
batch_sentences = 16
batch_tokens = 1024
learning_rate = 0.002
warmup_steps = 300
label_smoothing = 0.0
precision = "bfloat16"
threads = 1
device = "cpu"
[decoding]
beam = 3
maximum_length = 40
"""


class Thing(NamedTuple):
    """An object of a picture: its shape, its colour, and its box in pixels."""

    shape: str
    colour: str
    box: tuple[int, int, int, int]

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{NAMES[self.colour]} {NAMES[self.shape]}"


def things(row: dict[str, Any]) -> list[Thing]:
    """List the objects of a picture from left to right."""
    found = []
    for begin, objects in zip(BOXES, row["structured_rep"], strict=True):
        for one in objects:
            left, top, size = begin + one["x_loc"], one["y_loc"], one["size"]
            found.append(Thing(one["type"], one["color"], (left, top, left + size, top + size)))
    return sorted(found, key=lambda thing: thing.box)


def read(folder: Path, half: str) -> list[dict[str, Any]]:
    """Read the rows of a half."""
    with gzip.open(folder / f"{half}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def described(row: dict[str, Any], generator: random.Random) -> list[str]:
    """Make descriptions of a picture of what stands in it."""
    seen = things(row)
    made = []
    for _ in range(MADE):
        first, second = generator.choice(seen), generator.choice(seen)
        box = generator.randrange(3)
        inside = [thing.name for thing in seen if thing.box[0] // 150 == box][:6]
        made.append(
            generator.choice(
                [
                    f"there is a {first.name}.",
                    f"there is a {first.name} and a {second.name}.",
                    f"the box at the {('left', 'middle', 'right')[box]} has "
                    + (", ".join(inside) if inside else "nothing")
                    + ".",
                ]
            )
        )
    return made


def data(source: Path, folder: Path) -> None:
    """Unpack the pictures, and write captions and configs."""
    generator, lines = random.Random(1), []
    for half in HALVES:
        with tarfile.open(source / f"{half}.tar") as archive:
            archive.extractall(folder / "images", filter="data")
        rows = read(source, half)
        for place, row in enumerate(rows):
            true = [row["sentence"]] * 4 if row["label"] == "true" else []
            split = half if place % 20 else f"{half}-dev"
            captions = true + described(row, generator)
            lines.append({"image": row["image"], "split": split, "captions": captions})
        (folder / f"{half}.toml").write_text(CONFIG.format(half=half), encoding="utf-8")
        pairs = [row for row in rows if row["label"] == "true"]
        (folder / f"{half}.json").write_text(json.dumps(pairs), encoding="utf-8")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "captions.jsonl").write_text(text, encoding="utf-8")


def train(folder: Path, half: str) -> None:
    """Train the captioner of a half, or go on with it."""
    options = RunOptions(folder / f"runs-{half}", resume=True)
    train_captioning(folder / f"{half}.toml", ["training.seed=1"], options)


def covered(boxes: list[tuple[int, int, int, int]], grid: tuple[int, int]) -> NDArray[Any]:
    """Return which part of each cell lies on the boxes, and whether any does."""
    canvas = np.zeros((100, 400))
    for left, top, right, bottom in boxes:
        canvas[max(top, 0) : bottom, max(left, 0) : right] = 1.0
    ys = np.linspace(0, 100, grid[0] + 1).round().astype(int)
    xs = np.linspace(0, 400, grid[1] + 1).round().astype(int)
    parts = [
        canvas[top:bottom, left:right].mean()
        for top, bottom in itertools.pairwise(ys)
        for left, right in itertools.pairwise(xs)
    ]
    return np.array(parts)


def named(word: str) -> tuple[str, str] | None:
    """Say what a word names: a kind and its value in the lists of objects."""
    single = word.removesuffix("s")
    if word in COLOURS:
        return "colour", COLOURS[word]
    return ("shape", SHAPES[single]) if single in SHAPES else None


def measure(folder: Path, half: str) -> list[dict[str, Any]]:
    """Measure every look of the sentences that the captioner of a half has not seen."""
    captioner = load(folder / f"runs-{half}" / "model", device="cpu")
    generator = np.random.default_rng(1)
    found = []
    for row in json.loads((folder / f"{HALVES[half]}.json").read_text()):
        ids = captioner.tokenizer.encode(row["sentence"]).ids
        pieces = captioner.tokenizer.pieces(ids)  # whole words, but for those it has never read
        sources = captioner.sources([open_image(folder / "images" / row["image"])])
        tokens = torch.tensor([[Tokenizer.BOS, *ids]])
        with torch.inference_mode():
            weights = captioner.model(sources, captioner.mask(1), tokens).weights[0, 0].numpy()
        everything = covered([thing.box for thing in things(row)], captioner.grid)
        for place, word in enumerate(pieces):
            kind = named(word)
            if kind is None:
                continue
            boxes = [thing.box for thing in things(row) if getattr(thing, kind[0]) == kind[1]]
            part = covered(boxes, captioner.grid)
            drawn = np.exp(generator.standard_normal(part.size))
            looks = {
                "the word": weights[place],
                "the word after it": weights[place + 1],
                "random": drawn / drawn.sum(),
                "uniform": np.full(part.size, 1 / part.size),
            }
            found += [
                {
                    "kind": kind[0],
                    "look": look,
                    "area": float(shares @ part),
                    "cells": float(shares[part > 0].sum()),
                    "objects": float(shares @ part / max(shares @ everything, 1e-9)),
                    "best": float(part[shares.argmax()] > 0),
                    "there": bool(boxes),
                }
                for look, shares in looks.items()
            ]
    return found


def table(folder: Path) -> None:
    """Print the shares, and write them."""
    torch.set_num_threads(1)
    found = [one for half in HALVES for one in measure(folder, half)]
    rows: dict[str, dict[str, Any]] = {}
    for kind in ("shape", "colour"):
        for look in ("the word", "the word after it", "random", "uniform"):
            own = [o for o in found if (o["kind"], o["look"]) == (kind, look) and o["there"]]
            row = {n: 100 * float(np.mean([o[n] for o in own])) for n in ("area", "cells", "best")}
            row["objects"] = 100 * float(np.mean([o["objects"] for o in own]))
            row["words"] = len(own)
            rows[f"{kind}, {look}"] = row
            shown = "  ".join(f"{name} {row[name]:6.2f} %" for name in row if name != "words")
            print(f"{kind:7} {look:18} {shown}  ({len(own)} words)")
    pairs = sum(len(json.loads((folder / f"{half}.json").read_text())) for half in HALVES)
    report = {
        "command": "python benchmarks/nlvr.py table FOLDER",
        "data": {
            "pairs": pairs,
            "captions SHA-256": hashlib.sha256(
                (folder / "captions.jsonl").read_bytes()
            ).hexdigest(),
        },
        "versions": {"torch": torch.__version__},
        "seed": 1,
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Write the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="action", required=True)
    for name in ("data", "train", "table"):
        command = commands.add_parser(name)
        if name == "data":
            command.add_argument("source", type=Path)
        command.add_argument("folder", type=Path)
        if name == "train":
            command.add_argument("--half", choices=list(HALVES), required=True)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.action == "data":
        data(arguments.source, arguments.folder)
    elif arguments.action == "train":
        train(arguments.folder, arguments.half)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
