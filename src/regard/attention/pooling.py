"""Attention without a query: which items count, whoever asks."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.core import Attention
from regard.attention.masks import checked
from regard.attention.multihead import MultiHead
from regard.attention.parts import Attended, Score, Selection, State, Traits
from regard.attention.scores.sizes import check_positive
from regard.errors import MechanismError, ShapeError


class Salience(Score):
    """Score items by themselves, the same for every query.

    Args:
        key_dim: Size of the items.
    """

    traits = Traits()
    key_dim: int

    def __init__(self, key_dim: int) -> None:
        super().__init__()
        check_positive(key_dim=key_dim)
        self.query_dim, self.key_dim = None, key_dim

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Repeat the scores of the items for every query."""
        scores = prepared_key.squeeze(-1).unsqueeze(-2)  # (..., 1, keys)
        return functional.widened(scores).expand(*query.shape[:-1], scores.shape[-1])


class TanhSalience(Salience):
    """Score items by a layer and a learned vector: `e_j = w · tanh(W h_j + b)`, gated or not."""

    def __init__(self, key_dim: int, hidden_dim: int, *, gated: bool) -> None:
        super().__init__(key_dim)
        check_positive(hidden_dim=hidden_dim)
        self.hidden = nn.Linear(key_dim, hidden_dim)
        self.gate = nn.Linear(key_dim, hidden_dim) if gated else None
        self.vector = nn.Linear(hidden_dim, 1, bias=False)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys 1"]:
        """Score every item."""
        hidden = torch.tanh(self.hidden(key))
        hidden = hidden if self.gate is None else hidden * torch.sigmoid(self.gate(key))
        scores: Tensor = self.vector(hidden)
        return scores


class LinearSalience(Salience):
    """Score items by one number: `e_j = tanh(w · h_j + b)`."""

    def __init__(self, key_dim: int) -> None:
        super().__init__(key_dim)
        self.projection = nn.Linear(key_dim, 1)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys 1"]:
        """Score every item."""
        return torch.tanh(self.projection(key))


