"""What `regard train`, `evaluate`, `check` and `new` do for classifiers of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import checked, read_config
from regard.data.files import file_sha256
from regard.data.labelled import (
    DocumentColumns,
    Documents,
    document_overlap,
    known_labels,
    label_places,
    read_documents,
)
from regard.data.labels import label_shares
from regard.data.planted import write_planted
from regard.data.rationales import read_rationales
from regard.data.tokens import Tokenizer
from regard.errors import DataError, UserError
from regard.models.documents import build_document_model
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.classification import DocumentClassifier, load_classifier
from regard.tasks.classification_evidence import evidence_table
from regard.tasks.classification_job import ClassificationJob, encode_documents
from regard.tasks.classification_metrics import label_scores
from regard.tasks.classification_settings import (
    ClassificationSettings,
    ClassifierSettings,
    CuttingSettings,
    DocumentDataSettings,
)
from regard.tasks.runs import new_config, one_file, run_data, set_up, train_run, write_config
from regard.tasks.settings import learn_tokenizer
from regard.tasks.vectors import fill_embedding
from regard.training.loop import Outcome, RunOptions


def train_classification(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a classifier from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, ClassificationSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: ClassificationSettings, *, root: Path) -> ClassificationJob:
    """Read the data, learn the tokenizer and build the model.

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
    documents, dev = [read_part(name, settings.data, root=root) for name in ("train", "dev")]
    _check_alike(documents, dev)
    documents = documents.without_blank()
    if not len(documents):
        raise DataError("every text is blank. Check the column of the text.", where=dev.file)
    classifier = _fresh(settings, documents, choose_device(own.device))
    digest = None
    if settings.data.vectors is not None:
        vectors = root / settings.data.vectors
        fill_embedding(_embedding(classifier), classifier.tokenizer, vectors)
        digest = file_sha256(vectors, where=str(vectors))
    return ClassificationJob(
        settings,
        classifier,
        data=encode_documents(documents, classifier),
        dev=encode_documents(dev, classifier),
        vectors=digest,
    )


def _embedding(classifier: DocumentClassifier) -> torch.Tensor:
    return classifier.model.words.encoder.get_parameter("embedding.weight")


def _check_alike(documents: Documents, other: Documents) -> None:
    if documents.several != other.several:
        raise DataError(
            "labels must be as in the training data: one for each document, or a list. Write both "
            "files alike.",
            where=other.file,
        )


def read_part(name: str, settings: DocumentDataSettings, *, root: Path) -> Documents:
    """Read the documents of a part of the data.

    Args:
        name: "train", "dev" or "test".
        settings: Files, keys and encoding.
        root: The folder that relative names start from.

    Returns:
        The documents.

    Raises:
        UserError: The settings name no such part.
        DataError: A file is wrong.
    """
    file = getattr(settings, name)
    if file is None:
        raise UserError(
            "needs a file of documents: this model names no test file.", where="evaluate"
        )
    columns = DocumentColumns(text=settings.text, label=settings.label, header=settings.header)
    return read_documents(root / file, columns=columns, encoding=settings.encoding)


def _fresh(
    settings: ClassificationSettings, documents: Documents, device: torch.device
) -> DocumentClassifier:
    tokenizer = learn_tokenizer(documents.texts, settings.tokens)
    labels = known_labels(documents)
    data = settings.data
    cutting = {name: getattr(data, name) for name in CuttingSettings.model_fields}
    own = ClassifierSettings(
        task="classification",
        language=data.language,
        labels=list(labels),
        several=documents.several,
        cutting=CuttingSettings(**cutting),
        model=settings.model,
    )
    model = build_document_model(
        settings.model, words=tokenizer.size, labels=len(labels), padding=Tokenizer.PAD
    )
    return DocumentClassifier(model.to(device), tokenizer, own)


