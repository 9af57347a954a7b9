"""Classification: a document in, its label out, and the sentences and words that decided."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import checked
from regard.data.documents import Document, encode_document
from regard.data.sentences import Span
from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.models.documents import DocumentModel, DocumentReading, build_document_model
from regard.models.saliency import word_gradients
from regard.pictures import evidence
from regard.pictures.records import Map, Record
from regard.pictures.texts import Document as ReadDocument
from regard.pictures.texts import Passage, Token
from regard.tasks.base import CONFIG, Opened
from regard.tasks.classification_metrics import Numbers
from regard.tasks.classification_settings import ClassifierSettings
from regard.tasks.labels import Labelled, Verdict, label_probabilities, verdicts
from regard.training.checkpoint import MODEL, load_model

TOKENS = "tokenizer.json"
Weights = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(Labelled):
    """A label of a document, and what decided; see `Labelled` for what it shares.

    Args:
        text: The document.
    """

    text: str

    @property
    def evidence(self) -> tuple[evidence.Sentence, ...]:
        """The sentences that decided, the heaviest first, with their words and weights.

        They are the fewest that hold nine tenths of the weight, and at most five; all of them are
        in `regard.pictures.evidence.sentences(result.record)`. Offsets are those of the text.
        """
        return evidence.strongest(evidence.sentences(self.record))


class DocumentClassifier:
    """A model that classifies documents and shows what decided.

    Args:
        model: The model.
        tokenizer: How sentences are cut into words.
        settings: Labels, language, sizes, and how texts are cut into sentences.
        name: What a person calls the model.
    """

    def __init__(
        self,
        model: DocumentModel,
        tokenizer: Tokenizer,
        settings: ClassifierSettings,
        *,
        name: str = "",
    ) -> None:
        self.model = model.eval()
        self.tokenizer, self.settings, self.name = tokenizer, settings, name

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    @overload
    def __call__(self, text: str, *, batch_size: int = 32) -> Classification: ...

    @overload
    def __call__(self, text: list[str], *, batch_size: int = 32) -> list[Classification]: ...

    def __call__(
        self, text: str | list[str], *, batch_size: int = 32
    ) -> Classification | list[Classification]:
        """Classify a document, or many at once.

        What is beyond `max_sentences` or `max_words` is not read, with a warning.

        Args:
            text: A document, or a list of them; a blank one is classified without evidence.
            batch_size: How many documents are read at once.

        Returns:
            One result, or a list in the order of the texts.

        Raises:
            UserError: A setting is out of range, or an input is no text.
        """
        texts = [text] if isinstance(text, str) else text
        results = self.classify([self.read(one) for one in texts], batch_size=batch_size)
        return results[0] if isinstance(text, str) else results

    def read(self, text: str, spans: Sequence[Span] | None = None) -> Document:
        """Cut a text into sentences and words, as the model reads it.

        Args:
            text: The text.
            spans: Its sentences, where they are known.

        Returns:
            The document.

        Raises:
            UserError: It is no text.
        """
        own = self.settings.cutting
        return encode_document(
            self.tokenizer,
            text,
            rule=own.sentences,
            spans=spans,
            max_sentences=own.max_sentences,
            max_words=own.max_words,
        )

    def classify(
        self, documents: Sequence[Document], *, batch_size: int = 32
    ) -> list[Classification]:
        """Classify documents that `read` cut.

        Args:
            documents: The documents.
            batch_size: How many are read at once.

        Returns:
            A result for each.

        Raises:
            UserError: `batch_size` is below 1.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Use 32.")
        self._warn(documents)
        order = sorted(range(len(documents)), key=lambda i: documents[i].words)
        results: dict[int, Classification] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            part = [documents[i] for i in chosen]
            reading = self.reading(part)
            for i, result in zip(chosen, self._results(part, reading), strict=True):
                results[i] = result
        return [results[i] for i in range(len(documents))]

    @torch.inference_mode()
    def reading(self, documents: Sequence[Document]) -> DocumentReading:
        """Let the model read documents: scores of labels, weights of words and sentences."""
        reading: DocumentReading = self.model(*self._flat(documents))
        return reading

    def _flat(self, documents: Sequence[Document]) -> tuple[Tensor, Tensor, Tensor]:
        sentences = [sentence.ids for document in documents for sentence in document.sentences]
        return (
            torch.tensor([i for ids in sentences for i in ids], dtype=torch.int64).to(self.device),
            torch.tensor([len(ids) for ids in sentences], dtype=torch.int64),
            torch.tensor([len(one.sentences) for one in documents], dtype=torch.int64),
        )

    def gradients(self, documents: Sequence[Document], labels: Tensor) -> Numbers:
        """Say how much the score of a label of each document hangs on each word, one list of all.

        See `regard.models.saliency.word_gradients`.
        """
        inputs = self._flat(documents)
        found = word_gradients(self.model, *inputs, labels.clone().to(self.device))
        return np.asarray(found.double().cpu().numpy())

    def probabilities(self, logits: Tensor) -> Numbers:
        """Turn scores into the probabilities of the labels."""
        return label_probabilities(logits, several=self.settings.several)

    def _results(
        self, documents: Sequence[Document], reading: DocumentReading
    ) -> list[Classification]:
        own = self.settings
        said = verdicts(self.probabilities(reading.logits), own.labels, several=own.several)
        words = reading.word_weights.float().cpu().numpy()
        sentences = reading.sentence_weights.float().cpu().numpy()
        results, word, sentence = [], 0, 0
        for verdict, document in zip(said, documents, strict=True):
            ends = word + document.words, sentence + len(document.sentences)
            weights = words[word : ends[0]], sentences[sentence : ends[1]]
            results.append(self._result(document, verdict, weights))
            word, sentence = ends
        return results

    def _result(
        self, document: Document, verdict: Verdict, weights: tuple[Weights, Weights]
    ) -> Classification:
        return Classification(
            text=document.text,
            label=verdict.label,
            probability=verdict.probability,
            labels=verdict.labels,
            probabilities=verdict.probabilities,
            looked=self._record(document, verdict, weights),
            truncated=document.left_out + document.shortened > 0,
        )

    def _record(
        self, document: Document, verdict: Verdict, weights: tuple[Weights, Weights]
    ) -> Record:
        written = verdict.written
        words, sentences = (np.tile(row, (len(written.tokens), 1)) for row in weights)
        return Record(
            "classification",
            _read(document, self.settings.language),
            written,
            (Map("words", words),),
            {"probability": round(verdict.probability, 6), "model": self.name},
            (Map("sentences", sentences),),
        )

    def _warn(self, documents: Sequence[Document]) -> None:
        cut = sum(one.left_out + one.shortened > 0 for one in documents)
        if cut:
            own = self.settings.cutting
            warnings.warn(
                f"documents are read up to {own.max_sentences:,} sentences, and sentences up to "
                f"{own.max_words:,} words; {cut} of {len(documents)} are longer and were cut",
                UserWarning,
                stacklevel=3,
            )


def _read(document: Document, language: str | None) -> ReadDocument:
    tokens: list[Token] = []
    passages = []
    for sentence in document.sentences:
        first = len(tokens)
        tokens += [Token(document.text[a:b], a, b) for a, b in sentence.offsets]
        passages.append(Passage(sentence.start, sentence.end, first, len(tokens)))
    return ReadDocument(document.text, tuple(tokens), language, tuple(passages))


def load_classifier(opened: Opened, device: torch.device) -> DocumentClassifier:
    """Open a classifier of documents.

    Args:
        opened: Its folder, verified.
        device: Where it shall live.

    Returns:
        The classifier.

    Raises:
        FileFormatError: A file of it is wrong.
    """
    settings = checked(opened.config, ClassifierSettings, where=str(opened.folder / CONFIG))
    tokenizer = Tokenizer.load(opened.folder / TOKENS)

    def build() -> DocumentModel:
        return build_document_model(
            settings.model,
            words=tokenizer.size,
            labels=len(settings.labels),
            padding=Tokenizer.PAD,
        )

    model = load_model(build, opened.folder / MODEL)
    return DocumentClassifier(model.to(device), tokenizer, settings, name=opened.name)
