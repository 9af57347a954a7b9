"""A selection that only moves forward."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Selected, Selection, State, Traits
from regard.attention.selections.hard import check_evaluation
from regard.errors import MechanismError


class Monotonic(Selection):
    """A reader that starts where it stopped and passes over items until it stops at one.

    At item `j` it stops with probability `p_ij = σ(e_ij + r + noise)`. In training the weights are
    the expected ones over all the ways that it may go (`regard.attention.functional.
    monotonic_weights`); in evaluation it stops at the first item with `p_ij > 1/2`, so that an
    output can begin before the input has ended. A row sums to less than 1 where it may run off
    the end, and to 0 where it does. Goes step by step: the state says where it stopped.

    The noise teaches it to be sure. `r` begins low enough that it moves on by itself: with
    `p` near 1 at the start it would stay at the first item for ever.

    Args:
        noise: Standard deviation of the noise in training.
        bias: Where the learned `r` begins.
        evaluation: "hard", or "expected" for the weights of training without noise.

    Raises:
        MechanismError: The noise is negative, a number is not finite, or the name is unknown.

    References:
        Raffel et al., Online and linear-time attention by enforcing monotonic alignments, 2017.
    """

    def __init__(
        self,
        *,
        noise: float = 1.0,
        bias: float = -1.0,
        evaluation: Literal["hard", "expected"] = "hard",
    ) -> None:
        super().__init__()
        check_evaluation(evaluation, ("hard", "expected"))
        if not (0.0 <= noise < math.inf and math.isfinite(bias)):
            raise MechanismError(
                f"noise must be at least 0, and bias finite; got {noise} and {bias}. 1.0 and -1.0 "
                "are usual."
            )
        self.noise, self.first_bias, self.evaluation = noise, bias, evaluation
        self.bias = nn.Parameter(torch.empty(()))
        self.traits = Traits(
            normalised=False,
            permutation_equivariant=False,
            stochastic=noise > 0.0,
            stateful=True,
            hard_evaluation=evaluation == "hard",
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set `r` to where it begins."""
        nn.init.constant_(self.bias, self.first_bias)

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
        energies = functional.widened(scores) + functional.widened(self.bias)
        before = _at_first(energies) if state is None else state.weights.to(energies.dtype)
        if self.training and self.noise > 0.0:
            drawn = torch.empty_like(energies).normal_(generator=generator)
            energies = energies + self.noise * drawn
        stop = energies.sigmoid()
        stop = stop if mask is None else stop.masked_fill(~mask, 0.0)
        if self.training or self.evaluation == "expected":
            weights = functional.monotonic_weights(stop, before)
        else:
            weights = _first_stop(stop.detach(), before.detach())
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the choices."""
        return f"noise={self.noise}, bias={self.first_bias}, evaluation={self.evaluation!r}"


def _at_first(energies: Tensor) -> Tensor:
    before = torch.zeros_like(energies)
    before[..., :1] = 1.0
    return before


def _first_stop(stop: Tensor, before: Tensor) -> Tensor:
    """Stop at the first item, from that of the step before on, where stopping is likelier."""
    reached = before.cumsum(dim=-1) > 0.5
    stops = (stop > 0.5) & reached
    return (stops & (stops.cumsum(dim=-1) == 1)).to(stop.dtype)
