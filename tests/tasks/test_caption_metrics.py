from __future__ import annotations

import math
import random

import pytest

from regard.errors import UserError
from regard.tasks.caption_metrics import (
    BleuCounts,
    bleu,
    bleu_counts,
    bleu_of_counts,
    cider_d,
    rouge_l,
)

WRITTEN = [["a", "red", "dog", "runs"], ["the", "cat"]]
REFERENCES = [
    [["a", "red", "dog", "sits"], ["the", "dog", "runs", "away"]],
    [["the", "cat", "sleeps", "now"]],
]


def test_bleu_worked_by_hand():
    found = bleu(WRITTEN, REFERENCES)
    # Unigrams: a, red, dog, runs and the, cat are all in a reference; 6 words against 4 + 4.
    brevity = math.exp(1 - 8 / 6)
    assert found.brevity == pytest.approx(brevity)
    assert found.without_penalty[0] == pytest.approx(100.0)
    # Bigrams: a red, red dog, dog runs of 3; the cat of 1.
    assert found.without_penalty[1] == pytest.approx(100.0)
    # Trigrams: "a red dog" of two; none of the second caption.
    assert found.without_penalty[2] == pytest.approx(100 * (1 * 1 * 0.5) ** (1 / 3))
    assert found.without_penalty[3] == pytest.approx(0.0, abs=0.1)
    assert found.scores[2] == pytest.approx(brevity * found.without_penalty[2])


def test_counts_are_clipped_and_the_closest_length_counts():
    found = bleu([["the"] * 4], [[["the", "cat"], ["the"] * 2 + ["x"] * 4]])
    assert found.without_penalty[0] == pytest.approx(50.0)
    assert found.brevity == 1.0  # 2 and 6 are as close to 4: the shorter one is taken


def test_counts_of_a_caption_worked_by_hand():
    first, second = bleu_counts(WRITTEN, REFERENCES)
    assert first == BleuCounts((4, 3, 1, 0), (4, 3, 2, 1), 4, 4)
    assert second == BleuCounts((2, 1, 0, 0), (2, 1, 0, 0), 2, 4)


def test_counts_of_chosen_captions_give_the_score_of_their_corpus():
    chosen = [1, 0, 0]
    counts = bleu_counts(WRITTEN, REFERENCES)
    expected = bleu([WRITTEN[i] for i in chosen], [REFERENCES[i] for i in chosen])
    assert bleu_of_counts([counts[i] for i in chosen]) == expected
    assert bleu_of_counts([]).scores == pytest.approx((0.0,) * 4)


def test_rouge_worked_by_hand():
    # Longest common: "a red dog" of 4 and 4; "dog runs" of the other; both give 3/4.
    assert rouge_l(WRITTEN[:1], REFERENCES[:1]) == pytest.approx(75.0)
    precision, recall = 1.0, 0.5
    expected = (1 + 1.44) * precision * recall / (recall + 1.44 * precision)
    assert rouge_l(WRITTEN[1:], REFERENCES[1:]) == pytest.approx(100 * expected)
    assert rouge_l([[]], [[["a"]]]) == 0.0


def test_cider_worked_by_hand():
    # Two pictures, one word each: of its own rarity log 2, the same word once.
    found = cider_d([["cat"], ["dog"]], [[["cat"]], [["bird"]]])
    assert found == pytest.approx([10 / 4, 0.0])
    # A word that every picture has says nothing.
    assert cider_d([["the"]] * 2, [[["the"]], [["the"]]]) == pytest.approx([0.0, 0.0])


def test_lengths_that_differ_cost():
    references = [[["a", "b"]], [["c", "d"]]]
    short = cider_d([["a", "b"], []], references)[0]
    long = cider_d([["a", "b", *(f"w{i}" for i in range(6))], []], references)[0]
    assert short > long > 0
    # Unigrams and bigrams are shared whole; norms and length make the difference.
    grams = (2 / math.sqrt(2 * 8) + 1 / math.sqrt(1 * 7)) / 4
    assert long == pytest.approx(10 * grams * math.exp(-36 / 72))


def test_perfect_captions_get_full_scores():
    references = [[f"{w} {w}x {w}y {w}z {w}q".split()] for w in ("p", "q", "r")]
    written = [several[0] for several in references]
    assert bleu(written, references).scores == pytest.approx((100.0,) * 4)
    assert rouge_l(written, references) == pytest.approx(100.0)
    assert cider_d(written, references) == pytest.approx([10.0] * 3)


def test_nothing_written_scores_nothing():
    assert bleu([[]], [[["a"]]]).scores == pytest.approx((0.0,) * 4)
    assert cider_d([[]], [[["a"]]]) == [0.0]
    assert rouge_l([], []) == 0.0


def test_counts_must_go_together():
    for written, references in ((WRITTEN, REFERENCES[:1]), (WRITTEN[:1], [[]])):
        with pytest.raises(UserError, match="references must be one list for each caption"):
            cider_d(written, references)


def test_the_figures_are_those_of_pycocoevalcap():
    """A development test: skipped where the package is not installed."""
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    draw = random.Random(1)
    words = [
        "a",
        "the",
        "red",
        "blue",
        "dog",
        "cat",
        "runs",
        "sits",
        "on",
        "in",
        "park",
        "with",
        "man",
        "woman",
        "ball",
    ]

    def sentence() -> list[str]:
        return [draw.choice(words) for _ in range(draw.randint(1, 14))]

    references = [[sentence() for _ in range(draw.randint(1, 5))] for _ in range(60)]
    written = [draw.choice(r)[: draw.randint(1, 12)] for r in references]
    theirs = {i: [" ".join(one) for one in r] for i, r in enumerate(references)}
    ours = {i: [" ".join(one)] for i, one in enumerate(written)}
    _, cider = Cider().compute_score(theirs, ours)
    score, _ = Bleu(4).compute_score(theirs, ours, verbose=0)
    rouge, _ = Rouge().compute_score(theirs, ours)
    assert cider_d(written, references) == pytest.approx(list(cider), abs=1e-6)
    assert bleu(written, references).scores == pytest.approx([100 * s for s in score], abs=1e-6)
    assert rouge_l(written, references) == pytest.approx(100 * rouge, abs=1e-6)
