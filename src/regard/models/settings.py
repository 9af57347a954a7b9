"""Settings of sequence to sequence models, and building a model from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from regard.attention import Attention
from regard.config import Strict
from regard.models.decoders import Decoder, RecurrentDecoder, TransformerDecoder
from regard.models.encoders import Encoder, RecurrentEncoder, TransformerEncoder
from regard.models.seq2seq import Seq2Seq

Size = Annotated[int, Field(ge=1, le=8192)]
Layers = Annotated[int, Field(ge=1, le=48)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class RecurrentEncoderSettings(Strict):
    """A recurrent encoder: cell, size of one direction, layers, directions."""

    kind: Literal["gru", "lstm"] = "gru"
    hidden_dim: Size = 256
    layers: Layers = 1
    bidirectional: bool = True


class TransformerEncoderSettings(Strict):
    """A Transformer encoder: heads, layers, size inside the feed-forward layers."""

    kind: Literal["transformer"]
    num_heads: Size = 4
    layers: Layers = 4
    hidden_dim: Size = 1024


class RecurrentDecoderSettings(Strict):
    """A recurrent decoder: cell, sizes, order, and what it looks with.

    `attention` is the name of a score, or "none" for the encoder's final vector as a constant
    context; "uniform" reads the mean of the items. `attention_dim` is the size of the layer
    inside an additive score.
    """

    kind: Literal["gru", "lstm"] = "gru"
    hidden_dim: Size = 256
    layers: Layers = 1
    order: Literal["bahdanau", "luong", "input_feeding"] = "luong"
    attention: Literal["none", "additive", "dot", "scaled_dot", "bilinear", "uniform"] = "additive"
    attention_dim: Size = 256


class TransformerDecoderSettings(Strict):
    """A Transformer decoder: heads, layers, size inside the feed-forward layers."""

    kind: Literal["transformer"]
    num_heads: Size = 4
    layers: Layers = 4
    hidden_dim: Size = 1024


EncoderSettings = Annotated[
    RecurrentEncoderSettings | TransformerEncoderSettings, Field(discriminator="kind")
]
DecoderSettings = Annotated[
    RecurrentDecoderSettings | TransformerDecoderSettings, Field(discriminator="kind")
]


class Seq2SeqSettings(Strict):
    """A whole model: embeddings, encoder, decoder, dropout, tied output or not.

    `rescoring` makes two of them, which write in opposite directions and rescore each other: see
    `regard.models.rescoring`.
    """

    embedding_dim: Size = 256
    encoder: EncoderSettings = RecurrentEncoderSettings()
    decoder: DecoderSettings = RecurrentDecoderSettings()
    dropout: Share = 0.3
    tied: bool = True
    rescoring: bool = False

    @model_validator(mode="after")
    def _heads_divide(self) -> Seq2SeqSettings:
        for part in (self.encoder, self.decoder):
            heads = getattr(part, "num_heads", 1)
            if self.embedding_dim % heads:
                raise ValueError(
                    f"num_heads must divide embedding_dim; got {heads} and {self.embedding_dim}"
                )
        return self


def build_seq2seq(
    settings: Seq2SeqSettings, *, source_size: int, target_size: int, padding: int
) -> Seq2Seq:
    """Build a model.

    Args:
        settings: What it is made of.
        source_size: How many source tokens there are.
        target_size: How many target tokens there are.
        padding: The token whose embedding stays zero.

    Returns:
        The model, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: Sizes do not go together.
    """
    dim = settings.embedding_dim
    encoder = _encoder(settings, _embedding(source_size, dim, padding))
    decoder = _decoder(settings, _embedding(target_size, dim, padding), encoder)
    return Seq2Seq(encoder, decoder, tied=settings.tied)


def _embedding(size: int, dim: int, padding: int) -> nn.Embedding:
    # Small enough that a tied output layer begins with an even guess.
    embedding = nn.Embedding(size, dim, padding_idx=padding)
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    nn.init.zeros_(embedding.weight[padding])
    return embedding


def _encoder(settings: Seq2SeqSettings, embedding: nn.Embedding) -> Encoder:
    part = settings.encoder
    if isinstance(part, TransformerEncoderSettings):
        return TransformerEncoder(
            embedding,
            num_heads=part.num_heads,
            layers=part.layers,
            hidden_dim=part.hidden_dim,
            dropout=settings.dropout,
        )
    return RecurrentEncoder(
        embedding,
        part.hidden_dim,
        cell=part.kind,
        layers=part.layers,
        bidirectional=part.bidirectional,
        dropout=settings.dropout,
    )


def _decoder(settings: Seq2SeqSettings, embedding: nn.Embedding, encoder: Encoder) -> Decoder:
    part = settings.decoder
    if isinstance(part, TransformerDecoderSettings):
        return TransformerDecoder(
            embedding,
            encoder.out_dim,
            num_heads=part.num_heads,
            layers=part.layers,
            hidden_dim=part.hidden_dim,
            dropout=settings.dropout,
        )
    return RecurrentDecoder(
        embedding,
        (encoder.out_dim, encoder.final_dim),
        hidden_dim=part.hidden_dim,
        attention=_attention(part, encoder.out_dim),
        order=part.order,
        cell=part.kind,
        layers=part.layers,
        dropout=settings.dropout,
    )


def _attention(part: RecurrentDecoderSettings, memory_dim: int) -> Attention | None:
    if part.attention == "none":
        return None
    return Attention(
        part.attention,
        query_dim=part.hidden_dim,
        key_dim=memory_dim,
        hidden_dim=part.attention_dim if part.attention == "additive" else None,
    )
