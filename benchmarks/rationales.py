"""Weights against what people marked in film reviews (ERASER movies).

    python benchmarks/reviews_data.py ../shared/data FOLDER
    python benchmarks/rationales.py data ../shared/data FOLDER
    python benchmarks/rationales.py train FOLDER --reader han --seed 1
    python benchmarks/rationales.py table FOLDER

Of the 1,600 training reviews (those that also stand in the validation set are dropped) 160 are
for choosing; the reviews of IMDB's training set are trained on, too, each of the others counting
three times. `table` gives accuracy on validation and test beside a logistic regression on words
and pairs of words, fitted on the 1,600, with an exact paired test (McNemar); and how well
attention, gradients and a bag of words agree with the marked words and sentences. Writes
`benchmarks/results/rationales.json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tarfile
import time
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from reviews_data import place
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from regard.data.documents import Document
from regard.data.labelled import Documents, read_documents
from regard.data.rationales import read_rationales
from regard.tasks import load
from regard.tasks.classification_evidence import evidence_table, marks, sums
from regard.tasks.classification_training import train_classification
from regard.tasks.evidence_metrics import evidence_scores
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "rationales.json"
CONFIG = Path(__file__).with_name("reviews.toml")
LABELS = {"NEG": "negative", "POS": "positive"}
PARTS = ("val", "test")
TIMES = 3  # each review with marks counts so often beside one of IMDB
READERS = {
    "han": [],
    "words": ["model.words.encoder={kind='embedding'}"],
}


def data(source: Path, folder: Path) -> None:
    """Write the reviews with their marks, and what is trained on."""
    folder = folder / "rationales"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(source / "eraser_movies" / "movies.tar.xz") as packed:
        files = {
            member.name.removeprefix("./"): packed.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in packed
            if member.isfile()
        }
    rows = {
        part: [json.loads(line) for line in files[f"{part}.jsonl"].splitlines()]
        for part in ("train", *PARTS)
    }
    held = {row["annotation_id"] for row in rows["val"]}
    rows["train"] = [row for row in rows["train"] if row["annotation_id"] not in held]
    written = {part: [review(row, files) for row in own] for part, own in rows.items()}
    for part, lines in written.items():
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    chosen = [place(line) < 1_000 for line in written["train"]]
    train = [line for line, dev in zip(written["train"], chosen, strict=True) if not dev]
    dev = [line for line, dev in zip(written["train"], chosen, strict=True) if dev]
    imdb = (folder.parent / "imdb" / "train.jsonl").read_text(encoding="utf-8")
    (folder / "both.jsonl").write_text(imdb + "".join(TIMES * train), encoding="utf-8")
    (folder / "dev.jsonl").write_text("".join(dev), encoding="utf-8")
    print({part: len(lines) for part, lines in written.items()}, "dev", len(dev))


def review(row: dict[str, Any], files: dict[str, str]) -> str:
    """Write a review as a line, its marks as characters in the place of words."""
    text = files[f"docs/{row['annotation_id']}"]
    ends = list(itertools.accumulate(len(line) + 1 for line in text.split("\n")))
    assert ends[-1] == len(text) + 1
    spans, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    marked = sorted(
        {
            (spans[one["start_token"]][0], spans[one["end_token"] - 1][1])
            for group in row["evidences"]
            for one in group
            if one["start_token"] < one["end_token"]  # a few mark nothing
        }
    )
    own = {"text": text, "label": LABELS[row["classification"]], "evidence": marked}
    return json.dumps(own, ensure_ascii=False) + "\n"


def train(folder: Path, reader: str, seed: int, changes: list[str]) -> None:
    """Train one reader, or go on with it."""
    begun = time.perf_counter()
    every = [
        "data.train=rationales/both.jsonl",
        "data.dev=rationales/dev.jsonl",
        "data.test=rationales/test.jsonl",
        "data.vectors=vectors.txt",
        *READERS[reader],
        f"training.seed={seed}",
        *changes,
    ]
    config = folder / "rationales.toml"
    config.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    options = RunOptions(folder / f"rationales-{reader}-{seed}", resume=True)
    train_classification(config, every, options)
    print(f"{time.perf_counter() - begun:.0f} s")


class Bag:
    """A logistic regression on TF-IDF."""

    def __init__(self, documents: Documents, *, pairs: bool) -> None:
        self.words = TfidfVectorizer(
            ngram_range=(1, 2 if pairs else 1),
            min_df=2,
            sublinear_tf=True,
            token_pattern=r"\S+",
        )
        features = self.words.fit_transform(documents.texts)
        labels = [own[0] for own in documents.labels]
        self.model = LogisticRegression(C=10.0, max_iter=1000).fit(features, labels)

    def right(self, documents: Documents) -> np.ndarray:
        """Say which documents it classifies rightly."""
        said = self.model.predict(self.words.transform(documents.texts))
        return np.array([one == own[0] for one, own in zip(said, documents.labels, strict=True)])

    def weights(self, document: Document) -> np.ndarray:
        """Weigh the words of a document by what they add to the label that it is given."""
        (row,) = self.words.transform([document.text]).toarray()
        sign = 1.0 if self.model.decision_function([row])[0] > 0 else -1.0
        effects = sign * row * self.model.coef_[0]
        known = self.words.vocabulary_
        spans = [span for sentence in document.sentences for span in sentence.offsets]
        places = [known.get(document.text[a:b].lower()) for a, b in spans]
        return np.array([0.0 if place is None else effects[place] for place in places])


def bag_evidence(
    bag: Bag, documents: Sequence[Document], rationales: Sequence[Any]
) -> dict[str, Any]:
    """Score the weights of a bag of words against the marks."""
    truth = [marks(document, own) for document, own in zip(documents, rationales, strict=True)]
    weighed = [bag.weights(document) for document in documents]
    summed = [sums(own, document) for own, document in zip(weighed, documents, strict=True)]
    return {
        "words, bag of words": evidence_scores(weighed, [one.words for one in truth]),
        "sentences, bag of words": evidence_scores(summed, [one.sentences for one in truth]),
    }


def mcnemar(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the exact two-sided p of as many differences one way or the other."""
    better, worse = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    total = better + worse
    tail = sum(comb(total, k) for k in range(min(better, worse) + 1)) / 2**total
    return min(1.0, 2 * tail)


