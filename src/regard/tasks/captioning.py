"""Captioning: a picture in, a sentence out, and where the model looked for every word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import overload

import torch
from torch import Tensor

from regard.config import checked
from regard.data.tokens import Tokenizer
from regard.errors import UserError
from regard.models.captioner import build_captioner
from regard.models.decoding import Hypothesis, Search, generators
from regard.models.describers import PictureSettings, build_describer
from regard.models.grids import Describer, PictureEncoder
from regard.models.seq2seq import Seq2Seq
from regard.pictures.picture import Picture
from regard.pictures.records import Map, Record, Text, Token
from regard.tasks.base import CONFIG, Opened
from regard.tasks.captioning_settings import CaptioningModelSettings
from regard.tasks.networks import load_published
from regard.tasks.output import Output
from regard.tasks.searching import Draw, sampling_settings, search_settings, searched
from regard.tasks.settings import DecodingSettings, map_names
from regard.tasks.sight import Seen, Shown, Sight, see
from regard.training.checkpoint import MODEL, load_model

TOKENS = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption(Output):
    """A caption and where the model looked for its words; see `Output` for what it shares.

    Args:
        image: The picture's name.
        alternatives: The next best captions, where more than one was asked for.
    """

    image: str
    alternatives: tuple[Caption, ...] = ()


class Captioner(Sight):
    """A model that describes pictures and shows where it looked.

    Args:
        model: The model.
        describer: What describes the cells of a picture.
        tokenizer: The tokenizer of the captions.
        settings: Sizes, language, and how to search.
        name: What a person calls the model.
    """

    def __init__(
        self,
        model: Seq2Seq,
        describer: Describer,
        tokenizer: Tokenizer,
        settings: CaptioningModelSettings,
        *,
        name: str = "",
    ) -> None:
        self.model, self.describer = model.eval(), describer.eval()
        self.tokenizer, self.settings, self.name = tokenizer, settings, name

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    @property
    def picture(self) -> PictureSettings:
        """How pictures are described."""
        return self.settings.model.picture

    @property
    def sees_pixels(self) -> bool:
        """Whether the model itself reads pixels, its describer being trained with it."""
        return isinstance(self.model.encoder, PictureEncoder)

    @overload
    def __call__(
        self,
        image: Shown,
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> Caption: ...

    @overload
    def __call__(
        self,
        image: list[Shown],
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> list[Caption]: ...

    def __call__(
        self,
        image: Shown | list[Shown],
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 32,
        generator: torch.Generator | None = None,
    ) -> Caption | list[Caption]:
        """Describe a picture, or many at once.

        Args:
            image: A file, a PIL image, or a list of them.
            beam: How many hypotheses are kept at each step; 1 is greedy. By default the model's.
                With a number nothing is drawn at random.
            nbest: How many captions of each picture are wanted, at most `beam`.
            batch_size: How many pictures are described at once.
            generator: Where captions are drawn from; by default one of seed 0.

        Returns:
            One caption, or a list in the order of the pictures.

        Raises:
            UserError: A setting is out of range, or a file is no picture.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Use 32.")
        shown = image if isinstance(image, list) else [image]
        draws = self.settings.decoding.sample and beam is None
        search = self.search(1 if draws else beam, 1 if draws else nbest)
        draw = self._draw(nbest, generator, len(shown)) if draws else None
        found: list[Caption] = []
        for start in range(0, len(shown), batch_size):
            seen = [see(one) for one in shown[start : start + batch_size]]
            own = None if draw is None else draw.choose(range(start, start + len(seen)))
            several = self.hypotheses(self.sources([one.image for one in seen]), search, own)
            found += [self._caption(*pair) for pair in zip(seen, several, strict=True)]
        return found if isinstance(image, list) else found[0]

    def search(self, beam: int | None, nbest: int) -> Search:
        """Return how to search: see `regard.tasks.searching.search_settings`."""
        return search_settings(self.settings.decoding, beam, nbest)

    def searching(self, decoding: DecodingSettings) -> Captioner:
        """Return a captioner of the same model that searches, or draws, in another way.

        Args:
            decoding: How.

        Raises:
            ConfigError: It does not go with the model.
        """
        table = {**dict(self.settings), "decoding": decoding}
        settings = checked(table, CaptioningModelSettings, where="decoding")
        return Captioner(self.model, self.describer, self.tokenizer, settings, name=self.name)

    def mask(self, count: int) -> Tensor:
        """Say that every cell of so many pictures is real."""
        rows, columns = self.grid
        return torch.ones(count, rows * columns, dtype=torch.bool, device=self.device)

    def hypotheses(
        self, sources: Tensor, search: Search, draw: Draw | None = None
    ) -> list[list[Hypothesis]]:
        """Search for the captions of a batch of pictures, or draw them."""
        if not len(sources):
            return []
        with torch.inference_mode():
            return searched(self.model, sources, self.mask(len(sources)), search, draw)

    def _draw(self, nbest: int, generator: torch.Generator | None, count: int) -> Draw:
        source = torch.Generator().manual_seed(0) if generator is None else generator
        return Draw(sampling_settings(self.settings.decoding, nbest), generators(source, count))

    def _caption(self, seen: Seen, several: list[Hypothesis]) -> Caption:
        found = [self._one(seen, one) for one in several]
        return replace(found[0], alternatives=tuple(found[1:]))

    def _one(self, seen: Seen, found: Hypothesis) -> Caption:
        text, offsets = self.tokenizer.decode_offsets(found.tokens)
        pieces = self.tokenizer.pieces(found.tokens)
        tokens = [Token(piece, *span) for piece, span in zip(pieces, offsets, strict=True)]
        written = Text(text, tuple(tokens), self.settings.language)
        maps = self._maps(found)
        return Caption(
            image=seen.name,
            text=text,
            tokens=tuple(token.text for token in written.tokens),
            score=found.score,
            log_prob=found.log_prob,
            looked=self._record(seen, written, maps, found.score) if maps else None,
            truncated=not found.ended,
        )

    def _record(self, seen: Seen, written: Text, maps: tuple[Map, ...], score: float) -> Record:
        rows, columns = self.grid
        picture = Picture.from_image(
            seen.image,
            rows=rows,
            columns=columns,
            name=seen.name,
            sentinel=self.settings.model.sentinel,
        )
        return Record("captioning", picture, written, maps, {"score": score, "model": self.name})

    def _maps(self, found: Hypothesis) -> tuple[Map, ...]:
        weights = found.weights[:, :-1].float().numpy()  # without the end mark
        names = map_names(self.settings.model.decoder)
        return tuple(Map(name, matrix) for name, matrix in zip(names, weights, strict=True))


def load_captioner(opened: Opened, device: torch.device) -> Captioner:
    """Open a captioner.

    Args:
        opened: Its folder, verified.
        device: Where it shall live.

    Returns:
        The captioner.

    Raises:
        FileFormatError: A file of it is wrong.
        MissingExtraError: The published weights of its network are not installed.
    """
    settings = checked(opened.config, CaptioningModelSettings, where=str(opened.folder / CONFIG))
    tokenizer = Tokenizer.load(opened.folder / TOKENS)
    describer = build_describer(settings.model.picture)
    load_published(describer)

    def build() -> Seq2Seq:
        return build_captioner(
            settings.model, describer, words=tokenizer.size, padding=Tokenizer.PAD
        )

    model = load_model(build, opened.folder / MODEL)
    return Captioner(model.to(device), describer.to(device), tokenizer, settings, name=opened.name)
