"""Train the English-Chinese systems that are compared, and print how they compare.

    python benchmarks/tatoeba.py PATH_TO/cmn.txt.gz DATA
    python benchmarks/en_zh.py train DATA RUNS --system attention --seed 1
    python benchmarks/en_zh.py table DATA RUNS

`train` goes on where an interrupted training stopped. `table` scores every run it finds in RUNS,
writes `benchmarks/results/en_zh.json`, and prints BLEU and chrF of each system over its seeds, the
paired bootstrap against the system with attention, and the pairs whose Chinese side is in the
training data apart from the others.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
from pathlib import Path

import numpy as np
import torch

from regard.data.text import Pairs, read_tsv
from regard.saving import verify_folder
from regard.tasks import load
from regard.tasks.metrics import require_sacrebleu, text_scores
from regard.tasks.translation_training import train_translation
from regard.training import RunOptions

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "en_zh.json"
TRANSFORMER = [
    "model.encoder={kind='transformer', num_heads=4, layers=2, hidden_dim=256}",
    "model.decoder={kind='transformer', num_heads=4, layers=2, hidden_dim=256}",
    "training.learning_rate=0.001",
    "training.warmup_steps=1000",
]
SYSTEMS: dict[str, list[str]] = {
    "bundled": ["training.epochs=12"],
    "attention": [],
    "mean": ["model.decoder.attention=uniform"],
    "fixed": ["model.decoder.attention=none"],
    "transformer": TRANSFORMER,
}
SAMPLES = 1000


def train(data: Path, runs: Path, *, system: str, seed: int) -> None:
    """Train one system with one seed, or go on with it."""
    config = data / "en_zh.toml"
    shutil.copyfile(HERE / "en_zh.toml", config)
    options = RunOptions(runs / f"{system}-{seed}", resume=True)
    outcome = train_translation(config, [*SYSTEMS[system], f"training.seed={seed}"], options)
    print(outcome.folder, outcome.metrics)


def translate(run: Path, pairs: Pairs) -> dict[str, list[str]]:
    """Translate the test set greedily and with the model's beam, once for each model."""
    cache = run / "written.json"
    key = verify_folder(run / "model")["sha256"] + pairs.sha256
    if cache.is_file():
        known: dict[str, dict[str, list[str]]] = json.loads(cache.read_text(encoding="utf-8"))
        if key in known:
            return known[key]
    translator = load(run / "model", device="cpu")
    written = {
        "greedy": [result.text for result in translator(pairs.sources, beam=1)],
        "beam 5": [result.text for result in translator(pairs.sources, beam=5)],
    }
    cache.write_text(json.dumps({key: written}, ensure_ascii=False), encoding="utf-8")
    return written


def bootstrap(ours: list[str], theirs: list[str], references: list[str]) -> tuple[float, float]:
    """Compare two systems on the same resampled test sets.

    Returns the difference in BLEU, and how often it is not positive (one-sided p), after Koehn
    2004.
    """
    metric = require_sacrebleu().metrics.BLEU(tokenize="zh")
    statistics_of = [
        np.array(metric._extract_corpus_statistics(written, [references]))
        for written in (ours, theirs)
    ]
    generator = np.random.default_rng(1)
    differences = []
    for _ in range(SAMPLES):
        chosen = generator.integers(0, len(references), len(references))
        scores = [metric._aggregate_and_compute(list(part[chosen])).score for part in statistics_of]
        differences.append(scores[0] - scores[1])
    whole = [metric.corpus_score(written, [references]).score for written in (ours, theirs)]
    return whole[0] - whole[1], float(np.mean(np.array(differences) <= 0.0))


def table(data: Path, runs: Path) -> None:
    """Score every run and print the comparison."""
    torch.set_num_threads(1)
    test = read_tsv(data / "test.tsv")
    known = set(read_tsv(data / "train.tsv").targets)
    unseen = [place for place, target in enumerate(test.targets) if target not in known]
    rows: dict[str, dict[str, object]] = {}
    written: dict[str, dict[str, list[str]]] = {}
    for system in SYSTEMS:
        for run in sorted(runs.glob(f"{system}-*")):
            if not run.is_dir():
                continue
            if not (run / "model").is_dir():
                print(f"{run.name}: not finished")
                continue
            written[run.name] = translate(run, test)
            rows[run.name] = measure(written[run.name], test, unseen)
            print(run.name, json.dumps(rows[run.name]), flush=True)
    report = {
        "command": "python benchmarks/en_zh.py table DATA RUNS",
        "data": {"test": test.sha256, "pairs": len(test), "unseen": len(unseen)},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "runs": rows,
        "systems": summary(rows),
        "bootstrap": comparisons(written, test.targets),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({key: report[key] for key in ("systems", "bootstrap")}, indent=1))


def measure(outputs: dict[str, list[str]], test: Pairs, unseen: list[int]) -> dict[str, object]:
    """Score the outputs of a run, on all pairs and on those whose target is new."""
    row: dict[str, object] = {}
    for search, written in outputs.items():
        for part, places in (("", range(len(test))), (" unseen", unseen)):
            chosen = [written[place] for place in places]
            references = [test.targets[place] for place in places]
            for score in text_scores(chosen, references, language="zh"):
                row[f"{score.name} {search}{part}"] = round(score.score, 2)
                row[f"{score.name} signature"] = score.signature
    return row


def summary(rows: dict[str, dict[str, object]]) -> dict[str, dict[str, str]]:
    """Give the mean and standard deviation over the seeds of each system."""
    result: dict[str, dict[str, str]] = {}
    for system in SYSTEMS:
        own = [row for name, row in rows.items() if name.rpartition("-")[0] == system]
        columns = [key for key in (own[0] if own else {}) if "signature" not in key]
        result[system] = {"seeds": str(len(own))}
        for column in columns:
            values = [float(str(row[column])) for row in own]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            result[system][column] = f"{statistics.mean(values):.2f} ± {spread:.2f}"
    return result


def comparisons(
    written: dict[str, dict[str, list[str]]], references: list[str]
) -> dict[str, dict[str, float]]:
    """Compare attention with every other system, seed by seed, by beam search."""
    result = {}
    for name in written:
        system, _, seed = name.rpartition("-")
        ours = written.get(f"attention-{seed}")
        if system not in ("attention", "bundled") and ours is not None:
            difference, p = bootstrap(ours["beam 5"], written[name]["beam 5"], references)
            key = f"attention-{seed} against {name}"
            result[key] = {"bleu difference": round(difference, 2), "p": p}
    return result


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--system", choices=list(SYSTEMS), default="attention")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.action == "train":
        train(arguments.data, arguments.runs, system=arguments.system, seed=arguments.seed)
    else:
        table(arguments.data, arguments.runs)


if __name__ == "__main__":
    main()
