"""Score the captioners of `benchmarks/flickr8k.py`, and the caption of the nearest photo."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.attention.selections import Sampled
from regard.config import checked, read_config
from regard.saving import verify_folder
from regard.tasks import load
from regard.tasks.caption_metrics import BleuCounts, bleu_counts, bleu_of_counts, cider_d
from regard.tasks.captioning_job import CaptionDataset, caption_words, scores
from regard.tasks.captioning_settings import CaptionDataSettings, CaptioningSettings
from regard.tasks.captioning_training import build_job, read_part

SAMPLES = 1000
PAIRS = (
    ("soft", "mean"),
    ("soft", "neighbour"),
    ("hard", "mean"),
    ("hard", "neighbour"),
    ("hard", "soft"),
    ("hard, read softly", "mean"),
    ("hard, read softly", "soft"),
)


class Written(NamedTuple):
    """Captions that were written for the test photos of a fold, and their references."""

    captions: list[str]
    references: list[tuple[str, ...]]


def written_by(run: Path, data: Path, *, softly: bool = False) -> Written:
    """Describe the test photos of a run, once for each model.

    What was trained to choose a cell takes the likeliest; softly, it reads all of them by their
    probabilities.
    """
    cache = run / ("written-softly.json" if softly else "written.json")
    key = verify_folder(run / "model")["sha256"]
    if cache.is_file():
        known = json.loads(cache.read_text(encoding="utf-8"))
        if key in known:
            return Written(*known[key])
    captioner = load(run / "model", device="cpu")
    for module in captioner.model.modules():
        if softly and isinstance(module, Sampled):
            module.evaluate_by("expectation")
    own = json.loads((run / "run.json").read_text(encoding="utf-8"))["data"]
    images = read_part("test", checked(own, CaptionDataSettings, where="run.json"), root=data)
    found = [result.text for result in captioner(list(images.paths))]
    result = Written(found, [tuple(several) for several in images.captions])
    cache.write_text(json.dumps({key: result}, ensure_ascii=False), encoding="utf-8")
    return result


def neighbours(data: Path, run: Path) -> list[str]:
    """Give every test photo a caption of the training photo that is nearest to it.

    Nearest by the cosine of the means of the cells; of its five captions the one that is closest
    to the other four by CIDEr-D.
    """
    changes = json.loads((run / "run.json").read_text(encoding="utf-8"))["data"]
    names = [f"data.{name}={changes[name]}" for name in ("train", "caption", "language")]
    settings = read_config(
        data / "flickr8k.toml",
        CaptioningSettings,
        changes=[*names, f"data.dev={changes['test']}", "data.splits=['train', 'test']"],
    )
    job = build_job(settings, root=data)
    central = [
        several[place]
        for several, place in zip(
            job.data.images.captions,
            most_central(job.data.images.captions, changes["language"]),
            strict=True,
        )
    ]
    nearest = (means(job.dev) @ means(job.data).T).argmax(dim=1).tolist()
    return [central[place] for place in nearest]


def means(part: CaptionDataset) -> torch.Tensor:
    """Return the mean of the cells of every photo, of length 1."""
    rows = torch.stack([part.read(place).mean(dim=0) for place in range(len(part.images))])
    return torch.nn.functional.normalize(rows, dim=1)


def most_central(captions: tuple[tuple[str, ...], ...], language: str) -> list[int]:
    """Say which caption of each photo is closest to its others."""
    words = [[caption_words(one, language) for one in several] for several in captions]
    most = max(map(len, words))
    best: list[tuple[float, int]] = [(-1.0, 0)] * len(words)
    for place in range(most):
        chosen = [i for i, several in enumerate(words) if place < len(several) > 1]
        written = [words[i][place] for i in chosen]
        others = [words[i][:place] + words[i][place + 1 :] for i in chosen]
        for i, score in zip(chosen, cider_d(written, others), strict=True):
            best[i] = max(best[i], (score, -place))
    return [-place for _, place in best]


class Counted(NamedTuple):
    """What a system's captions count for, each by itself."""

    cider: NDArray[np.float64]
    bleu: NDArray[np.int64]

    @classmethod
    def of(cls, written: Written, language: str) -> Counted:
        """Count the captions of a system."""
        ours = [caption_words(one, language) for one in written.captions]
        theirs = [[caption_words(one, language) for one in own] for own in written.references]
        counts = bleu_counts(ours, theirs)
        rows = [(*one.right, *one.guessed, one.length, one.closest) for one in counts]
        return cls(np.array(cider_d(ours, theirs)), np.array(rows))

    def figures(self, times: NDArray[np.int64]) -> tuple[float, float]:
        """Return BLEU-4 and CIDEr-D where each caption stands so many times."""
        row = [int(number) for number in times @ self.bleu]
        added = BleuCounts(tuple(row[:4]), tuple(row[4:8]), *row[8:])
        return bleu_of_counts([added]).scores[-1], 100.0 * float(times @ self.cider) / times.sum()


