"""Losses that go with attention: what trains a choice, and what guides weights.

Sums, not means: divide by the number of rows or steps as the rest of the loss is.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.functional import widened
from regard.attention.scores.sizes import check_positive
from regard.errors import MaskError, MechanismError, ShapeError, did_you_mean

_SMALLEST = 1e-12  # a share this small counts as one that is none


class Reinforced(NamedTuple):
    """What REINFORCE makes of a batch of choices.

    Args:
        loss: What to minimise; its gradient is the estimate.
        advantage: By how much the reward exceeded the baseline, zero where nothing was chosen.
        baseline: What was expected.
    """

    loss: Float[Tensor, ""]
    advantage: Float[Tensor, "batch steps"]
    baseline: Float[Tensor, "batch steps"]


class Reinforce(nn.Module):
    """Train sampled choices by what came of them.

    `L = - Σ (R_t - b_t) · log π_t - λ Σ H_t`, whose gradient estimates that of the expected reward:
    `π_t` is the probability of the choice (`Attended.log_prob`), `R_t` the reward that followed
    it, `b_t` a baseline that does not depend on the choice and so lowers the variance without a
    bias, and `H_t` the entropy of what was chosen from, which keeps the choice open at first.

    Moving, the baseline is the mean of earlier rewards, newer ones weighing more; it is saved
    with the model. Learned, it is a linear function of what was known before the choice, trained
    by its squared error, which is part of the loss.

    Args:
        baseline: "moving", "learned" or "none".
        query_dim: Size of what a learned baseline looks at.
        decay: How much a moving baseline keeps at each update.
        entropy: `λ`.

    Raises:
        MechanismError: The name is unknown, or a number is out of range.

    Example:
        >>> reinforce = Reinforce()
        >>> log_prob = torch.tensor([[-0.7, -0.2]], requires_grad=True)
        >>> reinforce(log_prob, torch.tensor([[1.0, -1.0]])).loss.backward()
        >>> log_prob.grad.tolist()
        [[-1.0, 1.0]]

    References:
        Williams, Simple statistical gradient-following algorithms for connectionist reinforcement
        learning, 1992; Xu et al., Show, attend and tell, 2015 (moving baseline, entropy).
    """

    BASELINES = ("moving", "learned", "none")
    mean: Tensor
    weight: Tensor

    def __init__(
        self,
        baseline: Literal["moving", "learned", "none"] = "moving",
        *,
        query_dim: int | None = None,
        decay: float = 0.9,
        entropy: float = 0.0,
    ) -> None:
        super().__init__()
        if baseline not in self.BASELINES:
            known = did_you_mean(baseline, self.BASELINES)
            raise MechanismError(f"baseline must be known; got {baseline!r}: {known}")
        if (baseline == "learned") != (query_dim is not None):
            raise MechanismError(
                f"query_dim must be given for a learned baseline, and for no other; got "
                f"{query_dim} and {baseline!r}."
            )
        check_positive(query_dim=query_dim)
        if not (0.0 <= decay < 1.0 and 0.0 <= entropy < math.inf):
            raise MechanismError(
                f"decay must lie in [0, 1) and entropy be at least 0; got {decay} and {entropy}. "
                "0.9 and 0.01 are usual."
            )
        self.baseline, self.decay, self.entropy = baseline, decay, entropy
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))
        self.expected = None if query_dim is None else nn.Linear(query_dim, 1)

    def forward(
        self,
        log_prob: Float[Tensor, "batch steps"],
        reward: Float[Tensor, "batch steps"],
        *,
        distribution: Float[Tensor, "*lead keys"] | None = None,
        query: Float[Tensor, "batch steps query_dim"] | None = None,
        mask: Bool[Tensor, "batch steps"] | None = None,
    ) -> Reinforced:
        """Compute the loss, and in training move a moving baseline.

        Args:
            log_prob: Logarithm of the probability of each choice.
            reward: What came of each choice; no gradient flows into it.
            distribution: What was chosen from, for the entropy bonus.
            query: What was known before each choice, for a learned baseline.
            mask: True where a choice was made; all by default.

        Returns:
            The loss, summed over choices, and what it is made of.

        Raises:
            ShapeError: The shapes differ.
            MaskError: The mask has the wrong type or shape.
            MechanismError: The distribution or the query is missing.
        """
        if log_prob.shape != reward.shape:
            raise ShapeError(
                f"reward must have the shape of log_prob, {tuple(log_prob.shape)}; got "
                f"{tuple(reward.shape)}. Expand the reward of a whole row over its steps."
            )
        self._check(log_prob, distribution, query)
        real = torch.ones_like(reward, dtype=torch.bool)
        real = real if mask is None else checked_mask("mask", mask, tuple(reward.shape))
        reward = reward.detach().masked_fill(~real, 0.0)
        baseline, fit = self._expected(reward, query, real)
        advantage = (reward - baseline.detach()).masked_fill(~real, 0.0)
        loss = fit - (advantage * log_prob.masked_fill(~real, 0.0)).sum()
        if self.entropy > 0.0:
            loss = loss - self.entropy * self._entropy(distribution, real)
        if self.training and self.baseline == "moving":
            self._move(reward[real])
        return Reinforced(loss, advantage, baseline.detach())

    def _expected(
        self, reward: Tensor, query: Tensor | None, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the baseline of each choice, and the squared error of a learned one."""
        nothing = reward.new_zeros(())
        if self.expected is None:
            # Over the weight of all rewards so far, so that the first zero does not count.
            mean = self.mean.float() / self.weight.float().clamp(min=_SMALLEST)
            return mean.to(reward.dtype).expand_as(reward), nothing
        if query is None:
            raise MechanismError(
                "query must be given for a learned baseline; got None. It looks at what was known."
            )
        seen = query.detach().masked_fill(~real.unsqueeze(-1), 0.0)
        found = self.expected(seen).squeeze(-1)
        return found, (found - reward).masked_fill(~real, 0.0).square().sum()

    def _entropy(self, distribution: Tensor | None, real: Tensor) -> Tensor:
        if distribution is None:
            raise MechanismError(
                "distribution must be given for an entropy bonus; got None. Attended holds it."
            )
        made = real if distribution.dim() == 3 else real.unsqueeze(1)  # (batch, heads or 1, steps)
        shares = distribution.masked_fill(~made.unsqueeze(-1), 0.0)
        return entropy(shares).sum()

    def _check(self, log_prob: Tensor, distribution: Tensor | None, query: Tensor | None) -> None:
        batch, steps = log_prob.shape
        if distribution is not None and (
            distribution.dim() not in (3, 4)
            or (distribution.shape[0], distribution.shape[-2]) != (batch, steps)
        ):
            raise ShapeError(
                f"distribution must have shape (batch={batch}, steps={steps}, keys), heads second; "
                f"got {tuple(distribution.shape)}. Attended holds it."
            )
        if query is not None and tuple(query.shape[:-1]) != (batch, steps):
            raise ShapeError(
                f"query must have shape (batch={batch}, steps={steps}, query_dim); got "
                f"{tuple(query.shape)}."
            )

    @torch.no_grad()
    def _move(self, rewards: Tensor) -> None:
        rewards = rewards[rewards.isfinite()]  # one that is not would stay for ever
        if rewards.numel():
            share = 1.0 - self.decay
            self.mean.mul_(self.decay).add_(share * rewards.mean().to(self.mean.dtype))
            self.weight.mul_(self.decay).add_(share)


