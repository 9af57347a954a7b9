"""Selections that share the weight out smoothly, whole rows or few keys of them."""

from __future__ import annotations

import math

import entmax
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Selected, Selection, State, Traits
from regard.errors import MechanismError

_LEAST_ALPHA = 1.001  # closer to the softmax, float32 loses what is left of the difference


def check_temperature(temperature: float) -> float:
    """Return a temperature, or raise where it is none."""
    if not (0 < temperature < math.inf):
        raise MechanismError(
            f"temperature must be positive and finite; got {temperature}. 1.0 is the plain softmax."
        )
    return temperature


class Softmax(Selection):
    """Weights by the softmax: `s_ij = exp(e_ij / T) / Σ_k exp(e_ik / T)`.

    Every allowed key gets some weight: the soft, differentiable attention.

    Args:
        temperature: `T`; below 1 sharpens the weights, above 1 flattens them.

    Raises:
        MechanismError: The temperature is not positive and finite.

    References:
        Bahdanau, Cho and Bengio 2015.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        self.temperature = check_temperature(temperature)

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
        scaled = scores if self.temperature == 1.0 else scores / self.temperature
        weights = functional.masked_softmax(scaled, mask)
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the temperature."""
        return f"temperature={self.temperature}"


class Sigmoid(Selection):
    """Weights for each key by itself: `s_ij = σ(e_ij + b)`, or those over their sum.

    Keys do not compete: a query may read all of them or none. Without normalising, the context
    grows with the number of keys; a bias near `-log(keys)` keeps it small at first. Normalised
    (`s_ij = σ(e_ij) / Σ_k σ(e_ik)`) it is the smoothing of Chorowski et al., which spreads a
    softmax that is too sharp over several good keys.

    Args:
        normalise: Whether a row is divided by its sum.
        bias: `b`, added to every score.

    Raises:
        MechanismError: The bias is not finite.

    References:
        Ramapuram et al., Theory, analysis, and best practices for sigmoid self-attention, 2024;
        Chorowski et al. 2015 (smoothing).
    """

    def __init__(self, *, normalise: bool = False, bias: float = 0.0) -> None:
        super().__init__()
        if not math.isfinite(bias):
            raise MechanismError(f"bias must be finite; got {bias}. -log(keys) is a usual one.")
        self.normalise, self.bias = normalise, bias
        self.traits = Traits(normalised=normalise)

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
        energies = functional.widened(scores) + self.bias
        if self.normalise:
            # In logarithms, so that a row of scores near -1e4 still has a sum to be divided by.
            weights = functional.masked_softmax(nn.functional.logsigmoid(energies), mask)
        else:
            weights = energies.sigmoid()
            weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the choices."""
        return f"normalise={self.normalise}, bias={self.bias}"


class TopK(Selection):
    """Weights by the softmax over the `k` best keys; all others get zero.

    Gradients reach the kept keys only. Among equal scores at the border the choice is arbitrary,
    but never of more than `k`. Sparsemax and Entmax find the number of keys by themselves.

    Args:
        k: How many keys at most get a weight.
        temperature: The temperature of the softmax over them.

    Raises:
        MechanismError: `k` is below 1, or the temperature is not positive and finite.

    References:
        Gupta et al., Memory-efficient transformers via top-k attention, 2021.
    """

    needs_preference = True

    def __init__(self, k: int = 4, *, temperature: float = 1.0) -> None:
        super().__init__()
        if not isinstance(k, int) or k < 1:
            raise MechanismError(f"k must be at least 1; got {k}. Use Hardmax for the best alone.")
        self.k, self.temperature = k, check_temperature(temperature)

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
        compared = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        best = compared.topk(min(self.k, scores.shape[-1]), dim=-1).indices
        kept = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        allowed = kept if mask is None else kept & mask
        weights = functional.masked_softmax(scores / self.temperature, allowed)
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the choices."""
        return f"k={self.k}, temperature={self.temperature}"


class Sparsemax(Selection):
    """Weights by the nearest point of the simplex: `s_i = argmin_p ‖p - e_i‖²`.

    Keys whose score is far below the best get exactly zero. It is Entmax with `α = 2`, and
    computed by the entmax package.

    References:
        Martins and Astudillo, From softmax to sparsemax, 2016.
    """

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
        with functional.full_precision(scores):
            floored = functional.with_floor(scores, mask, margin=2.0)
            weights = entmax.sparsemax(floored, dim=-1) if floored.numel() else floored
        return _sparse(weights, mask)


class Entmax(Selection):
    """Weights by `α`-entmax: `s_ij = [(α - 1) e_ij - τ_i]₊^(1/(α - 1))`.

    `τ_i` is such that the weights of a row sum to one. Between the softmax (`α` near 1) and
    Sparsemax (`α = 2`): the larger `α`, the fewer keys get a weight. The entmax package computes
    it, exactly for 1.5 and 2, else by bisection. Learned, it is `α = 1 + σ(a)`, and in several
    heads each has its own.

    Args:
        alpha: `α`, from 1.001 to 5, between which float32 finds the weights well; where it
            begins if it is learned, then below 2.
        learned: Whether `α` is learned.

    Raises:
        MechanismError: `α` is out of range.

    References:
        Peters, Niculae and Martins, Sparse sequence-to-sequence models, 2019; Correia, Niculae
        and Martins, Adaptively sparse transformers, 2019 (learned).
    """

    def __init__(self, alpha: float = 1.5, *, learned: bool = False) -> None:
        super().__init__()
        highest = 1.999 if learned else 5.0
        if not (_LEAST_ALPHA <= alpha <= highest):
            raise MechanismError(
                f"alpha must lie between {_LEAST_ALPHA} and {highest}; got {alpha}. Use Softmax "
                "for 1, Sparsemax for a fixed 2, and Hardmax for more than 5."
            )
        self.alpha = alpha
        self.alpha_logit = nn.Parameter(torch.empty(())) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set a learned `α` to where it begins."""
        if self.alpha_logit is not None:
            share = self.alpha - 1.0
            nn.init.constant_(self.alpha_logit, math.log(share / (1.0 - share)))

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
        with functional.full_precision(scores):
            alpha = self._alpha()
            fixed = alpha.detach() if isinstance(alpha, Tensor) else alpha
            margin = 1.0 / (fixed - 1.0) + 1.0
            floored = functional.with_floor(scores, mask, margin=margin)
            weights = self._mapped(floored, alpha) if floored.numel() else floored
        return _sparse(weights, mask)

    def _alpha(self) -> Tensor | float:
        if self.alpha_logit is None:
            return self.alpha
        share = functional.widened(self.alpha_logit).sigmoid()
        return 1.0 + share.clamp(min=_LEAST_ALPHA - 1.0)

    def _mapped(self, scores: Tensor, alpha: Tensor | float) -> Tensor:
        if isinstance(alpha, float) and alpha in (1.5, 2.0):
            exact = entmax.entmax15 if alpha == 1.5 else entmax.sparsemax
            return exact(scores, dim=-1)  # type: ignore[no-any-return]
        if isinstance(alpha, Tensor):
            alpha = alpha.to(scores.dtype).expand(*scores.shape[:-1], 1)
        return entmax.entmax_bisect(scores, alpha, dim=-1)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Name the choices."""
        return f"alpha={self.alpha}, learned={self.alpha_logit is not None}"


def _sparse(weights: Tensor, mask: Tensor | None) -> Selected:
    weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return Selected(weights, weights, None)