class Pooling(nn.Module):
    """Items in, one vector out: what the poolings that score items by themselves share.

    Args:
        score: How items are scored.
        selection: How scores become weights: a part, or its name.
        dropout: Probability that a weight is dropped in training.
    """

    def __init__(self, score: Salience, selection: Selection | str, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(score, selection, dropout=dropout)
        chosen = self.attention.selection
        if chosen.traits.stateful or chosen.query_dim is not None:
            raise MechanismError(
                f"selection must neither go step by step nor look at a query where there is none; "
                f"got {type(chosen).__name__}. Use Softmax."
            )

    @property
    def key_dim(self) -> int | None:
        """Size of the items, and of the result."""
        return self.attention.key_dim

    def forward(
        self,
        items: Float[Tensor, "batch items key_dim"],
        *,
        mask: Bool[Tensor, "batch items"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Weigh the items and sum them.

        Args:
            items: The items; what the mask hides may hold anything.
            mask: True = counts.
            generator: What draws, where the selection samples; by default PyTorch's global one.

        Returns:
            Context `(batch, key_dim)` and weights `(batch, items)`; zeros for a row without items.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
        """
        nobody = items.new_zeros(items.shape[0], 1)  # it does not matter who asks
        attended: Attended = self.attention(nobody, items, mask=mask, generator=generator)
        return attended


class AttentionPooling(Pooling):
    """Pool by a learned vector: `e_j = w · tanh(W h_j + b)`, `z = Σ softmax(e)_j h_j`.

    The learned vector says what is informative; the order of the items does not matter. With the
    gate, `tanh(W h_j + b) ⊙ σ(U h_j + d)`, which can shut off what tanh keeps nearly linear. The
    attention of documents and of bags of instances.

    Args:
        key_dim: Size of the items.
        hidden_dim: Size of the layer; by default that of the items.
        gated: Whether there is a gate.
        selection: How scores become weights: a part, or its name.
        dropout: Probability that a weight is dropped in training.

    Raises:
        MechanismError: A size is below 1, or the selection goes step by step.

    Example:
        >>> pooling = AttentionPooling(8)
        >>> context, weights, *_ = pooling(torch.ones(2, 5, 8))
        >>> context.shape, weights.shape
        (torch.Size([2, 8]), torch.Size([2, 5]))

    References:
        Yang et al., Hierarchical attention networks for document classification, 2016; Ilse,
        Tomczak and Welling, Attention-based deep multiple instance learning, 2018 (gate).
    """

    def __init__(
        self,
        key_dim: int,
        *,
        hidden_dim: int | None = None,
        gated: bool = False,
        selection: Selection | str = "softmax",
        dropout: float = 0.0,
    ) -> None:
        score = TanhSalience(key_dim, key_dim if hidden_dim is None else hidden_dim, gated=gated)
        super().__init__(score, selection, dropout)


class FeedForwardAttention(Pooling):
    """Pool by one number an item: `e_j = tanh(w · h_j + b)`, `z = Σ softmax(e)_j h_j`.

    Attention over a sequence without recurrence. Scores lie between -1 and 1, so that no item
    weighs more than `e² ≈ 7.4` times another: over long sequences the weights stay broad.

    Args:
        key_dim: Size of the items.
        selection: How scores become weights: a part, or its name.
        dropout: Probability that a weight is dropped in training.

    Raises:
        MechanismError: The size is below 1, or the selection goes step by step.

    Example:
        >>> FeedForwardAttention(8)(torch.ones(2, 4, 8)).weights[0].tolist()
        [0.25, 0.25, 0.25, 0.25]

    References:
        Raffel and Ellis, Feed-forward networks with attention can solve some long-term memory
        problems, 2015.
    """

    def __init__(
        self, key_dim: int, *, selection: Selection | str = "softmax", dropout: float = 0.0
    ) -> None:
        super().__init__(LinearSalience(key_dim), selection, dropout)


class MultiHeadPooling(nn.Module):
    """Pool by a learned query in several heads: `z = out(concat_h Σ_j α_hj W_v h_j)`.

    `α_h = softmax(score(W_q q, W_k h_j))` in every head, `q` learned: each head may ask for
    something else, and the result holds what all of them found. The order of the items does not
    matter. With one head it is still not AttentionPooling, whose result is a sum of the items
    themselves: here they are projected before they are weighed and after they are summed.

    Args:
        key_dim: Size of the items, and of the result.
        num_heads: How many heads; they divide the size.
        score: How items are scored: a part for queries and keys of the size of a head, or its name.
        selection: How scores become weights: a part, or its name.
        dropout: Probability that a weight is dropped in training.

    Raises:
        MechanismError: The heads do not divide the size, or a part goes step by step.

    Example:
        >>> context, weights, *_ = MultiHeadPooling(8, 2)(torch.ones(3, 5, 8))
        >>> context.shape, weights.shape
        (torch.Size([3, 8]), torch.Size([3, 2, 5]))

    References:
        Lee et al., Set Transformer, 2019 (pooling by multi-head attention).
    """

    def __init__(
        self,
        key_dim: int,
        num_heads: int = 4,
        *,
        score: Score | str = "scaled_dot",
        selection: Selection | str = "softmax",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = MultiHead(
            num_heads, key_dim, score=score, selection=selection, dropout=dropout
        )
        if self.attention.traits.stateful:
            raise MechanismError(
                f"score and selection must not go step by step where one query asks once; got "
                f"{self.attention.name}. Use scaled_dot and softmax."
            )
        self.query = nn.Parameter(torch.empty(key_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the query anew, and what the attention has."""
        nn.init.normal_(self.query)
        self.attention.reset_parameters()

    @property
    def key_dim(self) -> int:
        """Size of the items, and of the result."""
        return self.attention.key_dim

    def forward(
        self,
        items: Float[Tensor, "batch items key_dim"],
        *,
        mask: Bool[Tensor, "batch items"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Weigh the items in every head, and put together what each has read.

        Args:
            items: The items; what the mask hides may hold anything.
            mask: True = counts.
            generator: What draws, where the selection samples; by default PyTorch's global one.

        Returns:
            Context `(batch, key_dim)` and weights `(batch, heads, items)`; zeros for a row without
            items.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
            MaskError: The mask has the wrong type or shape.
        """
        query = self.query.expand(items.shape[0], -1)
        attended: Attended = self.attention(query, items, mask=mask, generator=generator)
        return attended


class StepAttention(nn.Module):
    """Weigh the steps of a sequence of fixed length, for each feature by itself.

    `s_·f = softmax_t(φ(W x_·f + b))`: a dense layer over time, from all steps of a feature to a
    score for each, `φ` the identity or tanh; the result is `x_tf · s_tf`, or its sum over the
    steps. Shared, all features take the mean of their distributions. Steps have a fixed place, so
    that it suits windows of a time series; it is not AttentionPooling, whose items have none.

    Args:
        steps: How many steps there are.
        activation: "tanh", or None for the identity.
        shared: Whether all features share one distribution.
        reduce: "sum" to sum the steps, or None to return the weighted sequence in its own shape.

    Raises:
        MechanismError: There are no steps, or a name is unknown.

    Example:
        >>> attention = StepAttention(5)
        >>> context, weights, *_ = attention(torch.ones(2, 5, 3))
        >>> context.shape, weights.shape
        (torch.Size([2, 5, 3]), torch.Size([2, 5, 3]))
    """

    def __init__(
        self,
        steps: int,
        *,
        activation: Literal["tanh"] | None = None,
        shared: bool = False,
        reduce: Literal["sum"] | None = None,
    ) -> None:
        super().__init__()
        check_positive(steps=steps)
        if activation not in (None, "tanh") or reduce not in (None, "sum"):
            raise MechanismError(
                f"activation must be None or 'tanh', and reduce None or 'sum'; got {activation!r} "
                f"and {reduce!r}. None is the default of both."
            )
        self.steps, self.activation, self.shared, self.reduce = steps, activation, shared, reduce
        self.dense = nn.Linear(steps, steps)

    def forward(
        self,
        sequence: Float[Tensor, "batch steps features"],
        *,
        mask: Bool[Tensor, "batch steps"] | None = None,
    ) -> Attended:
        """Weigh the steps.

        Args:
            sequence: The sequence; what the mask hides may hold anything.
            mask: True = counts.

        Returns:
            Context `(batch, steps, features)`, or `(batch, features)` summed; weights `(batch,
            steps, features)`, or `(batch, steps)` where they are shared.

        Raises:
            ShapeError: There is another number of steps.
            MaskError: The mask has the wrong type or shape.
        """
        if sequence.dim() != 3 or sequence.shape[1] != self.steps:
            raise ShapeError(
                f"sequence must have shape (batch, steps={self.steps}, features); got "
                f"{tuple(sequence.shape)}. Pad it under a mask, or build it for that length."
            )
        allowed = None
        if mask is not None:
            allowed = checked(mask, batch=sequence.shape[0], keys=self.steps)  # (batch, 1, steps)
            sequence = sequence.masked_fill(~mask.unsqueeze(-1), 0.0)
        scores = self.dense(sequence.transpose(1, 2))  # (batch, features, steps)
        scores = scores if self.activation is None else torch.tanh(scores)
        weights = functional.masked_softmax(scores, allowed).transpose(1, 2)
        weights = weights.mean(dim=2, keepdim=True) if self.shared else weights
        weighted = (sequence * weights).to(sequence.dtype)
        context = weighted.sum(dim=1) if self.reduce == "sum" else weighted
        weights = weights.squeeze(2) if self.shared else weights
        return Attended(context, weights, None, weights, None)


POOLINGS: dict[str, type[nn.Module]] = {
    "attention_pooling": AttentionPooling,
    "feed_forward": FeedForwardAttention,
    "multihead": MultiHeadPooling,
    "step": StepAttention,
}
