"""Settings of a translation config, and of a translation model."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regard.config import Strict
from regard.models.settings import Seq2SeqSettings
from regard.training.settings import TrainingSettings


class DataSettings(Strict):
    """Where the sentence pairs are: one table, or a pair of files, for each part.

    Args:
        train: A TSV file, or two parallel text files.
        dev: The same, for choosing the best model.
        test: The same, for `regard evaluate`.
        source_column: Column of the source in a TSV: a number from 0, or a name in the header.
        target_column: Column of the target.
        header: Whether a TSV's first line holds names.
        encoding: How the files are encoded.
        source_language: Language tag of the source.
        target_language: Language tag of the target; BLEU's words follow it.
        max_tokens: Longer pairs are left out in training; a longer input is cut with a warning.
    """

    train: str | list[str]
    dev: str | list[str]
    test: str | list[str] | None = None
    source_column: int | str = 0
    target_column: int | str = 1
    header: bool = False
    encoding: str = "utf-8-sig"
    source_language: str | None = None
    target_language: str | None = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] = 200


class TokenSettings(Strict):
    """How one side is cut into tokens; see `regard.data.tokens.Tokenizer.train`."""

    kind: Literal["words", "chinese", "characters", "bpe", "unigram"] = "words"
    size: Annotated[int, Field(ge=5, le=1_000_000)] | None = None
    minimum_frequency: Annotated[int, Field(ge=1, le=10**6)] = 1
    normalisation: Literal["nfc", "nfkc", "none"] = "nfc"
    lowercase: bool = False


class BothTokenSettings(Strict):
    """How the two sides are cut into tokens."""

    source: TokenSettings = TokenSettings()
    target: TokenSettings = TokenSettings()


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


def _check_fit(model: Seq2SeqSettings, decoding: DecodingSettings) -> None:
    """Refuse a way to search that does not go with the model."""
    if decoding.coverage_penalty and getattr(model.decoder, "attention", None) == "none":
        raise ValueError(
            "decoding.coverage_penalty must be 0 for a decoder of attention none; got "
            f"{decoding.coverage_penalty}. Leave it out"
        )
    if decoding.sample and model.rescoring:
        raise ValueError(
            "decoding.sample must be false for a pair of decoders, which rescore what a search "
            "has found; got true. Leave it out"
        )


class TranslationSettings(Strict):
    """A translation config.

    Args:
        task: "translation".
        init: A model's folder or a bundled name to continue from: its tokenizers, its sizes and
            its weights.
        metric: By which evaluations are compared: "bleu", "chrf", or "loss".
        data: The sentence pairs.
        tokens: How each side is cut.
        model: What the model is made of.
        training: How it is trained.
        decoding: How a translation is searched for.
    """

    task: Literal["translation"]
    init: str | None = None
    metric: Literal["bleu", "chrf", "loss"] = "bleu"
    data: DataSettings
    tokens: BothTokenSettings = BothTokenSettings()
    model: Seq2SeqSettings = Seq2SeqSettings()
    training: TrainingSettings = TrainingSettings()
    decoding: DecodingSettings = DecodingSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_fit(self.model, self.decoding)
        return self


class ModelSettings(Strict):
    """What a model's `config.json` holds."""

    task: Literal["translation"]
    source_language: str | None
    target_language: str | None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)]
    model: Seq2SeqSettings
    decoding: DecodingSettings

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_fit(self.model, self.decoding)
        return self
