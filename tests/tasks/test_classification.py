"""A classifier as a person uses it: results, evidence, offsets, caps, nothing to read."""

import math

import pytest
import torch

from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.models.documents import DocumentModelSettings, build_document_model
from regard.pictures.evidence import sentences
from regard.pictures.records import Record
from regard.tasks.classification import DocumentClassifier
from regard.tasks.classification_settings import ClassifierSettings, CuttingSettings

TEXT = "  The  caf\u0065\u0301 was lovely. “Never again!” he said…\n\nIt rained."


def classifier(
    *, several: bool = False, flat: bool = False, kind: str = "words", **cutting: object
) -> DocumentClassifier:
    torch.manual_seed(0)
    size = 60 if kind == "bpe" else None
    tokenizer = Tokenizer.train([TEXT, "The rain was lovely again"], kind=kind, size=size)
    level = {"encoder": {"kind": "gru", "hidden_dim": 4}}
    settings = ClassifierSettings(
        task="classification",
        language="en",
        labels=["bad", "good", "odd"],
        several=several,
        cutting=CuttingSettings.model_validate(cutting),
        model=DocumentModelSettings.model_validate(
            {"embedding_dim": 8, "words": level, "sentences": level, "flat": flat}
        ),
    )
    model = build_document_model(settings.model, words=tokenizer.size, labels=3, padding=0)
    for parameter in model.parameters():
        parameter.data.mul_(3.0)  # so that weights differ
    return DocumentClassifier(model, tokenizer, settings, name="small")


@pytest.mark.parametrize("kind", ["words", "bpe"])
@pytest.mark.parametrize("flat", [False, True])
def test_a_result_and_its_evidence(flat: bool, kind: str) -> None:
    result = classifier(flat=flat, kind=kind)(TEXT)
    assert result.text == TEXT
    assert list(result.probabilities) == ["bad", "good", "odd"]
    assert sum(result.probabilities.values()) == pytest.approx(1.0)
    assert result.probability == max(result.probabilities.values())
    assert result.labels == (result.label,)
    assert not result.truncated
    every = sentences(result.record)
    cut = ["The  cafe\u0301 was lovely.", "“Never again!” he said…", "It rained."]
    assert [one.text for one in every] == cut
    assert math.fsum(one.weight for one in every) == pytest.approx(1.0, abs=1e-5)
    for one in every:
        assert math.fsum(word.weight for word in one.words) == pytest.approx(1.0, abs=1e-5)
        assert TEXT[one.start : one.end] == one.text
        for word in one.words:
            assert TEXT[word.start : word.end].strip() == word.text.strip()
    weights = [one.weight for one in result.evidence]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) >= 0.9 * 0.999
    assert result.record.details["model"] == "small"


def test_evidence_is_the_weights_that_were_used() -> None:
    own = classifier()
    result = own(TEXT)
    document = own.read(TEXT)
    reading = own.reading([document])
    torch.testing.assert_close(
        torch.from_numpy(result.record.weights()[0].copy()), reading.word_weights
    )
    torch.testing.assert_close(
        torch.from_numpy(result.record.sentence_weights()[0].copy()), reading.sentence_weights
    )
    torch.testing.assert_close(
        torch.tensor(list(result.probabilities.values()), dtype=torch.float64),
        reading.logits[0].double().softmax(0),
    )


def test_many_at_once_are_as_one_by_one() -> None:
    own = classifier()
    texts = [TEXT, "", "It rained.", TEXT * 3, "Lovely"]
    for batch_size in (1, 2, 32):
        for text, result in zip(texts, own(texts, batch_size=batch_size), strict=True):
            alone = own(text)
            assert (result.text, result.label) == (text, alone.label)
            assert result.probability == pytest.approx(alone.probability, abs=1e-5)
    assert own([]) == []


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b"])
def test_d22_a_blank_text_has_a_label_and_no_evidence(text: str) -> None:
    for flat in (False, True):
        result = classifier(flat=flat)(text)
        assert result.evidence == ()
        assert result.label in ("bad", "good", "odd")
        assert Record.from_json(result.record.to_json()).read == result.record.read


def test_any_number_of_labels() -> None:
    own = classifier(several=True)
    with torch.no_grad():
        own.model.output.weight.zero_()
        own.model.output.bias.copy_(torch.tensor([2.0, -1.0, 0.5]))
    result = own(TEXT)
    assert result.labels == ("bad", "odd")
    assert result.label == "bad"
    assert result.probabilities["good"] == pytest.approx(1 / (1 + math.e))
    assert result.record.written.text == "bad, odd"
    assert result.record.weights().shape[0] == 2
    with torch.no_grad():
        own.model.output.bias.fill_(-1.0)
    nothing = own(TEXT)
    assert nothing.labels == ()
    assert nothing.record.written.text == nothing.label


def test_d22_what_is_too_long_is_cut_and_said() -> None:
    own = classifier(max_sentences=2, max_words=3)
    with pytest.warns(UserWarning, match=r"up to 2 sentences, .* 3 words; 1 of 2 are longer"):
        long, short = own([TEXT, "It rained"])
    assert long.truncated
    assert not short.truncated
    assert [len(one.words) for one in sentences(long.record)] == [3, 3]


def test_sentences_that_are_given() -> None:
    own = classifier()
    document = own.read("It\nrained", [(0, 2), (3, 9)])
    (result,) = own.classify([document])
    assert [one.text for one in sentences(result.record)] == ["It", "rained"]


def test_a_result_is_saved_and_shown(tmp_path) -> None:
    result = classifier()(TEXT)
    result.save(tmp_path / "look.json")
    assert Record.load(tmp_path / "look.json").read == result.record.read


def test_what_is_no_text_is_refused() -> None:
    own = classifier()
    with pytest.raises(UserError, match="batch_size must be at least 1; got 0"):
        own(["a"], batch_size=0)
    with pytest.raises(UserError, match="text must be a string, or a list of strings; got bytes"):
        own([b"a"])
