"""Settings that tasks share: how text is cut into tokens, how an output is searched for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config import Strict
from regard.data.tokens import Tokenizer
from regard.models.settings import DecoderSettings, Writes


class TokenSettings(Strict):
    """How one side is cut into tokens; see `regard.data.tokens.Tokenizer.train`."""

    kind: Literal["words", "chinese", "characters", "bpe", "unigram"] = "words"
    size: Annotated[int, Field(ge=5, le=1_000_000)] | None = None
    minimum_frequency: Annotated[int, Field(ge=1, le=10**6)] = 1
    normalisation: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False


class DecodingSettings(Strict):
    """How a translation is searched for, or drawn where `sample` is true.

    See `regard.models.decoding.Search` and `regard.models.decoding.Sampling`.
    """

    beam: Annotated[int, Field(ge=1, le=1000)] = 5
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    minimum_length: Annotated[int, Field(ge=0, le=10_000)] = 0
    maximum_length: Annotated[int, Field(ge=1, le=10_000)] = 200
    coverage_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0
    block_ngrams: Annotated[int, Field(ge=0, le=1000)] = 0
    groups: Annotated[int, Field(ge=1, le=1000)] = 1
    diversity: Annotated[float, Field(ge=0.0, le=100.0)] = 0.5
    sample: bool = False
    temperature: Annotated[float, Field(ge=0.01, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    top_p: Annotated[float, Field(ge=1e-6, le=1.0)] = 1.0

    @model_validator(mode="after")
    def _lengths_in_order(self) -> DecodingSettings:
        if self.minimum_length > self.maximum_length:
            raise ValueError(
                f"minimum_length must be at most maximum_length; got {self.minimum_length} and "
                f"{self.maximum_length}. Exchange them"
            )
        return self

    @model_validator(mode="after")
    def _groups_divide(self) -> DecodingSettings:
        if self.beam % self.groups:
            raise ValueError(
                f"groups must divide beam; got {self.groups} and {self.beam}. Change one"
            )
        return self


def learn_tokenizer(texts: Sequence[str], settings: TokenSettings) -> Tokenizer:
    """Learn how texts are cut into tokens, as the settings say."""
    return Tokenizer.train(
        texts,
        kind=settings.kind,
        size=settings.size,
        minimum_frequency=settings.minimum_frequency,
        normalisation=settings.normalisation,
        lowercase=settings.lowercase,
    )


def check_fit(model: Writes, decoding: DecodingSettings) -> None:
    """Refuse a way to search that does not go with the model."""
    if decoding.coverage_penalty and getattr(model.decoder, "attention", None) == "none":
        raise ValueError(
            "decoding.coverage_penalty must be 0 for a decoder of attention none; got "
            f"{decoding.coverage_penalty}. Leave it out"
        )
    if decoding.sample and getattr(model, "rescoring", False):
        raise ValueError(
            "decoding.sample must be false for a pair of decoders, which rescore what a search "
            "has found; got true. Leave it out"
        )


def map_names(part: DecoderSettings) -> list[str]:
    """Name the maps of a model's decoder: after layers and heads, or after its score."""
    if part.attention == "none":
        return []
    layered = part.kind in ("transformer", "convolution")
    layers = [f"layer {layer}" for layer in range(1, part.layers + 1)] if layered else [""]
    several = part.kind == "transformer" or part.num_heads > 1
    heads = [f"head {head}" for head in range(1, part.num_heads + 1)] if several else [""]
    names = [", ".join(filter(None, both)) for both in itertools.product(layers, heads)]
    return [name or part.attention for name in names]
