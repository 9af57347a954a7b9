"""Train captioners of photos that look, and that do not, and print how they compare.

    python benchmarks/flickr8k.py data SHARED/flickr8k_1000 DATA
    python benchmarks/flickr8k.py train DATA RUNS --system soft --fold 1 [--language zh]
    python benchmarks/flickr8k.py all DATA RUNS
    python benchmarks/flickr8k.py table DATA RUNS
    python benchmarks/flickr8k.py strips DATA RUNS

Five folds over the 866 photos of Flickr8k's train and validation splits that are at hand. `train`
goes on where an interrupted training stopped; `all` trains whatever is missing, fold by fold, the
Chinese captions of fold 1 last. `table` scores every whole fold it finds in RUNS and writes
`benchmarks/results/flickr8k.json`. `strips` draws, in DATA/strips, where the captioners of fold 1
looked at ten of its test photos. The photos may be used for research alone: none is kept here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import tarfile
from pathlib import Path

import torch
from flickr8k_scores import report

from regard.data.captions import CaptionColumns, CaptionedImages, read_captions
from regard.data.checking import image_overlap
from regard.tasks import load
from regard.tasks.captioning_training import train_captioning
from regard.training import RunOptions

HERE = Path(__file__).parent
FOLDS = range(1, 6)
SEED = 1
SYSTEMS: dict[str, list[str]] = {
    "soft": ["model.decoder.selection=softmax"],
    "mean": ["model.decoder.attention=uniform"],
    "hard": [
        "model.decoder.selection=sampled",
        "model.reinforce.baseline=learned",
        "model.reinforce.share=0.5",  # as in Xu et al.: half of the steps read the expectation
        "model.reinforce.soft=0.4",
        "model.reinforce.annealed=0.6",
        "model.reinforce.entropy=0.0",
    ],
}
LANGUAGES: dict[str, list[str]] = {
    "en": [],
    "zh": ["data.caption=zh", "data.language=zh", "tokens.kind=characters"],
}


def write_data(shared: Path, data: Path) -> None:
    """Unpack the photos, and write the captions of every fold and the config."""
    photos = data / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    for packed in sorted(shared.glob("images.*.tar")):
        with tarfile.open(packed) as archive:
            archive.extractall(photos, filter="data")
    text = (shared / "captions.jsonl").read_text(encoding="utf-8")
    print(f"captions.jsonl: SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")
    rows = [row for row in map(json.loads, text.splitlines()) if row["split"] in ("train", "val")]
    random.Random(SEED).shuffle(rows)
    for fold in FOLDS:
        write_fold(data, rows, fold)
    shutil.copyfile(HERE / "flickr8k.toml", data / "flickr8k.toml")


def write_fold(data: Path, rows: list[dict[str, object]], fold: int) -> None:
    """Write the captions of a fold: its part to test on, a tenth of the rest to choose by."""
    first, last = (len(rows) * place // len(FOLDS) for place in (fold - 1, fold))
    rest = rows[:first] + rows[last:]
    chosen = len(rest) // 10
    parts = {"test": rows[first:last], "dev": rest[:chosen], "train": rest[chosen:]}
    lines = [
        {"image": row["image"], "split": part, "en": row["en"], "zh": row["zh"]}
        for part, own in parts.items()
        for row in own
    ]
    path = data / f"fold-{fold}.jsonl"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    counts = ", ".join(f"{len(own)} {part}" for part, own in parts.items())
    print(f"{path.name}: {counts}, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")
    check_apart(path)


def read_part(path: Path, split: str) -> CaptionedImages:
    """Read a part of a fold, with its English captions."""
    columns = CaptionColumns(caption="en")
    return read_captions(path, root=path.parent / "photos", columns=columns, split=split)


def check_apart(path: Path) -> None:
    """Stop unless every photo of a fold stands in one of its parts alone."""
    train, dev, test = (read_part(path, split) for split in ("train", "dev", "test"))
    for name, part, other in (("dev", train, dev), ("test", train, test), ("test", dev, test)):
        shared = image_overlap(part, other)
        if shared.images:
            raise SystemExit(f"{path.name}: {shared.images} photos of {name} are seen before")


def folds_of(language: str) -> list[int]:
    """Say which folds are trained: all of them in English, the first one in Chinese."""
    return list(FOLDS) if language == "en" else [1]


def changes_of(system: str, fold: int, language: str) -> list[str]:
    """Say how the config of a system differs from the one that all of them share."""
    files = [f"data.{part}=fold-{fold}.jsonl" for part in ("train", "dev", "test")]
    return [*files, *LANGUAGES[language], *SYSTEMS[system], f"training.seed={SEED}"]


def train(data: Path, runs: Path, *, system: str, fold: int, language: str) -> None:
    """Train one system on one fold, or go on with it."""
    shutil.copyfile(HERE / "flickr8k.toml", data / "flickr8k.toml")
    options = RunOptions(runs / f"{language}-{system}-{fold}", resume=True)
    changes = changes_of(system, fold, language)
    outcome = train_captioning(data / "flickr8k.toml", changes, options)
    print(outcome.folder, json.dumps(outcome.metrics), flush=True)


def train_missing(data: Path, runs: Path) -> None:
    """Train what is missing, so that whole folds are there first."""
    for language in LANGUAGES:
        for fold in folds_of(language):
            for system in SYSTEMS:
                if not (runs / f"{language}-{system}-{fold}" / "model").is_dir():
                    train(data, runs, system=system, fold=fold, language=language)


def table(data: Path, runs: Path) -> None:
    """Score the folds that every system was trained on, and write the results."""
    torch.set_num_threads(1)
    found = {}
    for language in LANGUAGES:
        whole = [
            fold
            for fold in folds_of(language)
            if all((runs / f"{language}-{system}-{fold}" / "model").is_dir() for system in SYSTEMS)
        ]
        print(f"{language}: folds {whole}")
        if whole:
            places = {
                fold: {system: runs / f"{language}-{system}-{fold}" for system in SYSTEMS}
                for fold in whole
            }
            found[language] = report(data, places, language=language)
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data.glob("fold-*.jsonl"))
    }
    result = {
        "command": "python benchmarks/flickr8k.py table DATA RUNS",
        "data": digests,
        "seed": SEED,
        "versions": {"torch": torch.__version__},
        "languages": found,
    }
    path = HERE / "results" / "flickr8k.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def strips(data: Path, runs: Path, count: int = 10) -> None:
    """Draw where the captioners that look did so, for the first test photos of fold 1."""
    torch.set_num_threads(1)
    folder = data / "strips"
    folder.mkdir(exist_ok=True)
    images = read_part(data / "fold-1.jsonl", "test")
    for system in ("soft", "hard"):
        run = runs / f"en-{system}-1" / "model"
        if not run.is_dir():
            continue
        for place, result in enumerate(load(run, device="cpu")(list(images.paths[:count]))):
            print(f"{place} {result.image} {system}: {result.text}")
            for ending in ("svg", "png", "json"):
                result.save(folder / f"{place}-{system}.{ending}")
    for place, several in enumerate(images.captions[:count]):
        print(place, images.names[place], json.dumps(several))


def main() -> None:
    """Write the data, train, print the table, or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "all", "table", "strips"])
    parser.add_argument("data", type=Path, help="of `data`: the folder that holds the photos")
    parser.add_argument("runs", type=Path, help="of `data`: the folder to write")
    parser.add_argument("--system", choices=list(SYSTEMS), default="soft")
    parser.add_argument("--fold", type=int, choices=list(FOLDS), default=1)
    parser.add_argument("--language", choices=list(LANGUAGES), default="en")
    own = parser.parse_args()
    if own.action == "train":
        train(own.data, own.runs, system=own.system, fold=own.fold, language=own.language)
        return
    actions = {"data": write_data, "all": train_missing, "table": table, "strips": strips}
    actions[own.action](own.data, own.runs)


if __name__ == "__main__":
    main()
