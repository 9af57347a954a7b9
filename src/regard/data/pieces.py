"""Learn from texts which pieces a tokenizer should know; the same texts give the same pieces."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, trainers

from regard.data.normalisation import SPACE_MARK, check_form, normalise
from regard.data.segments import SEGMENTERS
from regard.data.vocabulary import CONTROLS, MOST_PIECES, Vocabulary
from regard.errors import DataError, UserError, did_you_mean

DEFAULT_SUBWORDS = 8000
_LONGEST_WORD = 64
_LONGEST_SUBWORD = 16
_SEEDS_PER_PIECE = 8
_KEPT_PER_ROUND = 0.75


def learn(
    texts: Iterable[str],
    *,
    kind: str,
    size: int | None,
    minimum_frequency: int,
    normalisation: str,
    lowercase: bool,
) -> Vocabulary:
    """Learn a vocabulary.

    The arguments and the errors are those of `Tokenizer.train`.

    Args:
        texts: The training texts.
        kind: How text is cut and pieces are chosen.
        size: Most ids, the four control ids included; None for no limit or the default.
        minimum_frequency: How often a word (or a pair to merge) must occur.
        normalisation: The Unicode form.
        lowercase: Whether to take lower case.

    Returns:
        The vocabulary.
    """
    _check_settings(kind, minimum_frequency)
    check_form(normalisation)
    cleaned = (normalise(text, form=normalisation, lowercase=lowercase).text for text in texts)
    counts = _count(cleaned, kind)
    alphabet = _alphabet(counts, with_initials=kind not in ("bpe", "unigram"))
    room = _room(size, kind, alphabet)
    if kind == "bpe":
        pieces, merges = _bpe(counts, room, minimum_frequency)
        return Vocabulary(kind, normalisation, lowercase, pieces, merges=merges)
    if kind == "unigram":
        pieces, scores = _unigram(counts, alphabet, room)
        return Vocabulary(kind, normalisation, lowercase, pieces, scores=scores)
    pieces = _words(counts, alphabet, room, minimum_frequency)
    return Vocabulary(kind, normalisation, lowercase, pieces)


def _check_settings(kind: str, minimum_frequency: int) -> None:
    if kind not in SEGMENTERS:
        raise UserError(
            f"kind must be one of {', '.join(SEGMENTERS)}; got {kind!r}; "
            f"{did_you_mean(str(kind), SEGMENTERS)}."
        )
    if minimum_frequency < 1:
        raise UserError(
            f"minimum_frequency must be at least 1; got {minimum_frequency}. Use 1 for every word."
        )


def _count(texts: Iterable[str], kind: str) -> Counter[str]:
    """Count the segments, those after white space with its mark."""
    counts: Counter[str] = Counter()
    for text in texts:
        for start, end, spaced in SEGMENTERS[kind](text):
            counts[SPACE_MARK * spaced + text[start:end]] += 1
    if not counts:
        raise DataError("texts must hold at least one character; got none. Check the files.")
    return counts


def _alphabet(counts: Iterable[str], *, with_initials: bool) -> list[str]:
    known = {SPACE_MARK}
    for word in counts:
        known.update(word)
        if with_initials and word[0] == SPACE_MARK:
            known.add(word[:2])
    return sorted(known, key=lambda piece: (piece[0] == SPACE_MARK, piece))


def _room(size: int | None, kind: str, alphabet: Sequence[str]) -> int:
    least = len(CONTROLS) + len(alphabet)
    if size is None:
        default = max(DEFAULT_SUBWORDS, least) if kind in ("bpe", "unigram") else MOST_PIECES
        size = default
    if not least <= size <= MOST_PIECES:
        raise UserError(
            f"size must be from {least} (4 control ids and the {len(alphabet)} characters of "
            f"the texts) to {MOST_PIECES}; got {size}. Choose a size in that range."
        )
    return size - len(CONTROLS)


def _words(
    counts: Counter[str], alphabet: Sequence[str], room: int, minimum_frequency: int
) -> tuple[str, ...]:
    known = set(alphabet)
    frequent = [
        (-count, word)
        for word, count in counts.items()
        if count >= minimum_frequency and word not in known and len(word) <= _LONGEST_WORD
    ]
    words = [word for _, word in sorted(frequent)]
    return (*alphabet, *words[: room - len(alphabet)])


def _chunks(counts: Counter[str]) -> Counter[str]:
    """Cut endless words, so that one bad line cannot make training slow."""
    chunks: Counter[str] = Counter()
    for word in sorted(counts):
        for start in range(0, len(word), _LONGEST_WORD):
            chunks[word[start : start + _LONGEST_WORD]] += counts[word]
    return chunks


def _bpe(
    counts: Counter[str], room: int, minimum_frequency: int
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    library = LibraryTokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=room, min_frequency=minimum_frequency, show_progress=False
    )
    library.train_from_iterator(_chunks(counts).elements(), trainer)
    model = json.loads(library.to_str())["model"]
    pieces = tuple(sorted(model["vocab"], key=model["vocab"].__getitem__))
    return pieces, tuple((first, second) for first, second in model["merges"])


def _unigram(
    counts: Counter[str], alphabet: Sequence[str], room: int
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Prune many substrings to the most used ones, by best segmentations.

    The library's own trainer sums in the order of a randomly seeded hash map, so two runs give
    two vocabularies; whole numbers counted here do not depend on an order.
    """
    words = _chunks(counts)
    used = _seeds(words, limit=_SEEDS_PER_PIECE * room)
    used.update(dict.fromkeys(alphabet, 0))
    while True:
        for _ in range(2):
            used = _recount(words, used, alphabet)
        if len(used) <= room:
            break
        target = max(room, int(_KEPT_PER_ROUND * len(used)))
        used = _prune(used, alphabet, target)
    scores = _scores(used)
    ordered = sorted(scores, key=lambda piece: (-scores[piece], piece))
    return tuple(ordered), tuple(scores[piece] for piece in ordered)


def _seeds(words: Counter[str], *, limit: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            longest = min(len(word), start + _LONGEST_SUBWORD)
            for end in range(start + 2, longest + 1):
                found[word[start:end]] += count
    repeated = [(-count * len(piece), piece) for piece, count in found.items() if count > 1]
    return Counter({piece: found[piece] for _, piece in sorted(repeated)[:limit]})


def _recount(words: Counter[str], used: Counter[str], alphabet: Sequence[str]) -> Counter[str]:
    model = models.Unigram(list(_scores(used).items()))
    again: Counter[str] = Counter(dict.fromkeys(alphabet, 0))
    for word, count in words.items():
        for token in model.tokenize(word):
            again[token.value] += count
    return again


def _scores(used: Counter[str]) -> dict[str, float]:
    total = sum(used.values()) + len(used)
    return {piece: round(math.log((used[piece] + 1) / total), 6) for piece in sorted(used)}


def _prune(used: Counter[str], alphabet: Sequence[str], target: int) -> Counter[str]:
    known = set(alphabet)
    ranked = sorted((-count, piece) for piece, count in used.items() if piece not in known)
    kept = itertools.chain(alphabet, (piece for _, piece in ranked[: target - len(known)]))
    return Counter({piece: used[piece] for piece in kept})
