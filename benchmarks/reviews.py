"""Train readers of reviews: by words and sentences, by words alone, by means, by maxima.

    python benchmarks/reviews_data.py ../shared/data FOLDER
    python benchmarks/reviews.py train FOLDER --corpus imdb --reader han --seed 1
    python benchmarks/reviews.py table FOLDER

The baseline is a logistic regression on TF-IDF of words and pairs of words, in Chinese another on
characters and pairs of them; its strength is chosen on the reviews to choose by, then it is fitted
on these and the training ones. So do the readers learn from both, once their settings are chosen;
`--held` leaves out those to choose by, for choosing. `table` scores all that it
finds in FOLDER on the test sets and writes `benchmarks/results/reviews.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import sklearn
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from regard.data.labelled import Documents, read_documents
from regard.data.tokens import Tokenizer
from regard.tasks.classification_training import evaluate_classification, train_classification
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "reviews.json"
CORPORA = {
    "imdb": ["data.vectors=vectors.txt"],
    "hotels": ["data.language=zh", "tokens.kind=chinese"],
    "categories": [
        "data.language=zh",
        "tokens.kind=chinese",
        "tokens.minimum_frequency=2",
        "model.embedding_dim=128",
        "training.epochs=6",
    ],
    "opinions": ["data.language=zh", "tokens.kind=chinese"],
}
READERS = {
    "han": [],
    "flat": [
        "model.flat=true",
        "model.words.encoder={kind='lstm', hidden_dim=64}",
        "data.sentences=none",
        "data.max_words=1000",
    ],
    "mean": ["model.words.pooling=mean", "model.sentences.pooling=mean"],
    "max": ["model.words.pooling=max", "model.sentences.pooling=max"],
}
STRENGTHS = (1.0, 3.0, 10.0, 30.0)
CONFIG = Path(__file__).with_suffix(".toml")


def learnt_from(folder: Path, corpus: str, *, held: bool) -> str:
    """Name the file to learn from, written where it is not there: with those to choose by, or not.

    Args:
        folder: Where the corpora are.
        corpus: Its name.
        held: Whether the reviews to choose by are held out.
    """
    if held:
        return f"{corpus}/train.jsonl"
    every = folder / corpus / "all.jsonl"
    parts = [(every.parent / f"{part}.jsonl").read_bytes() for part in ("train", "dev")]
    every.write_bytes(b"".join(parts))
    return f"{corpus}/all.jsonl"


def train(
    folder: Path, corpus: str, reader: str, seed: int, *, held: bool, changes: list[str]
) -> None:
    """Train one reader, or go on with it."""
    begun = time.perf_counter()
    files = [f"data.{part}={corpus}/{part}.jsonl" for part in ("dev", "test")]
    files.append(f"data.train={learnt_from(folder, corpus, held=held)}")
    every = [*files, *CORPORA[corpus], *READERS[reader], f"training.seed={seed}", *changes]
    config = folder / "reviews.toml"
    config.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    options = RunOptions(folder / f"{corpus}-{reader}-{seed}", resume=True)
    train_classification(config, every, options)
    print(f"{time.perf_counter() - begun:.0f} s")


def bags(corpus: str) -> tuple[str, ...]:
    """Name what the baselines of a corpus count: words, or words and characters."""
    chinese = "tokens.kind=chinese" in CORPORA.get(corpus, [])
    return ("chinese", "characters") if chinese else ("words",)


def cut(documents: Documents, kind: str) -> list[str]:
    """Cut texts into words as the readers do, but leave rare ones whole; spaces between them."""
    tokenizer = Tokenizer.train(["a"], kind=kind, lowercase=True)
    return [" ".join(tokenizer.encode(text, whole=True).tokens) for text in documents.texts]


def bag_of_words(folder: Path, corpus: str, kind: str) -> dict[str, float]:
    """Fit a baseline and score it, in percent."""
    parts = {
        part: read_documents(folder / corpus / f"{part}.jsonl") for part in ("train", "dev", "test")
    }
    texts = {part: cut(documents, kind) for part, documents in parts.items()}
    labels = {part: [own[0] for own in documents.labels] for part, documents in parts.items()}

    def fitted(strength: float, used: tuple[str, ...]) -> Any:
        words = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\S+", lowercase=False
        )
        features = words.fit_transform([text for part in used for text in texts[part]])
        known = [label for part in used for label in labels[part]]
        model = LogisticRegression(C=strength, max_iter=1000).fit(features, known)
        return lambda part: 100 * float(model.score(words.transform(texts[part]), labels[part]))

    chosen = max(STRENGTHS, key=lambda strength: fitted(strength, ("train",))("dev"))
    return {"accuracy": fitted(chosen, ("train", "dev"))("test"), "strength": chosen}


def table(folder: Path, only: str | None) -> None:
    """Score every reader found and write the results."""
    report = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = report.get("rows", {})
    for corpus in CORPORA if only is None else (only,):
        if not (folder / corpus).is_dir():
            continue
        found: dict[str, Any] = {
            f"pairs of {kind}": {"": bag_of_words(folder, corpus, kind)} for kind in bags(corpus)
        }
        for reader in READERS:
            runs = sorted(r for r in folder.glob(f"{corpus}-{reader}-*") if (r / "model").is_dir())
            if runs:
                found[reader] = {
                    run.name: evaluate_classification(str(run), ()).table() for run in runs
                }
        found = {**rows.get(corpus, {}), **found}  # what was trained elsewhere stays
        rows[corpus] = found
        for reader, scores in found.items():
            values = [row["accuracy"] for row in scores.values()]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            print(f"{corpus:11}{reader:20}{statistics.mean(values):6.2f} ± {spread:.2f}  {values}")
    versions = {"torch": torch.__version__, "scikit-learn": sklearn.__version__}
    command = "python benchmarks/reviews.py table FOLDER"
    RESULTS.write_text(
        json.dumps({"command": command, "versions": versions, "rows": rows}, indent=1) + "\n"
    )


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", choices=list(CORPORA), default=None)
    parser.add_argument("--reader", choices=list(READERS), default="han")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held", action="store_true", help="learn from the training part alone")
    parser.add_argument("changes", nargs="*", help="key=value, in the place of the config's")
    own = parser.parse_intermixed_args()
    if own.action == "train":
        train(
            own.folder,
            own.corpus or "imdb",
            own.reader,
            own.seed,
            held=own.held,
            changes=own.changes,
        )
    else:
        table(own.folder, own.corpus)


if __name__ == "__main__":
    main()
