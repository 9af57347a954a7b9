"""Attention: a score, a selection, and the weighted sum of the values."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.building import (
    build_score,
    build_selection,
    check_items,
    check_key_mask,
    check_pair,
    checked_dropout,
    split_mask,
    with_queries_axis,
)
from regard.attention.parts import Attended, Prepared, Score, Selection, State, Traits
from regard.attention.reading import Reading, allowed_pairs, attend, sanitised
from regard.errors import MechanismError, ShapeError

__all__ = ["Attended", "Attention", "Prepared", "State", "Traits", "unroll"]


class Attention(nn.Module):
    """The attention model: context `c` and items `y_j` in, weights `s_j` and `z = Σ s_j y_j` out.

    The context is the query, the items are the keys and, unless they are given apart, the
    values. Queries are read independently of each other.

    Args:
        score: How relevance is scored: a part, or its name in `SCORES`.
        selection: How scores become weights: a part, or its name in `SELECTIONS`.
        query_dim: Size of the queries, for a score given by name.
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
        score: Score | str,
        selection: Selection | str = "softmax",
        *,
        query_dim: int | None = None,
        key_dim: int | None = None,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        check_finite: bool = False,
    ) -> None:
        super().__init__()
        sizes = {"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": hidden_dim}
        self.score = build_score(score, sizes)
        self.selection = build_selection(selection)
        self.dropout = checked_dropout(dropout)
        self.check_finite = check_finite
        self.label = ""

    @property
    def traits(self) -> Traits:
        """What the score and the selection state together."""
        return self.score.traits.joined(self.selection.traits)

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
        check_items(self._name(), self.key_dim, key, value)
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
    ) -> Attended:
        """Read the items for every query.

        Args:
            query: `(batch, queries, query_dim)`, or `(batch, query_dim)` for a single query.
            key: The keys, or what `prepare` made of them.
            value: The values; by default the keys.
            mask: True = may attend: `(batch, keys)`, or `(batch or 1, queries, keys)`.
            state: What the step before returned, for stateful mechanisms.
            need_weights: Whether the weights are wanted.

        Returns:
            Context and weights (without the queries axis for a single query), and what else the
            mechanism has to say.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
            MechanismError: A stateful mechanism is given a whole sequence without a state.
        """
        query, single = with_queries_axis(self._name(), self.query_dim, query)
        per_query, shared = split_mask(mask, whole=isinstance(key, Prepared))
        prepared = self._prepared(key, value, shared)
        check_pair(self._name(), self.score, query, prepared)
        if self.traits.stateful and state is None and query.shape[1] > 1:
            raise MechanismError(
                f"queries must come one at a time for {self._name()} without a state; got "
                f"{query.shape[1]}. Use regard.unroll to run it over a sequence."
            )
        allowed = allowed_pairs(prepared, per_query, query.shape[-2])
        attended = attend(self, Reading(query, prepared, allowed), state)
        weights = attended.weights if need_weights else None
        attended = attended._replace(weights=weights)
        return _without_queries_axis(attended) if single else attended

    def _prepared(
        self, key: Tensor | Prepared, value: Tensor | None, mask: Tensor | None
    ) -> Prepared:
        if not isinstance(key, Prepared):
            return self.prepare(key, value, mask=mask)
        if value is not None:
            raise ShapeError("value must be left out when the keys are prepared; it is in them.")
        return key

    def _name(self) -> str:
        parts = f"Attention({type(self.score).__name__}, {type(self.selection).__name__})"
        return f"{parts} at {self.label}" if self.label else parts


def unroll(
    attention: Attention,
    queries: Float[Tensor, "batch queries query_dim"],
    prepared: Prepared,
    *,
    state: State | None = None,
) -> Attended:
    """Run an attention over the queries one after the other, handing the state on.

    For mechanisms that depend on earlier steps; without state it gives what one parallel call
    gives.

    Args:
        attention: The attention.
        queries: One query for each step.
        prepared: The keys, prepared once.
        state: The state to begin with.

    Returns:
        The steps joined along the queries axis, and the last state.

    Raises:
        ShapeError: There is no query.
    """
    if queries.shape[1] == 0:
        raise ShapeError("queries must hold at least 1 step; got 0.")
    steps: list[Attended] = []
    for query in queries.unbind(dim=1):
        steps.append(attention(query.unsqueeze(1), prepared, state=state))
        state = steps[-1].state
    joined = [
        None if parts[0] is None else torch.cat([p for p in parts if p is not None], dim=1)
        for parts in zip(
            *[(s.context, s.weights, s.distribution, s.log_prob) for s in steps], strict=True
        )
    ]
    context, weights, distribution, log_prob = joined
    if context is None:  # pragma: no cover - a context is always there
        raise ShapeError("context must be there.")
    return Attended(context, weights, state, distribution, log_prob)


def _without_queries_axis(attended: Attended) -> Attended:
    parts = (attended.context, attended.weights, attended.distribution, attended.log_prob)
    context, weights, distribution, log_prob = [None if p is None else p.squeeze(1) for p in parts]
    if context is None:  # pragma: no cover - a context is always there
        raise ShapeError("context must be there.")
    return Attended(context, weights, attended.state, distribution, log_prob)
