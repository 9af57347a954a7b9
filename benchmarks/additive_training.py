"""Measure what the fused kernel brings to the training of a translator from end to end.

    python benchmarks/additive_training.py MULTI30K

MULTI30K holds `train.en.gz` and `train.de.gz`. A bidirectional GRU reads and a GRU with additive
attention and input feeding writes, as toolkits have it; batches are of 64 sentences of similar
length. Five runs with the reference and five with the kernel in turn, of the same batches from the
same weights: forward, backward and Adam. Adds what it finds to `results/additive.json`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from regard.config import read_config
from regard.tasks.translation_settings import TranslationSettings
from regard.tasks.translation_training import build_job

RESULTS = Path(__file__).parent / "results" / "additive.json"
RUNS, STEPS, PAIRS = 5, 24, 6000
CONFIG = """\
task = "translation"
metric = "loss"
[data]
train = "train.tsv"
dev = "dev.tsv"
test = "dev.tsv"
source_language = "en"
target_language = "de"
max_tokens = 100
[tokens.source]
kind = "words"
minimum_frequency = 2
[tokens.target]
kind = "words"
minimum_frequency = 2
[model]
embedding_dim = 256
encoder = {kind = "gru", hidden_dim = 128, bidirectional = true}
decoder = {kind = "gru", hidden_dim = 256, order = "luong", attention_dim = 256}
[training]
epochs = 1
batch_tokens = 4000
batch_sentences = 64
learning_rate = 0.001
threads = 1
device = "cpu"
"""


def written(data: Path, folder: Path) -> Path:
    """Write the config and its files."""
    sides = [
        gzip.decompress((data / f"train.{language}.gz").read_bytes()).decode().split("\n")[:-1]
        for language in ("en", "de")
    ]
    lines = [f"{english}\t{german}\n" for english, german in zip(*sides, strict=True)]
    (folder / "train.tsv").write_text("".join(lines[:PAIRS]), encoding="utf-8")
    (folder / "dev.tsv").write_text("".join(lines[PAIRS : PAIRS + 64]), encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(CONFIG, encoding="utf-8")
    return config


class Training:
    """A model, its batches, and how long a run of them takes."""

    def __init__(self, config: Path) -> None:
        torch.manual_seed(0)
        settings = read_config(config, TranslationSettings)
        self.job = build_job(settings, root=config.parent)
        self.first = {name: t.clone() for name, t in self.job.model.state_dict().items()}
        batches = self.job.batches(0, 0)
        self.batches = [next(batches) for _ in range(STEPS)]
        batches.close()

    def run(self, kernel: str) -> tuple[float, float]:
        """Train from the first weights; return seconds and the last loss of a token."""
        os.environ["REGARD_KERNEL"] = kernel
        model = self.job.model.train()
        model.load_state_dict(self.first)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        last = 0.0
        begun = time.perf_counter()
        for batch in self.batches:
            optimizer.zero_grad()
            size = self.job.size(batch)
            loss = self.job.loss(batch).total / size
            loss.backward()
            optimizer.step()
            last = float(loss.detach())
        return time.perf_counter() - begun, last


def main() -> None:
    """Train in turn, and write down the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    found: dict[str, Any] = {"steps": STEPS}
    with tempfile.TemporaryDirectory() as folder:
        training = Training(written(data, Path(folder)))
        for threads in (1, 2):
            torch.set_num_threads(threads)
            training.run("auto")  # compiled, and buffers made
            seconds: dict[str, list[float]] = {"reference": [], "auto": []}
            losses = {}
            for _ in range(RUNS):
                for kernel, times in seconds.items():
                    spent, losses[kernel] = training.run(kernel)
                    times.append(spent)
            pairs = zip(seconds["reference"], seconds["auto"], strict=True)
            found[f"{threads} threads"] = {
                "seconds": seconds,
                "last losses": losses,
                "ratio of medians": statistics.median(seconds["reference"])
                / statistics.median(seconds["auto"]),
                "ratios of pairs": [slow / fast for slow, fast in pairs],
            }
            print(json.dumps(found[f"{threads} threads"]), flush=True)
    result = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    result["translator"] = found
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
