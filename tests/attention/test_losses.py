from __future__ import annotations

import itertools
import math

import pytest
import torch

from regard.attention import Sampled
from regard.attention.losses import (
    Reinforce,
    doubly_stochastic,
    entropy,
    guided_alignment,
    marginal_log_likelihood,
    reward_to_go,
)
from regard.errors import MaskError, MechanismError, ShapeError

SCORES = torch.tensor([0.2, -0.5, 1.0, 0.1], dtype=torch.float64)
REWARDS = torch.tensor([1.0, 3.0, -2.0, 0.5], dtype=torch.float64)


def exact_gradient():
    """The gradient of the expected reward, by enumeration."""
    scores = SCORES.clone().requires_grad_()
    (scores.softmax(-1) * REWARDS).sum().backward()
    return scores.grad


def estimates(reinforce, count, seed=0):
    """One estimate of the same gradient for each sample."""
    scores = SCORES.clone().requires_grad_()
    rows = scores.expand(1, count, 4)
    generator = torch.Generator().manual_seed(seed)
    weights, shares, log_prob = Sampled()(rows, None, generator=generator)
    reward = (weights * REWARDS).sum(-1)
    advantage = reinforce(log_prob, reward, distribution=shares).advantage[0]
    return advantage.unsqueeze(-1) * (weights[0] - shares[0].detach())


@pytest.mark.parametrize("baseline", ["none", "moving"])
def test_the_estimate_has_no_bias(baseline):
    reinforce = Reinforce(baseline)
    if baseline == "moving":
        estimates(reinforce, 1000, seed=5)  # the baseline comes from earlier samples
        assert reinforce.mean != 0
    found = estimates(reinforce, 20_000)
    error = found.std(0) / math.sqrt(20_000)
    assert ((found.mean(0) - exact_gradient()).abs() <= 3 * error).all()


def test_the_loss_is_the_estimate():
    reinforce = Reinforce("none")
    scores = SCORES.clone().requires_grad_()
    weights, _, log_prob = Sampled()(scores.expand(1, 500, 4), None)
    reward = (weights * REWARDS).sum(-1)
    reinforce(log_prob, reward).loss.backward()
    shares = SCORES.softmax(-1)
    expected = -(reward[0].unsqueeze(-1) * (weights[0] - shares)).sum(0)
    assert torch.allclose(scores.grad, expected)


def test_a_moving_baseline_is_the_mean_of_earlier_rewards():
    reinforce = Reinforce(decay=0.5)
    log_prob = torch.zeros(1, 2)
    seen = [
        reinforce(log_prob, torch.full((1, 2), reward)).baseline[0, 0].item()
        for reward in (4.0, 8.0, 0.0)
    ]
    # Nothing yet; then 4; then (0.5 * 4 + 1 * 8) / 1.5.
    assert seen == pytest.approx([0.0, 4.0, 20 / 3], abs=1e-5)
    other = Reinforce(decay=0.5)
    other.load_state_dict(reinforce.state_dict())
    assert other(log_prob, torch.ones(1, 2)).baseline[0, 0] == pytest.approx(20 / 7)


def test_in_evaluation_the_baseline_stays():
    reinforce = Reinforce().eval()
    reinforce(torch.zeros(1, 2), torch.ones(1, 2))
    assert reinforce.weight == 0


def test_a_learned_baseline_learns_what_to_expect_of_a_query():
    torch.manual_seed(3)
    reinforce = Reinforce("learned", query_dim=3)
    optimizer = torch.optim.Adam(reinforce.parameters(), 0.1)
    for _ in range(200):
        query = torch.randn(4, 2, 3, requires_grad=True)
        reward = query.detach() @ torch.tensor([1.0, -2.0, 0.5]) + 3.0
        found = reinforce(torch.zeros(4, 2), reward, query=query)
        optimizer.zero_grad()
        found.loss.backward()
        optimizer.step()
        assert query.grad is None  # the baseline must not teach the model
    assert torch.allclose(found.baseline, reward, atol=0.2)


def test_only_real_choices_count():
    reinforce, log_prob = Reinforce(decay=0.0), torch.zeros(2, 2, requires_grad=True)
    mask = torch.tensor([[True, False], [True, True]])
    reward = torch.tensor([[1.0, math.nan], [2.0, 3.0]])
    found = reinforce(log_prob, reward, mask=mask)
    found.loss.backward()
    assert log_prob.grad.tolist() == [[-1.0, 0.0], [-2.0, -3.0]]
    assert reinforce.mean.item() == pytest.approx(2.0)
    nothing = reinforce(log_prob, reward, mask=torch.zeros_like(mask))
    assert nothing.loss.item() == 0.0
    assert reinforce.mean.item() == pytest.approx(2.0)


