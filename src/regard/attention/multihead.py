"""Several attentions side by side, each over its own projection."""

from __future__ import annotations

import copy

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.building import (
    build_score,
    build_selection,
    check_items,
    check_key_mask,
    checked_dropout,
    split_mask,
    with_queries_axis,
)
from regard.attention.parts import Attended, Prepared, Score, Selection, State, Traits
from regard.attention.reading import Reading, allowed_pairs, attend, sanitised
from regard.errors import MechanismError, ShapeError


class MultiHead(nn.Module):
    """Attention in several heads: `out(concat_h attention_h(W_q q, W_k k, W_v v))`.

    Each head reads its own projection of queries, keys and values; a score with parameters has
    its own in every head. Weights come with heads second: `(batch, heads, queries, keys)`.

    Args:
        num_heads: How many heads.
        query_dim: Size of the queries, and of the result.
        key_dim: Size of the keys; by default that of the queries.
        value_dim: Size of the values; by default that of the keys.
        score: A part for queries and keys of size `query_dim // num_heads`, or its name.
        selection: How scores become weights: a part, or its name.
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
        score: Score | str = "scaled_dot",
        selection: Selection | str = "softmax",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_heads < 1 or query_dim < 1 or query_dim % num_heads:
            raise MechanismError(
                f"num_heads must divide query_dim; got {num_heads} and {query_dim}. "
                "Choose sizes such as 8 heads of 64."
            )
        self.num_heads, self.query_dim = num_heads, query_dim
        self.key_dim = query_dim if key_dim is None else key_dim
        self.value_dim = self.key_dim if value_dim is None else value_dim
        self.query_projection = nn.Linear(query_dim, query_dim)
        self.key_projection = nn.Linear(self.key_dim, query_dim)
        self.value_projection = nn.Linear(self.value_dim, query_dim)
        self.out_projection = nn.Linear(query_dim, query_dim)
        self.score = _per_head(
            build_score(score, _head_sizes(score, query_dim // num_heads)), num_heads
        )
        self.selection = build_selection(selection)
        self.dropout = checked_dropout(dropout)
        self.check_finite = False
        self.label = ""
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

    @property
    def traits(self) -> Traits:
        """What the score and the selection state together."""
        return self.score.traits.joined(self.selection.traits)

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
        check_items(self._name(), self.key_dim, key, value)
        if value is not None and value.shape[-1] != self.value_dim:
            raise ShapeError(
                f"value must have size value_dim={self.value_dim} for {self._name()}; got "
                f"{value.shape[-1]}."
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

        Returns:
            Context `(batch, queries, query_dim)` and weights `(batch, heads, queries, keys)`;
            without the queries axis for a single query. `log_prob` is summed over heads.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
        """
        query, single = with_queries_axis(self._name(), self.query_dim, query)
        per_query, shared = split_mask(mask, whole=isinstance(key, Prepared))
        if not isinstance(key, Prepared):
            key = self.prepare(key, value, mask=shared)
        elif value is not None:
            raise ShapeError("value must be left out when the keys are prepared; it is in them.")
        if query.shape[0] != key.broken.shape[0]:
            raise ShapeError(
                f"query and key must have one batch size for {self._name()}; got "
                f"{query.shape[0]} and {key.broken.shape[0]}."
            )
        allowed = allowed_pairs(key, per_query, query.shape[1], self.num_heads)
        # A query that may attend to nothing in any head may hold anything, NaN included.
        if allowed is not None:
            nothing = ~allowed.any(dim=-1).any(dim=1)  # (batch or 1, queries or 1)
            query = query.masked_fill(nothing.unsqueeze(-1), 0.0)
        reading = Reading(self._heads(self.query_projection(query)), key, allowed)
        attended = self._joined(attend(self, reading, state), allowed)
        attended = attended if need_weights else attended._replace(weights=None)
        return _single(attended) if single else attended

    def _heads(self, tensor: Tensor) -> Tensor:
        parts = tensor.view(*tensor.shape[:-1], self.num_heads, -1)
        return parts.transpose(1, 2)  # (batch, heads, length, dim)

    def _joined(self, attended: Attended, allowed: Tensor | None) -> Attended:
        context = self.out_projection(attended.context.transpose(1, 2).flatten(2))
        if allowed is not None:
            # The bias of the projection must not speak for a query that saw nothing.
            nothing = ~allowed.any(dim=-1).any(dim=1)
            context = context.masked_fill(nothing.unsqueeze(-1), 0.0)
        log_prob = None if attended.log_prob is None else attended.log_prob.sum(dim=1)
        return attended._replace(context=context, log_prob=log_prob)

    def _name(self) -> str:
        parts = f"MultiHead({type(self.score).__name__}, {type(self.selection).__name__})"
        return f"{parts} at {self.label}" if self.label else parts


class HeadScores(Score):
    """One copy of a score for each head, each with its own parameters.

    Args:
        score: The score to copy; its parameters are drawn anew in each copy.
        num_heads: How many copies.
    """

    def __init__(self, score: Score, num_heads: int) -> None:
        super().__init__()
        self.traits = score.traits
        self.query_dim, self.key_dim = score.query_dim, score.key_dim
        self.heads = nn.ModuleList(copy.deepcopy(score) for _ in range(num_heads))
        for head in self.heads:
            for module in head.modules():
                reset = getattr(module, "reset_parameters", None)
                if callable(reset):
                    reset()

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Prepare the keys of every head with its own score."""
        prepared = [s.prepare(k) for s, k in zip(self._scores(), key.unbind(1), strict=True)]
        return torch.stack(prepared, dim=1)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every head's keys for its queries."""
        pairs = zip(self._scores(), query.unbind(1), prepared_key.unbind(1), strict=True)
        states = [None if state is None else _head_state(state, h) for h in range(len(self.heads))]
        scored = [s(q, k, states[h]) for h, (s, q, k) in enumerate(pairs)]
        return torch.stack(scored, dim=1)

    def _scores(self) -> list[Score]:
        return [head for head in self.heads if isinstance(head, Score)]


def _head_state(state: State, head: int) -> State:
    return State(state.weights[:, head], state.total[:, head], state.step)


def _per_head(score: Score, num_heads: int) -> Score:
    """Copy a score that has parameters for every head; one without serves all at once."""
    return HeadScores(score, num_heads) if any(True for _ in score.parameters()) else score


def _head_sizes(score: Score | str, head_dim: int) -> dict[str, int | None]:
    if isinstance(score, Score):
        return {}
    sizes: dict[str, int | None] = {"query_dim": head_dim, "key_dim": head_dim}
    return {**sizes, "hidden_dim": head_dim} if score == "additive" else sizes


def _single(attended: Attended) -> Attended:
    parts = (attended.weights, attended.distribution)
    weights, distribution = [None if part is None else part.squeeze(2) for part in parts]
    log_prob = None if attended.log_prob is None else attended.log_prob.squeeze(1)
    return Attended(attended.context.squeeze(1), weights, attended.state, distribution, log_prob)
