from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention.losses import Reinforce
from regard.attention.selections import Sampled
from regard.errors import MechanismError
from regard.models.choices import annealed, choice_loss, marginal_loss, set_share
from regard.models.seq2seq import Seq2Seq, token_loss

ENCODER = {"kind": "gru", "hidden_dim": 6}
DECODER = {"kind": "gru", "hidden_dim": 7, "attention_dim": 4, "selection": "sampled"}
INPUTS = torch.tensor([[1, 4, 5], [1, 6, 0]])
OUTPUTS = torch.tensor([[4, 5, 2], [6, 2, 0]])
REAL = OUTPUTS != 0


def drawing(build: Any, **changes: Any) -> Seq2Seq:
    model: Seq2Seq = build(ENCODER, {**DECODER, **changes}, reinforce={"entropy": 0.0})
    return model


def log_likelihood(model: Seq2Seq, features: Tensor) -> Tensor:
    log_probs = model.logits(features).log_softmax(-1)
    return log_probs.gather(-1, OUTPUTS.unsqueeze(-1)).squeeze(-1)


def enumerated(model: Seq2Seq, source: Tensor) -> tuple[Tensor, Tensor]:
    """Every place's probability, and the log-likelihood of every token when it is read."""
    outputs, look, values = model.decoder.read(INPUTS, model.encoder(source, source != 0))
    each = [
        log_likelihood(model, model.decoder.features(outputs, values[:, j]))
        for j in range(values.shape[1])
    ]
    return look.distribution[:, 0], torch.stack(each, dim=-1)


