"""Translation: text in one language in, text in another out, and where the model looked."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, overload

import torch
from pydantic import Field

from regard.config import Strict, checked
from regard.data.batches import pad
from regard.data.tokens import Encoding, Tokenizer
from regard.errors import UserError
from regard.models.decoding import (
    Hypothesis,
    Search,
    Symbols,
    beam_search,
    forced,
    greedy_search,
)
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import Seq2SeqSettings, build_seq2seq
from regard.pictures.records import Map, Record, Text, Token
from regard.tasks.base import CONFIG, Opened
from regard.training.checkpoint import MODEL, load_model
from regard.training.settings import TrainingSettings

SOURCE_TOKENS, TARGET_TOKENS = "tokenizer.source.json", "tokenizer.target.json"
SYMBOLS = Symbols(
    bos=Tokenizer.BOS, eos=Tokenizer.EOS, banned=(Tokenizer.PAD, Tokenizer.BOS, Tokenizer.UNK)
)


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
    """How a translation is searched for; see `regard.models.decoding.Search`."""

    beam: Annotated[int, Field(ge=1, le=1000)] = 5
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    minimum_length: Annotated[int, Field(ge=0, le=10_000)] = 0
    maximum_length: Annotated[int, Field(ge=1, le=10_000)] = 200


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


class ModelSettings(Strict):
    """What a model's `config.json` holds."""

    task: Literal["translation"]
    source_language: str | None
    target_language: str | None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)]
    model: Seq2SeqSettings
    decoding: DecodingSettings


