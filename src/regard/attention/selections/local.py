"""Selections that look only near a place."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Selected, Selection, State, Traits
from regard.errors import MechanismError


def check_half_width(half_width: int) -> int:
    """Return half the width of a window, or raise where it is below 1."""
    if not isinstance(half_width, int) or half_width < 1:
        raise MechanismError(f"half_width must be at least 1; got {half_width}. 10 is usual.")
    return half_width


def _window(scores: Tensor, mask: Tensor | None, distance: Tensor, half_width: int) -> Tensor:
    near = distance.abs() <= half_width
    return near.expand(scores.shape) if mask is None else (near & mask).expand(scores.shape)


class LocalMonotonic(Selection):
    """Weights by the softmax over the keys near the step: those from `t - D` to `t + D`.

    Step `t` of the output looks around item `t` ("local-m"): for inputs and outputs that go side by
    side. Places count the items that may be attended to, so that padding moves nothing; after
    the last item the window stays there. Goes step by step: the state counts.

    Args:
        half_width: `D`.

    Raises:
        MechanismError: `half_width` is below 1.

    References:
        Luong, Pham and Manning 2015 ("local-m").
    """

    traits = Traits(permutation_equivariant=False, stateful=True)

    def __init__(self, half_width: int = 10) -> None:
        super().__init__()
        self.half_width = check_half_width(half_width)

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
        places, last = functional.places_of_keys(scores, mask)
        centre = last.clamp(max=0 if state is None else state.step)
        window = _window(scores, mask, places - centre, self.half_width)
        weights = functional.masked_softmax(scores, window)
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the width."""
        return f"half_width={self.half_width}"


class LocalPredictive(Selection):
    """Weights near a place that the query foretells, under a Gaussian around it.

    `s_ij = softmax_{|j - p_i| ≤ D}(e_i)_j · exp(-(j - p_i)² / (2 (D/2)²))`, where
    `p_i = (S - 1) · σ(v · tanh(W q_i))` and `S` counts the items that may be attended to
    ("local-p"; places are numbered from 0 here). The weights are not normalised again, and the
    place gets its gradient through the Gaussian.

    Args:
        query_dim: Size of the queries.
        hidden_dim: Size of the layer that foretells the place; by default that of the queries.
        half_width: `D`.

    Raises:
        MechanismError: A size or `half_width` is below 1.

    References:
        Luong, Pham and Manning 2015 ("local-p").
    """

    traits = Traits(normalised=False, permutation_equivariant=False)
    query_dim: int

    def __init__(
        self, query_dim: int, *, hidden_dim: int | None = None, half_width: int = 10
    ) -> None:
        super().__init__()
        hidden = query_dim if hidden_dim is None else hidden_dim
        if min(query_dim, hidden) < 1:
            raise MechanismError(
                f"query_dim and hidden_dim must be at least 1; got {query_dim} and {hidden}. Check "
                "the sizes."
            )
        self.query_dim = query_dim
        self.half_width = check_half_width(half_width)
        self.hidden = nn.Linear(query_dim, hidden, bias=False)
        self.place = nn.Linear(hidden, 1, bias=False)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.hidden.reset_parameters()
        self.place.reset_parameters()

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
        if query is None:
            raise MechanismError(
                f"query must be given to {type(self).__name__}; got None. It foretells the place."
            )
        scores = functional.widened(scores)
        places, last = functional.places_of_keys(scores, mask)
        share = self.place(torch.tanh(self.hidden(query)))  # (..., queries, 1)
        distance = places - last * functional.widened(share).sigmoid()
        window = _window(scores, mask, distance.detach(), self.half_width)
        deviation = self.half_width / 2.0
        nearness = torch.exp(-distance.square() / (2.0 * deviation**2))
        weights = functional.masked_softmax(scores, window) * nearness
        return Selected(weights, weights, None)

    def extra_repr(self) -> str:
        """Name the width."""
        return f"half_width={self.half_width}"
