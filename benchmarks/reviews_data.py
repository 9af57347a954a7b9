"""Reviews as labelled documents: IMDB, Chinese hotels, Chinese shops.

    python benchmarks/reviews_data.py ../shared/data FOLDER

Writes a folder of train, dev and test for each corpus. IMDB keeps its own test set and gives 2,500
training reviews to choose by; the Chinese ones are divided eight, one and one of ten by what is
written in them, so that a review that stands twice is in one part.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from regard.data.splits import split_of_content

DEV_IN_TEN_THOUSAND = 1_000
LABELS = {"0": "negative", "1": "positive"}
Row = tuple[str, str, str]  # split, label, text


def imdb(source: Path) -> Iterator[Row]:
    """Read the reviews of films."""
    for file in sorted((source / "imdb").glob("*.tsv.xz")):
        part, label = file.name.split(".")[0].split("_")
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = line.rstrip("\n").split("\t", 1)[1]
                split = part
                if part == "train" and place(text) < DEV_IN_TEN_THOUSAND:
                    split = "dev"
                yield split, {"neg": "negative", "pos": "positive"}[label], text


def place(text: str) -> int:
    """Put a text at a place below ten thousand that its content alone decides."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 10_000


def hotels(source: Path) -> Iterator[Row]:
    """Read the reviews of hotels (ChnSentiCorp): negative or positive."""
    file = source / "zh_reviews" / "ChnSentiCorp_htl_all.csv"
    for row in csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))):
        if text := row["review"].strip():
            yield split_of_content(text), LABELS[row["label"]], text


def _shopping(source: Path) -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(source / "zh_reviews" / "online_shopping_10_cats.zip") as packed:
        text = packed.read("online_shopping_10_cats.csv").decode("utf-8-sig")
    for row in csv.DictReader(io.StringIO(text)):
        if row["review"].strip("\ufeff \t\r\n"):
            yield row


def categories(source: Path) -> Iterator[Row]:
    """Read the reviews of shops: which of ten kinds of goods."""
    for row in _shopping(source):
        text = row["review"].strip("\ufeff \t\r\n")
        yield split_of_content(text), row["cat"], text


def opinions(source: Path) -> Iterator[Row]:
    """Read the reviews of shops: negative or positive."""
    for row in _shopping(source):
        text = row["review"].strip("\ufeff \t\r\n")
        yield split_of_content(text), LABELS[row["label"]], text


CORPORA = {"imdb": imdb, "hotels": hotels, "categories": categories, "opinions": opinions}


def write(source: Path, folder: Path) -> None:
    """Write every corpus, and the vectors of English words."""
    for name, read in CORPORA.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
        for split, label, text in read(source):
            line = json.dumps({"text": text, "label": label}, ensure_ascii=False)
            parts[split].append(line + "\n")
        for split, lines in parts.items():
            (folder / name / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(name, {split: len(lines) for split, lines in parts.items()})
    glove = source / "glove_6B_50d_top20k"
    words = (glove / "words.txt").read_text(encoding="utf-8").split("\n")
    rows = zip(words, np.load(glove / "vectors.f16.npy"), strict=False)
    vectors = "".join(f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in rows)
    (folder / "vectors.txt").write_text(vectors, encoding="utf-8")


def main() -> None:
    """Write the data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the folder with imdb, zh_reviews and vectors")
    parser.add_argument("folder", type=Path)
    own = parser.parse_args()
    write(own.source, own.folder)


if __name__ == "__main__":
    main()
