"""Decoders: tokens written one after the other, with a look at the items for each."""

from __future__ import annotations

import abc
import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Attention, Prepared, State, masks
from regard.errors import MechanismError, did_you_mean
from regard.models.encoders import Encoded
from regard.models.layers import TransformerDecoderLayer, sinusoids
from regard.models.recurrent import Bridge, ContextReader, RecurrentCore, Sources


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
    """

    features: Float[Tensor, "batch tokens dim"]
    weights: Float[Tensor, "batch maps tokens keys"]


class Decoder(nn.Module, abc.ABC):
    """From tokens written so far to a vector that foretells the next.

    Attributes:
        out_dim: Size of the features.
        embedding: The embedding of the tokens.
    """

    out_dim: int
    embedding: nn.Embedding

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


class RecurrentDecoder(Decoder):
    """A recurrent decoder that looks at the items for every token.

    In which order it looks and advances, `y` being the token read, `s` its state, `c` the
    context and `f` the features:

    - "bahdanau": `c_t = attention(s_{t-1})`, `s_t = cell([y; c_t], s_{t-1})`,
      `f_t = tanh(W [s_t; c_t; y])`.
    - "luong": `s_t = cell(y, s_{t-1})`, `c_t = attention(s_t)`, `f_t = tanh(W [s_t; c_t])`. No step
      depends on where an earlier one looked, so that training reads a whole sequence at once.
    - "input_feeding": as "luong", with `s_t = cell([y; f_{t-1}], s_{t-1})`.

    Args:
        embedding: The embedding of the tokens; its size is that of the features.
        encoder_dims: Sizes of the encoder's items and of its final vector.
        hidden_dim: Size of the states; the attention's queries have this size.
        attention: An attention over the items, or None for the encoder's final vector as a
            constant context.
        order: A name in `ORDERS`.
        cell: "gru" or "lstm".
        layers: How many layers.
        dropout: Probability of dropping an input, a feature, or a state between layers.

    Raises:
        MechanismError: The order or the cell is unknown.

    References:
        Bahdanau, Cho and Bengio 2015; Luong, Pham and Manning 2015.
    """

    ORDERS = ("bahdanau", "luong", "input_feeding")

    def __init__(  # noqa: PLR0913 - a decoder is these eight choices
        self,
        embedding: nn.Embedding,
        encoder_dims: tuple[int, int],
        *,
        hidden_dim: int,
        attention: Attention | None,
        order: str = "luong",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if order not in self.ORDERS:
            known = did_you_mean(order, self.ORDERS)
            raise MechanismError(f"order must be known; got {order!r}: {known}")
        self.embedding, self.order = embedding, order
        self.out_dim = dim = embedding.embedding_dim
        self.reader = ContextReader(attention, *encoder_dims)
        extra = {"bahdanau": self.reader.out_dim, "luong": 0, "input_feeding": dim}[order]
        self.core = RecurrentCore(
            dim + extra, hidden_dim, cell=cell, layers=layers, dropout=dropout
        )
        self.bridge = Bridge(encoder_dims[1], self.core.states, hidden_dim)
        seen = hidden_dim + self.reader.out_dim + (dim if order == "bahdanau" else 0)
        self.readout = nn.Linear(seen, dim)
        self.dropout = nn.Dropout(dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first token, with one hypothesis for each sentence."""
        states = self.bridge(encoded.final)
        fed = states.new_zeros(states.shape[0], 1, self.out_dim)
        fixed = encoded.final.unsqueeze(1)
        return DecoderState(self.reader.prepare(encoded), (states, fed, fixed), (), None, 0)

    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        """Read one more token of every hypothesis."""
        return self._advance(self.dropout(self.embedding(tokens)), state)

    def forward(self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded) -> Decoded:
        """Read whole sequences, as in training."""
        state = self.start(encoded)
        embedded = self.dropout(self.embedding(tokens))
        if self.order == "luong" and not self.reader.stateful:
            outputs, _ = self.core.run(embedded, state.hidden[0])
            context, weights, _ = self.reader(outputs, self._sources(state))
            return Decoded(self._features(outputs, context), weights)
        steps: list[Decoded] = []
        for token in embedded.unbind(dim=1):
            decoded, state = self._advance(token.unsqueeze(1), state)
            steps.append(decoded)
        steps = steps or [self._nothing(embedded, state)]
        return Decoded(
            torch.cat([step.features for step in steps], dim=1),
            torch.cat([step.weights for step in steps], dim=2),
        )

    def _nothing(self, embedded: Tensor, state: DecoderState) -> Decoded:
        """Return the features and the weights of no token: a sequence may be empty."""
        keys = state.memory[0].broken.shape[1] if state.memory else 0
        weights = embedded.new_zeros(embedded.shape[0], len(state.memory), 0, keys)
        return Decoded(embedded.new_zeros(embedded.shape[0], 0, self.out_dim), weights)

    def _advance(
        self, embedded: Float[Tensor, "batch hypotheses dim"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        states, fed, fixed = state.hidden
        sources = self._sources(state)
        if self.order == "bahdanau":
            context, weights, attention = self.reader(self.core.top(states), sources)
            embedded = torch.cat([embedded, context], dim=-1)
        elif self.order == "input_feeding":
            embedded = torch.cat([embedded, fed], dim=-1)
        outputs, states = self.core.run(embedded.flatten(0, 1).unsqueeze(1), states)
        outputs = outputs.view(*embedded.shape[:2], self.core.hidden_dim)
        if self.order == "bahdanau":
            features = self._features(outputs, embedded)
        else:
            context, weights, attention = self.reader(outputs, sources)
            features = self._features(outputs, context)
        hidden = (states, features, fixed)
        after = DecoderState(state.memory, hidden, (), attention, state.position + 1)
        return Decoded(features, weights), after

    def _sources(self, state: DecoderState) -> Sources:
        return Sources(state.memory, state.hidden[2], state.attention)

    def _features(self, outputs: Tensor, seen: Tensor) -> Tensor:
        features: Tensor = self.dropout(torch.tanh(self.readout(torch.cat([outputs, seen], -1))))
        return features


class TransformerDecoder(Decoder):
    """A stack of layers with masked self-attention and attention over the items.

    Its maps are those of all layers and heads, layer by layer.

    Args:
        embedding: The embedding of the tokens; its size is that of the features.
        memory_dim: Size of the items.
        num_heads: How many heads.
        layers: How many layers.
        hidden_dim: Size inside the feed-forward layers.
        dropout: Probability of dropping.

    Raises:
        MechanismError: The heads do not divide the size.

    References:
        Vaswani et al., Attention is all you need, 2017.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        memory_dim: int,
        *,
        num_heads: int,
        layers: int,
        hidden_dim: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.out_dim = dim = embedding.embedding_dim
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(
                dim, num_heads, memory_dim=memory_dim, hidden_dim=hidden_dim, dropout=dropout
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first token, with one hypothesis for each sentence."""
        memory = tuple(layer.prepare(encoded.memory, encoded.mask) for layer in self._stack())
        return DecoderState(memory, (), (), None, 0)

    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        """Read one more token of every hypothesis."""
        items = self._embed(tokens.unsqueeze(-1), state.position)  # (batch, hypotheses, 1, dim)
        caches, maps = [], []
        for place, layer in enumerate(self._stack()):
            cache = state.caches[place] if state.caches else None
            items, weights, cache = layer.step(items, state.memory[place], cache)
            caches.append(cache)
            maps.append(weights)
        features = self.norm(items).squeeze(2)
        after = state._replace(caches=tuple(caches), position=state.position + 1)
        return Decoded(features, torch.cat(maps, dim=1)), after

    def forward(self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded) -> Decoded:
        """Read whole sequences, as in training."""
        items = self._embed(tokens, 0)
        causal = masks.causal(tokens.shape[1], device=tokens.device)
        maps = []
        for layer in self._stack():
            memory = layer.prepare(encoded.memory, encoded.mask)
            items, weights = layer(items, causal, memory)
            maps.append(weights)
        return Decoded(self.norm(items), torch.cat(maps, dim=1))

    def _embed(self, tokens: Tensor, position: int) -> Tensor:
        places = sinusoids(position, tokens.shape[-1], self.out_dim, device=tokens.device)
        items: Tensor = self.dropout(self.embedding(tokens) * math.sqrt(self.out_dim) + places)
        return items

    def _stack(self) -> list[TransformerDecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, TransformerDecoderLayer)]
