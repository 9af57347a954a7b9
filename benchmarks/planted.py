"""Train classifiers on generated letters, and see whether they look at what decides.

    python benchmarks/planted.py data FOLDER
    python benchmarks/planted.py train FOLDER --reader words --seed 1
    python benchmarks/planted.py table FOLDER

In each letter, but for some of the label `other`, one sentence says what it is about; where it
and its deciding words lie is known.
`table` scores what it finds in FOLDER on 1,000 new letters: accuracy, how often the sentence of
most weight is the deciding one, and how often the word of most weight in the deciding sentence is
a deciding one; writes `benchmarks/results/planted.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from regard.data.labelled import read_documents
from regard.data.planted import Evidence, Planted, read_evidence, write_planted
from regard.pictures.evidence import sentences
from regard.tasks import load
from regard.tasks.classification_training import train_classification
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "planted.json"
SEED = 1
COUNTS = {"train": 3_000, "dev": 300, "test": 1_000}
LANGUAGES = ("en", "zh")
READERS = {
    "words": [],
    "gru": [
        "model.words.encoder={kind='gru', hidden_dim=32}",
        "model.sentences.encoder={kind='gru', hidden_dim=32}",
    ],
    "mean": ["model.words.pooling=mean", "model.sentences.pooling=mean"],
    "max": ["model.words.pooling=max", "model.sentences.pooling=max"],
    "flat": ["model.flat=true"],
}
CONFIG = """
task = "classification"
metric = "loss"
[data]
train = "{language}/train.jsonl"
dev = "{language}/dev.jsonl"
test = "{language}/test.jsonl"
language = "{language}"
[tokens]
kind = "{kind}"
lowercase = true
minimum_frequency = 2
[model]
embedding_dim = 64
dropout = 0.2
[model.words]
encoder = {{kind = "embedding"}}
attention_dim = 32
[model.sentences]
encoder = {{kind = "embedding"}}
attention_dim = 32
[training]
epochs = 6
batch_tokens = 2048
learning_rate = 0.003
label_smoothing = 0.0
threads = 1
device = "cpu"
"""


def data(folder: Path) -> None:
    """Write the letters and the configs."""
    for language in LANGUAGES:
        made = Planted(language)
        write_planted(folder / language, COUNTS, seed=SEED, planted=made, overwrite=True)
        kind = "chinese" if language == "zh" else "words"
        config = CONFIG.format(language=language, kind=kind)
        (folder / f"{language}.toml").write_text(config, encoding="utf-8")


def train(folder: Path, language: str, reader: str, seed: int, changes: list[str]) -> None:
    """Train one classifier, or go on with it."""
    begun = time.perf_counter()
    every = [*READERS[reader], f"training.seed={seed}", *changes]
    options = RunOptions(folder / f"{language}-{reader}-{seed}", resume=True)
    train_classification(folder / f"{language}.toml", every, options)
    print(f"{time.perf_counter() - begun:.0f} s")


def score(model: Path, folder: Path, language: str) -> dict[str, float]:
    """Score one classifier on the test letters, in percent."""
    file = folder / language / "test.jsonl"
    documents, evidence = read_documents(file), read_evidence(file)
    results = load(model, device="cpu")(list(documents.texts))
    right = [
        result.labels == labels for result, labels in zip(results, documents.labels, strict=True)
    ]
    looked = [
        pointing(result, true)
        for result, true in zip(results, evidence, strict=True)
        if true is not None
    ]
    return {
        "accuracy": 100 * statistics.mean(right),
        "sentence": 100 * statistics.mean(sentence for sentence, _ in looked),
        "word": 100 * statistics.mean(word for _, word in looked),
        "letters": len(results),
        "with evidence": len(looked),
    }


def pointing(result: Any, evidence: Evidence) -> tuple[bool, bool]:
    """Say whether the strongest sentence decides, and the strongest word of the one that does."""
    every = sentences(result.record)
    best = max(every, key=lambda one: one.weight)
    deciding = next(one for one in every if (one.start, one.end) == evidence.sentence)
    words = deciding.strongest(1)
    on_word = any(
        word.start < end and start < word.end for word in words for start, end in evidence.words
    )
    return best is deciding, on_word


def table(folder: Path) -> None:
    """Score every classifier found and write the results."""
    torch.set_num_threads(1)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    digests = {}
    for language in LANGUAGES:
        digests[language] = read_documents(folder / language / "test.jsonl").sha256
        for reader in READERS:
            runs = sorted(
                run for run in folder.glob(f"{language}-{reader}-*") if (run / "model").is_dir()
            )
            if not runs:
                continue
            found = {run.name: score(run / "model", folder, language) for run in runs}
            rows[f"{language} {reader}"] = found
            print(f"{language} {reader} ({len(runs)} seeds)")
            for figure in ("accuracy", "sentence", "word"):
                values = [row[figure] for row in found.values()]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                print(f"  {figure:10} {statistics.mean(values):6.2f} ± {spread:.2f} %")
    report = {
        "command": "python benchmarks/planted.py table FOLDER",
        "data": {"counts": COUNTS, "seed": SEED, "sha256": digests},
        "versions": {"torch": torch.__version__},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Write the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language", choices=LANGUAGES, default="en")
    parser.add_argument("--reader", choices=list(READERS), default="words")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("changes", nargs="*", help="key=value, in the place of the config's")
    arguments = parser.parse_intermixed_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.action == "data":
        data(arguments.folder)
    elif arguments.action == "train":
        own = (arguments.language, arguments.reader, arguments.seed)
        train(arguments.folder, *own, arguments.changes)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
