"""Encoders: from tokens to the items that attention reads."""

from __future__ import annotations

import abc
import math
from typing import NamedTuple, TypeAlias

from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from regard.errors import MechanismError
from regard.models.layers import (
    GatedConvolution,
    TransformerEncoderLayer,
    checked_cell,
    placed,
)
from regard.models.running import run_cells


class Encoded(NamedTuple):
    """What an encoder makes of a batch of sequences.

    Args:
        memory: One item for every place, zero where there is padding.
        mask: True where an item is real.
        final: One vector for the whole sequence; zero for an empty one.
    """

    memory: Float[Tensor, "batch keys dim"]
    mask: Bool[Tensor, "batch keys"]
    final: Float[Tensor, "batch final_dim"]


class Encoder(nn.Module, abc.ABC):
    """From tokens to items.

    Attributes:
        out_dim: Size of the items.
        final_dim: Size of the vector for the whole sequence.
        ordered: Whether the order of the tokens changes the items. Where it does not, the items
            are a set, and an attention that goes by their places means nothing.
    """

    out_dim: int
    final_dim: int
    ordered: bool = True

    @abc.abstractmethod
    def forward(
        self, source: Shaped[Tensor, "batch size *rest"], mask: Bool[Tensor, "batch keys"]
    ) -> Encoded:
        """Encode a batch: tokens, or what else is read; the mask is True for real places."""


class Vectors(nn.Module):
    """Vectors that are given, in the place where an encoder has an embedding of tokens.

    Args:
        dim: Their size.
        scale: What they are multiplied by; encoders that add places expect a spread of `1/√dim`,
            which is that of embeddings.
    """

    def __init__(self, dim: int, *, scale: float = 1.0) -> None:
        super().__init__()
        self.embedding_dim, self.scale = dim, scale

    def forward(self, vectors: Float[Tensor, "batch keys dim"]) -> Float[Tensor, "batch keys dim"]:
        """Return the vectors, scaled."""
        return vectors * self.scale


Inputs: TypeAlias = nn.Embedding | Vectors
"""What turns what an encoder reads into vectors."""