@dataclass(frozen=True, slots=True)
class Translation:
    """A translation and what the model looked at for it.

    Args:
        source: The text that was translated.
        text: The translation.
        tokens: Its tokens.
        score: Its logarithmic probability over the length penalty; n-best lists are sorted by it.
        log_prob: Its logarithmic probability.
        record: What was read, what was written, and the weights between.
        truncated: Whether the input was cut, or the output forced to end.
        alternatives: The next best translations, where more than one was asked for.
    """

    source: str
    text: str
    tokens: tuple[str, ...]
    score: float
    log_prob: float
    record: Record
    truncated: bool = False
    alternatives: tuple[Translation, ...] = field(default=())

    def save(self, path: str | Path, *, overwrite: bool = True) -> None:
        """Save the picture or the numbers: `.svg`, `.html` or `.json`, by the ending."""
        self.record.save(path, overwrite=overwrite)

    def _repr_html_(self) -> str:
        return self.record._repr_html_()


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
        model: Seq2Seq,
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
        self, text: str, *, beam: int | None = None, nbest: int = 1, batch_size: int = 64
    ) -> Translation: ...

    @overload
    def __call__(
        self, text: list[str], *, beam: int | None = None, nbest: int = 1, batch_size: int = 64
    ) -> list[Translation]: ...

    def __call__(
        self,
        text: str | list[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
    ) -> Translation | list[Translation]:
        """Translate a text, or many at once.

        Args:
            text: A sentence, or a list of them; a blank one gives an empty translation.
            beam: How many hypotheses are kept at each step; 1 is greedy. By default the model's.
            nbest: How many translations of each sentence are wanted, at most `beam`.
            batch_size: How many sentences are translated at once.

        Returns:
            One translation, or a list in the order of the texts.

        Raises:
            UserError: A setting is out of range.
        """
        texts = [text] if isinstance(text, str) else list(text)
        search = self.search(beam, nbest)
        encodings = [self._encoded(one) for one in texts]
        order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids))
        results: dict[int, Translation] = {}
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}.")
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            found = self.hypotheses([encodings[i].ids for i in chosen], search)
            for i, hypotheses in zip(chosen, found, strict=True):
                results[i] = self._translation(texts[i], encodings[i], hypotheses)
        ordered = [results[i] for i in range(len(texts))]
        return ordered[0] if isinstance(text, str) else ordered

    def align(self, sources: list[str], targets: list[str]) -> list[Translation]:
        """Read given translations and show where the model looks for each of their words.

        Args:
            sources: Source texts.
            targets: The translation of each, whoever made it.

        Returns:
            The translations with their scores and records, as if the model had written them.

        Raises:
            UserError: There are not as many targets as sources.
        """
        if len(sources) != len(targets):
            raise UserError(
                f"targets must be as many as sources; got {len(targets)} and {len(sources)}."
            )
        return [self._aligned(*pair) for pair in zip(sources, targets, strict=True)]

    def search(self, beam: int | None, nbest: int) -> Search:
        """Return how to search: the model's settings, with another beam where one is given."""
        own = self.settings.decoding
        return Search(
            beam=own.beam if beam is None else beam,
            nbest=nbest,
            length_penalty=own.length_penalty,
            minimum_length=own.minimum_length,
            maximum_length=own.maximum_length,
        )

    def hypotheses(
        self, sources: Sequence[Sequence[int]], search: Search
    ) -> list[list[Hypothesis]]:
        """Search for the translations of a batch of encoded sentences, empty ones apart."""
        filled = [i for i, ids in enumerate(sources) if ids]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        if not filled:
            return found
        tokens = pad([sources[i] for i in filled], value=Tokenizer.PAD).to(self.device)
        with torch.inference_mode():
            state = self.model.begin(tokens, tokens != Tokenizer.PAD)
            if search.beam == 1:
                one = greedy_search(self.model, state, len(filled), SYMBOLS, search)
                several = [[hypothesis] for hypothesis in one]
            else:
                several = beam_search(self.model, state, len(filled), SYMBOLS, search)
        for i, hypotheses in zip(filled, several, strict=True):
            found[i] = hypotheses
        return found

    def _aligned(self, source: str, target: str) -> Translation:
        encoding, ids = self._encoded(source), self.target.encode(target).ids
        if not encoding.ids:
            return self._one(source, encoding, None)
        read = torch.tensor([encoding.ids], device=self.device)
        written = torch.tensor([[*ids, Tokenizer.EOS]], device=self.device)
        with torch.inference_mode():
            state = self.model.begin(read, torch.ones_like(read, dtype=torch.bool))
            log_probs, weights = forced(self.model, state, written, SYMBOLS)
        log_prob = float(log_probs.sum())
        score = self.search(None, 1).normalised(log_prob, len(ids) + 1)
        found = Hypothesis(tuple(ids), log_prob, score, weights[0].cpu(), ended=True)
        return self._one(source, encoding, found)

    def _encoded(self, text: str) -> Encoding:
        encoding = self.source.encode(text)
        limit = self.settings.max_tokens
        if len(encoding.ids) <= limit:
            return encoding
        warnings.warn(
            f"an input of {len(encoding.ids)} tokens is cut to {limit}", UserWarning, stacklevel=3
        )
        return Encoding(encoding.ids[:limit], encoding.tokens[:limit], encoding.offsets[:limit])

    def _translation(
        self, text: str, encoding: Encoding, hypotheses: list[Hypothesis]
    ) -> Translation:
        if not hypotheses:
            return self._one(text, encoding, None)
        first, *others = [self._one(text, encoding, hypothesis) for hypothesis in hypotheses]
        return Translation(
            first.source,
            first.text,
            first.tokens,
            first.score,
            first.log_prob,
            first.record,
            first.truncated,
            tuple(others),
        )

    def _one(self, text: str, encoding: Encoding, found: Hypothesis | None) -> Translation:
        ids = () if found is None else found.tokens
        written, offsets = self.target.decode_offsets(ids)
        pieces = tuple(self.target.pieces(ids))
        score = 0.0 if found is None else found.score
        spans = zip(encoding.tokens, encoding.offsets, strict=True)
        read = [Token(text[start:end] or token, start, end) for token, (start, end) in spans]
        wrote = [Token(t, *span) for t, span in zip(pieces, offsets, strict=True)]
        record = Record(
            task="translation",
            read=Text(text, tuple(read), self.settings.source_language),
            written=Text(written, tuple(wrote), self.settings.target_language),
            maps=self._maps(found, len(read)),
            details={"model": self.name, "score": score},
        )
        cut = len(encoding.ids) == self.settings.max_tokens
        forced = found is not None and not found.ended
        log_prob = 0.0 if found is None else found.log_prob
        return Translation(text, written, pieces, score, log_prob, record, cut or forced)

    def _maps(self, found: Hypothesis | None, keys: int) -> tuple[Map, ...]:
        if found is None:
            return ()
        weights = found.weights[:, :-1, :keys].float().numpy()  # without the end mark and padding
        return tuple(Map(name, matrix) for name, matrix in zip(self._names(), weights, strict=True))

    def _names(self) -> list[str]:
        part = self.settings.model.decoder
        if part.kind == "transformer":
            layers, heads = range(1, part.layers + 1), range(1, part.num_heads + 1)
            return [f"layer {layer}, head {head}" for layer in layers for head in heads]
        return [] if part.attention == "none" else [part.attention]


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

    def build() -> Seq2Seq:
        return build_seq2seq(
            settings.model,
            source_size=source.size,
            target_size=target.size,
            padding=Tokenizer.PAD,
        )

    model = load_model(build, opened.folder / MODEL)
    return Translator(model.to(device), source, target, settings, name=opened.name)
