"""Translation: text in, text in another language out, and where the model looked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np
import torch

from regard.config import checked
from regard.data.text import MAX_CHARACTERS
from regard.data.tokens import Encoding, Tokenizer
from regard.errors import UserError
from regard.models.decoding import Hypothesis, Search, generators
from regard.models.rescoring import AnySeq2Seq, build_model
from regard.pictures.records import Map, Record, Text, Token
from regard.tasks.base import CONFIG, Opened
from regard.tasks.output import Output
from regard.tasks.searching import Draw, sampling_settings, search_settings
from regard.tasks.settings import DecodingSettings, map_names
from regard.tasks.translation_search import aligned, hypotheses
from regard.tasks.translation_settings import ModelSettings
from regard.training.checkpoint import MODEL, load_model

SOURCE_TOKENS, TARGET_TOKENS = "tokenizer.source.json", "tokenizer.target.json"
_CHARACTERS = 100  # no language writes a token with more


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation(Output):
    """A translation and what the model looked at for it; see `Output` for what it shares.

    Args:
        source: The text that was translated.
        alternatives: The next best translations, where more than one was asked for.
    """

    source: str
    alternatives: tuple[Translation, ...] = ()


class _Input(NamedTuple):
    """A text, what was read of it, and whether that is not all."""

    text: str
    encoding: Encoding
    cut: bool


class Translator:
    """A model that translates and shows where it looked.

    Args:
        model: The model.
        source: The tokenizer of the source.
        target: The tokenizer of the target.
        settings: Languages, limits and how to search.
        name: What a person calls the model.

    Example:
        >>> import regard
        >>> translator = regard.load("en-zh")
        >>> [result.text for result in translator(["Tom chases Jerry", ""])]
        ['汤姆追逐杰瑞', '']
    """

    def __init__(
        self,
        model: AnySeq2Seq,
        source: Tokenizer,
        target: Tokenizer,
        settings: ModelSettings,
        *,
        name: str = "",
    ) -> None:
        self.model = model.eval()
        self.source, self.target = source, target
        self.settings, self.name = settings, name

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(self.model.parameters()).device

    @overload
    def __call__(
        self,
        text: str,
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        generator: torch.Generator | None = None,
    ) -> Translation: ...

    @overload
    def __call__(
        self,
        text: list[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        generator: torch.Generator | None = None,
    ) -> list[Translation]: ...

    def __call__(
        self,
        text: str | list[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        generator: torch.Generator | None = None,
    ) -> Translation | list[Translation]:
        """Translate a text, or many at once.

        An input of more than `max_tokens` tokens is cut, with a warning. Where the settings say
        `sample`, translations are drawn at random, in the order of the alternatives.

        Args:
            text: A sentence, or a list of them; a blank one gives an empty translation.
            beam: How many hypotheses are kept at each step; 1 is greedy. By default the model's.
                With a number nothing is drawn at random.
            nbest: How many translations of each sentence are wanted, at most `beam`.
            batch_size: How many sentences are translated at once.
            generator: Where translations are drawn from; by default one of seed 0.

        Returns:
            One translation, or a list in the order of the texts.

        Raises:
            UserError: A setting is out of range, or an input is no text.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Use 64.")
        draws = self.settings.decoding.sample and beam is None
        search = self.search(1 if draws else beam, 1 if draws else nbest)
        inputs = self._inputs([text] if isinstance(text, str) else text)
        draw = self._draw(nbest, generator, len(inputs)) if draws else None
        order = sorted(range(len(inputs)), key=lambda i: len(inputs[i].encoding.ids))
        results: dict[int, Translation] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            own = None if draw is None else draw.choose(chosen)
            found = self.hypotheses([inputs[i].encoding.ids for i in chosen], search, own)
            for i, several in zip(chosen, found, strict=True):
                results[i] = self._translation(inputs[i], several)
        ordered = [results[i] for i in range(len(inputs))]
        return ordered[0] if isinstance(text, str) else ordered

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[Translation]:
        """Read given translations and show where the model looks for each of their words.

        Args:
            sources: Source texts.
            targets: The translation of each, whoever made it.

        Returns:
            The translations as they were given, with their scores and records, as if the model
            had written them.

        Raises:
            UserError: There are not as many targets as sources, or one is no text.
        """
        if isinstance(sources, str) or isinstance(targets, str) or len(sources) != len(targets):
            raise UserError(
                f"sources and targets must be lists of one length; got {len(sources)} and "
                f"{len(targets)} items. Give each text its translation."
            )
        inputs = self._inputs(sources)
        return [self._aligned(*pair) for pair in zip(inputs, targets, strict=True)]

    def search(self, beam: int | None, nbest: int) -> Search:
        """Return how to search: see `regard.tasks.translation_search.search_settings`."""
        return search_settings(self.settings.decoding, beam, nbest)

    def searching(self, decoding: DecodingSettings) -> Translator:
        """Return a translator of the same model that searches, or draws, in another way.

        Args:
            decoding: How.

        Raises:
            ConfigError: It does not go with the model.
        """
        table = {**dict(self.settings), "decoding": decoding}
        settings = checked(table, ModelSettings, where="decoding")
        return Translator(self.model, self.source, self.target, settings, name=self.name)

    def hypotheses(
        self, sources: Sequence[Sequence[int]], search: Search, draw: Draw | None = None
    ) -> list[list[Hypothesis]]:
        """Search for the translations of a batch of encoded sentences, or draw them."""
        return hypotheses(self.model, sources, search, draw)

    def _draw(self, nbest: int, generator: torch.Generator | None, count: int) -> Draw:
        source = torch.Generator().manual_seed(0) if generator is None else generator
        return Draw(sampling_settings(self.settings.decoding, nbest), generators(source, count))

    def _aligned(self, given: _Input, target: str) -> Translation:
        written = self.target.encode(_checked_text(target))
        search = self.search(None, 1)
        found = replace(aligned(self.model, given.encoding.ids, written.ids, search), ended=True)
        return self._one(given, found, _text(target, written, self.settings.target_language))

    def _inputs(self, texts: Sequence[str]) -> list[_Input]:
        inputs = [self._input(_checked_text(text)) for text in texts]
        cut = sum(one.cut for one in inputs)
        if cut:
            warnings.warn(
                f"inputs are read up to {self.settings.max_tokens} tokens; {cut} of {len(inputs)} "
                "are longer and were cut",
                UserWarning,
                stacklevel=3,
            )
        return inputs

    def _input(self, text: str) -> _Input:
        limit = self.settings.max_tokens
        most = max(MAX_CHARACTERS, limit * _CHARACTERS)  # so that a huge text is not cut up whole
        ids, tokens, offsets = self.source.encode(text[:most])
        cut = len(ids) > limit or bool(text[most:].strip())
        return _Input(text, Encoding(ids[:limit], tokens[:limit], offsets[:limit]), cut)

    def _translation(self, given: _Input, hypotheses: list[Hypothesis]) -> Translation:
        found = [self._one(given, one, self._written(one.tokens)) for one in hypotheses]
        if not found:  # a blank text
            return self._one(given, None, self._written(()))
        return replace(found[0], alternatives=tuple(found[1:]))

    def _written(self, ids: Sequence[int]) -> Text:
        text, offsets = self.target.decode_offsets(ids)
        pieces = self.target.pieces(ids)
        tokens = [Token(piece, *span) for piece, span in zip(pieces, offsets, strict=True)]
        return Text(text, tuple(tokens), self.settings.target_language)

    def _one(self, given: _Input, found: Hypothesis | None, written: Text) -> Translation:
        score, log_prob = (0.0, 0.0) if found is None else (found.score, found.log_prob)
        read = _text(given.text, given.encoding, self.settings.source_language)
        maps = self._maps(found, len(read.tokens))
        return Translation(
            source=given.text,
            text=written.text,
            tokens=tuple(token.text for token in written.tokens),
            score=score,
            log_prob=log_prob,
            looked=self._record(read, written, maps, score) if maps else None,
            truncated=given.cut or (found is not None and not found.ended),
        )

    def _record(self, read: Text, written: Text, maps: tuple[Map, ...], score: float) -> Record:
        return Record("translation", read, written, maps, {"model": self.name, "score": score})

    def _maps(self, found: Hypothesis | None, keys: int) -> tuple[Map, ...]:
        names = map_names(self.settings.model.decoder)
        if found is None:
            return tuple(Map(name, np.zeros((0, keys), dtype=np.float32)) for name in names)
        weights = found.weights[:, :-1, :keys].float().numpy()  # without the end mark and padding
        return tuple(Map(name, matrix) for name, matrix in zip(names, weights, strict=True))


