"""Settings of an image classification config, and of a classifier of pictures."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict
from regard.models.picture_classifier import PictureModelSettings
from regard.tasks.labels import Labels
from regard.training.settings import TrainingSettings


class ImageDataSettings(Strict):
    """Where the labelled pictures are.

    Args:
        train: A folder that holds a folder of pictures for each label, or a JSONL or TSV file of
            labels, or the folder that holds `labels.jsonl` or `labels.tsv`.
        dev: The same, for choosing the best model.
        test: The same, for `regard evaluate`.
        images: The folder that the pictures in a file are named relative to; by default its own.
        splits: Read the lines of these splits of one file: `["train", "val", "test"]`; or
            "content": the bytes of each picture decide its part, eight of ten train, one dev, one
            test. The files may then be the same.
        image: Key or column of a picture's name.
        label: Key or column of the label, or of a list of labels.
        header: Whether a TSV's first line holds names.
        encoding: How the files are encoded.
        max_bad: Share of pictures that may be unreadable; they are left out.
        cache: Folder, beside the config, where descriptions of pictures, or their resized pixels,
            are kept.
    """

    train: str
    dev: str
    test: str | None = None
    images: str | None = None
    splits: Literal["content"] | Annotated[list[str], Field(min_length=2, max_length=3)] | None = (
        None
    )
    image: int | str | None = None
    label: int | str | None = None
    header: bool = False
    encoding: str = "utf-8-sig"
    max_bad: Annotated[float, Field(ge=0.0, le=1.0)] = 0.001
    cache: str = "features"


class ImageClassificationSettings(Strict):
    """An image classification config.

    Args:
        task: "image_classification".
        metric: By which evaluations are compared: "accuracy", "macro_f1" or "loss".
        balanced: Whether rare labels count as much as frequent ones in training.
        data: The labelled pictures.
        model: What the model is made of.
        training: How it is trained; `batch_sentences` counts pictures, `batch_tokens` their cells.
    """

    task: Literal["image_classification"]
    metric: Literal["accuracy", "macro_f1", "loss"] = "accuracy"
    balanced: bool = False
    data: ImageDataSettings
    model: PictureModelSettings = PictureModelSettings()
    training: TrainingSettings = TrainingSettings(label_smoothing=0.0)


class ImageClassifierSettings(Strict):
    """What a classifier's `config.json` holds.

    Args:
        task: "image_classification".
        labels: The labels, in the order of the model's scores.
        several: Whether a picture may have any number of them.
        model: What the model is made of.
    """

    task: Literal["image_classification"]
    labels: Labels
    several: bool
    model: PictureModelSettings
