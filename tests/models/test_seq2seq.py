from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn

from regard.errors import MechanismError
from regard.models.encoders import RecurrentEncoder
from regard.models.seq2seq import Seq2Seq, token_loss

GRU = ({"kind": "gru", "hidden_dim": 3}, {"kind": "gru", "hidden_dim": 4, "attention_dim": 3})


@pytest.mark.parametrize("tied", [True, False])
def test_a_state_dict_goes_out_and_back(tied: bool, build: Any, tokens: Any) -> None:
    model, other = build(*GRU, tied=tied).eval(), build(*GRU, tied=tied).eval()
    source, target = tokens(4, 2), tokens(3, 3, size=9)
    stream = io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    assert not torch.equal(
        model(source, source != 0, target).features, other(source, source != 0, target).features
    )
    other.load_state_dict(torch.load(stream, weights_only=True))
    ours, theirs = (m(source, source != 0, target) for m in (model, other))
    assert torch.equal(model.logits(ours.features), other.logits(theirs.features))


def test_tied_means_one_matrix(build: Any) -> None:
    tied, free = build(*GRU, tied=True), build(*GRU, tied=False)
    features = torch.randn(2, 5)
    expected = features @ tied.decoder.embedding.weight.T + tied.bias
    torch.testing.assert_close(tied.logits(features), expected)
    assert free.output.weight is not free.decoder.embedding.weight
    assert len(list(free.parameters())) == len(list(tied.parameters())) + 1


def test_tied_needs_features_of_the_size_of_the_embedding(build: Any) -> None:
    model = build(*GRU)
    model.decoder.out_dim = 6
    encoder = RecurrentEncoder(nn.Embedding(4, 2), 2)
    with pytest.raises(MechanismError, match=r"got 6 and 5\. Use tied=False\."):
        Seq2Seq(encoder, model.decoder)


def test_a_step_gives_log_probabilities_in_float32(build: Any, tokens: Any) -> None:
    model = build(*GRU).eval().bfloat16()
    source = tokens(4, 2)
    step = model.step(torch.full((2, 1), 1), model.begin(source, source != 0))
    assert step.log_probs.dtype == torch.float32
    torch.testing.assert_close(step.log_probs.exp().sum(-1), torch.ones(2, 1))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_by_hand(smoothing: float, build: Any) -> None:
    model = build(*GRU)
    features, targets = torch.randn(2, 3, 5), torch.tensor([[4, 2, 0], [5, 0, 0]])
    logs = model.logits(features).log_softmax(-1)
    expected = 0.0
    for row, place in ((0, 0), (0, 1), (1, 0)):
        own = logs[row, place]
        expected -= (1 - smoothing) * own[targets[row, place]] + smoothing * own.mean()
    loss = token_loss(model, features, targets, padding=0, smoothing=smoothing)
    torch.testing.assert_close(loss, expected)


def test_the_loss_of_padding_alone_is_zero(build: Any) -> None:
    """Row T2: cross-entropy by itself would be NaN."""
    model = build(*GRU)
    features = torch.randn(2, 3, 5, requires_grad=True)
    loss = token_loss(model, features, torch.zeros(2, 3, dtype=torch.long), padding=0)
    assert loss.item() == 0.0
    loss.backward()
    assert features.grad is not None
    assert not features.grad.any()


def test_more_padding_changes_neither_loss_nor_gradient(build: Any, tokens: Any) -> None:
    model = build(*GRU)
    source, target = tokens(4, 2), tokens(3, 1, size=9)
    grads = []
    for wide in (0, 3):
        model.zero_grad()
        read = nn.functional.pad(source, (0, wide))
        wanted = nn.functional.pad(target, (0, wide))
        features = model(read, read != 0, wanted).features
        token_loss(model, features, wanted, padding=0).backward()
        grads.append([parameter.grad.clone() for parameter in model.parameters()])
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-4)
