"""Hierarchical attention: against the padded cube, alone and in a batch, with nothing to read."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from regard.errors import ShapeError
from regard.models.documents import (
    DocumentModel,
    DocumentModelSettings,
    DocumentReading,
    build_document_model,
)

ENCODERS: dict[str, dict[str, Any]] = {
    "embedding": {"kind": "embedding"},
    "convolution": {"kind": "convolution", "hidden_dim": 8, "layers": 2},
    "rnn": {"kind": "rnn", "hidden_dim": 4},
    "gru": {"kind": "gru", "hidden_dim": 4},
    "lstm": {"kind": "lstm", "hidden_dim": 4, "bidirectional": False},
    "transformer": {"kind": "transformer", "num_heads": 2, "layers": 1, "hidden_dim": 8},
}
DOCUMENTS = [[3, 9, 1], [2], [], [4, 0, 5], [12, 1, 1, 1, 2], [0, 0]]  # words of each sentence


def model_of(
    encoder: str = "gru", pooling: str = "attention", *, flat: bool = False, **level: Any
) -> DocumentModel:
    torch.manual_seed(0)
    settings = DocumentModelSettings.model_validate({
        "embedding_dim": 8,
        "words": {"encoder": ENCODERS[encoder], "pooling": pooling, **level},
        "sentences": {"encoder": ENCODERS[encoder], "pooling": pooling, **level},
        "flat": flat,
        "dropout": 0.0,
    })  # fmt: skip
    return build_document_model(settings, words=30, labels=3, padding=0).eval()


def layout(documents: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Draw the words of documents whose sentences have these lengths."""
    words = torch.tensor([n for document in documents for n in document], dtype=torch.int64)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, 30, (int(words.sum()),), generator=generator)
    return tokens, words, torch.tensor([len(document) for document in documents], dtype=torch.int64)


def cube(model: DocumentModel, tokens: Tensor, documents: list[list[int]]) -> DocumentReading:
    """Read documents as one cube, padded to the longest sentence of the longest document."""
    longest = max(map(len, documents))
    widest = max(n for document in documents for n in document)
    cells = torch.zeros(len(documents), longest, widest, dtype=torch.int64)
    real = torch.zeros_like(cells, dtype=torch.bool)
    start = 0
    for d, document in enumerate(documents):
        for s, count in enumerate(document):
            cells[d, s, :count] = tokens[start : start + count]
            real[d, s, :count] = True
            start += count
    level, upper = model.words, model.sentences
    rows, mask = cells.flatten(0, 1), real.flatten(0, 1)
    states = level.encoder(rows, mask).memory
    states = states if level.projection is None else level.projection(states)
    vectors, word_weights = level.pooling(states, mask)
    # Sentences without words are taken out: an encoder would count their places.
    has_words = real.any(dim=2)
    order = (~has_words).long().argsort(dim=1, stable=True)
    inverse = order.argsort(dim=1)
    dim = vectors.shape[-1]
    vectors = vectors.unflatten(0, real.shape[:2])
    vectors = vectors.gather(1, order.unsqueeze(-1).expand(-1, -1, dim))
    there = has_words.gather(1, order)
    states = upper.encoder(vectors, there).memory
    states = states if upper.projection is None else upper.projection(states)
    pooled, weights = upper.pooling(states, there)
    weights = weights.gather(1, inverse)
    listed = torch.tensor([[s < len(d) for s in range(longest)] for d in documents])
    return DocumentReading(model.output(pooled), word_weights[mask], weights[listed])