@pytest.mark.parametrize("heads", [False, True])
def test_the_entropy_bonus_opens_the_choice(heads):
    scores = torch.tensor([[[0.0, 2.0]]], requires_grad=True)
    shares = scores.softmax(-1)
    shares = shares.unsqueeze(1).expand(1, 3, 1, 2) if heads else shares
    loss = Reinforce("none", entropy=0.5)(torch.zeros(1, 1), torch.ones(1, 1), distribution=shares)
    expected = -0.5 * (3 if heads else 1) * entropy(scores.softmax(-1)).item()
    assert loss.loss.item() == pytest.approx(expected)
    loss.loss.backward()
    assert scores.grad[0, 0, 0] < 0 < scores.grad[0, 0, 1]


def test_entropy_worked_by_hand():
    shares = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    found = entropy(shares)
    assert found.tolist() == pytest.approx([math.log(2.0), 0.0, 0.0])
    found.sum().backward()
    assert shares.grad.isfinite().all()


def test_the_reward_to_go_sums_what_follows():
    earned = torch.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    assert reward_to_go(earned).tolist() == [[7.0, 6.0, 4.0]]
    assert reward_to_go(earned, mask).tolist() == [[3.0, 2.0, 0.0]]
    assert not reward_to_go(earned).requires_grad


def test_doubly_stochastic_worked_by_hand():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])
    assert doubly_stochastic(weights).item() == 0.25 + 0.25 + 1.0
    mask = torch.tensor([[True, True, False]])
    assert doubly_stochastic(weights, mask=mask).item() == 0.5
    steps = torch.tensor([[True, False]])
    assert doubly_stochastic(weights, mask=mask, steps=steps).item() == 0.5
    assert doubly_stochastic(weights, target=1.5, steps=steps, mask=mask).item() == 2.0


@pytest.mark.usefixtures("without_shapes")
def test_guided_alignment_worked_by_hand():
    weights = torch.tensor([[[0.25, 0.75], [1.0, 0.0]]], requires_grad=True)
    alignment = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    loss = guided_alignment(weights, alignment)
    assert loss.item() == pytest.approx(-math.log(0.75))
    impossible = guided_alignment(weights, torch.tensor([[[0.0, 0.0], [0.0, 1.0]]]))
    assert math.isfinite(impossible.item())
    assert impossible.item() > 20
    with pytest.raises(ShapeError, match=r"shape of weights, \(1, 2, 2\); got \(1, 2, 3\)"):
        guided_alignment(weights, torch.zeros(1, 2, 3))


def test_marginalisation_is_enumeration():
    torch.manual_seed(4)
    shares, likelihoods = torch.randn(3, 5).softmax(-1), torch.randn(3, 5)
    found = marginal_log_likelihood(shares, likelihoods)
    for row in range(3):
        total = sum(
            s * math.exp(e)
            for s, e in zip(*(t[row].tolist() for t in (shares, likelihoods)), strict=True)
        )
        assert found[row].item() == pytest.approx(math.log(total), abs=1e-5)


def test_marginalisation_leaves_out_what_cannot_be_chosen():
    scores = torch.zeros(2, 3, requires_grad=True)
    shares = scores.softmax(-1) * torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    likelihoods = torch.tensor([[0.0, 0.0, math.nan], [0.0, 0.0, 0.0]])
    found = marginal_log_likelihood(shares, likelihoods)
    assert found[0].item() == pytest.approx(math.log(2 / 3))
    assert found[1].item() == -math.inf
    found[0].backward()
    assert scores.grad.isfinite().all()


def test_its_gradient_is_what_reinforce_estimates():
    likelihoods = torch.tensor([-1.0, -0.3, -2.0], dtype=torch.float64)
    scores = torch.tensor([0.1, -0.2, 0.4], dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad((scores.softmax(-1) * likelihoods).sum(), scores)
    shares = scores.softmax(-1)
    sampled = sum(
        (shares[j] * likelihoods[j]).detach()
        * torch.autograd.grad(shares[j].log(), scores, retain_graph=True)[0]
        for j in range(3)
    )
    assert torch.allclose(exact, sampled)


def test_half_precision_and_rewards_that_are_none():
    reinforce = Reinforce().half()
    found = reinforce(torch.tensor([[-0.7, -0.2]]), torch.tensor([[1.0, -1.0]]))
    assert found.loss.item() == pytest.approx(0.5)
    moving = Reinforce()
    moving(torch.zeros(1, 2), torch.tensor([[math.nan, 3.0]]))
    assert moving(torch.zeros(1, 2), torch.zeros(1, 2)).baseline[0, 0].item() == pytest.approx(3.0)


def test_nan_where_nothing_was_chosen_reaches_no_gradient():
    mask = torch.tensor([[True, False]])
    query, shares = torch.ones(1, 2, 3), torch.full((1, 2, 4), 0.25)
    query[0, 1] = shares[0, 1] = math.nan
    shares.requires_grad_()
    reinforce = Reinforce("learned", query_dim=3, entropy=0.1)
    found = reinforce(
        torch.zeros(1, 2), torch.ones(1, 2), distribution=shares, query=query, mask=mask
    )
    found.loss.backward()
    assert found.loss.isfinite()
    assert shares.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in reinforce.parameters())


