r"""A classifier of descriptions of software by topic: the bundled `topics`.

    cd /var/lib/apt/lists
    read() { /usr/lib/apt/apt-helper cat-file deb.debian.org_debian_dists_bookworm_main_$1.lz4; }
    read binary-amd64_Packages > /tmp/Packages; read i18n_Translation-en > /tmp/Translation-en
    python benchmarks/topics.py data FOLDER --packages /tmp/Packages \
        --translation /tmp/Translation-en
    python benchmarks/topics.py train FOLDER --seed 1
    python benchmarks/topics.py table FOLDER
    python benchmarks/topics.py bundle FOLDER --seed 1

The lists come from `apt-get -o Acquire::Languages=en update` on Debian 12. A description is what
`apt show` prints; its topic is the section of the archive that its package lies in. All packages
that are built from one source are in one part, and a description that occurs twice counts once.
`table` scores all seeds found beside a logistic regression on words and pairs of words, and writes
`benchmarks/results/topics.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sklearn
import torch
from bundling import BUNDLED, write_halved
from reviews import bag_of_words

from regard.data.labelled import read_documents
from regard.data.splits import split_of_content
from regard.tasks.classification_training import evaluate_classification, train_classification
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "topics.json"
CONFIG = Path(__file__).with_suffix(".toml")
TOPICS = {
    "admin": "administration",
    "database": "databases",
    "editors": "editors",
    "electronics": "electronics",
    "fonts": "fonts",
    "games": "games",
    "graphics": "graphics",
    "hamradio": "amateur radio",
    "httpd": "web",
    "kernel": "kernel",
    "mail": "mail",
    "math": "mathematics",
    "net": "network",
    "science": "science",
    "sound": "sound",
    "tex": "text",
    "text": "text",
    "vcs": "version control",
    "video": "video",
    "web": "web",
}
CARD = """# Topics of software, with the sentences and words that decided

Reads a description of a program in English and says which of {labels} topics it belongs to. Made
for trying regard out and for looking inside; it has read nothing but descriptions of programs, and
takes any other text for one.

- **Topics**: {names}.

- **Model**: hierarchical attention (Yang et al. 2016): words (64) and sentences, a GRU of 32 each
  way and an attention at both levels; {parameters:,} parameters, stored in float16.
- **Data**: short and long descriptions of {train:,} packages of Debian 12 (bookworm, main), their
  section as topic (lists of 11 July 2026); {test:,} of other sources for the test. The descriptions
  are part of the packages, written by the maintainers of each, and under their free licences
  (DFSG), to be found as `/usr/share/doc/PACKAGE/copyright` and on https://sources.debian.org.
  Thanks to the Debian project and all maintainers. SHA-256 of the training data: {sha256}.
- **Test**: accuracy {accuracy:.1f} %, macro-F1 {macro_f1:.1f} %, calibration error
  {calibration_error:.1f} %; a logistic regression on words and pairs of words {base:.1f} %. Where
  the topic alone matters the better of the two is to be taken. A
  section is where a maintainer put a package, not all that it is about.
