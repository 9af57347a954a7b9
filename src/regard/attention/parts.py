"""What the parts of an attention are, and what passes between them."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Traits:
    """What a part states of itself; the conformance suite reads it.

    Args:
        normalised: The weights of a row that may attend to something sum to one.
        permutation_equivariant: Permuting the keys permutes the weights.
        stochastic: The weights are drawn at random in training.
        differentiable: Gradients reach the scores through the weights in training.
        stateful: The result depends on the state that an earlier step returned.
        positional_queries: The result depends on a query's place among the queries, which are
            then a sequence whose last place is that of the last key.
        hard_evaluation: In evaluation one key is chosen, and no gradient reaches the scores.
        straight_through: The gradient is that of a smooth stand-in for the weights.
        reads_keys: The weights depend on what the keys hold.
    """

    normalised: bool = True
    permutation_equivariant: bool = True
    stochastic: bool = False
    differentiable: bool = True
    stateful: bool = False
    positional_queries: bool = False
    hard_evaluation: bool = False
    straight_through: bool = False
    reads_keys: bool = True

    def joined(self, other: Traits) -> Traits:
        """Say what holds for a score and a selection together."""
        return Traits(
            normalised=self.normalised and other.normalised,
            permutation_equivariant=self.permutation_equivariant and other.permutation_equivariant,
            stochastic=self.stochastic or other.stochastic,
            differentiable=self.differentiable and other.differentiable,
            stateful=self.stateful or other.stateful,
            positional_queries=self.positional_queries or other.positional_queries,
            hard_evaluation=self.hard_evaluation or other.hard_evaluation,
            straight_through=self.straight_through or other.straight_through,
            reads_keys=self.reads_keys and other.reads_keys,
        )


class State(NamedTuple):
    """What a mechanism remembers from one step to the next; None at the start.

    Args:
        weights: The weights of the last step, `(batch, queries, keys)`, with heads second where
            there are heads.
        total: The weights of all steps so far, summed, of the same shape.
        step: How many steps have been made.
    """

    weights: Float[Tensor, "*lead queries keys"]
    total: Float[Tensor, "*lead queries keys"]
    step: int

    def select(self, index: Int[Tensor, "batch hypotheses"]) -> State:
        """Reorder the hypotheses of a beam: row `i` becomes what row `index[i]` was.

        Args:
            index: For every sentence, the old place of each new hypothesis.

        Returns:
            The state of the new hypotheses.
        """
        chosen = index.unsqueeze(-1)
        if self.weights.dim() == 4:
            chosen = chosen.unsqueeze(1)  # (batch, heads, hypotheses, keys)
        sizes = self.weights.shape
        chosen = chosen.expand(*sizes[:-2], index.shape[-1], sizes[-1])
        return State(self.weights.gather(-2, chosen), self.total.gather(-2, chosen), self.step)

    @classmethod
    def following(cls, before: State | None, weights: Tensor) -> State:
        """Return the state after a step with these weights."""
        if before is None:
            return cls(weights, weights, 1)
        return cls(weights, before.total + weights, before.step + 1)


class Prepared(NamedTuple):
    """Keys and values made ready once, to be read at every step.

    Args:
        key: Projected keys, `(batch, keys, dim)`, with heads second where there are heads.
        value: Values, `(batch, keys, value_dim)`, with heads second where there are heads.
        mask: True where any query may attend, or None where all keys may be attended to.
        broken: True where a key that may be attended to holds NaN or infinity. Such keys were
            replaced; a query that attends to one gets NaN, and no other query does.
    """

    key: Float[Tensor, "batch *heads keys dim"]
    value: Float[Tensor, "batch *heads keys value_dim"]
    mask: Bool[Tensor, "batch keys"] | None
    broken: Bool[Tensor, "batch keys"]

    def select(self, index: Int[Tensor, " chosen"] | Bool[Tensor, " batch"]) -> Prepared:
        """Keep some rows of the batch: finished sentences are dropped, caches reordered.

        Args:
            index: Which rows to keep, as places or as a bool vector over the batch.

        Returns:
            The rows kept, in the order of the index.
        """
        mask = None if self.mask is None else self.mask[index]
        return Prepared(self.key[index], self.value[index], mask, self.broken[index])

    def append(self, other: Prepared) -> Prepared:
        """Add keys behind those that are there, as a self-attention cache does.

        Args:
            other: More keys and values for the same batch.

        Returns:
            The old keys followed by the new ones.

        Raises:
            ShapeError: The batch, the heads or the sizes differ.
        """
        ours, theirs = [
            (*p.key.shape[:-2], p.key.shape[-1], p.value.shape[-1]) for p in (self, other)
        ]
        if ours != theirs:
            raise ShapeError(
                f"other must have the batch, heads and sizes of the keys it is added to; got "
                f"{tuple(other.key.shape)} and {tuple(other.value.shape)} for "
                f"{tuple(self.key.shape)} and {tuple(self.value.shape)}. Prepare both with one "
                "attention."
            )
        mask = None
        if self.mask is not None or other.mask is not None:
            mask = torch.cat([_full(self), _full(other)], dim=-1)
        return Prepared(
            torch.cat([self.key, other.key], dim=-2),
            torch.cat([self.value, other.value], dim=-2),
            mask,
            torch.cat([self.broken, other.broken], dim=-1),
        )


def _full(prepared: Prepared) -> Tensor:
    if prepared.mask is not None:
        return prepared.mask
    return torch.ones_like(prepared.broken)


class Attended(NamedTuple):
    """What an attention returns, always of this one type.

    Args:
        context: The weighted sums of the values, `(batch, queries, value_dim)`.
        weights: The weights used, before attention dropout, `(batch, queries, keys)`; None only
            where `need_weights=False` allowed a path that never builds them.
        state: What a stateful mechanism wants to see at the next step; else None.
        distribution: What was chosen from: the same tensor as `weights` unless it was sampled.
        log_prob: Logarithm of the probability of the choice, `(batch, queries)`; None where
            nothing was sampled.
    """

    context: Float[Tensor, "..."]
    weights: Float[Tensor, "..."] | None
    state: State | None
    distribution: Float[Tensor, "..."] | None
    log_prob: Float[Tensor, "..."] | None


class Selected(NamedTuple):
    """Weights made of scores, what they were chosen from, and how likely they were."""

    weights: Float[Tensor, "*lead queries keys"]
    distribution: Float[Tensor, "*lead queries keys"]
    log_prob: Float[Tensor, "*lead queries"] | None


class Score(nn.Module, abc.ABC):
    """How much each key has to do with each query.

    A score works on any leading axes, so that batch and heads need no special case.

    Attributes:
        traits: What the score states of itself.
        query_dim: Size of the queries it takes; None where any size will do.
        key_dim: Size of the keys it takes; None where any size will do.
        one_size: Whether queries must have the size of the prepared keys.
        constant: Whether all keys get one score, so that none can be preferred.
    """

    traits: Traits = Traits()
    one_size: bool = False
    constant: bool = False
    query_dim: int | None
    key_dim: int | None

    @abc.abstractmethod
    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Do what depends on the keys alone, once."""

    @abc.abstractmethod
    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""

    def read(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        value: Float[Tensor, "*lead keys value_dim"],
        mask: Bool[Tensor, "..."] | None,
        *,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*lead queries value_dim"] | None:
        """Read values by the softmax of the scores in one pass that builds no weights.

        Args:
            query: The queries.
            prepared_key: What `prepare` made of the keys.
            value: The values.
            mask: True = may attend; broadcasts against the scores.
            temperature: What the scores are divided by.

        Returns:
            The contexts, zero where there is nothing to attend to; None where there is no such
            pass for this score.
        """
        return None


class Selection(nn.Module, abc.ABC):
    """How scores become weights.

    Attributes:
        traits: What the selection states of itself.
        query_dim: Size of the queries that it looks at; None where it looks at none.
        needs_preference: Whether it means nothing after a score that is the same for all keys.
    """

    traits: Traits = Traits()
    query_dim: int | None = None
    needs_preference: bool = False

    @abc.abstractmethod
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


class Mechanism(nn.Module):
    """A score and a selection: what `Attention` and `MultiHead` share.

    Args:
        score: How relevance is scored.
        selection: How scores become weights.
        dropout: Probability that a weight is dropped in training.

    Attributes:
        check_finite: Whether a score that is not finite raises an error.
        label: Where in a model it stands, for messages; `check_finite` fills it in.
    """

    def __init__(self, score: Score, selection: Selection, dropout: float) -> None:
        super().__init__()
        self.score = score
        self.selection = selection
        self.dropout = dropout
        self.check_finite = False
        self.label = ""

    @property
    def traits(self) -> Traits:
        """What the score and the selection state together."""
        return self.score.traits.joined(self.selection.traits)

    @property
    def name(self) -> str:
        """The mechanism in words, for messages."""
        parts = f"{type(self.score).__name__}, {type(self.selection).__name__}"
        where = f" at {self.label}" if self.label else ""
        return f"{type(self).__name__}({parts}){where}"
