"""Selections: how scores become weights."""

from __future__ import annotations

import math

from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention import functional
from regard.attention.parts import Selected, Selection, State
from regard.errors import MechanismError


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
        if not (0 < temperature < math.inf):
            raise MechanismError(
                f"temperature must be positive and finite; got {temperature}. 1.0 is the plain "
                "softmax."
            )
        self.temperature = temperature

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
    ) -> Selected:
        """Turn scores into weights that are zero wherever the mask is False."""
        scaled = scores if self.temperature == 1.0 else scores / self.temperature
        weights = functional.masked_softmax(scaled, mask)
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the temperature."""
        return f"temperature={self.temperature}"


SELECTIONS: dict[str, type[Selection]] = {"softmax": Softmax}
