"""Write the sentence pairs that the bundled English-Chinese model learns from.

    python benchmarks/tatoeba.py PATH_TO/cmn.txt.gz FOLDER

Reads Tatoeba's English-Mandarin pairs (CC BY 2.0 FR), splits them by a hash of the English side,
so that no English sentence stands on both sides of the split, and adds pairs that regard's grammar
generates. Writes train.tsv, dev.tsv, test.tsv, and says how many of each and their SHA-256.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import unicodedata
from pathlib import Path

from regard.data.grammar import Grammar

GENERATED = 4000
SEED = 7


def share(english: str) -> float:
    """Place a sentence between 0 and 1 by a hash of its letters and digits alone."""
    folded = unicodedata.normalize("NFKC", english).casefold()
    key = "".join(character for character in folded if character.isalnum())
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64


def held_out(grammar: Grammar) -> frozenset[str]:
    """Choose the "Tom chases Jerry" sentences that training never sees.

    A tenth of them by hash, and all of those two, whoever chases, helps or sees whom.
    """
    return frozenset(
        example.source
        for example in grammar.transitive_grid()
        if {example.source_words[0], example.source_words[-1]} == {"Tom", "Jerry"}
        or share(example.source) < 0.1
    )


def read_tatoeba(path: Path) -> list[tuple[str, str]]:
    """Read the pairs without their attribution, byte order mark and zero-width spaces."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8-sig").replace("\u200b", "")
    rows = [line.split("\t") for line in text.split("\n") if line.strip()]
    return [(row[0].strip(), row[1].strip()) for row in rows]


def write(path: Path, pairs: list[tuple[str, str]]) -> None:
    """Write a TSV file and say what is in it."""
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    path.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    print(f"{path.name}: {len(pairs):,} pairs, SHA-256 {digest}")


def main() -> None:
    """Split Tatoeba and add generated pairs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tatoeba", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": []}
    for pair in read_tatoeba(arguments.tatoeba):
        place = share(pair[0])
        parts["test" if place < 0.05 else "dev" if place < 0.08 else "train"].append(pair)
    grammar = Grammar()
    generated = grammar.sample(GENERATED, seed=SEED, exclude=held_out(grammar))
    parts["train"] += [(example.source, example.target) for example in generated]
    for name, pairs in parts.items():
        write(arguments.folder / f"{name}.tsv", pairs)
    known = {target for _, target in parts["train"]}
    seen = sum(target in known for _, target in parts["test"])
    print(f"test pairs whose Chinese side is in train: {seen} of {len(parts['test'])}")


if __name__ == "__main__":
    main()
