"""Selections that choose one key, and how they are trained."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention import functional
from regard.attention.parts import Selected, Selection, State, Traits
from regard.attention.selections.soft import check_temperature
from regard.errors import MechanismError

Evaluation = Literal["argmax", "expectation"]


def check_evaluation(evaluation: str, known: tuple[str, str]) -> None:
    """Raise unless the name of what is done in evaluation is known."""
    if evaluation not in known:
        raise MechanismError(
            f"evaluation must be {known[0]!r} or {known[1]!r}; got {evaluation!r}. The first "
            "chooses one key."
        )


def exponential(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw from the exponential distribution, one number for each score."""
    return torch.empty_like(like).exponential_(generator=generator)


class Hardmax(Selection):
    """All the weight to the best key: `s_ij = 1` where `j = argmax_k e_ik`, else 0.

    Nothing is drawn and no gradient reaches the scores, in training neither: it reads out what a
    score says that was learned otherwise. To train a choice use Sampled or GumbelSoftmax.
    """

    traits = Traits(differentiable=False, hard_evaluation=True)
    needs_preference = True

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
        generator: torch.Generator | None = None,
    ) -> Selected:
        """Turn scores into weights that are zero wherever the mask is False."""
        weights = functional.chosen(functional.widened(scores.detach()), mask)
        return Selected(weights, weights, None)


class Sampled(Selection):
    """All the weight to one key drawn at random: key `j` with probability `s_ij = softmax(e_i)_j`.

    Hard attention. No gradient passes through the weights; the scores learn by a Monte Carlo
    estimate from `log_prob`, the logarithm of the probability of what was drawn: see
    `regard.losses.Reinforce`. `distribution` is what was drawn from. In evaluation nothing is
    drawn: the likeliest key is taken, or all of them by their probabilities.

    Args:
        temperature: The temperature of the distribution.
        evaluation: "argmax" or "expectation".
        share: The probability that a query draws in training; the others read all keys by their
            probabilities, with a gradient and a `log_prob` of 0, as half of them do in Xu et al.
            It may be changed while training goes on, so that a choice that was learned softly
            becomes a hard one.

    Raises:
        MechanismError: The temperature is not positive and finite, the name is unknown, or the
            share does not lie in [0, 1].

    References:
        Xu et al., Show, attend and tell, 2015 (stochastic "hard" attention); Mnih et al.,
        Recurrent models of visual attention, 2014.
    """

    def __init__(
        self, temperature: float = 1.0, *, evaluation: Evaluation = "argmax", share: float = 1.0
    ) -> None:
        super().__init__()
        if not 0.0 <= share <= 1.0:
            raise MechanismError(f"share must lie in [0, 1]; got {share}. 1.0 always draws.")
        self.temperature, self.share = check_temperature(temperature), share
        self.evaluate_by(evaluation)

    def evaluate_by(self, evaluation: Evaluation) -> None:
        """Set what is read where nothing is drawn.

        Args:
            evaluation: "argmax" or "expectation".

        Raises:
            MechanismError: The name is unknown.
        """
        check_evaluation(evaluation, ("argmax", "expectation"))
        self.evaluation: Evaluation = evaluation
        hard = self.needs_preference = evaluation == "argmax"
        self.traits = Traits(stochastic=True, differentiable=False, hard_evaluation=hard)

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
        generator: torch.Generator | None = None,
    ) -> Selected:
        """Turn scores into weights that are zero wherever the mask is False."""
        scaled = functional.widened(scores) / self.temperature
        shares = functional.masked_softmax(scaled, mask)
        if not self.training:
            argmax = self.evaluation == "argmax"
            weights = functional.chosen(shares.detach(), mask) if argmax else shares
            return Selected(weights, shares, None)
        # The largest of s_j / x_j, x_j exponential, is key j with probability s_j.
        drawn = shares.detach() / exponential(shares, generator)
        weights = functional.chosen(drawn, mask)
        log_prob = _log_prob(scaled, weights, mask)
        if self.share < 1.0:
            chance = torch.empty_like(log_prob.detach()).uniform_(generator=generator)
            expected = chance >= self.share
            weights = torch.where(expected.unsqueeze(-1), shares, weights)
            log_prob = log_prob.masked_fill(expected, 0.0)
        return Selected(weights, shares, log_prob)

    def extra_repr(self) -> str:
        """Name the choices."""
        own = f"temperature={self.temperature}, evaluation={self.evaluation!r}"
        return own if self.share == 1.0 else f"{own}, share={self.share}"


def _log_prob(scores: Tensor, weights: Tensor, mask: Tensor | None) -> Tensor:
    """Return the logarithm of the probability of a choice; 0 where there was none to make."""
    if scores.shape[-1] == 0:
        return scores.sum(dim=-1)
    if mask is not None:
        nothing = ~mask.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~mask & ~nothing, -torch.inf).masked_fill(nothing, 0.0)
    log_shares = scores.log_softmax(dim=-1)
    return log_shares.masked_fill(weights == 0, 0.0).sum(dim=-1)


class GumbelSoftmax(Selection):
    """A choice that is drawn and yet has a gradient: `s_i = softmax((e_i + g_i) / T)`, `g` Gumbel.

    The noise makes the largest weight fall on key `j` with probability `softmax(e_i)_j`; a low
    temperature brings the weights near one key. Straight-through, that key gets all the weight,
    and the gradient is that of the soft weights: biased, but with less variance than the estimate
    of Sampled. In evaluation nothing is drawn.

    Args:
        temperature: `T`; the closer to 0, the harder and the noisier the gradient.
        straight_through: Whether one key gets all the weight.
        evaluation: "argmax", or "expectation" for the softmax.

    Raises:
        MechanismError: The temperature is not positive and finite, or the name is unknown.

    References:
        Jang, Gu and Poole, Categorical reparameterization with Gumbel-softmax, 2017; Maddison,
        Mnih and Teh, The concrete distribution, 2017.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        *,
        straight_through: bool = False,
        evaluation: Evaluation = "argmax",
    ) -> None:
        super().__init__()
        check_evaluation(evaluation, ("argmax", "expectation"))
        self.temperature, self.evaluation = check_temperature(temperature), evaluation
        self.straight_through = straight_through
        self.needs_preference = evaluation == "argmax"
        self.traits = Traits(
            stochastic=True,
            hard_evaluation=evaluation == "argmax",
            straight_through=straight_through,
        )

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
        generator: torch.Generator | None = None,
    ) -> Selected:
        """Turn scores into weights that are zero wherever the mask is False."""
        scores = functional.widened(scores)
        shares = functional.masked_softmax(scores, mask)
        if not self.training:
            argmax = self.evaluation == "argmax"
            weights = functional.chosen(shares.detach(), mask) if argmax else shares
            return Selected(weights, shares, None)
        noisy = scores - exponential(scores, generator).log()
        weights = functional.masked_softmax(noisy / self.temperature, mask)
        if self.straight_through:
            # The difference is exactly zero, and carries the gradient.
            weights = functional.chosen(weights.detach(), mask) + (weights - weights.detach())
        return Selected(weights, shares, None)

    def extra_repr(self) -> str:
        """Name the choices."""
        return (
            f"temperature={self.temperature}, straight_through={self.straight_through}, "
            f"evaluation={self.evaluation!r}"
        )
