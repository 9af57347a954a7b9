"""Settings of sequence to sequence models, and building a model from them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import AfterValidator, Field, model_validator
from torch import nn

from regard.attention import SCORES, SELECTIONS, Attention, MultiHead
from regard.attention.losses import Reinforce
from regard.attention.selections import Sampled
from regard.config import Strict
from regard.errors import MechanismError, did_you_mean
from regard.models.convolutional import ConvolutionalDecoder
from regard.models.decoders import Decoder, RecurrentDecoder, TransformerDecoder
from regard.models.encoder_settings import (
    EncoderSettings,
    Layers,
    RecurrentEncoderSettings,
    Share,
    Size,
    Width,
    build_encoder,
    token_embedding,
)
from regard.models.encoders import Encoder
from regard.models.mechanisms import build_mechanism
from regard.models.seq2seq import Seq2Seq


def _known(what: str, names: Collection[str]) -> AfterValidator:
    """Return the check that a setting is one of these names."""

    def check(name: str) -> str:
        if name not in names:
            known = did_you_mean(name, names)
            raise ValueError(f"must be the name of a {what}; got {name!r}: {known}")
        return name

    return AfterValidator(check)


ScoreName = Annotated[str, _known("score", SCORES)]
ScoreOrNone = Annotated[str, _known("score, or none", ("none", *SCORES))]
SelectionName = Annotated[str, _known("selection", SELECTIONS)]


class _OneWay(Strict):
    """A decoder's settings: it writes in one direction."""

    @model_validator(mode="before")
    @classmethod
    def _one_direction(cls, table: Any) -> Any:
        if isinstance(table, dict) and table.get("bidirectional", False) is not False:
            raise ValueError(
                "bidirectional must be left out for a decoder, which cannot read what is not yet "
                f"written; got {table['bidirectional']!r}. For a pair of models, one that writes "
                "from left to right and one from right to left, which rescore each other, set "
                "rescoring = true in [model]"
            )
        return table


class RecurrentDecoderSettings(_OneWay):
    """A recurrent decoder: cell, sizes, order, and what it looks with.

    `attention` is the name of a score, or "none" for the encoder's final vector as a constant
    context; "uniform" reads the mean of the items. `attention_dim` is the size of the layer
    inside an additive score. More than one head looks through projections of its own. The
    order "none" never looks. `attentional` puts features through a tanh.
    """

    kind: Literal["rnn", "gru", "lstm"] = "gru"
    hidden_dim: Size = 256
    layers: Layers = 1
    order: Literal["bahdanau", "luong", "input_feeding", "none"] = "luong"
    attention: ScoreOrNone = "additive"
    attention_dim: Size = 256
    selection: SelectionName = "softmax"
    num_heads: Size = 1
    attentional: bool = True
    gated: bool = False

    @model_validator(mode="after")
    def _together(self) -> RecurrentDecoderSettings:
        if self.order == "none" and self.attention != "none":
            raise ValueError(
                f"attention must be none for the order none, which never looks; got "
                f"{self.attention!r}. Set attention = 'none', or another order"
            )
        if self.attention == "none" and (self.num_heads, self.selection) != (1, "softmax"):
            raise ValueError(
                f"num_heads and selection must be left out where attention is none; got "
                f"{self.num_heads} and {self.selection!r}. Choose an attention"
            )
        if self.hidden_dim % self.num_heads:
            raise ValueError(
                f"num_heads must divide hidden_dim; got {self.num_heads} and {self.hidden_dim}"
            )
        return self


class ConvolutionalDecoderSettings(_OneWay):
    """A convolutional decoder: size, blocks, width, and what each block looks with.

    `attention`, `attention_dim`, `selection` and `num_heads` are those of a recurrent decoder;
    the queries have the size of the embedding. A stateful attention does not go with it.
    """

    kind: Literal["convolution"]
    hidden_dim: Size = 256
    layers: Layers = 4
    width: Width = 3
    attention: ScoreOrNone = "bilinear"
    attention_dim: Size = 256
    selection: SelectionName = "softmax"
    num_heads: Size = 1


class TransformerDecoderSettings(_OneWay):
    """A Transformer decoder: heads, layers, size inside the feed-forward layers.

    `attention` and `selection` are those of the attentions over the items.
    """

    kind: Literal["transformer"]
    num_heads: Size = 4
    layers: Layers = 4
    hidden_dim: Size = 1024
    attention: ScoreName = "scaled_dot"
    selection: SelectionName = "softmax"


DecoderSettings = Annotated[
    RecurrentDecoderSettings | ConvolutionalDecoderSettings | TransformerDecoderSettings,
    Field(discriminator="kind"),
]


class ReinforceSettings(Strict):
    """How a selection that draws is trained: see `regard.attention.losses.Reinforce`.

    Args:
        baseline: "moving", "learned" (for recurrent decoders) or "none".
        decay: How much a moving baseline keeps at each update.
        entropy: How much an open choice is rewarded.
        share: Share of the steps that draw; the others read all items by their probabilities.
        soft: In which first part of the training none draws.
        annealed: By which part of the training the share has grown from 0.
        evaluation: What is read where nothing is drawn: the likeliest item ("argmax"), or all by
            their probabilities ("expectation").
    """

    baseline: Literal["moving", "learned", "none"] = "moving"
    decay: Share = 0.9
    entropy: Annotated[float, Field(ge=0.0, le=100.0)] = 0.01
    share: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    soft: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    annealed: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    evaluation: Literal["argmax", "expectation"] = "argmax"

    def drawn(self, done: float) -> float:
        """Return the share of steps that draw when so much of the training is done."""
        if done < self.soft:
            return 0.0
        if done >= self.annealed:
            return self.share
        return self.share * (done - self.soft) / (self.annealed - self.soft)


