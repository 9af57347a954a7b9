"""The pieces a tokenizer knows, and the file that holds them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from regard.data.normalisation import FORMS, SPACE_MARK
from regard.data.segments import SEGMENTERS
from regard.errors import FileFormatError

CONTROLS = ("<pad>", "<bos>", "<eos>", "<unk>")
"""Names of the ids 0 to 3. They are no pieces: no text is ever encoded to them by its spelling."""

FORMAT = "regard.tokenizer"
VERSION = 1
LARGEST_FILE = 64 * 2**20
MOST_PIECES = 1_000_000
LONGEST_PIECE = 256


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Everything that a tokenizer is made from.

    Args:
        kind: One of `words`, `chinese`, `characters`, `bpe`, `unigram`.
        normalisation: One of `nfc`, `nfkc`, `none`.
        lowercase: Whether text is taken to lower case.
        pieces: The pieces, in the order of their ids; the first has id 4.
        merges: For `bpe`, the pairs of pieces to join, most important first.
        scores: For `unigram`, the log probability of each piece.
    """

    kind: str
    normalisation: str
    lowercase: bool
    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...] = ()
    scores: tuple[float, ...] = ()

    def to_json(self) -> str:
        """Write the vocabulary as text.

        Returns:
            JSON, the same for the same vocabulary.
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "normalisation": self.normalisation,
            "lowercase": self.lowercase,
            "pieces": self.pieces,
            "merges": self.merges,
            "scores": self.scores,
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Read a vocabulary strictly; nothing in the text is executed or followed.

        Args:
            text: What `to_json` wrote.

        Returns:
            The vocabulary.

        Raises:
            FileFormatError: Any field is missing, unknown or wrong.
        """
        content = _object(text)
        kind = _choice(content, "kind", tuple(SEGMENTERS))
        pieces = _pieces(content["pieces"])
        vocabulary = cls(
            kind=kind,
            normalisation=_choice(content, "normalisation", tuple(FORMS)),
            lowercase=_flag(content["lowercase"]),
            pieces=pieces,
            merges=_merges(content["merges"], set(pieces)),
            scores=_scores(content["scores"]),
        )
        _check_kind(vocabulary)
        return vocabulary


def _refuse(name: str, condition: str, got: object) -> NoReturn:
    shown = repr(got)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise FileFormatError(
        f"{name} must {condition}; got {shown}. Use a tokenizer file that regard wrote."
    )


def _object(text: str) -> dict[str, object]:
    if len(text) > LARGEST_FILE:
        _refuse("tokenizer", f"have at most {LARGEST_FILE} characters", len(text))
    try:
        content = json.loads(text, parse_constant=lambda name: _refuse("number", "be finite", name))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"tokenizer must be JSON that regard wrote; got something else ({error}). "
            "Other formats are not read, and pickles never are."
        ) from error
    if not isinstance(content, dict):
        _refuse("tokenizer", "be a JSON object", type(content).__name__)
    if content.get("format") != FORMAT:
        _refuse("format", f"be {FORMAT!r}", content.get("format"))
    if content.get("version") != VERSION or type(content["version"]) is not int:
        _refuse("version", f"be {VERSION}", content.get("version"))
    names = {"format", "version", *Vocabulary.__slots__}
    if content.keys() != names:
        _refuse("fields", f"be {', '.join(sorted(names))}", sorted(content.keys() ^ names))
    return content


def _choice(content: dict[str, object], name: str, known: tuple[str, ...]) -> str:
    value = content[name]
    if not isinstance(value, str) or value not in known:
        _refuse(name, f"be one of {', '.join(known)}", value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        _refuse("lowercase", "be true or false", value)
    return value


def _list(value: object, name: str) -> Sequence[object]:
    if not isinstance(value, list):
        _refuse(name, "be a list", value)
    if len(value) > MOST_PIECES:
        _refuse(name, f"have at most {MOST_PIECES} entries", len(value))
    return value


def _pieces(value: object) -> tuple[str, ...]:
    pieces = []
    for piece in _list(value, "pieces"):
        if not isinstance(piece, str) or not _is_piece(piece):
            _refuse("a piece", f"be text of 1 to {LONGEST_PIECE} characters without space", piece)
        pieces.append(piece)
    if len(set(pieces)) != len(pieces):
        _refuse("pieces", "be distinct", f"{len(pieces) - len(set(pieces))} repeated")
    if SPACE_MARK not in pieces:
        _refuse("pieces", f"hold {SPACE_MARK!r}", f"{len(pieces)} without it")
    return tuple(pieces)


def _is_piece(piece: str) -> bool:
    return (
        0 < len(piece) <= LONGEST_PIECE
        and SPACE_MARK not in piece[1:]
        and not any(c.isspace() or "\ud800" <= c <= "\udfff" for c in piece)
    )


def _merges(value: object, pieces: set[str]) -> tuple[tuple[str, str], ...]:
    merges = []
    for pair in _list(value, "merges"):
        if not isinstance(pair, list) or [type(half) for half in pair] != [str, str]:
            _refuse("a merge", "be two pieces", pair)
        first, second = pair
        if not {first, second, first + second} <= pieces:
            _refuse("a merge", "join two known pieces to a known one", pair)
        merges.append((first, second))
    return tuple(merges)


def _scores(value: object) -> tuple[float, ...]:
    scores = []
    for score in _list(value, "scores"):
        if type(score) not in (int, float) or not -1e6 <= score <= 0:  # type: ignore[operator]
            _refuse("a score", "be a number from -1000000 to 0", score)
        scores.append(float(score))  # type: ignore[arg-type]
    return tuple(scores)


def _check_kind(vocabulary: Vocabulary) -> None:
    if vocabulary.merges and vocabulary.kind != "bpe":
        _refuse("merges", f"be empty for kind {vocabulary.kind!r}", len(vocabulary.merges))
    needed = len(vocabulary.pieces) if vocabulary.kind == "unigram" else 0
    if len(vocabulary.scores) != needed:
        _refuse("scores", f"have {needed} entries", len(vocabulary.scores))
    if not all(math.isfinite(score) for score in vocabulary.scores):
        _refuse("scores", "be finite", "infinity")
