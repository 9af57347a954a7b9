"""Settings of a translation config, and of a translation model."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regard.config import Strict
from regard.models.settings import Seq2SeqSettings
from regard.tasks.settings import DecodingSettings, TokenSettings, check_fit
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


class BothTokenSettings(Strict):
    """How the two sides are cut into tokens."""

    source: TokenSettings = TokenSettings()
    target: TokenSettings = TokenSettings()


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
        check_fit(self.model, self.decoding)
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
        check_fit(self.model, self.decoding)
        return self
