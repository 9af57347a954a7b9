"""Scores that look at the query alone, at nothing, or at what a user's function says."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.parts import Score, State, Traits
from regard.attention.scores.sizes import check_positive
from regard.errors import MechanismError, ShapeError


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

    traits = Traits(differentiable=False, reads_keys=False)
    constant = True

    def __init__(self, query_dim: int | None = None, key_dim: int | None = None) -> None:
        super().__init__()
        check_positive(query_dim=query_dim, key_dim=key_dim)
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


class Location(Score):
    """Score places by the query alone: `e_i = W q_i`, one number for each place.

    What stands at a place is not looked at, so that it suits inputs whose parts mean something by
    their place, up to a stated length. It is not location-sensitive: that score looks at the items
    too, and at earlier weights.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys, to be checked; None takes any.
        max_keys: How many places there are.

    Raises:
        MechanismError: A size is below 1.
        ShapeError: There are more keys than places, when it is called.

    References:
        Luong, Pham and Manning 2015 ("location").
    """

    traits = Traits(permutation_equivariant=False, reads_keys=False)
    query_dim: int

    def __init__(self, query_dim: int, key_dim: int | None = None, *, max_keys: int = 512) -> None:
        super().__init__()
        check_positive(query_dim=query_dim, key_dim=key_dim, max_keys=max_keys)
        self.query_dim, self.key_dim, self.max_keys = query_dim, key_dim, max_keys
        self.projection = nn.Linear(query_dim, max_keys, bias=False)

    def reset_parameters(self) -> None:
        """Draw the matrix anew."""
        self.projection.reset_parameters()

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Check that there is a place for every key."""
        self._check_places(key.shape[-2])
        return key

    def _check_places(self, keys: int) -> None:
        if keys > self.max_keys:
            raise ShapeError(
                f"key must have at most max_keys={self.max_keys} items for {type(self).__name__}; "
                f"got {keys}. Build it with more places."
            )

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every place for every query."""
        keys = prepared_key.shape[-2]
        self._check_places(keys)  # a cache may have grown
        weight = self.projection.weight[:keys]
        scores = nn.functional.linear(query, weight)
        return functional.widened(scores)

    def extra_repr(self) -> str:
        """Name the sizes."""
        return f"query_dim={self.query_dim}, max_keys={self.max_keys}"


class Function(Score):
    """Score by a function of your own: `e_ij = f(q_i, k_j)`.

    `Attention(function)` wraps a function in this part by itself. Masks, NaN under the mask and
    empty rows are seen to outside; the function only has to treat each pair alike.

    Args:
        function: From `query (..., queries, query_dim)` and `key (..., keys, key_dim)` to scores
            `(..., queries, keys)`. It gets float32 under half precision, unless it is a module,
            whose parameters become those of the score.
        query_dim: Size of the queries, to be checked; None takes any.
        key_dim: Size of the keys, to be checked; None takes any.
        traits: What the function states of itself; by default what most scores do.

    Raises:
        MechanismError: A size is below 1, or the function cannot be called.
        ShapeError: The scores have the wrong shape, when it is called.

    Example:
        >>> import torch
        >>> def distance(query, key):
        ...     return -torch.cdist(query, key)
        >>> score = Function(distance)
        >>> score(torch.zeros(2, 1, 4), torch.zeros(2, 6, 4)).shape
        torch.Size([2, 1, 6])
    """

    def __init__(
        self,
        function: Callable[[Tensor, Tensor], Tensor],
        query_dim: int | None = None,
        key_dim: int | None = None,
        *,
        traits: Traits | None = None,
    ) -> None:
        super().__init__()
        check_positive(query_dim=query_dim, key_dim=key_dim)
        if not callable(function):
            raise MechanismError(
                f"function must be callable; got {function!r}. It takes query and key."
            )
        self.query_dim, self.key_dim = query_dim, key_dim
        self.function = function
        self.traits = Traits() if traits is None else traits

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
        scores = self._scores(query, prepared_key)
        expected = (*query.shape[:-1], prepared_key.shape[-2])
        if tuple(scores.shape) != expected:
            raise ShapeError(
                f"scores must have shape (batch, queries, keys) = {expected}; got "
                f"{tuple(scores.shape)} from {getattr(self.function, '__name__', 'the function')}. "
                "Score every key for every query."
            )
        return functional.widened(scores)

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        if isinstance(self.function, nn.Module):  # its parameters may be of half precision
            return self.function(query, key)  # type: ignore[no-any-return]
        with functional.full_precision(query):
            return self.function(functional.widened(query), functional.widened(key))
