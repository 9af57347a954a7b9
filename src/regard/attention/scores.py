"""Scores: how much each key has to do with each query."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Score, State, Traits
from regard.errors import MechanismError


def _positive(**sizes: int | None) -> None:
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise MechanismError(f"{name} must be at least 1; got {size}. Check the sizes.")


def _same(mechanism: str, query_dim: int | None, key_dim: int | None) -> None:
    if query_dim is not None and key_dim is not None and query_dim != key_dim:
        raise MechanismError(
            f"query_dim must equal key_dim for {mechanism}; got {query_dim} and {key_dim}. "
            "Use Bilinear or Additive for sizes that differ."
        )


class Additive(Score):
    """Score by a small layer: `e_ij = w · tanh(W_q q_i + W_k k_j + b)`.

    The relevance of the first attention models; query and key may differ in size. It is not
    the dot product of two projections: the tanh comes before the sum over the hidden layer.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.
        bias: Whether the layer has the bias `b`.

    Raises:
        MechanismError: A size is below 1.

    Example:
        >>> score = Additive(query_dim=4, key_dim=3, hidden_dim=5)
        >>> prepared = score.prepare(torch.zeros(2, 6, 3))
        >>> score(torch.zeros(2, 1, 4), prepared).shape
        torch.Size([2, 1, 6])

    References:
        Bahdanau, Cho and Bengio, Neural machine translation by jointly learning to align and
        translate, 2015.
    """

    query_dim: int
    key_dim: int

    def __init__(self, query_dim: int, key_dim: int, *, hidden_dim: int, bias: bool = True) -> None:
        super().__init__()
        _positive(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim)
        self.query_dim, self.key_dim, self.hidden_dim = query_dim, key_dim, hidden_dim
        self.query_projection = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_projection = nn.Linear(key_dim, hidden_dim, bias=bias)
        self.vector = nn.Parameter(torch.empty(hidden_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.query_projection.reset_parameters()
        self.key_projection.reset_parameters()
        bound = 1.0 / math.sqrt(self.hidden_dim)
        nn.init.uniform_(self.vector, -bound, bound)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Project the keys: `W_k k_j + b`."""
        projected: Tensor = self.key_projection(key)
        return projected

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        projected = self.query_projection(query)
        return functional.additive_scores(projected, prepared_key, self.vector)

    def extra_repr(self) -> str:
        """Name the sizes."""
        return f"query_dim={self.query_dim}, key_dim={self.key_dim}, hidden_dim={self.hidden_dim}"


class Dot(Score):
    """Score by the dot product: `e_ij = q_i · k_j`.

    Has no parameters; query and key must have one size. Scores grow with that size: see
    ScaledDot.

    Args:
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys; must equal `query_dim`.

    Raises:
        MechanismError: The sizes differ or are below 1.

    References:
        Luong, Pham and Manning, Effective approaches to attention-based neural machine
        translation, 2015 ("dot").
    """

    one_size = True

    def __init__(self, query_dim: int | None = None, key_dim: int | None = None) -> None:
        super().__init__()
        _positive(query_dim=query_dim, key_dim=key_dim)
        _same(type(self).__name__, query_dim, key_dim)
        self.query_dim = self.key_dim = query_dim if key_dim is None else key_dim

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Return the keys as they are."""
        return key

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every key for every query."""
        return functional.dot_scores(query, prepared_key)


class ScaledDot(Score):
    """Score by the dot product over the root of its size: `e_ij = q_i · k_j / √d`.

    With queries and keys of unit variance the scores have unit variance at any size `d`.

    Args:
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys; must equal `query_dim`.
        scale: A factor instead of `1/√d`.

    Raises:
        MechanismError: The sizes differ or are below 1, or the scale is not positive.

    References:
        Vaswani et al., Attention is all you need, 2017.
    """

    one_size = True

    def __init__(
        self,
        query_dim: int | None = None,
        key_dim: int | None = None,
        *,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        _positive(query_dim=query_dim, key_dim=key_dim)
        _same(type(self).__name__, query_dim, key_dim)
        if scale is not None and not (0 < scale < math.inf):
            raise MechanismError(f"scale must be positive and finite; got {scale}. Leave it out.")
        self.query_dim = self.key_dim = query_dim if key_dim is None else key_dim
        self.scale = scale

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Return the keys as they are."""
        return key

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every key for every query."""
        scale = query.shape[-1] ** -0.5 if self.scale is None else self.scale
        return functional.dot_scores(query, prepared_key, scale)


class Bilinear(Score):
    """Score by a matrix between query and key: `e_ij = q_i · W k_j`.

    The dot product for sizes that differ ("general" in Luong's paper).

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.

    Raises:
        MechanismError: A size is below 1.

    References:
        Luong, Pham and Manning 2015 ("general").
    """

    query_dim: int
    key_dim: int

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        _positive(query_dim=query_dim, key_dim=key_dim)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.key_projection = nn.Linear(key_dim, query_dim, bias=False)

    def reset_parameters(self) -> None:
        """Draw the matrix anew."""
        self.key_projection.reset_parameters()

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Project the keys: `W k_j`."""
        projected: Tensor = self.key_projection(key)
        return projected

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        return functional.dot_scores(query, prepared_key)


class Uniform(Score):
    """Score every key alike: `e_ij = 0`.

    With the softmax the context is the mean of the values: the baseline that shows what looking
    is worth. It has no parameters and takes any sizes.

    Args:
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys, to be checked; None takes any.

    Raises:
        MechanismError: A size is below 1.
    """

    traits = Traits(differentiable=False)

    def __init__(self, query_dim: int | None = None, key_dim: int | None = None) -> None:
        super().__init__()
        _positive(query_dim=query_dim, key_dim=key_dim)
        self.query_dim, self.key_dim = query_dim, key_dim

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Return the keys as they are."""
        return key

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Give every key the score zero."""
        scores = query.new_zeros(*query.shape[:-1], prepared_key.shape[-2])
        return functional.widened(scores)


SCORES: dict[str, type[Score]] = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "bilinear": Bilinear,
    "uniform": Uniform,
}