def _checked_text(text: object) -> str:
    if not isinstance(text, str):
        raise UserError(
            f"text must be a string, or a list of strings; got {type(text).__name__}. Decode "
            "bytes, and leave None out."
        )
    return text


def _text(text: str, encoding: Encoding, language: str | None) -> Text:
    pairs = zip(encoding.tokens, encoding.offsets, strict=True)
    tokens = (Token(text[start:end] or token, start, end) for token, (start, end) in pairs)
    return Text(text, tuple(tokens), language)


def load_translator(opened: Opened, device: torch.device) -> Translator:
    """Load a translator from a verified folder.

    Args:
        opened: The folder and its settings.
        device: Where the model shall live.

    Returns:
        The translator.

    Raises:
        FileFormatError: Settings, tokenizers or weights do not go together.
    """
    settings = checked(opened.config, ModelSettings, where=str(opened.folder / CONFIG))
    source = Tokenizer.load(opened.folder / SOURCE_TOKENS)
    target = Tokenizer.load(opened.folder / TARGET_TOKENS)

    def build() -> AnySeq2Seq:
        return build_model(
            settings.model,
            source_size=source.size,
            target_size=target.size,
            padding=Tokenizer.PAD,
        )

    model = load_model(build, opened.folder / MODEL)
    return Translator(model.to(device), source, target, settings, name=opened.name)
