"""Several attentions side by side, each over its own projection."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.building import (
    check_items,
    check_key_mask,
    check_pair,
    check_state,
    checked_dropout,
    prepared_once,
    split_mask,
    with_queries_axis,
)
from regard.attention.heads import parts_of_heads
from regard.attention.parts import Attended, Mechanism, Prepared, Score, Selection, State
from regard.attention.reading import (
    HARMLESS,
    Reading,
    allowed_pairs,
    attend,
    lost_queries,
    marked,
    sanitised,
    without_queries_axis,
)
from regard.errors import MechanismError, ShapeError


class MultiHead(Mechanism):
    """Attention in several heads: `out(concat_h attention_h(W_q q, W_k k, W_v v))`.

    Each head reads its own projection of queries, keys and values; scores and selections with
    parameters have their own in every head. Weights come with heads second: `(batch, heads,
    queries, keys)`.

    Args:
        num_heads: How many heads.
        query_dim: Size of the queries, and of the result.
        key_dim: Size of the keys; by default that of the queries.
        value_dim: Size of the values; by default that of the keys.
        score: A part for queries and keys of size `query_dim // num_heads`, its name, or a function
            of query and key.
        selection: How scores become weights: a part for queries of that size, or its name.
        dropout: Probability that a weight is dropped in training.

    Raises:
        MechanismError: The heads do not divide the size, or a part does not fit.

    Example:
        >>> attention = MultiHead(2, query_dim=8)
        >>> items = torch.ones(3, 5, 8)
        >>> context, weights, *_ = attention(items, items)
        >>> context.shape, weights.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 5]))

    References:
        Vaswani et al., Attention is all you need, 2017.
    """

    def __init__(
        self,
        num_heads: int,
        query_dim: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        score: Score | Callable[[Tensor, Tensor], Tensor] | str = "scaled_dot",
        selection: Selection | str = "softmax",
        dropout: float = 0.0,
    ) -> None:
        if not isinstance(num_heads, int) or min(num_heads, query_dim) < 1 or query_dim % num_heads:
            raise MechanismError(
                f"num_heads must divide query_dim; got {num_heads} and {query_dim}. "
                "Choose sizes such as 8 heads of 64."
            )
        parts = parts_of_heads(score, selection, num_heads, query_dim // num_heads)
        super().__init__(*parts, checked_dropout(dropout))
        self.num_heads, self.query_dim = num_heads, query_dim
        self.key_dim = query_dim if key_dim is None else key_dim
        self.value_dim = self.key_dim if value_dim is None else value_dim
        if min(self.key_dim, self.value_dim) < 1:
            raise MechanismError(
                f"key_dim and value_dim must be at least 1; got {self.key_dim} and "
                f"{self.value_dim}. Check the sizes."
            )
        self.query_projection = nn.Linear(query_dim, query_dim)
        self.key_projection = nn.Linear(self.key_dim, query_dim)
        self.value_projection = nn.Linear(self.value_dim, query_dim)
        self.out_projection = nn.Linear(query_dim, query_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projections anew (Glorot's uniform; biases zero)."""
        for projection in (
            self.query_projection,
            self.key_projection,
            self.value_projection,
            self.out_projection,
        ):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def prepare(
        self,
        key: Float[Tensor, "batch keys key_dim"],
        value: Float[Tensor, "batch keys value_dim"] | None = None,
        *,
        mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Prepared:
        """Project keys and values once, to be read at every step.

        Args:
            key: The keys.
            value: The values; by default the keys.
            mask: True = may attend, for all queries and heads alike.

        Returns:
            Keys and values made ready, with heads second.

        Raises:
            ShapeError: A size is wrong.
            MaskError: The mask is not a bool tensor `(batch, keys)`.
        """
        check_items(self.name, self.key_dim, key, value)
        given = key if value is None else value
        if given.shape[-1] != self.value_dim:
            raise ShapeError(
                f"value must have size value_dim={self.value_dim} for {self.name}; got "
                f"{given.shape[-1]} in {tuple(given.shape)}{'' if given is value else ', the key'}."
            )
        if mask is not None:
            check_key_mask(mask, key)
        clean, broken = sanitised([key] if value is None else [key, value], mask)
        heads = self._heads(self.key_projection(clean[0]))
        values = self._heads(self.value_projection(clean[-1]))
        return Prepared(self.score.prepare(heads), values, mask, broken)

    def forward(
        self,
        query: Float[Tensor, "batch *queries query_dim"],
        key: Float[Tensor, "batch keys key_dim"] | Prepared,
        value: Float[Tensor, "batch keys value_dim"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        state: State | None = None,
        need_weights: bool = True,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Read the items for every query, in every head.

        Args:
            query: `(batch, queries, query_dim)`, or `(batch, query_dim)` for a single query.
            key: The keys, or what `prepare` made of them.
            value: The values; by default the keys.
            mask: True = may attend: `(batch, keys)`, `(batch or 1, queries, keys)`, or
                `(batch or 1, heads or 1, queries, keys)`.
            state: What the step before returned, for stateful mechanisms.
            need_weights: Whether the weights are wanted.
            generator: What draws, where a selection samples; by default PyTorch's global one.

        Returns:
            Context `(batch, queries, query_dim)` and weights `(batch, heads, queries, keys)`;
            without the queries axis for a single query. `log_prob` is summed over heads.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
        """
        query, single = with_queries_axis(self.name, self.query_dim, query)
        prepared, per_query = key, mask
        if isinstance(key, Prepared):
            prepared = prepared_once(self.name, key, value, heads=self.num_heads)
        else:
            per_query, shared = split_mask(mask, key)
            prepared = self.prepare(key, value, mask=shared)
        check_pair(self.name, None, query, prepared)
        check_state(self, query, prepared, state)
        allowed = allowed_pairs(prepared, per_query, query.shape[1], self.num_heads)
        nothing = None
        if allowed is not None:
            # A query that may attend to nothing in any head may hold anything, NaN included.
            nothing = ~allowed.any(dim=-1).any(dim=1).unsqueeze(-1)  # (batch or 1, queries or 1, 1)
            query = query.masked_fill(nothing, HARMLESS)
        heads = self._heads(self.query_projection(query))
        reading = Reading(heads, prepared, allowed, generator, need_weights)
        attended = self._joined(attend(self, reading, state), nothing)
        attended = marked(attended, lost_queries(reading))
        attended = attended if need_weights else attended._replace(weights=None)
        return without_queries_axis(attended) if single else attended

    def _heads(self, tensor: Tensor) -> Tensor:
        sizes = (self.num_heads, self.query_dim // self.num_heads)
        parts = tensor.view(*tensor.shape[:-1], *sizes)
        return parts.transpose(1, 2)  # (batch, heads, length, dim)

    def _joined(self, attended: Attended, nothing: Tensor | None) -> Attended:
        context = self.out_projection(attended.context.transpose(1, 2).flatten(2))
        if nothing is not None:
            # The bias of the projection must not speak for a query that saw nothing.
            context = context.masked_fill(nothing, 0.0)
        log_prob = None if attended.log_prob is None else attended.log_prob.sum(dim=1)
        return attended._replace(context=context, log_prob=log_prob)