- **Licence of the weights**: Apache-2.0.
- **Made by**: `benchmarks/topics.py`, seed {seed}.
"""


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """Read the paragraphs of a list of Debian."""
    found: dict[str, str] = {}
    key = ""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                if found:
                    yield found
                found = {}
            elif line[0].isspace():
                found[key] += "\n" + line.strip()
            else:
                key, _, value = line.partition(":")
                found[key] = value.strip()
    if found:
        yield found


def described(given: str) -> str:
    """Make a text of a description: its first line a sentence, its paragraphs lines."""
    short, *long = given.split("\n")
    lines = [short.rstrip(".") + "."]
    begun = False
    for line in long:
        if line == ".":
            begun = False
        elif begun and not line.startswith(("*", "-", "+")):
            lines[-1] += " " + line
        else:
            lines.append(line)
            begun = True
    return "\n".join(lines)


def data(folder: Path, packages: Path, translation: Path) -> None:
    """Write the descriptions and their topics."""
    texts = {row["Description-md5"]: row["Description-en"] for row in paragraphs(translation)}
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    seen = set()
    for row in paragraphs(packages):
        topic, text = TOPICS.get(row.get("Section", "")), texts.get(row.get("Description-md5", ""))
        source = row.get("Source", row["Package"]).split(" ")[0]
        if topic is None or text is None or text in seen:
            continue
        seen.add(text)
        line = json.dumps({"text": described(text), "label": topic}, ensure_ascii=False)
        parts[split_of_content(source)].append(line + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    for part, lines in parts.items():
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
        print(part, len(lines), Counter(json.loads(line)["label"] for line in lines).most_common())


def train(folder: Path, seed: int, changes: list[str]) -> None:
    """Train a classifier, or go on with it."""
    begun = time.perf_counter()
    config = folder / "topics.toml"
    config.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    options = RunOptions(folder / f"topics-{seed}", resume=True)
    train_classification(config, [f"training.seed={seed}", *changes], options)
    print(f"{time.perf_counter() - begun:.0f} s")


def table(folder: Path) -> None:
    """Score every seed, and write the results."""
    report = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    data = {p: read_documents(folder / f"{p}.jsonl").sha256 for p in ("train", "dev", "test")}
    kept = report.get("rows", {}) if report.get("data") == data else {}  # trained elsewhere
    own = {"words and pairs": bag_of_words(folder.parent, folder.name, "words")}
    rows: dict[str, Any] = {**kept, **own}
    print(own)
    for run in sorted(folder.glob("topics-*")):
        if (run / "model").is_dir():
            rows[run.name] = evaluate_classification(str(run), ()).table()
            print(run.name, rows[run.name])
    values = [row["accuracy"] for name, row in rows.items() if name != "words and pairs"]
    if values:
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(f"accuracy {statistics.mean(values):.2f} ± {spread:.2f}")
    report |= {
        "command": "python benchmarks/topics.py table FOLDER",
        "data": data,
        "versions": {"torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def bundle(folder: Path, seed: int) -> None:
    """Write one seed into the package."""
    target, model = BUNDLED / "topics", folder / f"topics-{seed}" / "model"
    write_halved(target, model, "# Topics\n")
    test = str(folder / "test.jsonl")
    scores = evaluate_classification(str(target), (test,)).table()
    report = json.loads(RESULTS.read_text())
    loss = report["rows"][f"topics-{seed}"]["accuracy"] - scores["accuracy"]
    if loss > 0.1:
        raise SystemExit(f"float16 costs {loss:.2f} %; not bundled")
    found = read_documents(folder / "train.jsonl")
    names = sorted(set(TOPICS.values()))
    card = CARD.format(
        labels=len(names),
        names=", ".join(names),
        parameters=write_halved(target, model, "# Topics\n"),
        train=len(found),
        test=scores["documents"],
        sha256=found.sha256,
        accuracy=scores["accuracy"],
        macro_f1=scores["macro_f1"],
        calibration_error=scores["calibration_error"],
        base=report["rows"]["words and pairs"]["accuracy"],
        seed=seed,
    )
    write_halved(target, model, card)
    RESULTS.write_text(json.dumps({**report, "bundled (float16)": scores}, indent=1) + "\n")
    print(scores)


def main() -> None:
    """Write the data, train, print the table, or bundle."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table", "bundle"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--translation", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", dest="changes", nargs="*", default=[], help="key=value")
    own = parser.parse_args()
    torch.set_num_threads(1)
    if own.action == "data":
        data(own.folder, own.packages, own.translation)
    elif own.action == "train":
        train(own.folder, own.seed, own.changes)
    elif own.action == "table":
        table(own.folder)
    else:
        bundle(own.folder, own.seed)


if __name__ == "__main__":
    main()
