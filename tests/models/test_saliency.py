from __future__ import annotations

import pytest
import torch

from regard.models.documents import DocumentModelSettings, build_document_model
from regard.models.saliency import word_gradients

WORDS, SENTENCES = torch.tensor([5, 0, 7, 1]), torch.tensor([3, 1])


def drawn(**changes):
    torch.manual_seed(1)
    settings = DocumentModelSettings(embedding_dim=8, dropout=0.5, **changes)
    model = build_document_model(settings, words=30, labels=3, padding=0).double().eval()
    return model, torch.randint(1, 30, (13,))


@pytest.mark.parametrize("changes", [{}, {"flat": True}])
def test_they_are_what_a_small_change_of_a_word_makes_of_the_score(changes):
    model, tokens = drawn(**changes)
    tokens[:] = torch.arange(1, 14)  # each word once, so that its row in the table is its own
    labels = torch.tensor([2, 0])
    found = word_gradients(model, tokens, WORDS, SENTENCES, labels)
    table = model.words.encoder.embedding.weight
    small = 1e-5
    for place, token in enumerate(tokens.tolist()):
        scores = []
        for factor in (1 + small, 1 - small):
            kept = table.detach()[token].clone()
            with torch.no_grad():
                table[token] *= factor
                logits = model(tokens, WORDS, SENTENCES).logits
                table[token] = kept
            scores.append(logits.gather(1, labels.unsqueeze(1)).sum())
        slope = (scores[0] - scores[1]) / (2 * small)
        assert found[place].item() == pytest.approx(abs(slope.item()), abs=1e-8)


def test_a_word_that_occurs_twice_has_two_numbers():
    model, tokens = drawn()
    tokens[:] = 3
    found = word_gradients(model, tokens, WORDS, SENTENCES, torch.tensor([1, 1]))
    assert len(set(found.tolist())) > 2


def test_nothing_is_left_behind():
    model, tokens = drawn()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():  # as in evaluation
        found = word_gradients(model, tokens, WORDS, SENTENCES, torch.tensor([1, 1]))
    assert not found.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_no_document_is_no_number():
    model, _ = drawn()
    nothing = torch.zeros(0, dtype=torch.int64)
    assert word_gradients(model, nothing, nothing, nothing, nothing).shape == (0,)
