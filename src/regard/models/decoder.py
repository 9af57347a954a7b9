"""What a decoder is, what it carries from step to step, and what it hands back."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Attended, Attention, MultiHead, Prepared, State
from regard.models.encoders import Encoded


class DecoderState(NamedTuple):
    """All that a decoder carries from one step to the next, for every hypothesis.

    Args:
        memory: What each attention over the items reads; one row for a sentence, shared by its
            hypotheses.
        hidden: Tensors with one row for a hypothesis, `(batch, hypotheses, ...)`.
        caches: Self-attention caches, `(batch · hypotheses, ...)`.
        attention: The state of a stateful attention, or None.
        position: How many tokens have been read.
    """

    memory: tuple[Prepared, ...]
    hidden: tuple[Float[Tensor, "batch hypotheses *rest"], ...]
    caches: tuple[Prepared, ...]
    attention: State | None
    position: int

    def select(self, index: Int[Tensor, "batch hypotheses"]) -> DecoderState:
        """Reorder the hypotheses: place `i` gets what place `index[i]` held.

        Args:
            index: For every sentence, the old place of each new hypothesis.

        Returns:
            The state of the new hypotheses.
        """
        rows = torch.arange(index.shape[0], device=index.device).unsqueeze(-1)
        hidden = tuple(tensor[rows, index] for tensor in self.hidden)
        caches = self.caches
        if caches:
            old = caches[0].broken.shape[0] // max(index.shape[0], 1)
            flat = (rows * old + index).flatten()
            caches = tuple(cache.select(flat) for cache in caches)
        attention = None if self.attention is None else self.attention.select(index)
        return self._replace(hidden=hidden, caches=caches, attention=attention)

    def keep(self, rows: Int[Tensor, " kept"], hypotheses: int) -> DecoderState:
        """Keep some sentences and drop the others.

        Args:
            rows: The places of the sentences to keep.
            hypotheses: How many hypotheses each sentence has.

        Returns:
            The state of the sentences kept.
        """
        places = torch.arange(hypotheses, device=rows.device)
        flat = (rows.unsqueeze(-1) * hypotheses + places).flatten()
        attention = self.attention
        if attention is not None:
            attention = State(attention.weights[rows], attention.total[rows], attention.step)
        return DecoderState(
            tuple(prepared.select(rows) for prepared in self.memory),
            tuple(tensor[rows] for tensor in self.hidden),
            tuple(cache.select(flat) for cache in self.caches),
            attention,
            self.position,
        )


class Decoded(NamedTuple):
    """What a decoder makes of tokens.

    Args:
        features: One vector for every token read, from which the next one is foretold.
        weights: Where it looked, `(batch, maps, tokens, keys)`: one map for each attention or
            head; no map where the decoder does not look.
        distribution: What was chosen from: the same tensor as `weights` unless it was sampled.
        log_prob: Logarithm of the probability of what was chosen at each token, summed over
            maps; None where nothing was sampled.
        query: What was known before each look, from which a learned baseline tells what to
            expect; None from decoders that look several times for a token.
    """

    features: Float[Tensor, "batch tokens dim"]
    weights: Float[Tensor, "batch maps tokens keys"]
    distribution: Float[Tensor, "batch maps tokens keys"]
    log_prob: Float[Tensor, "batch tokens"] | None
    query: Float[Tensor, "batch tokens query_dim"] | None = None

    @classmethod
    def having_seen(
        cls, features: Tensor, looks: Sequence[Attended], query: Tensor | None = None
    ) -> Decoded:
        """Put features and what each attention looked at together, map behind map.

        Args:
            features: One vector for every token read.
            looks: What each attention did, with an axis of maps.
            query: What was known before.

        Returns:
            All maps on one axis.
        """
        weights = _maps([look.weights for look in looks])
        distribution = weights
        if any(look.distribution is not look.weights for look in looks):
            distribution = _maps([look.distribution for look in looks])
        log_probs = [look.log_prob for look in looks if look.log_prob is not None]
        log_prob = torch.stack(log_probs).sum(dim=0) if log_probs else None
        return cls(features, weights, distribution, log_prob, query)

    @classmethod
    def joined(cls, steps: Sequence[Decoded]) -> Decoded:
        """Join steps along the tokens.

        Args:
            steps: What was made of one token after the other, at least one.

        Returns:
            What was made of all of them.
        """
        weights = torch.cat([step.weights for step in steps], dim=2)
        distribution = weights
        if any(step.distribution is not step.weights for step in steps):
            distribution = torch.cat([step.distribution for step in steps], dim=2)
        log_probs = [step.log_prob for step in steps if step.log_prob is not None]
        log_prob = torch.cat(log_probs, dim=1) if log_probs else None
        features = torch.cat([step.features for step in steps], dim=1)
        queries = [step.query for step in steps if step.query is not None]
        query = torch.cat(queries, dim=1) if queries else None
        return cls(features, weights, distribution, log_prob, query)


def _maps(parts: Sequence[Tensor | None]) -> Tensor:
    """Put maps behind each other; what looks at nothing has no map, and no keys either."""
    there = [part for part in parts if part is not None]
    return torch.cat([part for part in there if part.shape[1]] or there[:1], dim=1)


class Decoder(nn.Module, abc.ABC):
    """From tokens written so far to a vector that foretells the next.

    Attributes:
        out_dim: Size of the features.
        embedding: The embedding of the tokens.
    """

    out_dim: int
    embedding: nn.Embedding

    @abc.abstractmethod
    def attentions(self) -> list[Attention | MultiHead]:
        """Return the attentions over the items, in the order of their maps."""

    @abc.abstractmethod
    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first token, with one hypothesis for each sentence."""

    @abc.abstractmethod
    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        """Read one more token of every hypothesis, which stand on the tokens axis."""

    @abc.abstractmethod
    def forward(self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded) -> Decoded:
        """Read whole sequences, as in training."""
