"""A classifier's weights against the places that people marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from regard.data.documents import Document
from regard.data.sentences import Span
from regard.tasks.classification import DocumentClassifier
from regard.tasks.classification_metrics import Numbers, Truths
from regard.tasks.evidence_metrics import evidence_scores

AT_ONCE = 16  # documents


class Looks(NamedTuple):
    """What is held against the marks of a document, an item for each word or sentence.

    Args:
        words: The attention's weight of each word in the document: that of its sentence times that
            in it.
        sentences: The attention's weight of each sentence.
        gradients: How much the likeliest label's score hangs on each word: see `word_gradients`.
    """

    words: Numbers
    sentences: Numbers
    gradients: Numbers


class Marks(NamedTuple):
    """Which words and sentences of a document are marked."""

    words: Truths
    sentences: Truths


def looks(classifier: DocumentClassifier, documents: Sequence[Document]) -> Iterator[Looks]:
    """Weigh the words and sentences of documents, by attention and by the gradient.

    Args:
        classifier: The classifier.
        documents: The documents, as it reads them.

    Yields:
        The weights of each document.
    """
    for start in range(0, len(documents), AT_ONCE):
        part = documents[start : start + AT_ONCE]
        reading = classifier.reading(part)
        gradients = classifier.gradients(part, reading.logits.argmax(dim=1))
        counts = torch.tensor([len(s.ids) for one in part for s in one.sentences])
        spread = torch.repeat_interleave(reading.sentence_weights.cpu(), counts)
        products = (spread * reading.word_weights.cpu()).double().numpy()
        sentences = reading.sentence_weights.cpu().double().numpy()
        word = sentence = 0
        for one in part:
            ends = word + one.words, sentence + len(one.sentences)
            own = slice(word, ends[0])
            yield Looks(products[own], sentences[sentence : ends[1]], gradients[own])
            word, sentence = ends


def marks(document: Document, rationale: Sequence[Span]) -> Marks:
    """Say which words and sentences of a document have a marked character.

    Args:
        document: The document.
        rationale: The marked places of its text.

    Returns:
        The marks.
    """
    marked = np.zeros(len(document.text) + 1, dtype=np.int64)
    for start, end in rationale:
        marked[start + 1 : end + 1] = 1
    total = np.cumsum(marked)  # up to each character

    def hit(spans: Sequence[Span]) -> Truths:
        places = np.array(spans, dtype=np.int64).reshape(-1, 2).clip(max=len(document.text))
        return np.asarray(total[places[:, 1]] > total[places[:, 0]])

    words = [span for sentence in document.sentences for span in sentence.offsets]
    return Marks(hit(words), hit([(one.start, one.end) for one in document.sentences]))


def evidence_table(
    classifier: DocumentClassifier,
    documents: Sequence[Document],
    rationales: Sequence[Sequence[Span] | None],
) -> dict[str, dict[str, float]]:
    """Score a classifier's attention and gradients against marked places.

    Args:
        classifier: The classifier.
        documents: The documents, as it reads them.
        rationales: The marked places of each; None where nothing is known.

    Returns:
        The scores of `attention` and `gradient`, of words and of sentences, by name; empty where
        no document has marked and unmarked words.
    """
    known = [(d, r) for d, r in zip(documents, rationales, strict=True) if r is not None]
    chosen = [document for document, _ in known]
    truth = [marks(document, rationale) for document, rationale in known]
    weighed = list(looks(classifier, chosen))
    summed = [sums(one.gradients, document) for one, document in zip(weighed, chosen, strict=True)]
    in_words, in_sentences = [one.words for one in truth], [one.sentences for one in truth]
    table = {
        "words, attention": evidence_scores([one.words for one in weighed], in_words),
        "words, gradient": evidence_scores([one.gradients for one in weighed], in_words),
        "sentences, attention": evidence_scores([one.sentences for one in weighed], in_sentences),
        "sentences, gradient": evidence_scores(summed, in_sentences),
    }
    return {name: scores for name, scores in table.items() if scores["documents"]}


def sums(words: Numbers, document: Document) -> Numbers:
    """Sum numbers of words over the sentences of a document."""
    owner = np.repeat(
        np.arange(len(document.sentences)), [len(one.ids) for one in document.sentences]
    )
    total = np.bincount(owner, weights=words, minlength=len(document.sentences))
    return np.asarray(total, dtype=np.float64)
