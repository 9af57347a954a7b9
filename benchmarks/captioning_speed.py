"""Measure what loading costs a captioner's training, and how fast captions are written.

    python benchmarks/flickr8k.py data SHARED/flickr8k_1000 DATA
    python benchmarks/flickr8k.py train DATA RUNS --system soft --fold 1
    python benchmarks/captioning_speed.py DATA RUNS

One thread. Trains the config of `benchmarks/flickr8k.py` for two epochs in a folder of its own,
whose features are computed there, and counts the time that the training waits for batches. Then
the captioner of fold 1 describes 160 of its test photos at beam 5, in batches of 32 and one by one,
once from features that are there and once from files. Writes `results/captioning_speed.json`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.config import read_config
from regard.data.captions import CaptionColumns, read_captions
from regard.data.images import open_image
from regard.tasks import load
from regard.tasks.captioning import Captioner
from regard.tasks.captioning_settings import CaptioningSettings
from regard.tasks.captioning_training import build_job
from regard.training import RunOptions
from regard.training.loop import train

RESULTS = Path(__file__).parent / "results" / "captioning_speed.json"
BEAM, BATCH, REPEATS = 5, 32, 3


def seconds(action: Callable[[], object]) -> float:
    """Return how long something takes."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


class Waiting:
    """The batches of a job, and how long each epoch took and waited for them."""

    def __init__(self, batches: Callable[[int, int], Generator[Any, None, None]]) -> None:
        self.batches = batches
        self.epochs: list[dict[str, float]] = []

    def __call__(self, epoch: int, start: int) -> Generator[Any, None, None]:
        """Hand on the batches of an epoch."""
        waited, begun = 0.0, time.perf_counter()
        source = self.batches(epoch, start)
        while True:
            asked = time.perf_counter()
            batch = next(source, None)
            waited += time.perf_counter() - asked
            if batch is None:
                break
            yield batch
        whole = time.perf_counter() - begun
        self.epochs.append({"seconds": whole, "loading": waited, "percent": 100 * waited / whole})


def loading(data: Path) -> dict[str, Any]:
    """Train for two epochs, and say what describing the photos and loading took."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copyfile(data / "flickr8k.toml", root / "flickr8k.toml")
        shutil.copyfile(data / "fold-1.jsonl", root / "fold-1.jsonl")
        settings = read_config(
            root / "flickr8k.toml",
            CaptioningSettings,
            changes=[f"data.images={(data / 'photos').resolve()}", "training.epochs=2"],
        )
        described = seconds(lambda: build_job(settings, root=root))
        begun = time.perf_counter()
        job = build_job(settings, root=root)
        opened = time.perf_counter() - begun
        waiting = Waiting(job.batches)
        job.batches = waiting  # type: ignore[method-assign]
        train(job, settings.training, RunOptions(root / "run", quiet=True))
        photos = len(job.data.images) + len(job.dev.images)
    return {
        "photos": photos,
        "described, seconds": described,
        "opened again, seconds": opened,
        "epochs": waiting.epochs,
    }


def writing(data: Path, runs: Path) -> dict[str, dict[str, float]]:
    """Count captions per second in batches and one by one."""
    captioner = load(runs / "en-soft-1" / "model", device="cpu")
    if not isinstance(captioner, Captioner):
        raise SystemExit("en-soft-1 is no captioner")
    columns = CaptionColumns(caption="en")
    images = read_captions(
        data / "fold-1.jsonl", root=data / "photos", columns=columns, split="test"
    )
    search = captioner.search(BEAM, 1)
    files = list(images.paths[: len(images) // BATCH * BATCH])  # whole batches
    sources = torch.cat([captioner.sources([open_image(path)]) for path in files])

    def from_features(size: int) -> None:
        for part in sources.split(size):
            captioner.hypotheses(part, search)

    def from_files(size: int) -> None:
        captioner(files, beam=BEAM, batch_size=size)

    result = {}
    for name, write in (("features given", from_features), ("from files", from_files)):
        write(BATCH)  # once before anything is measured
        rates = {
            size: len(files) / min(seconds(partial(write, size)) for _ in range(REPEATS))
            for size in (BATCH, 1)
        }
        result[name] = {
            f"batches of {BATCH}": rates[BATCH],
            "one by one": rates[1],
            "ratio": rates[BATCH] / rates[1],
        }
    return result


def main() -> None:
    """Measure both and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path)
    own = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        "command": "python benchmarks/captioning_speed.py DATA RUNS",
        "versions": {"torch": torch.__version__},
        "loading": loading(own.data),
        "captions per second, beam 5": writing(own.data, own.runs),
    }
    text = json.dumps(found, indent=1)
    print(text)
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
