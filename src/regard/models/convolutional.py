"""A convolutional decoder: every token at once in training, one at a time in writing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Attended, Attention, MultiHead
from regard.errors import MechanismError
from regard.models.decoder import Decoded, Decoder, DecoderState
from regard.models.encoders import Encoded
from regard.models.layers import GatedConvolution, placed
from regard.models.mechanisms import check_reads, check_stateless
from regard.models.recurrent import ContextReader, Sources


class ConvolutionalBlock(nn.Module):
    """A gated convolution over what was written, a look at the items, and a sum.

    `h = GLU(W * x)`, `q = √½ (W_q h + g)`, `c = attention(q)`, `y = √½ (√½ (h + W_c c) + x)`, `x`
    being the block's input and `g` the embedded token. The values are the items themselves;
    Gehring et al. add the source's embeddings to them, and scale `c` by the length.

    Args:
        dims: Sizes of the block and of the embedded tokens; the queries have the second.
        reader: Where the context comes from.
        width: How many tokens the convolution sees, the newest included.
        dropout: Probability of dropping an input.
    """

    def __init__(
        self, dims: tuple[int, int], reader: ContextReader, *, width: int, dropout: float
    ) -> None:
        super().__init__()
        hidden_dim, dim = dims
        self.convolution = GatedConvolution(hidden_dim, width, dropout=dropout)
        self.query_projection = nn.Linear(hidden_dim, dim)
        self.reader = reader
        self.context_projection = nn.Linear(reader.out_dim, hidden_dim)

    def forward(
        self,
        window: Float[Tensor, "flat window hidden_dim"],
        embedded: Float[Tensor, "batch queries dim"],
        sources: Sources,
    ) -> tuple[Float[Tensor, "batch queries hidden_dim"], Attended]:
        """Refine the tokens behind the first `width - 1` of each sequence.

        Args:
            window: Sequences with the `width - 1` inputs before them.
            embedded: The embedded tokens: `batch · queries` are all the tokens of all sequences.
            sources: What the context is read from.

        Returns:
            The refined tokens, and where the block looked.
        """
        shape = (*embedded.shape[:2], window.shape[-1])
        inputs = window[:, self.convolution.width - 1 :].reshape(shape)
        inner = self.convolution(window).reshape(shape)
        half = math.sqrt(0.5)
        attended = self.reader((self.query_projection(inner) + embedded) * half, sources)
        inner = (inner + self.context_projection(attended.context)) * half
        return (inner + inputs) * half, attended


class ConvolutionalDecoder(Decoder):
    """A stack of causal gated convolutions, each with an attention over the items of its own.

    A token sees itself and the `layers · (width - 1)` before it. In writing each block keeps its
    last `width - 1` inputs, so that a step costs the same at any length. Its maps are those of
    all blocks, block by block.

    Args:
        embedding: The embedding of the tokens; its size is that of the features and queries.
        encoder_dims: Sizes of the encoder's items and of its final vector.
        attentions: One attention over the items for each block, with heads or without, or None
            for the encoder's final vector as a constant context.
        hidden_dim: Size of the blocks.
        width: How many tokens one convolution sees, the newest included.
        dropout: Probability of dropping an input of a block, or a feature.

    Raises:
        MechanismError: There is no block, the width is below 1, an attention's sizes do not fit,
            or it depends on earlier steps: each block would need a state.

    References:
        Gehring et al., Convolutional sequence to sequence learning, 2017.
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        encoder_dims: tuple[int, int],
        attentions: Sequence[Attention | MultiHead | None],
        *,
        hidden_dim: int,
        width: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not attentions:
            raise MechanismError(
                "attentions must hold one for each block; got none. Give at least one, or [None]."
            )
        self.embedding, self.hidden_dim, self.width = embedding, hidden_dim, width
        self.out_dim = dim = embedding.embedding_dim
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(dim, hidden_dim)
        self.blocks = nn.ModuleList()
        for attention in attentions:
            if attention is not None:
                check_reads(attention, query_dim=dim, memory_dim=encoder_dims[0])
                check_stateless(attention)
            reader = ContextReader(attention, *encoder_dims)
            self.blocks.append(
                ConvolutionalBlock((hidden_dim, dim), reader, width=width, dropout=dropout)
            )
        self.readout = nn.Linear(hidden_dim, dim)

    def attentions(self) -> list[Attention | MultiHead]:
        """Return the attentions over the items, block by block."""
        found = [block.reader.attention for block in self._stack()]
        return [attention for attention in found if attention is not None]

    def start(self, encoded: Encoded) -> DecoderState:
        """Return the state before the first token, with one hypothesis for each sentence."""
        memory = tuple(ready for block in self._stack() for ready in block.reader.prepare(encoded))
        batch = encoded.final.shape[0]
        past = encoded.final.new_zeros(batch, 1, self.width - 1, self.hidden_dim)
        hidden = (*[past] * len(self.blocks), encoded.final.unsqueeze(1))
        return DecoderState(memory, hidden, (), None, 0)

    def step(
        self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState
    ) -> tuple[Decoded, DecoderState]:
        """Read one more token of every hypothesis."""
        return self._read(tokens, state, length=1)

    def forward(self, tokens: Int[Tensor, "batch tokens"], encoded: Encoded) -> Decoded:
        """Read whole sequences, as in training."""
        return self._read(tokens, self.start(encoded), length=tokens.shape[1])[0]

    def _read(
        self, tokens: Int[Tensor, "batch queries"], state: DecoderState, *, length: int
    ) -> tuple[Decoded, DecoderState]:
        """Read `length` more tokens of every hypothesis; all of them stand on the queries axis."""
        embedded = self.dropout(placed(self.embedding(tokens), state.position, length))
        items = self.projection(embedded)
        memory, fixed = iter(state.memory), state.hidden[-1]
        looks, pasts = [], []
        for block, past in zip(self._stack(), state.hidden[:-1], strict=True):
            sequences = items.reshape(past.shape[0] * past.shape[1], length, self.hidden_dim)
            window = torch.cat([past.flatten(0, 1), sequences], dim=1)
            own = () if block.reader.attention is None else (next(memory),)
            items, look = block(window, embedded, Sources(own, fixed, None))
            looks.append(look)
            pasts.append(window[:, length:].reshape(past.shape))
        features = self.dropout(self.readout(items))
        after = state._replace(hidden=(*pasts, fixed), position=state.position + length)
        return Decoded.having_seen(features, looks), after

    def _stack(self) -> list[ConvolutionalBlock]:
        return [block for block in self.blocks if isinstance(block, ConvolutionalBlock)]