def checked_mask(
    name: str, mask: Tensor, shape: tuple[int, ...], *, heads: bool = False
) -> Bool[Tensor, "..."]:
    """Return a mask that has a shape, or that shape without heads; nothing else is broadcast.

    Args:
        name: What the mask is called.
        mask: The mask.
        shape: The shape that it should have.
        heads: Whether the second axis is that of heads, which a mask may leave out.

    Returns:
        The mask, with an axis of 1 for heads where it had none.

    Raises:
        MaskError: The type or the shape is another.
    """
    if mask.dtype != torch.bool:
        raise MaskError(f"{name} must be bool; got {mask.dtype}. True = counts: use {name} != 0.")
    if heads and tuple(mask.shape) == (shape[0], *shape[2:]):
        return mask.unsqueeze(1)
    if tuple(mask.shape) != shape:
        raise MaskError(
            f"{name} must have shape {shape}; got {tuple(mask.shape)}. Nothing is broadcast."
        )
    return mask


def entropy(distribution: Float[Tensor, "*lead keys"]) -> Float[Tensor, "*lead"]:
    """Measure how open a distribution is: `H = - Σ s_j log s_j`, in nats; 0 log 0 is 0.

    Args:
        distribution: Weights.

    Returns:
        One number for each row, with finite gradients also at zeros.
    """
    shares = widened(distribution)
    return -(shares * shares.clamp(min=_SMALLEST).log()).sum(dim=-1)


