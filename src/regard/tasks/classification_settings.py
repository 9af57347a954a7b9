"""Settings of a classification config, and of a classifier of documents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict
from regard.data.documents import MAX_SENTENCES, MAX_WORDS
from regard.models.documents import DocumentModelSettings
from regard.tasks.labels import Labels
from regard.tasks.settings import TokenSettings
from regard.training.settings import TrainingSettings


class CuttingSettings(Strict):
    """How a text is cut into sentences, and how much of it is read.

    Args:
        sentences: "marks" goes by full stops and the like, in English and Chinese; "lines" takes
            each line for a sentence, "none" the whole text for one.
        max_sentences: Sentences beyond so many are not read.
        max_words: Words of a sentence beyond so many are not read.
    """

    sentences: Literal["marks", "lines", "none"] = "marks"
    max_sentences: Annotated[int, Field(ge=1, le=100_000)] = MAX_SENTENCES
    max_words: Annotated[int, Field(ge=1, le=100_000)] = MAX_WORDS


class DocumentDataSettings(CuttingSettings):
    """Where the labelled documents are.

    Args:
        train: A JSONL or TSV file.
        dev: The same, for choosing the best model.
        test: The same, for `regard evaluate`.
        text: Key or column of the text.
        label: Key or column of the label, or of a list of labels.
        header: Whether a TSV's first line holds names.
        encoding: How the files are encoded.
        language: Language tag of the texts.
        vectors: A text file of vectors of words, as GloVe has them, to begin with.
    """

    train: str
    dev: str
    test: str | None = None
    text: int | str | None = None
    label: int | str | None = None
    header: bool = False
    encoding: str = "utf-8-sig"
    language: str | None = None
    vectors: str | None = None


class ClassificationSettings(Strict):
    """A classification config.

    Args:
        task: "classification".
        metric: By which evaluations are compared: "accuracy", "macro_f1" or "loss".
        balanced: Whether rare labels count as much as frequent ones in training.
        data: The labelled documents.
        tokens: How sentences are cut into words.
        model: What the model is made of.
        training: How it is trained.
    """

    task: Literal["classification"]
    metric: Literal["accuracy", "macro_f1", "loss"] = "accuracy"
    balanced: bool = False
    data: DocumentDataSettings
    tokens: TokenSettings = TokenSettings(minimum_frequency=2)
    model: DocumentModelSettings = DocumentModelSettings()
    training: TrainingSettings = TrainingSettings(label_smoothing=0.0)


class ClassifierSettings(Strict):
    """What a classifier's `config.json` holds.

    Args:
        task: "classification".
        language: Language tag of the texts.
        labels: The labels, in the order of the model's scores.
        several: Whether a document may have any number of them.
        cutting: How a text is cut, and how much of it is read.
        model: What the model is made of.
    """

    task: Literal["classification"]
    language: str | None
    labels: Labels
    several: bool
    cutting: CuttingSettings
    model: DocumentModelSettings