@dataclass(frozen=True, slots=True)
class ClassificationEvaluation:
    """How a classifier scores on labelled documents.

    Args:
        scores: Accuracy, macro-F1 and calibration error, in percent.
        written: The predicted label of each document; several are separated by ", ".
        documents: The documents.
        evidence: How well attention and gradients agree with the marked places; empty where the
            file has none.
    """

    scores: dict[str, float]
    written: list[str]
    documents: Documents
    evidence: dict[str, dict[str, float]]

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        more = {"evidence": self.evidence} if self.evidence else {}
        count = len(self.documents)
        return {**self.scores, "documents": count, "sha256": self.documents.sha256, **more}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each score."""
        found = [f"{name:<17} {score:7.2f}" for name, score in self.scores.items()]
        for name, own in self.evidence.items():
            scores = "  ".join(f"{key} {score:.2f}" for key, score in own.items())
            found.append(f"marked {name}: {scores}")
        blank = f", {self.documents.blank} of them blank" if self.documents.blank else ""
        count = f"documents {len(self.documents):7}{blank}"
        return [*found, f"{count}   SHA-256 {self.documents.sha256}"]


def evaluate_classification(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> ClassificationEvaluation:
    """Classify labelled documents and score the result.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: A file of documents; none for the test file of the run's config.
        beam: Must be left out: nothing is searched for.
        device: Where to run.
        reading: `source_column` and `target_column` (of text and label) and `header`.

    Returns:
        Scores and predicted labels.

    Raises:
        UserError: There are no files, or one is wrong.
    """
    if beam is not None:
        raise UserError("must be left out for a classifier, which does not search.", where="--beam")
    data, root = run_data(Path(model), DocumentDataSettings, DocumentDataSettings(train="", dev=""))
    names = {"source_column": "text", "target_column": "label", "header": "header"}
    changed = {names[name]: value for name, value in dict(reading or {}).items()}
    if files:
        changed |= {"test": str(one_file(files))}
        root = Path()
    data = checked({**data.model_dump(), **changed}, DocumentDataSettings, where="evaluate")
    documents = read_part("test", data, root=root)
    classifier = load_classifier(open_model(model), choose_device(device))
    own = classifier.settings
    if documents.several != own.several:
        raise DataError(
            "labels must be as in the training data: one for each document, or a list. Correct it.",
            where=documents.file,
        )
    truth = label_places(documents, own.labels)
    pairs = zip(documents.texts, documents.spans, strict=True)
    read = [classifier.read(text, spans) for text, spans in pairs]
    results = classifier.classify(read)
    probabilities = np.array([list(result.probabilities.values()) for result in results])
    scores = label_scores(probabilities, truth, several=own.several)
    rationales = read_rationales(documents.file, encoding=data.encoding)
    evidence = evidence_table(classifier, read, rationales) if any(rationales) else {}
    written = [", ".join(one.labels) for one in results]
    return ClassificationEvaluation(scores, written, documents, evidence)


def check_classification(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, ClassificationSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    classifier, data = job.classifier, settings.data
    parts = {name: read_part(name, data, root=path.parent) for name in ("train", "dev")}
    cut = {"train": job.data.cut, "dev": job.dev.cut}
    if data.test is not None:
        parts["test"] = read_part("test", data, root=path.parent)
        _check_alike(parts["train"], parts["test"])
        cut["test"] = encode_documents(parts["test"], classifier).cut
    lines: list[str] = []
    for name, documents in parts.items():
        lines += _described(name, documents, cut[name], data)
        if name != "train":
            lines += _leaks(name, parts["train"], documents)
    if data.vectors is not None:
        file = path.parent / data.vectors
        count = fill_embedding(_embedding(classifier), classifier.tokenizer, file)
        lines.append(f"vectors: of {count:,} of {classifier.tokenizer.size:,} words")
    count = sum(parameter.numel() for parameter in job.model.parameters())
    words = f"{classifier.tokenizer.size:,} words, {len(classifier.settings.labels)} labels"
    return [*lines, f"model: {count:,} parameters, {words}; {job.steps(0)} steps an epoch"]


def _described(name: str, documents: Documents, cut: int, data: DocumentDataSettings) -> list[str]:
    lines = [
        f"{name}: {len(documents):,} documents, {documents.blank} blank, SHA-256 "
        f"{documents.sha256[:16]}",
        f"{name}: {label_shares(documents.labels)}",
    ]
    if cut:
        lines.append(
            f"warning: {cut} documents of {name} have more than {data.max_sentences:,} sentences, "
            f"or one of more than {data.max_words:,} words; the rest is not read"
        )
    return lines


def _leaks(name: str, train_documents: Documents, other: Documents) -> list[str]:
    shared = document_overlap(train_documents, other)
    if not shared:
        return []
    return [f"warning: {shared} of the {len(other)} documents of {name} are in train"]


_CONFIG = """\
# A classifier for the letters to a shop that `regard new classification` wrote beside this file.
# In a letter one sentence says what it is about, and `evidence` in its line says where.
# Train it:     regard train {name}
# Use it:       regard classify --model runs/{run} "We like it here. The lamp was delivered late."
# Without sentences: regard train {name} model.flat=true
task = "classification"
metric = "loss"                  # or accuracy, macro_f1

[data]
train = "train.jsonl"            # or .tsv: label, tab, text
dev = "dev.jsonl"
test = "test.jsonl"
language = "en"
sentences = "marks"              # lines, or none

[tokens]
kind = "words"                   # chinese for Chinese; characters, bpe or unigram
lowercase = true
minimum_frequency = 2

[model]
embedding_dim = 64
dropout = 0.2

[model.words]
encoder = {{kind = "embedding"}}   # rnn, gru, lstm, convolution or transformer
pooling = "attention"            # mean or max
attention_dim = 32

[model.sentences]
encoder = {{kind = "embedding"}}   # the letters are in no order
pooling = "attention"
attention_dim = 32

[training]
epochs = 6
batch_tokens = 2048
learning_rate = 0.003
label_smoothing = 0.0
"""


def new_classification(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and generated documents, whose evidence is known.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The config and the files of documents.

    Raises:
        UserError: A file exists already.
        EnvironmentFault: The folder cannot be made.
    """
    config = new_config(folder, overwrite=overwrite)
    counts = {"train": 3000, "dev": 300, "test": 300}
    files = write_planted(folder, counts, seed=1, overwrite=overwrite)
    write_config(config, _CONFIG)
    return [config, *files]


TASK = TaskKind(
    name="classification",
    summary="A document in, its label out, and the sentences and words that decided.",
    load=load_classifier,
    train=train_classification,
    evaluate=evaluate_classification,
    check=check_classification,
    new=new_classification,
)
