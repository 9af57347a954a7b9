from __future__ import annotations

import math

import pytest
import torch

from regard.attention import Attention, GumbelSoftmax, Hardmax, MultiHead, Sampled
from regard.errors import MechanismError

SCORES = torch.tensor([[[0.0, math.log(3.0), math.log(6.0), 9.0]]])
MASK = torch.tensor([[[True, True, True, False]]])
SHARES = [0.1, 0.3, 0.6, 0.0]


def drawn(selection, count=20_000, seed=1):
    scores, mask = SCORES.expand(1, count, 4), MASK.expand(1, count, 4)
    return selection(scores, mask, generator=torch.Generator().manual_seed(seed))


def test_the_hardmax_takes_the_first_best_allowed_key():
    assert Hardmax()(SCORES, None).weights[0, 0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert Hardmax()(SCORES, MASK).weights[0, 0].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert Hardmax()(torch.zeros(1, 1, 3), None).weights[0, 0].tolist() == [1.0, 0.0, 0.0]
    nothing = torch.zeros_like(MASK)
    assert Hardmax()(SCORES, nothing).weights[0, 0].tolist() == [0.0] * 4


def test_a_key_is_sampled_with_its_probability():
    selection = Sampled()
    weights, shares, log_prob = drawn(selection)
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    assert shares[0, 0].tolist() == pytest.approx(SHARES)
    frequency = weights[0].mean(0)
    for got, share in zip(frequency.tolist(), SHARES, strict=True):
        assert abs(got - share) <= 4 * math.sqrt(share * (1 - share) / 20_000)
    for key, share in enumerate(SHARES[:3]):
        of_key = log_prob[0][weights[0, :, key] == 1]
        assert torch.allclose(of_key, torch.tensor(math.log(share)))


def test_temperature_shapes_the_distribution():
    shares = Sampled(0.5)(SCORES, MASK).distribution[0, 0]
    assert shares.tolist() == pytest.approx([1 / 46, 9 / 46, 36 / 46, 0.0])


def test_log_prob_carries_the_gradient_and_the_weights_none():
    scores = SCORES.clone().requires_grad_()
    weights, shares, log_prob = Sampled()(scores, MASK)
    assert not weights.requires_grad
    (gradient,) = torch.autograd.grad(log_prob.sum(), scores)
    assert torch.allclose(gradient, weights - shares.detach(), atol=1e-6)


def test_a_share_of_the_queries_draws_and_the_others_read_what_is_expected():
    scores = SCORES.clone().requires_grad_()
    many = scores.expand(1, 20_000, 4)
    weights, shares, log_prob = Sampled(share=0.25)(many, MASK)
    one = (weights == 1).any(-1)
    assert abs(one.float().mean().item() - 0.25) <= 4 * math.sqrt(0.25 * 0.75 / 20_000)
    assert torch.equal(weights[~one], shares[~one])
    assert (log_prob[~one] == 0).all()
    assert (log_prob[one] < 0).all()
    (gradient,) = torch.autograd.grad(weights[..., 0].sum(), scores)
    assert gradient.abs().max() > 0
    none = Sampled(share=0.0)(scores, MASK)
    assert torch.equal(none.weights, none.distribution)
    with pytest.raises(MechanismError, match="share must lie in"):
        Sampled(share=1.5)


def test_rows_with_nothing_to_draw_give_zeros():
    scores = SCORES.clone().requires_grad_()
    weights, shares, log_prob = Sampled()(scores, torch.zeros_like(MASK))
    assert (weights == 0).all()
    assert (shares == 0).all()
    assert log_prob.item() == 0.0
    log_prob.sum().backward()
    assert (scores.grad == 0).all()
    empty = Sampled()(torch.zeros(2, 3, 0), None)
    assert empty.weights.shape == (2, 3, 0)
    assert empty.log_prob.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("part", [Sampled, GumbelSoftmax])
def test_in_evaluation_nothing_is_drawn(part):
    choice = part().eval()(SCORES, MASK)
    assert choice.weights[0, 0].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert choice.distribution[0, 0].tolist() == pytest.approx(SHARES)
    assert choice.log_prob is None
    expectation = part(evaluation="expectation").eval()(SCORES, MASK)
    assert expectation.weights[0, 0].tolist() == pytest.approx(SHARES)


def test_the_largest_gumbel_weight_falls_on_a_key_with_its_probability():
    weights, shares, log_prob = drawn(GumbelSoftmax(0.5))
    assert log_prob is None
    assert shares[0, 0].tolist() == pytest.approx(SHARES)
    assert torch.allclose(weights.sum(-1), torch.ones(1, 20_000))
    for key, share in enumerate(SHARES):
        frequency = (weights[0].argmax(-1) == key).float().mean().item()
        assert abs(frequency - share) <= 4 * math.sqrt(share * (1 - share) / 20_000)


def test_gumbel_weights_are_those_of_plain_loops():
    drawn_at_random = torch.empty_like(SCORES).exponential_(
        generator=torch.Generator().manual_seed(9)
    )
    found = GumbelSoftmax(0.7)(SCORES, MASK, generator=torch.Generator().manual_seed(9)).weights
    powers = []
    for score, number, allowed in zip(
        SCORES[0, 0].tolist(), drawn_at_random[0, 0].tolist(), MASK[0, 0].tolist(), strict=True
    ):
        gumbel = -math.log(number)  # the logarithm of an exponential is one, turned round
        powers.append(math.exp((score + gumbel) / 0.7) if allowed else 0.0)
    expected = [power / sum(powers) for power in powers]
    assert found[0, 0].tolist() == pytest.approx(expected, abs=1e-6)


def test_low_temperatures_bring_the_weights_near_one_key():
    def largest(t):
        return drawn(GumbelSoftmax(t), 500).weights.max(-1).values.mean()

    assert largest(0.05) > 0.97 > largest(1.0) > largest(10.0)


def test_straight_through_is_one_key_with_the_soft_gradient():
    results = {}
    for hard in (False, True):
        scores = SCORES.clone().requires_grad_()
        generator = torch.Generator().manual_seed(3)
        weights = GumbelSoftmax(0.7, straight_through=hard)(
            scores, MASK, generator=generator
        ).weights
        (gradient,) = torch.autograd.grad((weights * torch.arange(4.0)).sum(), scores)
        results[hard] = (weights.detach(), gradient)
    soft, hard = results[False], results[True]
    assert torch.equal(hard[1], soft[1])
    assert hard[0][0, 0].tolist() == Hardmax()(soft[0], None).weights[0, 0].tolist()


def test_log_prob_is_summed_over_heads():
    attention = MultiHead(2, 8, selection="sampled").train()
    items = torch.randn(3, 5, 8)
    attended = attention(items, items)
    assert attended.log_prob.shape == (3, 5)
    chosen = (attended.weights * attended.distribution).sum(-1).log().sum(1)
    assert torch.allclose(attended.log_prob, chosen, atol=1e-5)
    single = Attention("dot", "sampled").train()
    assert single(items[:, 0], items).log_prob.shape == (3,)


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize("part", [Sampled, GumbelSoftmax])
def test_settings_are_checked(part):
    with pytest.raises(MechanismError, match="temperature must be positive and finite; got 0"):
        part(0)
    with pytest.raises(
        MechanismError, match="evaluation must be 'argmax' or 'expectation'; got 's'"
    ):
        part(evaluation="s")
    with pytest.raises(MechanismError, match=f"got Uniform and {part.__name__}"):
        Attention("uniform", part())
    Attention("uniform", part(evaluation="expectation"))
