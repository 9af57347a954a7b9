"""Layers that several models share."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import Attended, MultiHead, Prepared
from regard.errors import MechanismError, did_you_mean
from regard.models.mechanisms import build_mechanism, check_reads, check_stateless

Cell = type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]
CELLS: dict[str, Cell] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def checked_cell(cell: str) -> Cell:
    """Return the recurrent layer of that name, or raise where there is none."""
    if cell not in CELLS:
        raise MechanismError(f"cell must be known; got {cell!r}: {did_you_mean(cell, CELLS)}")
    return CELLS[cell]


def sinusoids(
    start: int, length: int, dim: int, *, device: torch.device | None = None
) -> Float[Tensor, "length dim"]:
    """Encode places by sines and cosines; there is no table to run out of.

    Args:
        start: The first place.
        length: How many places.
        dim: Size of the encoding.
        device: Where to make it.

    Returns:
        One row for each place.

    References:
        Vaswani et al., Attention is all you need, 2017.
    """
    half = (dim + 1) // 2
    places = torch.arange(start, start + length, device=device, dtype=torch.float32)
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(half, 1)))
    angles = places.unsqueeze(-1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :dim]


def placed(
    embedded: Float[Tensor, "*lead places dim"], start: int, length: int
) -> Float[Tensor, "*lead places dim"]:
    """Scale embeddings, whose spread is `1/√dim`, and add the encodings of their places.

    Args:
        embedded: The embeddings; the last axis but one holds the places, or items that all stand
            at one place.
        start: The first place.
        length: How many places.

    Returns:
        Embeddings that know where they stand, in the precision of the embeddings.
    """
    dim = embedded.shape[-1]
    places = sinusoids(start, length, dim, device=embedded.device)
    return embedded * math.sqrt(dim) + places.to(embedded.dtype)


class GatedConvolution(nn.Module):
    """A convolution over places with a gated linear unit: `a ⊙ σ(b)`, `[a; b] = W * x + bias`.

    It pads nothing: what reads a sequence puts zeros, or what came before, around it.

    Args:
        dim: Size of the vectors, in and out.
        width: How many places one result sees.
        dropout: Probability of dropping an input.

    Raises:
        MechanismError: The width is below 1.

    References:
        Dauphin et al. 2017 (the gate); Gehring et al., Convolutional sequence to sequence
        learning, 2017 (the initial spread; their weight normalisation is left out).
    """

    def __init__(self, dim: int, width: int, *, dropout: float) -> None:
        super().__init__()
        if width < 1:
            raise MechanismError(f"width must be at least 1; got {width}. 3 is usual.")
        self.width = width
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv1d(dim, 2 * dim, width)
        # The gate halves a result on average: twice the spread makes up for it.
        nn.init.normal_(self.convolution.weight, std=math.sqrt(4 * (1 - dropout) / (width * dim)))
        if self.convolution.bias is not None:
            nn.init.zeros_(self.convolution.bias)

    def forward(
        self, padded: Float[Tensor, "batch padded_places dim"]
    ) -> Float[Tensor, "batch places dim"]:
        """Return one vector for each stretch of `width` places: `width - 1` fewer than came in."""
        if 0 in padded.shape or padded.shape[1] < self.width:
            return padded[:, : max(padded.shape[1] - self.width + 1, 0)]
        both = self.convolution(self.dropout(padded).transpose(1, 2))  # (batch, 2 dim, places)
        return nn.functional.glu(both.transpose(1, 2), dim=-1)


class FeedForward(nn.Sequential):
    """Two linear layers with a ReLU between them, the same at every place.

    Args:
        dim: Size of input and output.
        hidden_dim: Size in between.
        dropout: Probability of dropping a hidden unit.
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(dim, hidden_dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim)
        )


