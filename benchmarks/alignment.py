"""Measure how well the weights align words, on the generated grammar and nothing else.

    python benchmarks/alignment.py FOLDER

Trains the config of `regard new translation`, without any alignment shown to it, with three seeds;
reads the true translations of 200 unseen pairs; links each Chinese word to the English word with
the largest weight; prints the alignment error rate `1 - (|A∩S| + |A∩P|) / (|A| + |S|)` (Och and Ney
2003) against the grammar's own links. Goes on where it stopped, and writes
`benchmarks/results/alignment.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch

from regard.data.grammar import Example, Grammar
from regard.pictures.records import Record, Text
from regard.tasks import load
from regard.tasks.translation_training import new_translation, train_translation
from regard.training import RunOptions

SEEDS = (1, 2, 3)
RESULTS = Path(__file__).parent / "results" / "alignment.json"


def words_of(text: Text, words: tuple[str, ...]) -> list[int]:
    """Return the word that each token of a text lies in."""
    starts, place = [], 0
    for word in words:
        place = text.text.index(word, place)
        starts.append(place)
        place += len(word)
    return [max(i for i, start in enumerate(starts) if start <= t.start) for t in text.tokens]


def links(example: Example, record: Record) -> set[tuple[int, int]]:
    """Link each written word to the word read with the largest weight."""
    read = words_of(record.read, example.source_words)
    written = words_of(record.written, example.target_words)
    best = record.weights().argmax(axis=1)
    return {(read[int(best[row])], word) for row, word in enumerate(written)}


def error_rate(examples: list[Example], records: list[Record]) -> dict[str, float]:
    """Give alignment error rate, precision and recall in %."""
    counts = {"links": 0, "sure": 0, "found sure": 0, "found possible": 0}
    for example, record in zip(examples, records, strict=True):
        found = links(example, record)
        counts["links"] += len(found)
        counts["sure"] += len(example.sure)
        counts["found sure"] += len(found & example.sure)
        counts["found possible"] += len(found & example.possible)
    right = counts["found sure"] + counts["found possible"]
    return {
        "aer": round(100 * (1 - right / (counts["links"] + counts["sure"])), 3),
        "precision": round(100 * counts["found possible"] / counts["links"], 3),
        "recall": round(100 * counts["found sure"] / counts["sure"], 3),
    }


def main() -> None:
    """Train, align and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    new_translation(folder, overwrite=True)
    by_source = {example.source: example for example in Grammar().sample(6400, seed=1)}
    lines = (folder / "test.tsv").read_text(encoding="utf-8").splitlines()
    examples = [by_source[line.partition("\t")[0]] for line in lines]
    rows = {}
    for seed in SEEDS:
        changes = [f"training.seed={seed}", "training.threads=1", "training.device=cpu"]
        options = RunOptions(folder / f"seed-{seed}", resume=True)
        train_translation(folder / "config.toml", changes, options)
        translator = load(folder / f"seed-{seed}", device="cpu")
        results = translator.align([e.source for e in examples], [e.target for e in examples])
        rows[str(seed)] = error_rate(examples, [result.record for result in results])
        print(f"seed {seed}: {rows[str(seed)]}", flush=True)
    rates = [row["aer"] for row in rows.values()]
    report = {
        "command": "python benchmarks/alignment.py FOLDER",
        "versions": {"torch": torch.__version__},
        "pairs": len(examples),
        "seeds": rows,
        "aer": f"{statistics.mean(rates):.2f} ± {statistics.stdev(rates):.2f}",
    }
    RESULTS.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"alignment error rate {report['aer']} % over {len(examples)} pairs")


if __name__ == "__main__":
    main()