@pytest.mark.parametrize(
    ("changes", "apart"),
    [
        ({"order": "luong"}, True),
        ({"order": "bahdanau"}, False),
        ({"order": "input_feeding"}, False),
        ({"order": "luong", "num_heads": 7}, True),
    ],
)
def test_a_choice_is_rewarded_by_what_depends_on_it(changes, apart, build, tokens):
    model, source = drawing(build, **changes), tokens(4, 2)
    model.reinforce = Reinforce("none")
    decoded = model(source, source != 0, INPUTS)
    earned = log_likelihood(model, decoded.features).detach() * REAL
    expected = torch.zeros(())
    for row, count in ((0, 3), (1, 2)):
        for step in range(count):
            later = earned[row, step:count]
            reward = later[0] if apart else later.mean()
            expected = expected - reward * decoded.log_prob[row, step].detach()
    found = choice_loss(model, decoded, OUTPUTS, padding=0)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_the_whole_gradient_is_that_of_the_expected_likelihood(build, tokens):
    model, source = drawing(build, order="luong").double(), tokens(4, 3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    query = model.decoder.reader.attention.score.query_projection.weight
    shares, likelihoods = enumerated(model, source)
    (exact,) = torch.autograd.grad((-(shares * likelihoods).sum(-1) * REAL).sum(), query)
    generator = torch.Generator().manual_seed(3)
    rows, found = 500, []
    many = [t.repeat_interleave(rows, dim=0) for t in (source, INPUTS, OUTPUTS)]
    for _ in range(12):
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        decoded = model(many[0], many[0] != 0, many[1])
        loss = token_loss(model, decoded.features, many[2], padding=0)
        loss = loss + choice_loss(model, decoded, many[2], padding=0)
        found.append(torch.autograd.grad(loss / rows, query)[0])
    estimates = torch.stack(found)
    error = estimates.std(0) / len(found) ** 0.5
    assert ((estimates.mean(0) - exact).abs() <= 5 * error + 1e-6).all()
    assert exact.abs().max() > 10 * error.max()  # it is no zero that is met here


def test_the_exact_loss_is_enumeration(build, tokens):
    model, source = drawing(build, order="luong"), tokens(4, 2)
    shares, likelihoods = enumerated(model, source)
    expected = -((shares * likelihoods.exp()).sum(-1).log() * REAL).sum()
    found = marginal_loss(model, source, source != 0, INPUTS, OUTPUTS, padding=0)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    found.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("order", ["luong", "bahdanau", "input_feeding"])
def test_a_learned_baseline_looks_at_what_was_known_before(order, build, tokens):
    reinforce = {"entropy": 0.0, "baseline": "learned"}
    model: Seq2Seq = build(ENCODER, {**DECODER, "order": order}, reinforce=reinforce)
    source = tokens(4, 2)
    torch.manual_seed(1)
    once = model(source, source != 0, INPUTS)
    torch.manual_seed(2)
    again = model(source, source != 0, INPUTS)
    assert not torch.equal(once.weights, again.weights)
    assert torch.equal(once.query[:, 0], again.query[:, 0])  # nothing had been drawn before
    assert torch.equal(once.query, again.query) == (order == "luong")
    choice_loss(model, once, OUTPUTS, padding=0).backward()
    assert model.reinforce.expected.weight.grad.abs().max() > 0


def test_decoders_of_many_looks_have_no_learned_baseline(build):
    decoder = {"kind": "transformer", "layers": 1, "num_heads": 1, "hidden_dim": 8}
    with pytest.raises(MechanismError, match="baseline must be 'moving' or 'none'"):
        build(ENCODER, {**decoder, "selection": "sampled"}, reinforce={"baseline": "learned"})


@pytest.mark.parametrize("heads", [1, 7])
def test_what_was_drawn_in_training_can_be_read_softly(heads, build, tokens):
    soft = {"entropy": 0.0, "evaluation": "expectation"}
    model: Seq2Seq = build(ENCODER, {**DECODER, "num_heads": heads}, reinforce=soft).eval()
    source = tokens(4, 2)
    decoded = model(source, source != 0, INPUTS)
    assert torch.equal(decoded.weights, decoded.distribution)
    assert (decoded.weights < 1).any()
    hard = drawing(build, num_heads=heads).eval()
    decoded = hard(source, source != 0, INPUTS)
    assert set(decoded.weights.unique().tolist()) <= {0.0, 1.0}


def test_the_share_that_draws_is_set_before_each_batch(build):
    model = drawing(build, num_heads=7)
    closed = []

    def batches():
        try:
            yield from "abc"
        finally:
            closed.append(True)

    found = []
    for batch in annealed(model, batches(), lambda number: number / 4):
        shares = {part.share for part in model.modules() if isinstance(part, Sampled)}
        found.append((batch, shares))
    assert found == [("a", {0.0}), ("b", {0.25}), ("c", {0.5})]
    handed = annealed(model, batches(), lambda number: 1.0)
    next(handed)
    handed.close()
    assert closed == [True, True]
    with pytest.raises(MechanismError, match="share must lie in"):
        set_share(model, 1.5)


def test_with_one_item_there_is_nothing_to_choose(build, tokens):
    model, source = drawing(build, order="luong"), tokens(1, 1)
    exact = marginal_loss(model, source, source != 0, INPUTS, OUTPUTS, padding=0)
    features = model(source, source != 0, INPUTS).features
    torch.testing.assert_close(exact, token_loss(model, features, OUTPUTS, padding=0))


def test_padding_and_empty_sources_do_not_count(build, tokens):
    model, source = drawing(build, order="luong"), tokens(3, 0)
    found = marginal_loss(model, source, source != 0, INPUTS, OUTPUTS, padding=0)
    alone = marginal_loss(model, source[:1], source[:1] != 0, INPUTS[:1], OUTPUTS[:1], padding=0)
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)
    assert found.isfinite()


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ({**DECODER, "order": "bahdanau"}, "RecurrentDecoder"),
        ({**DECODER, "num_heads": 7}, "RecurrentDecoder"),
        ({**DECODER, "attention": "coverage"}, "RecurrentDecoder"),
        ({"kind": "gru", "hidden_dim": 7, "attention": "none"}, "RecurrentDecoder"),
        ({"kind": "transformer", "num_heads": 1, "layers": 1, "hidden_dim": 4}, "Transformer"),
    ],
)
def test_other_decoders_have_no_exact_loss(decoder, said, build, tokens):
    model, source = build(ENCODER, decoder), tokens(3, 2)
    with pytest.raises(MechanismError, match=f"one context for its exact loss; got {said}"):
        marginal_loss(model, source, source != 0, INPUTS, OUTPUTS, padding=0)


def test_reading_at_once_needs_steps_that_are_apart(build, tokens):
    source = tokens(3, 2)
    for changes in ({"order": "bahdanau"}, {"attention": "none"}):
        model = build(ENCODER, {"kind": "gru", "hidden_dim": 7, **changes})
        with pytest.raises(MechanismError, match="order must be 'luong', with an attention"):
            model.decoder.read(INPUTS, model.encoder(source, source != 0))


def test_what_draws_nothing_has_no_choices(build, tokens):
    model, source = build(ENCODER, {**DECODER, "selection": "softmax"}), tokens(3, 2)
    assert model.reinforce is None
    decoded = model(source, source != 0, INPUTS)
    assert choice_loss(model, decoded, OUTPUTS, padding=0).item() == 0.0
    drawn = drawing(build)
    decoded = drawn.eval()(source, source != 0, INPUTS)
    assert choice_loss(drawn, decoded, OUTPUTS, padding=0).item() == 0.0


def test_the_baseline_is_saved_with_the_model(build, tokens):
    model, source = drawing(build), tokens(3, 2)
    decoded = model(source, source != 0, INPUTS)
    choice_loss(model, decoded, OUTPUTS, padding=0)
    names = {name for name in model.state_dict() if name.startswith("reinforce.")}
    assert names == {"reinforce.mean", "reinforce.weight"}
    assert model.reinforce.mean != 0
    assert isinstance(model, nn.Module)
