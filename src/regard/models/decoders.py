"""Decoders: tokens written one after the other, with a look at the items for each."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Attended, Attention, MultiHead, masks
from regard.errors import MechanismError, did_you_mean
from regard.models.decoder import Decoded, Decoder, DecoderState
from regard.models.encoders import Encoded
from regard.models.layers import TransformerDecoderLayer, placed
from regard.models.mechanisms import check_reads
from regard.models.recurrent import Bridge, ContextReader, RecurrentCore, Sources

__all__ = ["Decoded", "Decoder", "DecoderState", "RecurrentDecoder", "TransformerDecoder"]


class RecurrentDecoder(Decoder):
    """A recurrent decoder that looks at the items for every token, or never.

    In which order it looks and advances, `y` being the token read, `s` its state, `c` the
    context and `f` the features:

    - "bahdanau": `c_t = attention(s_{t-1})`, `s_t = cell([y; c_t], s_{t-1})`,
      `f_t = tanh(W [s_t; c_t; y])`.
    - "luong": `s_t = cell(y, s_{t-1})`, `c_t = attention(s_t)`, `f_t = tanh(W [s_t; c_t])`, the
      attentional state. No step depends on where an earlier one looked, so that training reads a
      whole sequence at once.
    - "input_feeding": as "luong", with `s_t = cell([y; f_{t-1}], s_{t-1})`.
    - "none": `s_t = cell(y, s_{t-1})`, `f_t = tanh(W s_t)`. It sees the source only through its
      first state, `s_0`, which a bridge makes of the encoder's final vector.

    Without an attention the first three read the encoder's final vector as a constant context.

    Args:
        embedding: The embedding of the tokens; its size is that of the features.
        encoder_dims: Sizes of the encoder's items and of its final vector.
        hidden_dim: Size of the states; the attention's queries have this size.
        attention: An attention over the items, with heads or without, or None.
        order: A name in `ORDERS`.
        cell: "rnn" (tanh), "gru" or "lstm".
        layers: How many layers.
        dropout: Probability of dropping an input, a feature, or a state between layers.
        gated: Whether a gate says how much the context counts.
        attentional: Whether the features pass through the tanh, as Luong's attentional state
            does; without it they are linear in state and context.

    Raises:
        MechanismError: The order or the cell is unknown, the attention's sizes do not fit, or
            the order "none" is given an attention.

    References:
        Bahdanau, Cho and Bengio 2015; Luong, Pham and Manning 2015 (attentional state, input
        feeding); Cho et al. 2014 (constant context); Sutskever, Vinyals and Le, Sequence to
        sequence learning with neural networks, 2014 ("none"); Xu et al. 2015 (gate).
    """

    ORDERS = ("bahdanau", "luong", "input_feeding", "none")

    def __init__(  # noqa: PLR0913 - a decoder is these ten choices
        self,
        embedding: nn.Embedding,
        encoder_dims: tuple[int, int],
        *,
        hidden_dim: int,
        attention: Attention | MultiHead | None,
        order: str = "luong",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
        attentional: bool = True,
        gated: bool = False,
    ) -> None:
        super().__init__()
        self._check(order, attention)
        if attention is not None:
            check_reads(attention, query_dim=hidden_dim, memory_dim=encoder_dims[0])
        self.embedding, self.order, self.attentional = embedding, order, attentional
        self.out_dim = dim = embedding.embedding_dim
        memory_dim, final_dim = encoder_dims
        self.reader = ContextReader(
            attention,
            memory_dim,
            0 if order == "none" else final_dim,
            query_dim=hidden_dim if gated else None,
        )
        extra = {"bahdanau": self.reader.out_dim, "input_feeding": dim}.get(order, 0)
        self.core = RecurrentCore(
            dim + extra, hidden_dim, cell=cell, layers=layers, dropout=dropout
        )
        self.bridge = Bridge(final_dim, self.core.states, hidden_dim)
        seen = hidden_dim + self.reader.out_dim + (dim if order == "bahdanau" else 0)
        self.readout = nn.Linear(seen, dim)
        self.dropout = nn.Dropout(dropout)

    def _check(self, order: str, attention: Attention | MultiHead | None) -> None:
        if order not in self.ORDERS:
            known = did_you_mean(order, self.ORDERS)
            raise MechanismError(f"order must be known; got {order!r}: {known}")
        if order == "none" and attention is not None:
            raise MechanismError(
                f"attention must be None for the order 'none', which never looks; got "
                f"{attention.name}. Leave it out, or choose the order 'luong'."
            )

    def attentions(self) -> list[Attention | MultiHead]:
        """Return the attention over the items, if there is one."""
        return [] if self.reader.attention is None else [self.reader.attention]

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
        if self._reads_at_once:
            outputs, look = self._read(embedded, state)
            features = self.features(outputs, look.context)
            return Decoded.having_seen(features, [look], outputs)
        steps: list[Decoded] = []
        for token in embedded.unbind(dim=1):
            decoded, state = self._advance(token.unsqueeze(1), state)
            steps.append(decoded)
        return Decoded.joined(steps or [self._nothing(embedded, state)])

    @property
    def _reads_at_once(self) -> bool:
        return self.order in ("luong", "none") and not self.reader.stateful

    def _read(self, embedded: Tensor, state: DecoderState) -> tuple[Tensor, Attended]:
        outputs, _ = self.core.run(embedded, state.hidden[0])
        return outputs, self.reader(outputs, self._sources(state))

    def read(
        self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded
    ) -> tuple[Tensor, Attended, Float[Tensor, "batch keys dim"]]:
        """Read whole sequences up to the contexts, where no step depends on an earlier look.

        Args:
            tokens: Tokens, each of which foretells the next.
            encoded: What the encoder made of the source.

        Returns:
            The states of every token, what was looked at for it, and the values of the items.

        Raises:
            MechanismError: Steps depend on earlier looks, or nothing is looked at.
        """
        state = self.start(encoded)
        if not (self._reads_at_once and state.memory):
            raise MechanismError(
                f"order must be 'luong', with an attention that needs no state, to read a sequence "
                f"at once; got {self.order!r}. Call the decoder instead."
            )
        outputs, look = self._read(self.dropout(self.embedding(tokens)), state)
        return outputs, look, state.memory[0].value

    def features(
        self, outputs: Float[Tensor, "batch tokens hidden"], context: Float[Tensor, "batch *n dim"]
    ) -> Float[Tensor, "batch tokens out_dim"]:
        """Make features of states and contexts, or of one context for all tokens."""
        if context.dim() == 2:
            context = context.unsqueeze(1).expand(-1, outputs.shape[1], -1)
        features: Tensor = self.readout(torch.cat([outputs, context], -1))
        kept: Tensor = self.dropout(torch.tanh(features) if self.attentional else features)
        return kept

    def _nothing(self, embedded: Tensor, state: DecoderState) -> Decoded:
        """Return what is made of no token: a sequence may be empty."""
        query = embedded.new_zeros(embedded.shape[0], 0, self.core.hidden_dim)
        look = self.reader(query, self._sources(state))
        return Decoded.having_seen(embedded.new_zeros(embedded.shape[0], 0, self.out_dim), [look])

    def _advance(
        self, embedded: Float[Tensor, "batch hypotheses dim"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        states, fed, fixed = state.hidden
        sources = self._sources(state)
        query = self.core.top(states)
        if self.order == "bahdanau":
            look = self.reader(query, sources)
            embedded = torch.cat([embedded, look.context], dim=-1)
        elif self.order == "input_feeding":
            embedded = torch.cat([embedded, fed], dim=-1)
        outputs, states = self.core.run(embedded.flatten(0, 1).unsqueeze(1), states)
        outputs = outputs.view(*embedded.shape[:2], self.core.hidden_dim)
        if self.order == "bahdanau":
            features = self.features(outputs, embedded)
        else:
            query = outputs
            look = self.reader(query, sources)
            features = self.features(outputs, look.context)
        hidden = (states, features, fixed)
        after = DecoderState(state.memory, hidden, (), look.state, state.position + 1)
        return Decoded.having_seen(features, [look], query), after

    def _sources(self, state: DecoderState) -> Sources:
        return Sources(state.memory, state.hidden[2], state.attention)


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
        look: Names of the score and of the selection of the attentions over the items.

    Raises:
        MechanismError: The heads do not divide the size, or the look is unknown or depends on
            earlier steps.

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
        look: tuple[str, str] = ("scaled_dot", "softmax"),
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.out_dim = dim = embedding.embedding_dim
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(
                dim,
                num_heads,
                memory_dim=memory_dim,
                hidden_dim=hidden_dim,
                dropout=dropout,
                look=look,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)

    def attentions(self) -> list[Attention | MultiHead]:
        """Return the attentions over the items, layer by layer."""
        return [layer.cross_attention for layer in self._stack()]

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first token, with one hypothesis for each sentence."""
        memory = tuple(layer.prepare(encoded.memory, encoded.mask) for layer in self._stack())
        return DecoderState(memory, (), (), None, 0)

    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        """Read one more token of every hypothesis."""
        items = self._embed(tokens.unsqueeze(-1), state.position)  # (batch, hypotheses, 1, dim)
        caches, looks = [], []
        for place, layer in enumerate(self._stack()):
            cache = state.caches[place] if state.caches else None
            items, look, cache = layer.step(items, state.memory[place], cache)
            caches.append(cache)
            looks.append(look)
        features = self.norm(items).squeeze(2)
        after = state._replace(caches=tuple(caches), position=state.position + 1)
        return Decoded.having_seen(features, looks), after

    def forward(self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded) -> Decoded:
        """Read whole sequences, as in training."""
        items = self._embed(tokens, 0)
        causal = masks.causal(tokens.shape[1], device=tokens.device)
        looks = []
        for layer in self._stack():
            memory = layer.prepare(encoded.memory, encoded.mask)
            items, look = layer(items, causal, memory)
            looks.append(look)
        return Decoded.having_seen(self.norm(items), looks)

    def _embed(self, tokens: Tensor, position: int) -> Tensor:
        items: Tensor = self.dropout(placed(self.embedding(tokens), position, tokens.shape[-1]))
        return items

    def _stack(self) -> list[TransformerDecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, TransformerDecoderLayer)]