def reward_to_go(
    log_likelihood: Float[Tensor, "batch steps"], mask: Bool[Tensor, "batch steps"] | None = None
) -> Float[Tensor, "batch steps"]:
    """Sum what follows each step, itself included: `R_t = Σ_{u ≥ t} log p_u`.

    Args:
        log_likelihood: What each step earned.
        mask: True where a step is real; all by default.

    Returns:
        The reward of each step, without a gradient.
    """
    earned = log_likelihood.detach()
    if mask is not None:
        earned = earned.masked_fill(~checked_mask("mask", mask, tuple(earned.shape)), 0.0)
    return earned.flip(1).cumsum(dim=1).flip(1)


def doubly_stochastic(
    weights: Float[Tensor, "*lead steps keys"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
    steps: Bool[Tensor, "..."] | None = None,
    target: float = 1.0,
) -> Float[Tensor, ""]:
    """Ask that every item be looked at in the end: `Σ_j (τ - Σ_t s_tj)²`.

    Args:
        weights: The weights.
        mask: True where an item is real; padding is not asked for. Without heads it serves all.
        steps: True where a step is real; others do not count. Without heads it serves all.
        target: `τ`, how much weight each item should get over all steps.

    Returns:
        The sum over items and rows.

    Raises:
        MaskError: A mask has the wrong type or shape.
        MechanismError: The target is not finite.

    References:
        Xu et al. 2015.
    """
    weights = widened(weights)
    if not math.isfinite(target):
        raise MechanismError(f"target must be finite; got {target}. 1.0 is usual.")
    if steps is not None:
        read = checked_mask("steps", steps, tuple(weights.shape[:-1]), heads=weights.dim() == 4)
        weights = weights.masked_fill(~read.unsqueeze(-1), 0.0)
    missing = (target - weights.sum(dim=-2)).square()  # (batch, heads, keys)
    if mask is not None:
        real = checked_mask("mask", mask, tuple(missing.shape), heads=weights.dim() == 4)
        missing = missing.masked_fill(~real, 0.0)
    return missing.sum()


def guided_alignment(
    weights: Float[Tensor, "*lead steps keys"], alignment: Float[Tensor, "*lead steps keys"]
) -> Float[Tensor, ""]:
    """Teach weights an alignment that is known: `- Σ_t Σ_j A_tj log s_tj`.

    Args:
        weights: The weights.
        alignment: How much of each step's weight should lie on each item; a step of zeros is not
            guided.

    Returns:
        The sum over steps and rows; a weight of zero where there should be some costs much, but
        not infinitely much.

    Raises:
        ShapeError: The shapes differ.

    References:
        Chen et al., Guided alignment training for topic-aware neural machine translation, 2016.
    """
    if weights.shape != alignment.shape:
        raise ShapeError(
            f"alignment must have the shape of weights, {tuple(weights.shape)}; got "
            f"{tuple(alignment.shape)}."
        )
    return -(alignment * widened(weights).clamp(min=_SMALLEST).log()).sum()


def marginal_log_likelihood(
    distribution: Float[Tensor, "*lead keys"], log_likelihood: Float[Tensor, "*lead keys"]
) -> Float[Tensor, "*lead"]:
    """Sum over all choices instead of drawing one: `log Σ_j s_j · p(y | z = v_j)`.

    Exact, where REINFORCE with the reward `log p` climbs a lower bound of it,
    `Σ_j s_j log p(y | z = v_j)`; for a readout that is a function of one chosen item, which then
    has to be computed for every item.

    Args:
        distribution: The probability `s_j` of choosing each item.
        log_likelihood: `log p(y | z = v_j)`, of any value where `s_j` is 0.

    Returns:
        One number for each row; -inf where nothing could be chosen.

    References:
        Deng et al., Latent alignment and variational attention, 2018.
    """
    shares = widened(distribution)
    none = (shares <= 0.0) | (log_likelihood == -torch.inf)
    joint = shares.masked_fill(none, 1.0).log() + log_likelihood.masked_fill(none, 0.0)
    summed = joint.masked_fill(none, -torch.inf).masked_fill(none.all(-1, keepdim=True), 0.0)
    return summed.logsumexp(dim=-1).masked_fill(none.all(dim=-1), -torch.inf)
