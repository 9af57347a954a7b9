"""Attention: a score, a selection, and the weighted sum of the values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.building import (
    build_parts,
    check_items,
    check_key_mask,
    check_pair,
    check_state,
    checked_dropout,
    prepared_once,
    split_mask,
    with_queries_axis,
)
from regard.attention.parts import (
    Attended,
    Mechanism,
    Prepared,
    Score,
    Selection,
    State,
    Traits,
)
from regard.attention.reading import (
    Reading,
    allowed_pairs,
    attend,
    lost_queries,
    marked,
    sanitised,
    without_queries_axis,
)
from regard.errors import MaskError, MechanismError, ShapeError

__all__ = ["Attended", "Attention", "Prepared", "State", "Traits", "unroll"]


class Attention(Mechanism):
    """The attention model: context `c` and items `y_j` in, `z = Σ s_j y_j` out.

    The context is the query, the items are the keys and, unless they are given apart, the
    values; the weights are `s_j`. Queries are read independently of each other.

    Args:
        score: How relevance is scored: a part, its name in `SCORES`, or a function of query and key
            (see `regard.scores.Function`).
        selection: How scores become weights: a part, or its name in `SELECTIONS`.
        query_dim: Size of the queries, for parts given by name.
        key_dim: Size of the keys, for a score given by name.
        hidden_dim: Size of the layer inside, for a score given by name that has one.
        dropout: Probability that a weight is dropped in training. The weights returned are those
            before dropout.
        check_finite: Whether a score that is not finite raises an error (see `check_finite`).

    Raises:
        MechanismError: A name is unknown, a size is missing or does not belong to the score.

    Example:
        >>> attention = Attention("additive", query_dim=4, key_dim=3, hidden_dim=5)
        >>> key = torch.ones(2, 6, 3)
        >>> context, weights, *_ = attention(torch.ones(2, 4), key)
        >>> context.shape, weights.shape
        (torch.Size([2, 3]), torch.Size([2, 6]))

    References:
        Bahdanau, Cho and Bengio 2015; Luong, Pham and Manning 2015.
    """

    def __init__(
        self,
        score: Score | Callable[[Tensor, Tensor], Tensor] | str,
        selection: Selection | str = "softmax",
        *,
        query_dim: int | None = None,
        key_dim: int | None = None,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        check_finite: bool = False,
    ) -> None:
        sizes = {"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": hidden_dim}
        super().__init__(*build_parts(score, selection, sizes), checked_dropout(dropout))
        self.check_finite = check_finite

    @property
    def query_dim(self) -> int | None:
        """Size of the queries; None where any size will do."""
        return self.score.query_dim

    @property
    def key_dim(self) -> int | None:
        """Size of the keys; None where any size will do."""
        return self.score.key_dim

    def prepare(
        self,
        key: Float[Tensor, "batch keys key_dim"],
        value: Float[Tensor, "batch keys value_dim"] | None = None,
        *,
        mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Prepared:
        """Project the keys once, to be read at every step.

        Keys that the mask hides may hold anything, NaN and infinity included.

        Args:
            key: The keys.
            value: The values; by default the keys.
            mask: True = may attend, for all queries alike.

        Returns:
            Keys and values made ready.

        Raises:
            ShapeError: A size does not fit the score, or the axes are wrong.
            MaskError: The mask is not a bool tensor `(batch, keys)`.
        """
        check_items(self.name, self.key_dim, key, value)
        if mask is not None:
            check_key_mask(mask, key)
        clean, broken = sanitised([key] if value is None else [key, value], mask)
        return Prepared(self.score.prepare(clean[0]), clean[-1], mask, broken)

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
        """Read the items for every query.

        Args:
            query: `(batch, queries, query_dim)`, or `(batch, query_dim)` for a single query.
            key: The keys, or what `prepare` made of them.
            value: The values; by default the keys.
            mask: True = may attend: `(batch, keys)`, or `(batch or 1, queries, keys)`.
            state: What the step before returned, for stateful mechanisms.
            need_weights: Whether the weights are wanted.
            generator: What draws, where the selection samples; by default PyTorch's global one.

        Returns:
            Context and weights (without the queries axis for a single query), and what else the
            mechanism has to say.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
            MechanismError: A stateful mechanism is given a whole sequence without a state.
        """
        query, single = with_queries_axis(self.name, self.query_dim, query)
        prepared, per_query = key, mask
        if isinstance(key, Prepared):
            prepared = prepared_once(self.name, key, value, heads=None)
        else:
            per_query, shared = split_mask(mask, key)
            prepared = self.prepare(key, value, mask=shared)
        check_pair(self.name, self.score, query, prepared)
        check_state(self, query, prepared, state)
        allowed = allowed_pairs(prepared, per_query, query.shape[1])
        reading = Reading(query, prepared, allowed, generator, need_weights)
        attended = marked(attend(self, reading, state), lost_queries(reading))
        attended = attended if need_weights else attended._replace(weights=None)
        return without_queries_axis(attended) if single else attended


def unroll(
    attention: Mechanism,
    queries: Float[Tensor, "batch queries query_dim"],
    prepared: Prepared,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    state: State | None = None,
    generator: torch.Generator | None = None,
) -> Attended:
    """Run an attention over the queries one after the other, handing the state on.

    For mechanisms that depend on earlier steps; for others it gives what one parallel call
    gives, but for what is drawn at random.

    Args:
        attention: The attention, with one head or several.
        queries: One query for each step.
        prepared: The keys, prepared once.
        mask: True = may attend, for each query by itself: `(batch or 1, queries, keys)`, with heads
            second where there are heads.
        state: The state to begin with.
        generator: What draws, where the selection samples; by default PyTorch's global one.

    Returns:
        The steps joined along the queries axis, and the last state.

    Raises:
        ShapeError: A size does not fit, or the axes are wrong.
        MaskError: The mask has no axis for the queries, or another number of them.
        MechanismError: The result depends on a query's place in a sequence that is whole.
    """
    _check_steps(attention, queries, mask)
    steps: list[Attended] = []
    before = state
    for place in range(queries.shape[1]):
        only = slice(place, place + 1)
        allowed = None if mask is None else mask[..., only, :]
        steps.append(
            attention(queries[:, only], prepared, mask=allowed, state=before, generator=generator)
        )
        before = steps[-1].state
    if not steps:
        nothing: Attended = attention(queries, prepared)
        return nothing._replace(state=state)
    weights = _joined([step.weights for step in steps], dim=-2)
    sampled = any(step.distribution is not step.weights for step in steps)
    return Attended(
        torch.cat([step.context for step in steps], dim=1),
        weights,
        before,
        _joined([step.distribution for step in steps], dim=-2) if sampled else weights,
        _joined([step.log_prob for step in steps], dim=-1),
    )


def _check_steps(attention: Mechanism, queries: Tensor, mask: Tensor | None) -> None:
    if queries.dim() != 3:
        raise ShapeError(
            f"queries must have shape (batch, queries, query_dim) for {attention.name}; got "
            f"{tuple(queries.shape)}. Call the attention itself for a single query."
        )
    if attention.traits.positional_queries:
        raise MechanismError(
            f"queries must be read as a whole sequence by {attention.name}; got steps. Call it "
            "with all of them."
        )
    if mask is not None and (mask.dim() < 3 or mask.shape[-2] != queries.shape[1]):
        raise MaskError(
            f"mask must have an axis for the queries={queries.shape[1]} of unroll, second to last; "
            f"got {tuple(mask.shape)}. Prepare the keys under a mask that all queries share."
        )


def _joined(parts: list[Tensor | None], dim: int) -> Tensor | None:
    there = [part for part in parts if part is not None]
    return torch.cat(there, dim=dim) if there else None