class EmbeddingEncoder(Encoder):
    """The embeddings themselves as items, and their mean as the final vector.

    The order of the tokens is lost: a set is encoded, with repetitions. It is the baseline that
    shows what reading in order is worth, and all that a problem without order needs.

    Args:
        embedding: The embedding of the tokens, or `Vectors`; its size is that of the items.
        dropout: Probability of dropping an input.
    """

    ordered = False

    def __init__(self, embedding: Inputs, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = nn.Dropout(dropout)
        self.out_dim = self.final_dim = embedding.embedding_dim

    def forward(
        self, tokens: Shaped[Tensor, "batch keys *rest"], mask: Bool[Tensor, "batch keys"]
    ) -> Encoded:
        """Encode a batch; the mask is True for the first places of each row."""
        items = self.dropout(self.embedding(tokens)).masked_fill(~mask.unsqueeze(-1), 0.0)
        return Encoded(items, mask, _mean(items, mask))


def _mean(items: Tensor, mask: Tensor) -> Tensor:
    """Average the real items, which padding must not add to; zero where there is none."""
    return items.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


class ConvolutionalEncoder(Encoder):
    """Blocks of gated convolutions over embeddings with places: `x ← √½ (GLU(W * x) + x)`.

    Every item sees `layers · (width - 1)` places around it, all computed at once. The final
    vector is the mean of the items. Padding is set to zero before every convolution, as if
    nothing stood there.

    Args:
        embedding: The embedding of the tokens, or `Vectors`.
        hidden_dim: Size of the blocks and of the items.
        layers: How many blocks.
        width: How many places one convolution sees, an odd number.
        dropout: Probability of dropping an input of a block.

    Raises:
        MechanismError: The width is not odd.

    References:
        Gehring et al., Convolutional sequence to sequence learning, 2017.
    """

    def __init__(
        self,
        embedding: Inputs,
        hidden_dim: int,
        *,
        layers: int = 4,
        width: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width < 1 or width % 2 == 0:
            raise MechanismError(
                f"width must be odd, to see as far to the left as to the right; got {width}. "
                "3 is usual."
            )
        self.embedding, self.reach = embedding, width // 2
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(embedding.embedding_dim, hidden_dim)
        self.blocks = nn.ModuleList(
            GatedConvolution(hidden_dim, width, dropout=dropout) for _ in range(layers)
        )
        self.out_dim = self.final_dim = hidden_dim

    def forward(
        self, tokens: Shaped[Tensor, "batch keys *rest"], mask: Bool[Tensor, "batch keys"]
    ) -> Encoded:
        """Encode a batch; the mask is True for the first places of each row."""
        embedded = self.dropout(placed(self.embedding(tokens), 0, tokens.shape[1]))
        padding = ~mask.unsqueeze(-1)
        items: Tensor = self.projection(embedded).masked_fill(padding, 0.0)
        for block in self.blocks:
            around = nn.functional.pad(items, (0, 0, self.reach, self.reach))
            items = (items + block(around)).masked_fill(padding, 0.0) * math.sqrt(0.5)
        return Encoded(items, mask, _mean(items, mask))


class RecurrentEncoder(Encoder):
    """A recurrent encoder, in one direction or in both.

    The items are the states of the top layer; the final vector is its last state, that of both
    directions where there are two. An empty sequence gives no items and a final vector of zeros.

    Args:
        embedding: The embedding of the tokens, or `Vectors`.
        hidden_dim: Size of the states of one direction.
        cell: "rnn" (tanh), "gru" or "lstm".
        layers: How many layers.
        bidirectional: Whether to read in both directions.
        dropout: Probability of dropping an input, an output, or a state between layers.

    Raises:
        MechanismError: The cell is unknown.
    """

    def __init__(
        self,
        embedding: Inputs,
        hidden_dim: int,
        *,
        cell: str = "gru",
        layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = nn.Dropout(dropout)
        self.cells = checked_cell(cell)(
            embedding.embedding_dim,
            hidden_dim,
            num_layers=layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.out_dim = self.final_dim = hidden_dim * (2 if bidirectional else 1)

    def forward(
        self, tokens: Shaped[Tensor, "batch keys *rest"], mask: Bool[Tensor, "batch keys"]
    ) -> Encoded:
        """Encode a batch; the mask is True for the first places of each row."""
        batch, keys = tokens.shape[:2]
        embedded = self.dropout(self.embedding(tokens))
        if batch == 0 or keys == 0:
            return Encoded(
                embedded.new_zeros(batch, keys, self.out_dim),
                mask,
                embedded.new_zeros(batch, self.final_dim),
            )
        lengths = mask.sum(dim=1)
        # An empty row is read as one padding token, then set to zero.
        memory, final = run_cells(self.cells, embedded, lengths.clamp(min=1))
        final = final.masked_fill((lengths == 0).unsqueeze(-1), 0.0)
        return Encoded(self.dropout(memory.masked_fill(~mask.unsqueeze(-1), 0.0)), mask, final)


class TransformerEncoder(Encoder):
    """A stack of self-attention layers; the final vector is the mean of the items.

    Args:
        embedding: The embedding of the tokens, or `Vectors`; its size is that of the items.
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
        embedding: Inputs,
        *,
        num_heads: int,
        layers: int,
        hidden_dim: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        dim = embedding.embedding_dim
        self.embedding = embedding
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerEncoderLayer(dim, num_heads, hidden_dim=hidden_dim, dropout=dropout)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        self.out_dim = self.final_dim = dim

    def forward(
        self, tokens: Shaped[Tensor, "batch keys *rest"], mask: Bool[Tensor, "batch keys"]
    ) -> Encoded:
        """Encode a batch; the mask is True for the first places of each row."""
        items: Tensor = self.dropout(placed(self.embedding(tokens), 0, tokens.shape[1]))
        for layer in self.layers:
            items = layer(items, mask)
        items = self.norm(items).masked_fill(~mask.unsqueeze(-1), 0.0)
        return Encoded(items, mask, _mean(items, mask))
