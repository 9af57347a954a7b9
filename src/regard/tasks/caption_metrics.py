"""Scores of captions against several references each: BLEU, ROUGE-L, CIDEr-D.

All count the tokens that they are given: cut captions the same way on both sides. The figures are
those of the COCO caption evaluation on the same tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from regard.errors import UserError

Tokens = Sequence[str]
NGram = tuple[str, ...]
_LONGEST = 4
_TINY, _SMALL = 1e-15, 1e-9  # as COCO's: no count is divided by zero
_BETA = 1.2  # of ROUGE-L: recall counts more than precision
_SIGMA = 6.0  # of CIDEr-D: by how many tokens lengths may differ


class Bleu(NamedTuple):
    """BLEU-1 to BLEU-4 of a corpus, in percent.

    Args:
        scores: With the brevity penalty.
        without_penalty: Without it, as Show, Attend and Tell reports them.
        brevity: The penalty.
    """

    scores: tuple[float, ...]
    without_penalty: tuple[float, ...]
    brevity: float


def check_counts(written: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> None:
    """Raise unless every caption that was written has at least one reference."""
    if len(written) != len(references) or not all(references):
        empty = sum(not several for several in references)
        raise UserError(
            f"references must be one list for each caption, none of them empty; got "
            f"{len(references)} for {len(written)} captions, {empty} of them empty."
        )


def bleu(written: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Bleu:
    """Compute BLEU-1 to BLEU-4 of a corpus, each caption against all of its references.

    The reference length is that of the reference closest in length to the caption.

    Args:
        written: Captions as tokens.
        references: For each caption its references as tokens.

    Returns:
        The scores in percent.

    Raises:
        UserError: The counts do not go together.

    References:
        Papineni et al., BLEU: a method for automatic evaluation of machine translation, 2002.
    """
    return bleu_of_counts(bleu_counts(written, references))


class BleuCounts(NamedTuple):
    """What BLEU counts in a caption; counts of captions may be added up in any choice of them.

    Args:
        right: N-grams of one to four tokens that a reference has too.
        guessed: All of its n-grams.
        length: Its tokens.
        closest: Tokens of the reference closest in length.
    """

    right: tuple[int, ...]
    guessed: tuple[int, ...]
    length: int
    closest: int


def bleu_counts(
    written: Sequence[Tokens], references: Sequence[Sequence[Tokens]]
) -> list[BleuCounts]:
    """Count for every caption by itself what BLEU adds up, as to resample a corpus.

    Args:
        written: Captions as tokens.
        references: For each caption its references as tokens.

    Returns:
        The counts of each caption.

    Raises:
        UserError: The counts do not go together.
    """
    check_counts(written, references)
    return [_bleu_counts(*pair) for pair in zip(written, references, strict=True)]


def _bleu_counts(caption: Tokens, several: Sequence[Tokens]) -> BleuCounts:
    right, guessed = [], []
    for size in range(1, _LONGEST + 1):
        most: Counter[NGram] = Counter()
        for one in several:
            most |= ngrams(one, size)
        right.append(sum((ngrams(caption, size) & most).values()))
        guessed.append(max(len(caption) - size + 1, 0))
    closest = min((abs(len(one) - len(caption)), len(one)) for one in several)[1]
    return BleuCounts(tuple(right), tuple(guessed), len(caption), closest)


def bleu_of_counts(counts: Sequence[BleuCounts]) -> Bleu:
    """Compute BLEU-1 to BLEU-4 of the captions whose counts these are.

    Args:
        counts: What `bleu_counts` gave for each; one may stand there several times.

    Returns:
        The scores in percent.
    """
    ratio = (sum(one.length for one in counts) + _TINY) / (
        sum(one.closest for one in counts) + _SMALL
    )
    brevity = math.exp(1.0 - 1.0 / ratio) if ratio < 1.0 else 1.0
    scores, product = [], 1.0
    for size in range(_LONGEST):
        right = sum(one.right[size] for one in counts)
        guessed = sum(one.guessed[size] for one in counts)
        product *= (right + _TINY) / (guessed + _SMALL)
        scores.append(100.0 * product ** (1.0 / (size + 1)))
    return Bleu(tuple(brevity * score for score in scores), tuple(scores), brevity)


def rouge_l(written: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> float:
    """Compute ROUGE-L: how long a sequence both captions have in common, in percent.

    `F = (1 + β²) P R / (R + β² P)` of the best precision and the best recall over the references,
    with `β = 1.2`; the mean over captions.

    Args:
        written: Captions as tokens.
        references: For each caption its references as tokens.

    Returns:
        The score.

    Raises:
        UserError: The counts do not go together.

    References:
        Lin, ROUGE: a package for automatic evaluation of summaries, 2004.
    """
    check_counts(written, references)
    total = 0.0
    for caption, several in zip(written, references, strict=True):
        common = [_longest_common(caption, one) for one in several]
        precision = max(common) / len(caption) if caption else 0.0
        recall = max(c / len(one) if one else 0.0 for c, one in zip(common, several, strict=True))
        if precision and recall:
            square = _BETA**2
            total += (1.0 + square) * precision * recall / (recall + square * precision)
    return 100.0 * total / len(written) if written else 0.0


def cider_d(written: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> list[float]:
    """Compute CIDEr-D of every caption: how many informative n-grams it shares with references.

    N-grams of one to four tokens are weighted by their rarity among the references of all
    pictures; shared counts are clipped, and lengths that differ cost `exp(-δ² / 72)`. The mean over
    captions, times ten as here, is the figure that is usually given (in percent: times 100).

    Args:
        written: Captions as tokens.
        references: For each caption its references as tokens.

    Returns:
        A score for each caption, from 0 to 10.

    Raises:
        UserError: The counts do not go together.

    References:
        Vedantam, Zitnick and Parikh, CIDEr: consensus-based image description evaluation, 2015.
    """
    check_counts(written, references)
    seen_in: Counter[NGram] = Counter()
    for several in references:
        seen_in.update({gram for one in several for gram in _all_ngrams(one)})
    pictures = math.log(float(len(references))) if references else 0.0
    scores = []
    for caption, several in zip(written, references, strict=True):
        ours = _Weighted.of(caption, seen_in, pictures)
        similar = [ours.similarity(_Weighted.of(one, seen_in, pictures)) for one in several]
        scores.append(10.0 * sum(similar) / (_LONGEST * len(several)))
    return scores


class _Weighted(NamedTuple):
    """The n-grams of a caption by their size, weighted by rarity; their norms; its length."""

    weights: tuple[dict[NGram, float], ...]
    norms: tuple[float, ...]
    length: int

    @classmethod
    def of(cls, tokens: Tokens, seen_in: Counter[NGram], pictures: float) -> _Weighted:
        weights: tuple[dict[NGram, float], ...] = tuple({} for _ in range(_LONGEST))
        for gram, count in _all_ngrams(tokens).items():
            rarity = pictures - math.log(max(1.0, float(seen_in[gram])))
            weights[len(gram) - 1][gram] = count * rarity
        norms = tuple(math.sqrt(sum(w * w for w in own.values())) for own in weights)
        return cls(weights, norms, max(len(tokens) - 1, 0))  # COCO's length counts bigrams

    def similarity(self, other: _Weighted) -> float:
        """Sum the clipped cosines over the sizes of n-grams, less where lengths differ."""
        total = 0.0
        for ours, theirs, norms in zip(
            self.weights, other.weights, zip(self.norms, other.norms, strict=True), strict=True
        ):
            shared = sum(
                min(weight, theirs.get(gram, 0.0)) * theirs.get(gram, 0.0)
                for gram, weight in ours.items()
            )
            total += shared / (norms[0] * norms[1]) if norms[0] and norms[1] else shared
        return total * math.exp(-((self.length - other.length) ** 2) / (2.0 * _SIGMA**2))


def ngrams(tokens: Tokens, size: int) -> Counter[NGram]:
    """Count the n-grams of one size."""
    return Counter(tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1))


def _all_ngrams(tokens: Tokens) -> Counter[NGram]:
    return sum((ngrams(tokens, size) for size in range(1, _LONGEST + 1)), Counter[NGram]())


def _longest_common(left: Tokens, right: Tokens) -> int:
    """Count the tokens of the longest sequence that both have in order."""
    row = [0] * (len(right) + 1)
    for token in left:
        before = row[:]
        for place, other in enumerate(right, start=1):
            row[place] = (
                before[place - 1] + 1 if token == other else max(before[place], row[place - 1])
            )
    return row[-1]