@runtime_checkable
class Writes(Protocol):
    """Settings of a model that writes tokens, whatever it reads."""

    @property
    def embedding_dim(self) -> int:
        """Size of the embeddings of tokens."""

    @property
    def decoder(self) -> DecoderSettings:
        """What writes."""

    @property
    def dropout(self) -> float:
        """Share of features dropped in training."""

    @property
    def reinforce(self) -> ReinforceSettings:
        """How a selection that draws is trained."""


class Seq2SeqSettings(Strict):
    """A whole model: embeddings, encoder, decoder, dropout, tied output or not.

    `reinforce` trains the selection "sampled", and is not looked at for others. `rescoring` makes
    two of them, which write in opposite directions and rescore each other: see
    `regard.models.rescoring`.
    """

    embedding_dim: Size = 256
    encoder: EncoderSettings = RecurrentEncoderSettings()
    decoder: DecoderSettings = RecurrentDecoderSettings()
    dropout: Share = 0.3
    tied: bool = True
    rescoring: bool = False
    reinforce: ReinforceSettings = ReinforceSettings()

    @model_validator(mode="after")
    def _heads_divide(self) -> Seq2SeqSettings:
        for part in (self.encoder, self.decoder):
            queries_of_own = isinstance(part, RecurrentDecoderSettings)
            heads = 1 if queries_of_own else getattr(part, "num_heads", 1)
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
    source = token_embedding(source_size, dim, padding)
    encoder = build_encoder(settings.encoder, source, dropout=settings.dropout)
    decoder = build_decoder(settings, token_embedding(target_size, dim, padding), encoder)
    return Seq2Seq(encoder, decoder, tied=settings.tied, reinforce=build_reinforce(settings))


def build_reinforce(settings: Writes) -> Reinforce | None:
    """Return what trains choices, for a decoder that draws them and gives them no gradient."""
    if settings.decoder.attention == "none" or settings.decoder.selection != "sampled":
        return None
    own, query_dim = settings.reinforce, None
    if own.baseline == "learned":
        if not isinstance(settings.decoder, RecurrentDecoderSettings):
            raise MechanismError(
                f"baseline must be 'moving' or 'none' for a decoder that looks several times for a "
                f"token; got 'learned' for {settings.decoder.kind!r}. Change one of them."
            )
        query_dim = settings.decoder.hidden_dim
    return Reinforce(own.baseline, query_dim=query_dim, decay=own.decay, entropy=own.entropy)


def build_decoder(settings: Writes, embedding: nn.Embedding, encoder: Encoder) -> Decoder:
    """Build a decoder that reads what an encoder makes.

    Args:
        settings: The decoder, its dropout, and the size of its embeddings.
        embedding: The embedding of the tokens that it writes.
        encoder: What it reads.

    Returns:
        The decoder.

    Raises:
        MechanismError: Sizes do not go together.
    """
    decoder = _decoder(settings, embedding, encoder)
    for part in decoder.modules():
        if isinstance(part, Sampled):
            part.evaluate_by(settings.reinforce.evaluation)
    return decoder


def _decoder(settings: Writes, embedding: nn.Embedding, encoder: Encoder) -> Decoder:
    part, dropout = settings.decoder, settings.dropout
    if isinstance(part, TransformerDecoderSettings):
        return TransformerDecoder(
            embedding,
            encoder.out_dim,
            num_heads=part.num_heads,
            layers=part.layers,
            hidden_dim=part.hidden_dim,
            dropout=dropout,
            look=(part.attention, part.selection),
        )
    dims = (encoder.out_dim, encoder.final_dim)
    if isinstance(part, ConvolutionalDecoderSettings):
        dim = settings.embedding_dim
        return ConvolutionalDecoder(
            embedding,
            dims,
            [_attention(part, dim, encoder.out_dim) for _ in range(part.layers)],
            hidden_dim=part.hidden_dim,
            width=part.width,
            dropout=dropout,
        )
    return RecurrentDecoder(
        embedding,
        dims,
        hidden_dim=part.hidden_dim,
        attention=_attention(part, part.hidden_dim, encoder.out_dim),
        order=part.order,
        cell=part.kind,
        layers=part.layers,
        dropout=dropout,
        attentional=part.attentional,
        gated=part.gated,
    )


def _attention(
    part: RecurrentDecoderSettings | ConvolutionalDecoderSettings, query_dim: int, memory_dim: int
) -> Attention | MultiHead | None:
    if part.attention == "none":
        return None
    return build_mechanism(
        part.attention,
        part.selection,
        query_dim=query_dim,
        key_dim=memory_dim,
        hidden_dim=part.attention_dim,
        num_heads=part.num_heads if part.num_heads > 1 else None,
    )
