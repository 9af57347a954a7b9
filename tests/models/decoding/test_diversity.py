"""Diverse beam search does what plain loops do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.decoding import Search, beam_search
from regard.models.decoding.diversity import candidates


def diverse(model: Any, sentence: int, search: Search) -> list[tuple[float, tuple[int, ...]]]:
    """Diverse beam search of one sentence in plain loops, without stopping early."""
    width = search.beam // search.groups
    beams: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())]] * search.groups
    endings: list[dict[tuple[int, ...], float]] = [{} for _ in range(search.groups)]
    for _ in range(search.maximum_length + 1):
        taken: list[int] = []
        for group in range(search.groups):
            ranked = sorted(
                (
                    (total + float(model.row(sentence, written)[token]))
                    - search.diversity * taken.count(token),
                    total + float(model.row(sentence, written)[token]),
                    (*written, token),
                )
                for total, written in beams[group]
                for token in model.allowed(written, search)
            )[::-1][: 2 * width]
            for _, total, path in ranked[:width]:
                if path[-1] == 2:
                    endings[group][path[:-1]] = total
            beams[group] = [(t, path) for _, t, path in ranked if path[-1] != 2][:width]
            taken += [path[-1] for _, path in beams[group]]
        enough = all(len(e) >= width or not b for e, b in zip(endings, beams, strict=True))
        if enough:
            break
    merged = {written: total for group in endings for written, total in group.items()}
    scored = [(search.scored(t, len(w) + 1), w) for w, t in merged.items()]
    return sorted(scored, reverse=True)[: search.nbest]


@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 4),
    width=st.integers(1, 3),
    diversity=st.sampled_from([0.0, 0.3, 1.0, 20.0]),
    blocked=st.sampled_from([0, 1, 2]),
    nbest=st.integers(1, 12),
)
@settings(max_examples=60, deadline=None)
def test_diverse_beam_search_in_plain_loops(
    *,
    seed: int,
    groups: int,
    width: int,
    diversity: float,
    blocked: int,
    nbest: int,
    table: Any,
    symbols: Any,
) -> None:
    search = Search(
        beam=groups * width,
        nbest=min(nbest, groups * width),
        groups=groups,
        diversity=diversity,
        block_ngrams=blocked,
        maximum_length=5,
    )
    model = table(3, seed=seed)
    found = beam_search(model, model.begin(), 3, symbols, search)
    for sentence, hypotheses in enumerate(found):
        expected = diverse(model, sentence, search)
        assert [one.tokens for one in hypotheses] == [written for _, written in expected]
        assert [one.score for one in hypotheses] == pytest.approx(
            [score for score, _ in expected], abs=1e-5
        )


def test_groups_without_diversity_are_one_narrow_beam(table: Any, symbols: Any) -> None:
    model = table(6, seed=8)
    one = Search(beam=2, nbest=2, maximum_length=6)
    three = Search(beam=6, nbest=6, groups=3, diversity=0.0, maximum_length=6)
    narrow = beam_search(model, model.begin(), 6, symbols, one)
    grouped = beam_search(model, model.begin(), 6, symbols, three)
    for ours, theirs in zip(grouped, narrow, strict=True):
        assert [x.tokens for x in ours[: len(theirs)]] == [x.tokens for x in theirs]


def test_diversity_makes_outputs_differ(table: Any, symbols: Any) -> None:
    kinds = []
    for diversity in (0.0, 5.0):
        model = table(8, seed=2)
        search = Search(beam=4, nbest=4, groups=4, diversity=diversity, maximum_length=6)
        found = beam_search(model, model.begin(), 8, symbols, search)
        kinds.append(sum(len({one.tokens for one in own}) for own in found))
    assert kinds[0] == 8  # each group found the same
    assert kinds[1] > 16


def test_the_hamming_term_by_hand() -> None:
    """The first group takes token 3; the second avoids it by less than the probability says."""
    totals = torch.tensor([[[-9.0, -9.0, -1.5, -0.5, -1.2]]])
    for diversity, second in ((0.5, 3), (0.8, 4)):
        search = Search(beam=2, groups=2, diversity=diversity)
        found = candidates(totals, search, eos=2)
        assert found.tokens[0, :, 0].tolist() == [3, second]
        expected = [-0.5, -0.5 if second == 3 else -1.2]
        assert found.log_probs[0, :, 0].tolist() == pytest.approx(expected)


def test_an_end_mark_is_not_avoided() -> None:
    totals = torch.tensor([[[-9.0, -9.0, -0.1, -0.5, -1.2]]])
    found = candidates(totals, Search(beam=2, groups=2, diversity=9.0), eos=2)
    assert found.tokens[0].tolist() == [[2, 3], [2, 4]]