@pytest.mark.parametrize("pooling", ["attention", "mean", "max"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_flat_layout_is_the_padded_cube(encoder: str, pooling: str) -> None:
    model = model_of(encoder, pooling)
    tokens, words, sentences = layout(DOCUMENTS)
    found = model(tokens, words, sentences)
    expected = cube(model, tokens, DOCUMENTS)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_the_padded_cube() -> None:
    model = model_of(projection=6, gated=True, attention_dim=5).train()
    tokens, words, sentences = layout(DOCUMENTS)
    gradients = []
    for read in (lambda: model(tokens, words, sentences), lambda: cube(model, tokens, DOCUMENTS)):
        model.zero_grad()
        read().logits.square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        assert gradient.any(), name
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_d22_a_document_alone_is_itself_in_a_batch(encoder: str, flat: bool) -> None:
    model = model_of(encoder, flat=flat)
    tokens, words, sentences = layout(DOCUMENTS)
    together = model(tokens, words, sentences)
    word = sentence = 0
    for place, document in enumerate(DOCUMENTS):
        own = tokens[word : word + sum(document)]
        alone = model(own, torch.tensor(document, dtype=torch.int64), sentences[[place]])
        torch.testing.assert_close(alone.logits[0], together.logits[place], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            alone.word_weights, together.word_weights[word : word + len(own)], rtol=1e-4, atol=1e-5
        )
        several = together.sentence_weights[sentence : sentence + len(document)]
        torch.testing.assert_close(alone.sentence_weights, several, rtol=1e-4, atol=1e-5)
        word, sentence = word + len(own), sentence + len(document)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("pooling", ["attention", "mean", "max"])
def test_d22_weights_sum_to_one_and_nothing_weighs_nothing(pooling: str, flat: bool) -> None:
    model = model_of(pooling=pooling, flat=flat).train()
    found = model(*layout(DOCUMENTS))
    in_sentences = found.word_weights.split([n for d in DOCUMENTS for n in d])
    in_documents = found.sentence_weights.split([len(d) for d in DOCUMENTS])
    for weights, share in zip(in_sentences, found.sentence_weights, strict=True):
        whole = 1.0 if len(weights) and share > 0 else 0.0
        assert weights.sum().item() == pytest.approx(whole, abs=1e-5)
    for document, weights in zip(DOCUMENTS, in_documents, strict=True):
        assert weights.sum().item() == pytest.approx(1.0 if any(document) else 0.0, abs=1e-5)
        assert not weights[torch.tensor(document, dtype=torch.int64) == 0].any()
    torch.testing.assert_close(found.logits[2], model.output.bias)
    torch.testing.assert_close(found.logits[5], model.output.bias)
    found.logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_d22_nothing_but_nothing() -> None:
    for flat in (False, True):
        found = model_of(flat=flat)(*layout([[], [0]]))
        assert found.logits.shape == (2, 3)
        assert (len(found.word_weights), found.sentence_weights.tolist()) == (0, [0.0])
        none = model_of(flat=flat)(*layout([]))
        assert none.logits.shape == (0, 3)


def test_d22_five_thousand_sentences_beside_one() -> None:
    with torch.inference_mode():
        found = model_of()(*layout([[4] * 5_000, [2]]))
    assert found.sentence_weights[:5_000].sum().item() == pytest.approx(1.0, abs=1e-4)
    assert found.sentence_weights[5_000].item() == 1.0


def test_flat_attention_is_attention_over_all_words() -> None:
    model = model_of("embedding", flat=True)
    tokens, words, sentences = layout([[3, 2], [4]])
    found = model(tokens, words, sentences)
    score = model.words.pooling.attention.attention.score
    embedded = model.words.encoder.embedding(tokens[:5])
    expected = torch.softmax(score.vector(torch.tanh(score.hidden(embedded))).squeeze(-1), 0)
    assert found.sentence_weights[0].item() == pytest.approx(expected[:3].sum().item(), abs=1e-6)
    product = found.word_weights[:3] * found.sentence_weights[0]
    torch.testing.assert_close(product, expected[:3])
    torch.testing.assert_close(found.logits[0], model.output(expected @ embedded))


def test_the_order_of_sentences_counts_where_they_are_encoded() -> None:
    tokens, words, sentences = layout([[3, 3]])
    swapped = torch.cat([tokens[3:], tokens[:3]])
    for encoder, same in (("embedding", True), ("gru", False)):
        model = model_of(encoder)
        pairs = (model(own, words, sentences).logits for own in (tokens, swapped))
        assert torch.allclose(*pairs, atol=1e-6) == same


def test_sparse_attention_leaves_words_out() -> None:
    model = model_of(selection="sparsemax")
    for p in model.words.pooling.parameters():
        p.data.mul_(10)
    weights = model(*layout(DOCUMENTS)).word_weights
    assert (weights == 0).any()


def test_sizes_that_do_not_add_up() -> None:
    with pytest.raises(ShapeError, match=r"sentences must add up .* got 3 and 2"):
        model_of()(torch.ones(2, dtype=torch.int64), torch.tensor([1, 1]), torch.tensor([3]))


def test_heads_divide_at_both_levels() -> None:
    words = {"encoder": {"kind": "gru", "hidden_dim": 5, "bidirectional": False}}
    sentences = {"encoder": {"kind": "transformer", "num_heads": 2}}
    with pytest.raises(ValidationError, match=r"num_heads of sentences must divide .* 2 and 5"):
        DocumentModelSettings(embedding_dim=6, words=words, sentences=sentences)
    DocumentModelSettings(embedding_dim=6, words={**words, "projection": 4}, sentences=sentences)
    DocumentModelSettings(embedding_dim=6, words=words, sentences=sentences, flat=True)
    with pytest.raises(ValidationError, match=r"num_heads of words must divide .* 2 and 7"):
        DocumentModelSettings(embedding_dim=7, words=sentences)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("pooling", ["attention", "mean", "max"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_l10_other_precisions(encoder: str, pooling: str, flat: bool) -> None:
    model = model_of(encoder, pooling, flat=flat).train()
    own = layout(DOCUMENTS)
    single = model(*own)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(*own)
    torch.testing.assert_close(half.logits.float(), single.logits, rtol=0.1, atol=0.1)
    half.logits.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    double = model.double()(*own)
    assert double.logits.dtype == torch.float64
    torch.testing.assert_close(double.logits.float(), single.logits, rtol=1e-4, atol=1e-5)