class SelfAttentionBlock(nn.Module):
    """Normalise, attend among the items themselves, add.

    Args:
        dim: Size of the items.
        num_heads: How many heads.
        dropout: Probability of dropping a weight or an output.
    """

    def __init__(self, dim: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attention = MultiHead(num_heads, dim, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "batch items dim"]:
        """Let every item read the others under a mask."""
        normed = self.norm(items)
        added: Tensor = items + self.dropout(
            self.attention(normed, normed, mask=mask, need_weights=False).context
        )
        return added

    def step(
        self, item: Float[Tensor, "batch 1 dim"], cache: Prepared | None
    ) -> tuple[Float[Tensor, "batch 1 dim"], Prepared]:
        """Let one more item read those before it and itself, and remember it."""
        normed = self.norm(item)
        fresh = self.attention.prepare(normed)
        cache = fresh if cache is None else cache.append(fresh)
        read: Attended = self.attention(normed, cache, need_weights=False)
        return item + self.dropout(read.context), cache


class TransformerEncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer, each normalised first and added.

    Args:
        dim: Size of the items.
        num_heads: How many heads.
        hidden_dim: Size inside the feed-forward layer.
        dropout: Probability of dropping.

    References:
        Vaswani et al. 2017; Xiong et al. 2020 (normalisation first).
    """

    def __init__(self, dim: int, num_heads: int, *, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = SelfAttentionBlock(dim, num_heads, dropout)
        self.norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "batch items dim"]:
        """Refine the items under a mask."""
        items = self.self_attention(items, mask)
        refined: Tensor = items + self.dropout(self.feed_forward(self.norm(items)))
        return refined


class TransformerDecoderLayer(nn.Module):
    """Masked self-attention, attention over the items, a feed-forward layer.

    Args:
        dim: Size of the tokens' vectors.
        num_heads: How many heads.
        memory_dim: Size of the items.
        hidden_dim: Size inside the feed-forward layer.
        dropout: Probability of dropping.
        look: Names of the score and of the selection of the attention over the items.

    Raises:
        MechanismError: The heads do not divide the size, or the look is unknown or stateful.

    References:
        Vaswani et al. 2017; Xiong et al. 2020 (normalisation first).
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        memory_dim: int,
        hidden_dim: int,
        dropout: float,
        look: tuple[str, str] = ("scaled_dot", "softmax"),
    ) -> None:
        super().__init__()
        self.self_attention = SelfAttentionBlock(dim, num_heads, dropout)
        self.cross_norm = nn.LayerNorm(dim)
        self.cross_attention = build_mechanism(
            *look,
            query_dim=dim,
            key_dim=memory_dim,
            hidden_dim=max(dim // num_heads, 1),
            num_heads=num_heads,
            dropout=dropout,
        )
        check_reads(self.cross_attention, query_dim=dim, memory_dim=memory_dim)
        check_stateless(self.cross_attention)
        self.norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim, dropout)
        self.dropout = nn.Dropout(dropout)

    def prepare(
        self, memory: Float[Tensor, "batch keys memory_dim"], mask: Bool[Tensor, "batch keys"]
    ) -> Prepared:
        """Make the items ready, once for a sentence."""
        return self.cross_attention.prepare(memory, mask=mask)

    def forward(
        self,
        items: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "1 tokens tokens"],
        memory: Prepared,
    ) -> tuple[Float[Tensor, "batch tokens dim"], Attended]:
        """Refine a whole sequence; return it and where each head looked."""
        return self._look(self.self_attention(items, mask), memory)

    def step(
        self,
        items: Float[Tensor, "batch hypotheses 1 dim"],
        memory: Prepared,
        cache: Prepared | None,
    ) -> tuple[Float[Tensor, "batch hypotheses 1 dim"], Attended, Prepared]:
        """Refine one more token of every hypothesis, with a cache of those before."""
        flat, cache = self.self_attention.step(items.flatten(0, 1), cache)
        refined, attended = self._look(flat.view(items.shape).squeeze(2), memory)
        return refined.unsqueeze(2), attended, cache

    def _look(self, items: Tensor, memory: Prepared) -> tuple[Tensor, Attended]:
        attended: Attended = self.cross_attention(self.cross_norm(items), memory)
        items = items + self.dropout(attended.context)
        items = items + self.dropout(self.feed_forward(self.norm(items)))
        return items, attended
