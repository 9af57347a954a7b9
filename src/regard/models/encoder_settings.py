"""Settings of encoders, and building one from them, whatever reads what it makes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from regard.config import Strict
from regard.models.encoders import (
    ConvolutionalEncoder,
    EmbeddingEncoder,
    Encoder,
    Inputs,
    RecurrentEncoder,
    TransformerEncoder,
)

Size = Annotated[int, Field(ge=1, le=8192)]
Layers = Annotated[int, Field(ge=1, le=48)]
Width = Annotated[int, Field(ge=1, le=255)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class EmbeddingEncoderSettings(Strict):
    """The embeddings as items, and their mean: order does not matter."""

    kind: Literal["embedding"]


class ConvolutionalEncoderSettings(Strict):
    """A convolutional encoder: size, blocks, and how many places one convolution sees (odd)."""

    kind: Literal["convolution"]
    hidden_dim: Size = 256
    layers: Layers = 4
    width: Width = 3

    @model_validator(mode="after")
    def _odd(self) -> ConvolutionalEncoderSettings:
        if self.width % 2 == 0:
            raise ValueError(f"width must be odd; got {self.width}")
        return self


class RecurrentEncoderSettings(Strict):
    """A recurrent encoder: cell, size of one direction, layers, directions."""

    kind: Literal["rnn", "gru", "lstm"] = "gru"
    hidden_dim: Size = 256
    layers: Layers = 1
    bidirectional: bool = True


class TransformerEncoderSettings(Strict):
    """A Transformer encoder: heads, layers, size inside the feed-forward layers."""

    kind: Literal["transformer"]
    num_heads: Size = 4
    layers: Layers = 4
    hidden_dim: Size = 1024


EncoderSettings = Annotated[
    EmbeddingEncoderSettings
    | ConvolutionalEncoderSettings
    | RecurrentEncoderSettings
    | TransformerEncoderSettings,
    Field(discriminator="kind"),
]


def token_embedding(size: int, dim: int, padding: int) -> nn.Embedding:
    """Return an embedding whose padding is zero."""
    # Small enough that a tied output layer begins with an even guess.
    embedding = nn.Embedding(size, dim, padding_idx=padding)
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    nn.init.zeros_(embedding.weight[padding])
    return embedding


def build_encoder(part: EncoderSettings, embedding: Inputs, *, dropout: float) -> Encoder:
    """Build an encoder.

    Args:
        part: Its settings.
        embedding: What turns tokens into vectors, or takes vectors as they are.
        dropout: Probability of dropping.

    Returns:
        The encoder, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: Sizes do not go together.
    """
    if isinstance(part, EmbeddingEncoderSettings):
        return EmbeddingEncoder(embedding, dropout=dropout)
    if isinstance(part, ConvolutionalEncoderSettings):
        return ConvolutionalEncoder(
            embedding, part.hidden_dim, layers=part.layers, width=part.width, dropout=dropout
        )
    if isinstance(part, TransformerEncoderSettings):
        return TransformerEncoder(
            embedding,
            num_heads=part.num_heads,
            layers=part.layers,
            hidden_dim=part.hidden_dim,
            dropout=dropout,
        )
    return RecurrentEncoder(
        embedding,
        part.hidden_dim,
        cell=part.kind,
        layers=part.layers,
        bidirectional=part.bidirectional,
        dropout=dropout,
    )
