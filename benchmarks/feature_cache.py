"""Measure what the cache of features costs: filling it, opening it, reading an epoch from it.

    python benchmarks/feature_cache.py FOLDER

Keeps 1,000 arrays of 49 cells by 1,280 numbers in FOLDER, for both precisions; then opens them as
a second run does (every byte is verified), and reads epochs in random order in batches of 32. The
share is that of an epoch's reading in an epoch of the smallest training there is: one matrix
product of every batch with 1,280 x 512 numbers, forwards and backwards.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from regard.data.features import FeatureCache, Features

COUNT, SHAPE, BATCH = 1000, (49, 1280), 32
RESULTS = Path(__file__).parent / "results" / "feature_cache.json"


def timed(work: Callable[[], object], repeats: int = 1) -> float:
    """Give the shortest time of a call in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def epoch(features: Features, layer: torch.nn.Linear | None = None) -> None:
    """Read all features in batches, and train a layer on them if there is one."""
    order = random.Random(0).sample(range(COUNT), COUNT)
    for start in range(0, COUNT, BATCH):
        batch = torch.from_numpy(features.batch(order[start : start + BATCH]))
        if layer is not None:
            layer.zero_grad()
            layer(batch.float()).square().mean().backward()


def measure(folder: Path, dtype: str) -> dict[str, float]:
    """Fill, open and read the cache of one precision."""
    generator = np.random.default_rng(0)
    paths = [Path(f"{number}.jpg") for number in range(COUNT)]
    keys = [hashlib.sha256(path.name.encode()).hexdigest() for path in paths]

    def compute(paths: list[Path]) -> np.ndarray:
        return generator.standard_normal((len(paths), *SHAPE), dtype=np.float32)

    def opened() -> Features:
        return FeatureCache(folder, "random", dtype=dtype).features(paths, compute, digests=keys)

    layer = torch.nn.Linear(SHAPE[-1], 512)
    filled, verified = timed(opened), timed(opened, 3)
    features = opened()
    read = timed(lambda: epoch(features), 5)
    trained = timed(lambda: epoch(features, layer), 2)
    return {
        "fill_s": round(filled, 3),
        "open_and_verify_s": round(verified, 3),
        "read_epoch_s": round(read, 4),
        "read_photo_ms": round(1000 * read / COUNT, 4),
        "share_of_smallest_training": round(read / trained, 4),
        "megabytes": sum(f.stat().st_size for f in folder.rglob("*.features")) / 1e6,
    }


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    results = {}
    for dtype in ("float16", "float32"):
        results[dtype] = measure(folder / dtype, dtype)
        print(dtype, json.dumps(results[dtype]))
    versions = {"numpy": np.__version__, "torch": torch.__version__}
    versions["machine"] = f"{platform.machine()}, {torch.get_num_threads()} threads"
    RESULTS.write_text(json.dumps({"versions": versions, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