def table(folder: Path) -> None:
    """Score every reader found, and write the results."""
    own = folder / "rationales"
    parts = {part: read_documents(own / f"{part}.jsonl") for part in ("train", *PARTS)}
    marked = {part: read_rationales(own / f"{part}.jsonl") for part in PARTS}
    pairs, bag = (Bag(parts["train"], pairs=both) for both in (True, False))
    base = {part: pairs.right(parts[part]) for part in PARTS}
    rows: dict[str, Any] = {
        "words and pairs": {part: 100 * float(base[part].mean()) for part in PARTS}
    }
    print(rows)
    for run in sorted(folder.glob("rationales-*-*")):
        if not (run / "model").is_dir():
            continue
        classifier, found, right = load(run, device="cpu"), {}, {}
        for part in PARTS:
            documents = [classifier.read(text) for text in parts[part].texts]
            results = classifier.classify(documents)
            truth = zip(results, parts[part].labels, strict=True)
            right[part] = np.array([result.labels == labels for result, labels in truth])
            found[part] = {
                "accuracy": 100 * float(right[part].mean()),
                **evidence_table(classifier, documents, marked[part]),
                **bag_evidence(bag, documents, marked[part]),
            }
        ours, theirs = (np.concatenate([one[part] for part in PARTS]) for one in (right, base))
        found["together"] = {
            "accuracy": 100 * float(ours.mean()),
            "words and pairs": 100 * float(theirs.mean()),
            "p": mcnemar(ours, theirs),
        }
        rows[run.name] = found
        print(run.name, json.dumps(found, indent=1))
    report = {
        "command": "python benchmarks/rationales.py table FOLDER",
        "data": {part: parts[part].sha256 for part in parts},
        "versions": {"torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Write the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table"])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--reader", choices=list(READERS), default="han")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", dest="changes", nargs="*", default=[], help="key=value")
    own = parser.parse_args()
    if own.action == "data":
        data(*own.folders)
    elif own.action == "train":
        train(own.folders[0], own.reader, own.seed, own.changes)
    else:
        table(own.folders[0])


if __name__ == "__main__":
    main()
