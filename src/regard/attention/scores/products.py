"""Scores by products: how far query and key point the same way."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional, kernels
from regard.attention.parts import Score, State, Traits
from regard.attention.scores.sizes import check_positive, shared_size
from regard.errors import MechanismError


class Dot(Score):
    """Score by the dot product: `e_ij = g · q_i · k_j`.

    Without the learned factor `g` it has no parameters (`g = 1`); query and key must have one
    size. Scores grow with that size: see ScaledDot.

    Args:
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys; must equal `query_dim`.
        learned_scale: Whether `g` is learned; it begins at 1.

    Raises:
        MechanismError: The sizes differ or are below 1.

    References:
        Luong, Pham and Manning, Effective approaches to attention-based neural machine
        translation, 2015 ("dot").
    """

    one_size = True

    def __init__(
        self,
        query_dim: int | None = None,
        key_dim: int | None = None,
        *,
        learned_scale: bool = False,
    ) -> None:
        super().__init__()
        self.query_dim = self.key_dim = shared_size(type(self).__name__, query_dim, key_dim)
        self.scale = nn.Parameter(torch.ones(())) if learned_scale else None

    def reset_parameters(self) -> None:
        """Set the learned factor to 1."""
        if self.scale is not None:
            nn.init.ones_(self.scale)

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
        scores = functional.dot_scores(query, prepared_key)
        return scores if self.scale is None else scores * functional.widened(self.scale)


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
        if scale is not None and not (0 < scale < math.inf):
            raise MechanismError(f"scale must be positive and finite; got {scale}. Leave it out.")
        self.query_dim = self.key_dim = shared_size(type(self).__name__, query_dim, key_dim)
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
        return functional.dot_scores(query, prepared_key, self._scale(query))

    def read(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        value: Float[Tensor, "*lead keys value_dim"],
        mask: Bool[Tensor, "..."] | None,
        *,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*lead queries value_dim"] | None:
        """Read values by PyTorch's own fused attention."""
        scale = self._scale(query) / temperature
        return kernels.dot_attention(query, prepared_key, value, mask=mask, scale=scale)

    def _scale(self, query: Tensor) -> float:
        return query.shape[-1] ** -0.5 if self.scale is None else self.scale


class Bilinear(Score):
    """Score by a matrix between query and key: `e_ij = (q_i + u) · W k_j`.

    The dot product for sizes that differ ("general" in Luong's paper). The vector `u`, absent by
    default, lets a key count whatever the query is (the biaffine score of parsers).

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        bias: Whether there is a learned `u`; it begins at 0.

    Raises:
        MechanismError: A size is below 1.

    References:
        Luong, Pham and Manning 2015 ("general"); Dozat and Manning, Deep biaffine attention for
        neural dependency parsing, 2017.
    """

    query_dim: int
    key_dim: int

    def __init__(self, query_dim: int, key_dim: int, *, bias: bool = False) -> None:
        super().__init__()
        check_positive(query_dim=query_dim, key_dim=key_dim)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.key_projection = nn.Linear(key_dim, query_dim, bias=False)
        self.query_bias = nn.Parameter(torch.zeros(query_dim)) if bias else None

    def reset_parameters(self) -> None:
        """Draw the matrix anew; the vector is zero."""
        self.key_projection.reset_parameters()
        if self.query_bias is not None:
            nn.init.zeros_(self.query_bias)

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
        query = query if self.query_bias is None else query + self.query_bias
        return functional.dot_scores(query, prepared_key)


class Cosine(Score):
    """Score by the angle between query and key: `e_ij = β · cos(q_i, k_j)`.

    Lengths do not count, so that scores lie in `[-β, β]`; a larger strength `β` lets the weights
    be sharper. With a strength of 1 the softmax stays close to even: it is meant to be learned.

    Args:
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys; must equal `query_dim`.
        strength: `β`, or where it begins.
        learned: Whether the logarithm of `β` is learned.

    Raises:
        MechanismError: The sizes differ or are below 1, or the strength is not positive.

    References:
        Graves, Wayne and Danihelka, Neural Turing machines, 2014 (β is the key strength).
    """

    one_size = True

    def __init__(
        self,
        query_dim: int | None = None,
        key_dim: int | None = None,
        *,
        strength: float = 10.0,
        learned: bool = True,
    ) -> None:
        super().__init__()
        if not (0 < strength < math.inf):
            raise MechanismError(
                f"strength must be positive and finite; got {strength}. 10.0 is a usual start."
            )
        self.query_dim = self.key_dim = shared_size(type(self).__name__, query_dim, key_dim)
        self.strength = strength
        self.log_strength = nn.Parameter(torch.empty(())) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the learned strength to where it begins."""
        if self.log_strength is not None:
            nn.init.constant_(self.log_strength, math.log(self.strength))

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Bring the keys to length 1."""
        return functional.unit(key)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        scores = functional.dot_scores(functional.unit(query), prepared_key)
        if self.log_strength is None:
            return scores * self.strength
        return scores * functional.widened(self.log_strength).exp()

    def extra_repr(self) -> str:
        """Name the strength."""
        return f"strength={self.strength}, learned={self.log_strength is not None}"


class Rotary(Score):
    """Score by the dot product of rotated vectors: `e_ij = (R_i q_i) · (R_j k_j) / √d`.

    `R_p` turns every pair of features by an angle that grows with the place `p`, each pair at
    its own rate, so that the score depends on places through `i - j` alone. For attention among
    the items of one sequence: the last query stands at the place of the last key, as under
    `masks.causal`. It is not a term to be added: see ALiBi and RelativeBias for those.

    Args:
        query_dim: Size of the queries, even; None takes any even size.
        key_dim: Size of the keys; must equal `query_dim`.
        base: The slowest pair turns once in about `2π · base` places.

    Raises:
        MechanismError: The sizes differ, are odd or below 1, or the base is not above 1.

    References:
        Su et al., RoFormer: enhanced Transformer with rotary position embedding, 2021.
    """

    traits = Traits(permutation_equivariant=False, positional_queries=True)
    one_size = True

    def __init__(
        self,
        query_dim: int | None = None,
        key_dim: int | None = None,
        *,
        base: float = 10_000.0,
    ) -> None:
        super().__init__()
        if not (1 < base < math.inf):
            raise MechanismError(f"base must be above 1; got {base}. 10000.0 is usual.")
        self.query_dim = self.key_dim = shared_size(type(self).__name__, query_dim, key_dim)
        self._check_even(self.query_dim)
        self.base = base

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Return the keys as they are: their places are known when all are there."""
        self._check_even(key.shape[-1])
        return key

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every key for every query."""
        queries, keys = query.shape[-2], prepared_key.shape[-2]
        rotated = functional.rotated(query, start=keys - queries, base=self.base)
        turned = functional.rotated(prepared_key, start=0, base=self.base)
        return functional.dot_scores(rotated, turned, query.shape[-1] ** -0.5)

    def _check_even(self, size: int | None) -> None:
        if size is not None and size % 2:
            raise MechanismError(
                f"query_dim must be even for {type(self).__name__}; got {size}. Features turn in "
                "pairs."
            )
