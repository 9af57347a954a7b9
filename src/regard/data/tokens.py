"""Turn a person's text into ids and back, knowing where each piece stood."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from tokenizers import models

from regard.data.normalisation import SPACE_MARK, Normalised, normalise
from regard.data.pieces import learn
from regard.data.segments import SEGMENTERS
from regard.data.vocabulary import CONTROLS, LARGEST_FILE, Vocabulary
from regard.errors import FileFormatError, UserError
from regard.saving import write_file

_REPLACEMENT = "\ufffd"
_MOST_CACHED = 65536
_LONGEST_CACHED = 64

_Found = tuple[int, int]  # an id, and how many characters of the word it stands for
_Model = Callable[[str], list[str]]


class Encoding(NamedTuple):
    """A text as ids.

    Args:
        ids: One id per piece, without beginning or end marks.
        tokens: What each id stands for, for display: text without the mark of a space.
        offsets: First character of each token in the original text, and one past its last.
    """

    ids: list[int]
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]


class Tokenizer:
    """Text to ids and back, for every task and every language.

    White space is kept in the pieces: one that follows a space begins with U+2581. In the kinds
    `words`, `bpe` and `unigram` the first piece of a text does so too; decoding takes it away.
    A word that is not known becomes its characters, a character never seen becomes `UNK`. The
    ids 0 to 3 are never made from what a person types: `<eos>` in a text is five characters.

    Args:
        vocabulary: The pieces and what else `Tokenizer.train` learns.

    Example:
        >>> tokenizer = Tokenizer.train(["Tom chases Jerry.", "Jerry sees Tom."], kind="words")
        >>> tokenizer.encode("Tom sees Jerry.").tokens
        ('Tom', 'sees', 'Jerry', '.')
        >>> tokenizer.decode(tokenizer.encode("Tom sees Jerry.").ids)
        'Tom sees Jerry.'
    """

    PAD: ClassVar[int] = 0
    BOS: ClassVar[int] = 1
    EOS: ClassVar[int] = 2
    UNK: ClassVar[int] = 3

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._ids = {p: i for i, p in enumerate(vocabulary.pieces, start=len(CONTROLS))}
        self._mark = self._ids[SPACE_MARK]
        self._segment = SEGMENTERS[vocabulary.kind]
        self._model = _subword_model(vocabulary)
        self._cache: dict[str, tuple[_Found, ...]] = {}

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        kind: str,
        size: int | None = None,
        minimum_frequency: int = 1,
        normalisation: str = "nfc",
        lowercase: bool = False,
    ) -> Tokenizer:
        """Learn the pieces from texts; the same texts give the same tokenizer.

        Args:
            texts: The training texts.
            kind: `words` (languages with spaces), `chinese` (jieba's words), `characters`,
                `bpe` or `unigram` (subwords).
            size: Most ids, the four control ids included. None: no limit, or 8000 subwords.
            minimum_frequency: A rarer word is written with its characters.
            normalisation: `nfc`, `nfkc` or `none`.
            lowercase: Whether to take lower case.

        Returns:
            The tokenizer.

        Raises:
            UserError: A setting does not exist or is out of range.
            DataError: The texts hold no character.
            MissingExtraError: The kind is `chinese` and rjieba is not installed.
        """
        if isinstance(texts, str):
            raise UserError("texts must be many strings; got one string. Put it in a list.")
        vocabulary = learn(
            texts,
            kind=kind,
            size=size,
            minimum_frequency=minimum_frequency,
            normalisation=normalisation,
            lowercase=lowercase,
        )
        return cls(vocabulary)

    @property
    def kind(self) -> str:
        """How text is cut: `words`, `chinese`, `characters`, `bpe` or `unigram`."""
        return self.vocabulary.kind

    @property
    def size(self) -> int:
        """How many ids there are, the four control ids included."""
        return len(CONTROLS) + len(self.vocabulary.pieces)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the tokenizer's JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, size={self.size})"

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Vocabulary]]:
        return Tokenizer, (self.vocabulary,)

    def normalise(self, text: str) -> str:
        """Write a text as this tokenizer reads it; decoding gives this back.

        Args:
            text: Any string.

        Returns:
            The normalised text.
        """
        return self._normalise(text).text

    def encode(self, text: str, *, whole: bool = False) -> Encoding:
        """Turn a text into ids.

        Args:
            text: Any string.
            whole: Whether every segment is one id, and one that is not known is `UNK`: words stay
                whole in the kinds `words`, `chinese` and `characters`.

        Returns:
            Ids, tokens and offsets; all empty for a blank text.
        """
        source = self._normalise(text)
        ids: list[int] = []
        tokens: list[str] = []
        places: list[tuple[int, int]] = []
        text = source.text
        for start, end, spaced in self._segment(text):
            word = SPACE_MARK + text[start:end] if spaced else text[start:end]
            place = start
            found = self._whole(word) if whole else self._cache.get(word) or self._look_up(word)
            for identity, length in found:
                first = place if length else max(0, place - 1)  # a lone mark is the space itself
                ids.append(identity)
                tokens.append(text[place : place + length] or SPACE_MARK)
                places.append((first, place + length))
                place += length
        return Encoding(ids, tuple(tokens), source.spans(places))

    def encode_batch(self, texts: Iterable[str]) -> list[Encoding]:
        """Turn many texts into ids.

        Args:
            texts: The texts.

        Returns:
            What `encode` returns for each.
        """
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids back into text.

        Args:
            ids: Ids; control ids are left out, `UNK` is written as U+FFFD.

        Returns:
            The text, with single spaces and none at its ends.

        Raises:
            UserError: An id is out of range.
        """
        return self.decode_offsets(ids)[0]

    def decode_offsets(self, ids: Iterable[int]) -> tuple[str, list[tuple[int, int]]]:
        """Turn ids back into text and say where each piece lies in it.

        Args:
            ids: Ids, as for `decode`.

        Returns:
            The text, and for each id its first character and one past its last; an id that
            writes nothing has an empty place.
        """
        parts: list[str] = []
        offsets: list[tuple[int, int]] = []
        place, space = 0, False
        for identity in ids:
            piece = self._written(identity)
            space = space or piece[:1] == SPACE_MARK
            shown = piece.removeprefix(SPACE_MARK)
            if shown and space and place:
                parts.append(" ")
                place += 1
            if shown:
                parts.append(shown)
                space = False
            offsets.append((place, place + len(shown)))
            place += len(shown)
        return "".join(parts), offsets

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Name ids for display.

        Args:
            ids: Ids.

        Returns:
            The text of each piece without the mark of a space; `<eos>` and so on for controls.

        Raises:
            UserError: An id is out of range.
        """
        return [self._name(identity) for identity in ids]

    def to_json(self) -> str:
        """Write the tokenizer as text.

        Returns:
            JSON, the same for the same tokenizer.
        """
        return self.vocabulary.to_json()

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """Read what `to_json` wrote, strictly; nothing in it is executed.

        Args:
            text: The JSON.

        Returns:
            The tokenizer.

        Raises:
            FileFormatError: The text is not a tokenizer's, or was damaged.
        """
        return cls(Vocabulary.from_json(text))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer to a file, whole or not at all.

        Args:
            path: The file, by convention ending in `.json`.
        """
        write_file(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a tokenizer from a file.

        Args:
            path: The file.

        Returns:
            The tokenizer.

        Raises:
            UserError: There is no such file.
            FileFormatError: It is not a tokenizer that regard wrote.
        """
        where = str(path)
        try:
            if Path(path).stat().st_size > LARGEST_FILE:
                raise FileFormatError(f"must be at most {LARGEST_FILE} bytes.", where=where)
            text = Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}.", where=where) from error
        except UnicodeDecodeError as error:
            raise FileFormatError(
                "must be a tokenizer in JSON; it is not text. regard never loads pickles.",
                where=where,
            ) from error
        try:
            return cls.from_json(text)
        except FileFormatError as error:
            raise FileFormatError(error.message, where=where) from error

    def _normalise(self, text: str) -> Normalised:
        form, lowercase = self.vocabulary.normalisation, self.vocabulary.lowercase
        return normalise(text, form=form, lowercase=lowercase)

    def _whole(self, word: str) -> tuple[_Found, ...]:
        """A word as one id, whether or not it stood behind a space where it was learnt."""
        bare = word.removeprefix(SPACE_MARK)
        known = next((p for p in (word, bare, SPACE_MARK + bare) if p in self._ids), "")
        return ((self._ids.get(known, self.UNK), len(bare)),)

    def _look_up(self, word: str) -> tuple[_Found, ...]:
        found = tuple(self._find(word))
        if len(self._cache) < _MOST_CACHED and len(word) <= _LONGEST_CACHED:
            self._cache[word] = found
        return found

    def _find(self, word: str) -> Iterable[_Found]:
        if self._model is not None:
            return self._subwords(word, self._model)
        known = self._ids.get(word)
        bare = word.removeprefix(SPACE_MARK)
        if known is not None:
            return [(known, len(bare))]
        if bare in self._ids:
            return [(self._mark, 0), (self._ids[bare], len(bare))]
        first = self._ids.get(word[:2]) if bare != word else None
        if first is not None:
            return [(first, 1), *self._spell(bare[1:])]
        return [(self._mark, 0)] * (bare != word) + self._spell(bare)

    def _spell(self, word: str) -> list[_Found]:
        return [(self._ids.get(character, self.UNK), 1) for character in word]

    def _subwords(self, word: str, model: _Model) -> Iterable[_Found]:
        for known, run in itertools.groupby(word, key=self._ids.__contains__):
            if known:
                for piece in model("".join(run)):
                    yield self._ids[piece], len(piece.removeprefix(SPACE_MARK))
            else:
                yield from ((self.UNK, 1) for _ in run)

    def _written(self, identity: int) -> str:
        name = self._check(identity)
        if identity >= len(CONTROLS):
            return name
        return _REPLACEMENT if identity == self.UNK else ""

    def _name(self, identity: int) -> str:
        name = self._check(identity)
        return name.removeprefix(SPACE_MARK) or name

    def _check(self, identity: int) -> str:
        if not 0 <= identity < self.size:
            raise UserError(
                f"id must be from 0 to {self.size - 1}; got {identity}. "
                "Use the tokenizer that the ids were made with."
            )
        if identity < len(CONTROLS):
            return CONTROLS[identity]
        return self.vocabulary.pieces[identity - len(CONTROLS)]


def _subword_model(vocabulary: Vocabulary) -> _Model | None:
    """The segmentation of one word by the library; no special token is registered in it."""
    try:
        model = _library_model(vocabulary)
    except Exception as error:  # the library raises bare exceptions
        raise FileFormatError(
            f"tokenizer must hold pieces that fit together; got: {error}. Train it again."
        ) from error
    if model is None:
        return None
    return lambda word: [token.value for token in model.tokenize(word)]


def _library_model(vocabulary: Vocabulary) -> models.Model | None:
    pieces: Sequence[str] = vocabulary.pieces
    if vocabulary.kind == "bpe":
        return models.BPE({piece: i for i, piece in enumerate(pieces)}, list(vocabulary.merges))
    if vocabulary.kind == "unigram":
        return models.Unigram(list(zip(pieces, vocabulary.scores, strict=True)))
    return None