def bootstrap(ours: Counted, theirs: Counted) -> dict[str, dict[str, float | list[float]]]:
    """Compare two systems on the same resampled photos, after Koehn 2004.

    Gives the difference, its 95 % interval, and how often it is not positive (one-sided p).
    """
    count = len(ours.cider)
    generator = np.random.default_rng(1)
    drawn = generator.multinomial(count, np.full(count, 1.0 / count), size=SAMPLES)
    differences = np.array(
        [np.subtract(ours.figures(times), theirs.figures(times)) for times in drawn]
    )
    whole = np.subtract(*(own.figures(np.ones(count, dtype=np.int64)) for own in (ours, theirs)))
    return {
        name: {
            "difference": round(float(whole[column]), 2),
            "interval": np.percentile(differences[:, column], (2.5, 97.5)).round(2).tolist(),
            "p": float(np.mean(differences[:, column] <= 0.0)),
        }
        for column, name in enumerate(("bleu4", "cider"))
    }


def report(
    data: Path, places: dict[int, dict[str, Path]], *, language: str
) -> dict[str, dict[str, object]]:
    """Score every system over all folds at once and fold by fold, and compare the systems."""
    written: dict[str, dict[int, Written]] = {}
    for fold, runs in places.items():
        for system, run in runs.items():
            written.setdefault(system, {})[fold] = written_by(run, data)
        softly = written_by(runs["hard"], data, softly=True)
        written.setdefault("hard, read softly", {})[fold] = softly
        references = written["soft"][fold].references
        nearest = Written(neighbours(data, runs["soft"]), references)
        written.setdefault("neighbour", {})[fold] = nearest
    pooled = {system: together(own) for system, own in written.items()}
    counted = {system: Counted.of(own, language) for system, own in pooled.items()}
    result: dict[str, dict[str, object]] = {"systems": {}, "bootstrap": {}}
    for system, own in written.items():
        result["systems"][system] = row = {"folds": list(own)} | measure(pooled[system], language)
        each = [measure(one, language) for one in own.values()]
        for name in ("bleu4", "cider"):
            values = [one[name] for one in each]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            row[f"{name} of folds"] = f"{statistics.mean(values):.2f} ± {spread:.2f}"
        print(language, system, json.dumps(row), flush=True)
    for first, second in PAIRS:
        found = bootstrap(counted[first], counted[second])
        result["bootstrap"][f"{first} - {second}"] = found
        print(language, f"{first} - {second}", json.dumps(found), flush=True)
    return result


def together(folds: dict[int, Written]) -> Written:
    """Put the captions of all folds into one."""
    return Written(
        [one for own in folds.values() for one in own.captions],
        [one for own in folds.values() for one in own.references],
    )


def measure(written: Written, language: str) -> dict[str, float]:
    """Score captions in percent, and say how long and how varied they are."""
    found = scores(written.captions, written.references, language)
    lengths = [len(caption_words(one, language)) for one in written.captions]
    return {
        **{name: round(score, 2) for name, score in found.items() if name != "bleu"},
        "words": round(statistics.mean(lengths), 2),
        "different": len(set(written.captions)),
    }
