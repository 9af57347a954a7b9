"""Damage a checkpoint four hundred times and count what is loaded all the same.

    python benchmarks/damage.py             # a minute; writes benchmarks/results/damage.json

Two hundred files are cut off at a random byte and two hundred have one random bit flipped, over
all files of a checkpoint. Beside regard's manifest it is counted what safetensors alone would load.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

import regard
from regard.data.generated import reversal
from regard.errors import RegardError
from regard.saving import write_file
from regard.tasks.translation_training import train_translation
from regard.training import RunOptions
from regard.training.checkpoint import Checkpoints

COUNT = 200
CONFIG = """
task = "translation"
metric = "loss"
data = { train = "train.tsv", dev = "train.tsv" }
[model]
embedding_dim = 8
encoder = { kind = "gru", hidden_dim = 8 }
decoder = { kind = "gru", hidden_dim = 8, attention_dim = 8 }
[training]
epochs = 1
threads = 1
"""


def make_checkpoint(folder: Path) -> Path:
    """Train for an epoch and return the checkpoint's folder."""
    pairs = reversal(60, minimum_length=2, maximum_length=5, seed=1)
    (folder / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    (folder / "config.toml").write_text(CONFIG)
    train_translation(folder / "config.toml", [], RunOptions(folder / "run", quiet=True))
    checkpoints = Checkpoints(folder / "run")
    return checkpoints.path(checkpoints.steps()[-1])


def cut_off(raw: bytes, generator: random.Random) -> bytes:
    """Keep the beginning of a file."""
    return raw[: generator.randrange(len(raw))]


def flip(raw: bytes, generator: random.Random) -> bytes:
    """Flip one bit."""
    place, bit = generator.randrange(len(raw)), generator.randrange(8)
    return raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]


def what_loading_says(folder: Path) -> str | None:
    """Load a checkpoint as a model and as a run; return the line that refuses it."""
    lines = []
    try:
        regard.load(folder, device="cpu")
    except RegardError as error:
        lines.append(str(error))
    step, faults = Checkpoints(folder.parent.parent).newest()
    lines += [faults[max(faults)]] if step is None else []
    return lines[0] if len(lines) == 2 else None


def alone(path: Path) -> bool:
    """Tell whether safetensors without a manifest loads a file."""
    if path.suffix != ".safetensors":
        return False
    try:
        load_file(path)
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError):
        return False
    return True


def damage(
    whole: Path, change: Callable[[bytes, random.Random], bytes], generator: random.Random
) -> dict[str, Any]:
    """Damage one file of the checkpoint, see what loading says, and repair it."""
    path = generator.choice(sorted(whole.iterdir()))
    raw = path.read_bytes()
    path.write_bytes(change(raw, generator))
    try:
        line = what_loading_says(whole)
        return {"file": path.name, "line": line, "safetensors_loads": alone(path)}
    finally:
        path.write_bytes(raw)


def count(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Count what was refused and what was not."""
    lines = [trial["line"] for trial in trials]
    return {
        "trials": len(trials),
        "refused_in_one_line": sum(1 for line in lines if line and "\n" not in line),
        "loaded_silently": sum(1 for line in lines if line is None),
        "loaded_by_safetensors_alone": sum(trial["safetensors_loads"] for trial in trials),
        "files": dict(sorted(Counter(trial["file"] for trial in trials).items())),
    }


def main() -> int:
    """Run it and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results/damage.json"
    )
    arguments = parser.parse_args()
    generator, begun = random.Random(arguments.seed), time.monotonic()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        newest = make_checkpoint(Path(temporary))
        whole = Path(temporary) / "copy/checkpoints" / newest.name  # nothing to fall back on
        shutil.copytree(newest, whole)
        for name, change in (("cut off", cut_off), ("one bit flipped", flip)):
            trials = [damage(whole, change, generator) for _ in range(COUNT)]
            example = str(trials[0]["line"]).replace(f"{whole}", newest.name)
            results[name] = {**count(trials), "example": example}
    table = {
        "command": "python benchmarks/damage.py",
        "seed": arguments.seed,
        "seconds": round(time.monotonic() - begun),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "results": results,
    }
    write_file(arguments.output, json.dumps(table, indent=1) + "\n")
    for name, result in results.items():
        print(
            f"{name:<16} {result['trials']} trials: {result['refused_in_one_line']} refused in one "
            f"line, {result['loaded_silently']} loaded silently (safetensors alone: "
            f"{result['loaded_by_safetensors_alone']}); e.g. {result['example']}"
        )
    refused = all(one["refused_in_one_line"] == one["trials"] for one in results.values())
    return 0 if refused else 1


if __name__ == "__main__":
    sys.exit(main())
