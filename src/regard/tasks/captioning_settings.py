"""Settings of a captioning config, and of a captioner."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.config import Strict
from regard.models.captioner import CaptionerSettings
from regard.tasks.settings import DecodingSettings, TokenSettings, check_fit
from regard.training.settings import TrainingSettings


class CaptionDataSettings(Strict):
    """Where the captioned pictures are.

    Args:
        train: A JSONL or TSV file of captions, or the folder that holds `captions.jsonl`.
        dev: The same, for choosing the best model.
        test: The same, for `regard evaluate`.
        images: The folder that pictures are named relative to; by default the captions' own.
        splits: Read the lines of these splits of one file: `["train", "val", "test"]`; the files
            may then be the same.
        image: Key or column of a picture's name.
        caption: Key or column of the caption, or of a list of them.
        header: Whether a TSV's first line holds names.
        encoding: How the files are encoded.
        language: Language tag of the captions; how scores cut them into words follows it.
        max_tokens: Longer captions are left out in training.
        max_bad: Share of pictures that may be unreadable; they are left out.
        cache: Folder, beside the config, where descriptions of pictures, or their resized pixels,
            are kept.
    """

    train: str
    dev: str
    test: str | None = None
    images: str | None = None
    splits: Annotated[list[str], Field(min_length=2, max_length=3)] | None = None
    image: int | str | None = None
    caption: int | str | None = None
    header: bool = False
    encoding: str = "utf-8-sig"
    language: str | None = None
    max_tokens: Annotated[int, Field(ge=1, le=10_000)] = 60
    max_bad: Annotated[float, Field(ge=0.0, le=1.0)] = 0.001
    cache: str = "features"


class CaptioningSettings(Strict):
    """A captioning config.

    Args:
        task: "captioning".
        metric: By which evaluations are compared: "cider", "bleu" (BLEU-4) or "loss".
        doubly_stochastic: How much it counts that every cell be looked at in the end: 1.0 in
            Show, Attend and Tell; 0.0 where captions name a few things alone.
        data: The captioned pictures.
        tokens: How captions are cut.
        model: What the captioner is made of.
        training: How it is trained.
        decoding: How a caption is searched for.
    """

    task: Literal["captioning"]
    metric: Literal["cider", "bleu", "loss"] = "cider"
    doubly_stochastic: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    data: CaptionDataSettings
    tokens: TokenSettings = TokenSettings()
    model: CaptionerSettings = CaptionerSettings()
    training: TrainingSettings = TrainingSettings()
    decoding: DecodingSettings = DecodingSettings(maximum_length=60)

    @model_validator(mode="after")
    def _fits(self) -> CaptioningSettings:
        check_fit(self.model, self.decoding)
        return self


class CaptioningModelSettings(Strict):
    """What a captioner's `config.json` holds."""

    task: Literal["captioning"]
    language: str | None
    model: CaptionerSettings
    decoding: DecodingSettings

    @model_validator(mode="after")
    def _fits(self) -> CaptioningModelSettings:
        check_fit(self.model, self.decoding)
        return self
