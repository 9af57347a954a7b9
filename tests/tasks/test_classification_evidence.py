"""A classifier's weights against the places that people marked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.data.documents import encode_document
from regard.data.tokens import Tokenizer
from regard.models.documents import DocumentModelSettings, build_document_model
from regard.models.saliency import word_gradients
from regard.tasks.classification import DocumentClassifier
from regard.tasks.classification_evidence import evidence_table, looks, marks, sums
from regard.tasks.classification_settings import ClassifierSettings, CuttingSettings
from regard.tasks.evidence_metrics import evidence_scores

TEXTS = ["A fine film. I laughed. Too long, though.", "", "Bad.", "Bad bad film. " * 9]


def spans_of(text, *words):
    return [(text.index(word), text.index(word) + len(word)) for word in words]


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(TEXTS, kind="words")
    model = DocumentModelSettings(embedding_dim=8)
    settings = ClassifierSettings(
        task="classification",
        language="en",
        labels=["bad", "good"],
        several=False,
        cutting=CuttingSettings(),
        model=model,
    )
    network = build_document_model(model, words=tokenizer.size, labels=2, padding=Tokenizer.PAD)
    return DocumentClassifier(network, tokenizer, settings)


def test_what_has_a_marked_character_is_marked():
    text = TEXTS[0]
    document = encode_document(Tokenizer.train(TEXTS, kind="words"), text)
    found = marks(document, [*spans_of(text, "ine fil", "long"), (len(text), len(text) + 5)])
    words = [text[a:b] for sentence in document.sentences for a, b in sentence.offsets]
    assert [w for w, hit in zip(words, found.words, strict=True) if hit] == ["fine", "film", "long"]
    assert found.sentences.tolist() == [True, False, True]
    assert not marks(document, []).words.any()


def test_weights_are_those_of_the_results(classifier):
    documents = [classifier.read(text) for text in TEXTS]
    results = classifier.classify(documents)
    for look, result, document in zip(
        looks(classifier, documents), results, documents, strict=True
    ):
        record = result.record
        sentences = record.sentence_weights()[0]
        assert look.sentences == pytest.approx(sentences)
        owner = np.repeat(np.arange(len(sentences)), [len(s.ids) for s in document.sentences])
        assert look.words == pytest.approx(record.weights()[0] * sentences[owner], abs=1e-6)
        assert look.words.sum() == pytest.approx(float(document.words > 0), abs=1e-5)
        assert sums(look.words, document) == pytest.approx(sentences, abs=1e-6)
        alone = classifier._flat([document])
        label = torch.tensor([classifier.settings.labels.index(result.label)])
        gradient = word_gradients(classifier.model, *alone, label)
        assert look.gradients == pytest.approx(gradient.numpy(), abs=1e-6)


def test_documents_of_which_nothing_is_known_do_not_count(classifier):
    documents = [classifier.read(text) for text in TEXTS]
    marked = spans_of(TEXTS[0], "fine")
    table = evidence_table(classifier, documents, [marked, None, (), None])
    assert set(table) == {
        f"{items}, {kind}" for items in ("words", "sentences") for kind in ("attention", "gradient")
    }
    (look,) = looks(classifier, documents[:1])
    expected = evidence_scores([look.words], [marks(documents[0], marked).words])
    assert table["words, attention"] == pytest.approx(expected)
    assert evidence_table(classifier, documents, [None] * 4) == {}