def test_impossible_readings_have_finite_gradients():
    shares = torch.full((1, 2), 0.5, requires_grad=True)
    likelihoods = torch.full((1, 2), -math.inf)
    found = marginal_log_likelihood(shares, likelihoods)
    assert found.item() == -math.inf
    found.masked_fill(found.isinf(), 0.0).sum().backward()
    assert shares.grad.isfinite().all()


@pytest.mark.usefixtures("without_shapes")
def test_l3_masks_are_not_broadcast():
    weights = torch.rand(2, 3, 4, 5)  # batch, heads, steps, keys
    keys, steps = torch.rand(2, 5) > 0.3, torch.rand(2, 4) > 0.3
    spread = doubly_stochastic(
        weights,
        mask=keys.unsqueeze(1).expand(2, 3, 5),
        steps=steps.unsqueeze(1).expand(2, 3, 4),
    )
    assert torch.allclose(doubly_stochastic(weights, mask=keys, steps=steps), spread)
    for wrong in (keys[0], keys[:1], torch.ones(4, 5, dtype=torch.bool)):
        with pytest.raises(MaskError, match="mask must have shape"):
            doubly_stochastic(weights, mask=wrong)
    for wrong in (keys.float(), keys.long()):
        with pytest.raises(MaskError, match="mask must be bool"):
            doubly_stochastic(weights, mask=wrong)
    with pytest.raises(MaskError, match="mask must have shape"):
        reward_to_go(torch.ones(3, 3), torch.tensor([True, False, True]))
    log_prob = torch.zeros(2, 3)
    for shape in ((3,), (1, 3), (2, 1), (3, 2, 3)):
        with pytest.raises(MaskError, match="mask must have shape"):
            Reinforce()(log_prob, log_prob, mask=torch.ones(shape, dtype=torch.bool))
    for shape in ((2, 1, 5), (3, 5)):
        with pytest.raises(ShapeError, match="distribution must have shape"):
            Reinforce(entropy=0.1)(log_prob, log_prob, distribution=torch.ones(shape))
    with pytest.raises(ShapeError, match="query must have shape"):
        Reinforce("learned", query_dim=4)(log_prob, log_prob, query=torch.ones(2, 1, 4))
    with pytest.raises(MechanismError, match="target must be finite; got nan"):
        doubly_stochastic(weights, target=math.nan)


@pytest.mark.usefixtures("without_shapes")
def test_settings_are_checked():
    with pytest.raises(MechanismError, match="query_dim must be given for a learned baseline"):
        Reinforce("learned")
    with pytest.raises(MechanismError, match=r"query_dim must be given for a learned.*got 3"):
        Reinforce("moving", query_dim=3)
    for decay, bonus in itertools.product((-0.1, 1.0), (0.0,)):
        with pytest.raises(MechanismError, match=rf"decay must lie in \[0, 1\).*got {decay}"):
            Reinforce(decay=decay, entropy=bonus)
    for bonus in (-1.0, math.inf):
        with pytest.raises(MechanismError, match="entropy be at least 0"):
            Reinforce(entropy=bonus)
    with pytest.raises(MechanismError, match="query_dim must be at least 1; got 0"):
        Reinforce("learned", query_dim=0)
    with pytest.raises(ShapeError, match=r"reward must have the shape of log_prob, \(2, 3\)"):
        Reinforce()(torch.zeros(2, 3), torch.zeros(2, 1))
    with pytest.raises(MechanismError, match="distribution must be given for an entropy bonus"):
        Reinforce(entropy=0.1)(torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(MechanismError, match="query must be given for a learned baseline"):
        Reinforce("learned", query_dim=2)(torch.zeros(2, 3), torch.zeros(2, 3))


@pytest.mark.usefixtures("without_shapes")
def test_mistyped_baselines_are_named():
    with pytest.raises(MechanismError, match="did you mean 'moving'"):
        Reinforce("moveing")
