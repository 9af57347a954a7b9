"""Documents read by words and sentences: words into sentences, sentences into a document."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import model_validator
from torch import Tensor, nn

from regard.config import Strict
from regard.errors import ShapeError
from regard.models.encoder_settings import (
    EmbeddingEncoderSettings,
    EncoderSettings,
    RecurrentEncoderSettings,
    Share,
    Size,
    TransformerEncoderSettings,
    build_encoder,
    token_embedding,
)
from regard.models.encoders import Vectors
from regard.models.poolings import build_pool
from regard.models.ragged import Level


class LevelSettings(Strict):
    """How the items of a level, words or sentences, are read and become one vector.

    Args:
        encoder: What reads them in order; "embedding" takes them as they are.
        projection: Size of a dense layer over the encoder's states, before they are pooled.
        pooling: "attention", "mean" or "max" of the states.
        attention_dim: Size of the layer inside the attention; by default that of the states.
        gated: Whether that layer has a gate.
        selection: How the attention's scores become weights; "sparsemax" and "entmax" leave
            most of them at zero.
    """

    encoder: EncoderSettings = RecurrentEncoderSettings(hidden_dim=50)
    projection: Size | None = None
    pooling: Literal["attention", "mean", "max"] = "attention"
    attention_dim: Size | None = None
    gated: bool = False
    selection: Literal["softmax", "sparsemax", "entmax"] = "softmax"

    def out_dim(self, in_dim: int) -> int:
        """Return the size of what is made of items of a size."""
        if self.projection is not None:
            return self.projection
        part = self.encoder
        if isinstance(part, EmbeddingEncoderSettings | TransformerEncoderSettings):
            return in_dim
        twice = isinstance(part, RecurrentEncoderSettings) and part.bidirectional
        return part.hidden_dim * (2 if twice else 1)


class DocumentModelSettings(Strict):
    """A whole model of documents.

    Args:
        embedding_dim: Size of the vectors of words.
        words: How the words of a sentence are read.
        sentences: How the sentences of a document are read.
        flat: Whether a document is read as one sequence of words, without a level of sentences:
            the baseline of attention over words alone.
        dropout: Share of inputs and features dropped in training.
    """

    embedding_dim: Size = 200
    words: LevelSettings = LevelSettings()
    sentences: LevelSettings = LevelSettings()
    flat: bool = False
    dropout: Share = 0.3

    @model_validator(mode="after")
    def _heads_divide(self) -> DocumentModelSettings:
        dims = {"words": self.embedding_dim}
        if not self.flat:
            dims["sentences"] = self.words.out_dim(self.embedding_dim)
        for name, dim in dims.items():
            heads = getattr(getattr(self, name).encoder, "num_heads", 1)
            if dim % heads:
                raise ValueError(
                    f"num_heads of {name} must divide the size of what they read; got {heads} and "
                    f"{dim}. Change one"
                )
        return self


class DocumentReading(NamedTuple):
    """What a model makes of documents.

    Args:
        logits: A score for each label.
        word_weights: The weight of each word in its sentence, in the order of the words; those of
            a sentence sum to one, unless nothing was made of it in flat reading.
        sentence_weights: The weight of each sentence in its document, in the order of the
            sentences; those of a document sum to one.
    """

    logits: Float[Tensor, "documents labels"]
    word_weights: Float[Tensor, " words"]
    sentence_weights: Float[Tensor, " sentences"]


class DocumentModel(nn.Module):
    """Hierarchical attention: words are read and weighed in sentences, and those in documents.

    `h_it = encoder(w_i1 .. w_iT)_t`, `s_i = Σ_t α_it h_it`, `h_i = encoder(s_1 .. s_L)_i`,
    `v = Σ_i β_i h_i`, `logits = W v + b`, the weights being those of `AttentionPooling`. A batch
    is a flat list of words with the sizes of sentences and documents: nothing is padded to the
    longest sentence of the longest document. A sentence without words has no weight, a document
    without any is a vector of zeros.

    Args:
        words: The level of words, its encoder reading tokens.
        sentences: The level of sentences, its encoder reading vectors; None reads the words of a
            document as one sequence, and a sentence's weight is the sum over its words.
        labels: How many labels there are.
        dropout: Probability of dropping a feature of a document.

    References:
        Yang et al., Hierarchical attention networks for document classification, 2016.
    """

    def __init__(
        self, words: Level, sentences: Level | None, *, labels: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.sentences = words, sentences
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear((words if sentences is None else sentences).out_dim, labels)

    def forward(
        self,
        tokens: Int[Tensor, " words"],
        words: Int[Tensor, " sentences"],
        sentences: Int[Tensor, " documents"],
    ) -> DocumentReading:
        """Read documents.

        Args:
            tokens: The words of all sentences, one after the other.
            words: How many of them each sentence has; best on the CPU.
            sentences: How many sentences each document has; best on the CPU.

        Returns:
            A score for each label, and the weights.

        Raises:
            ShapeError: The sizes do not add up.
        """
        if int(sentences.sum()) != len(words):
            raise ShapeError(
                f"sentences must add up to those that words counts; got {int(sentences.sum())} and "
                f"{len(words)}. Count the sentences of each document."
            )
        if self.sentences is None:
            return self._read_flat(tokens, words, sentences)
        vectors, word_weights = self.words(tokens, words)
        real = words > 0  # a sentence without words is none
        kept = _sums(real.long(), sentences)
        there = real.to(vectors.device)
        documents, weights = self.sentences(vectors[there], kept)
        spread = weights.new_zeros(len(words)).masked_scatter(there, weights)
        return DocumentReading(self._logits(documents), word_weights, spread)

    def _read_flat(self, tokens: Tensor, words: Tensor, sentences: Tensor) -> DocumentReading:
        documents, weights = self.words(tokens, _sums(words, sentences))
        owner = torch.repeat_interleave(torch.arange(len(words)), words.cpu()).to(weights.device)
        summed = weights.new_zeros(len(words)).index_add(0, owner, weights)
        nothing = summed == 0
        within = weights / summed.masked_fill(nothing, 1.0)[owner]
        return DocumentReading(self._logits(documents), within, summed)

    def _logits(self, documents: Tensor) -> Tensor:
        logits: Tensor = self.output(self.dropout(documents))
        return logits


def _sums(values: Tensor, sizes: Tensor) -> Tensor:
    """Sum values over groups that follow each other."""
    owner = torch.repeat_interleave(torch.arange(len(sizes), device=values.device), sizes)
    return values.new_zeros(len(sizes)).index_add(0, owner, values)


def build_document_model(
    settings: DocumentModelSettings, *, words: int, labels: int, padding: int
) -> DocumentModel:
    """Build a model of documents.

    Args:
        settings: What it is made of.
        words: How many words it knows.
        labels: How many labels there are.
        padding: The word whose embedding stays zero.

    Returns:
        The model, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: Sizes do not go together.
    """
    dim, dropout = settings.embedding_dim, settings.dropout
    lower = _level(settings.words, token_embedding(words, dim, padding), dropout)
    upper = None
    if not settings.flat:
        places = settings.sentences.encoder.kind in ("convolution", "transformer")
        own = Vectors(lower.out_dim, scale=lower.out_dim**-0.5 if places else 1.0)
        upper = _level(settings.sentences, own, dropout)
    return DocumentModel(lower, upper, labels=labels, dropout=dropout)


def _level(settings: LevelSettings, inputs: nn.Embedding | Vectors, dropout: float) -> Level:
    encoder = build_encoder(settings.encoder, inputs, dropout=dropout)
    size = encoder.out_dim if settings.projection is None else settings.projection
    pool = build_pool(
        settings.pooling,
        size,
        hidden_dim=settings.attention_dim,
        gated=settings.gated,
        selection=settings.selection,
    )
    return Level(encoder, pool, projection=settings.projection)
