"""Terms that add to any score: how far a key lies from the query."""

from __future__ import annotations

import abc
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Score, State, Traits
from regard.attention.scores.sizes import check_positive
from regard.errors import MechanismError


class Term(nn.Module, abc.ABC):
    """A number for every pair of places, added to a score.

    Terms are for attention among the items of one sequence: the last query stands at the place
    of the last key, as under `masks.causal`, so that a query that reads a growing cache has the
    right place.
    """

    @abc.abstractmethod
    def forward(
        self, places: Int[Tensor, " queries"], keys: int
    ) -> Float[Tensor, "*heads queries keys"]:
        """Return what to add, for queries at these places and keys at `0..keys-1`."""

    @abc.abstractmethod
    def of_heads(self, num_heads: int) -> Term:
        """Return the term for several heads, which come first in what it adds."""


class RelativeBias(Term):
    """Add a learned number for every distance: `e_ij + b[clip(j - i, -m, m)]`.

    Args:
        max_distance: `m`; all keys further away share a number.
        num_heads: How many heads, each with its own numbers; None for one without an axis.

    Raises:
        MechanismError: A size is below 1.

    References:
        Shaw, Uszkoreit and Vaswani, Self-attention with relative position representations, 2018
        (clipped distances); Raffel et al., Exploring the limits of transfer learning with a
        unified text-to-text transformer, 2020 (a number added to the score).
    """

    def __init__(self, max_distance: int = 32, num_heads: int | None = None) -> None:
        super().__init__()
        check_positive(max_distance=max_distance, num_heads=num_heads)
        self.max_distance = max_distance
        heads = () if num_heads is None else (num_heads,)
        self.bias = nn.Parameter(torch.zeros(*heads, 2 * max_distance + 1))

    def reset_parameters(self) -> None:
        """Set all numbers to zero."""
        nn.init.zeros_(self.bias)

    def forward(
        self, places: Int[Tensor, " queries"], keys: int
    ) -> Float[Tensor, "*heads queries keys"]:
        """Return what to add, for queries at these places and keys at `0..keys-1`."""
        reach = self.max_distance
        distances = torch.arange(keys, device=places.device) - places.unsqueeze(-1)
        return self.bias[..., distances.clamp(-reach, reach) + reach]

    def of_heads(self, num_heads: int) -> RelativeBias:
        """Return the term for several heads, which come first in what it adds."""
        return RelativeBias(self.max_distance, num_heads)


class ALiBi(Term):
    """Subtract what grows with the distance: `e_ij - m · |i - j|`.

    Nothing is learned, and sequences longer than those of training are no trouble. In several
    heads the slopes are `2^(-8h/H)`, h from 1 to H.

    Args:
        slope: The slope `m` of a single head.
        num_heads: How many heads, each with its own slope; None for one without an axis.

    Raises:
        MechanismError: The slope is not positive and finite, or there are no heads.

    References:
        Press, Smith and Lewis, Train short, test long: attention with linear biases enables
        input length extrapolation, 2022.
    """

    slopes: Tensor

    def __init__(self, slope: float = 0.0625, num_heads: int | None = None) -> None:
        super().__init__()
        check_positive(num_heads=num_heads)
        if not (0 < slope < math.inf):
            raise MechanismError(f"slope must be positive and finite; got {slope}. Try 0.0625.")
        slopes = torch.tensor(slope)
        if num_heads is not None:
            heads = torch.arange(1, num_heads + 1)
            slopes = (2.0 ** (-8.0 * heads / num_heads)).view(-1, 1, 1)
        self.slope = slope
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(
        self, places: Int[Tensor, " queries"], keys: int
    ) -> Float[Tensor, "*heads queries keys"]:
        """Return what to add, for queries at these places and keys at `0..keys-1`."""
        distances = (torch.arange(keys, device=places.device) - places.unsqueeze(-1)).abs()
        return -functional.widened(self.slopes) * distances

    def of_heads(self, num_heads: int) -> ALiBi:
        """Return the term for several heads, which come first in what it adds."""
        return ALiBi(self.slope, num_heads)


class Sum(Score):
    """A score and terms that are added to it: `e_ij + t_1(i, j) + t_2(i, j) + ...`.

    Args:
        score: The score.
        terms: What is added.

    Raises:
        MechanismError: The score goes step by step, where a query has no place in a sequence.

    Example:
        >>> from regard.attention.scores import ScaledDot
        >>> score = Sum(ScaledDot(), ALiBi())
        >>> score(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)).shape
        torch.Size([2, 3, 3])
    """

    score: Score
    terms: nn.ModuleList

    def __init__(self, score: Score, *terms: Term) -> None:
        super().__init__()
        wrong = [type(term).__name__ for term in terms if not isinstance(term, Term)]
        if wrong or not isinstance(score, Score):
            raise MechanismError(
                f"terms must be Terms, added to a Score; got {', '.join(wrong) or type(score)}. "
                "Derive from regard.scores.Term, which knows several heads."
            )
        if isinstance(score, Sum):  # one sum, so that heads find every term
            inside: Sum = score
            inner = [term for term in inside.terms if isinstance(term, Term)]
            score, terms = inside.score, (*inner, *terms)
        if score.traits.stateful:
            raise MechanismError(
                f"score must not go step by step where terms are added; got "
                f"{type(score).__name__}. Terms need the queries' places in a sequence."
            )
        own = Traits(permutation_equivariant=False, positional_queries=True)
        self.traits = score.traits.joined(own)
        self.one_size = score.one_size
        self.query_dim, self.key_dim = score.query_dim, score.key_dim
        self.score = score
        self.terms = nn.ModuleList(terms)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Do what the score does with the keys, once."""
        return self.score.prepare(key)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query, and add the terms."""
        scores: Tensor = self.score(query, prepared_key, state)
        queries, keys = scores.shape[-2:]
        places = torch.arange(keys - queries, keys, device=scores.device)
        for term in self.terms:
            added: Tensor = term(places, keys)
            if added.dim() > 2 and scores.dim() < 4:
                raise MechanismError(
                    f"num_heads must be left out of {type(term).__name__} for a single head; got "
                    f"{added.shape[0]}. MultiHead gives every head its own."
                )
            scores = scores + added.to(scores.dtype)
        return scores

    def of_heads(self, score: Score, num_heads: int) -> Sum:
        """Return the sum for several heads: a score that serves them, and terms for each."""
        terms = [term.of_heads(num_heads) for term in self.terms if isinstance(term, Term)]
        return Sum(score, *terms)


TERMS: dict[str, type[Term]] = {"relative_bias": RelativeBias, "alibi": ALiBi}
