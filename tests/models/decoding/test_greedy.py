from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.models.decoding import Search, greedy_search


@pytest.mark.parametrize("minimum", [0, 2])
def test_greedy_by_hand(minimum: int, table: Any, symbols: Any) -> None:
    model = table(6, seed=2)
    search = Search(beam=1, minimum_length=minimum, maximum_length=4)
    found = greedy_search(model, model.begin(), 6, symbols, search)
    for sentence, one in enumerate(found):
        written: list[int] = []
        log_prob = 0.0
        while True:
            row = model.row(sentence, tuple(written))
            allowed = [3, 4] if len(written) < 4 else []
            allowed += [2] if len(written) >= minimum else []
            token = max(allowed, key=lambda t: float(row[t]))
            log_prob += float(row[token])
            if token == 2:
                break
            written.append(token)
        assert one.tokens == tuple(written)
        assert one.log_prob == pytest.approx(log_prob, abs=1e-6)
        assert one.score == pytest.approx(search.normalised(log_prob, len(written) + 1))
        assert one.ended == (len(written) < 4)
        assert one.weights.shape == (1, len(written) + 1, 2)
        assert bool((one.weights[0, :, 0] == sentence).all())


def test_a_forced_end_is_flagged_and_counted(table: Any, symbols: Any) -> None:
    model = table(1, seed=1)
    one = greedy_search(model, model.begin(), 1, symbols, Search(beam=1, maximum_length=0))[0]
    assert one.tokens == ()
    assert not one.ended
    assert one.log_prob == float(model.row(0, ())[2])


def test_sentences_that_are_done_leave_the_batch(table: Any, symbols: Any) -> None:
    model = table(16, seed=4)
    found = greedy_search(model, model.begin(), 16, symbols, Search(beam=1, maximum_length=12))
    lengths = [len(one.tokens) for one in found]
    assert model.sizes == [sum(length >= step for length in lengths) for step in range(model.steps)]
    assert model.steps == max(lengths) + 1


def test_no_gradient_is_kept(table: Any, symbols: Any) -> None:
    model = table(2, seed=1)
    with torch.enable_grad():
        found = greedy_search(model, model.begin(), 2, symbols, Search(beam=1, maximum_length=3))
    assert not any(one.weights.requires_grad for one in found)


@pytest.mark.parametrize("size", [1, 2])
def test_greedy_with_blocked_ngrams_and_coverage_by_hand(
    size: int, table: Any, symbols: Any
) -> None:
    model = table(8, seed=3, keys=3)
    search = Search(beam=1, minimum_length=1, maximum_length=6, block_ngrams=size)
    search = replace(search, coverage_penalty=0.7)
    found = greedy_search(model, model.begin(), 8, symbols, search, mask=model.mask())
    free = greedy_search(model, model.begin(), 8, symbols, replace(search, block_ngrams=0))
    assert [one.tokens for one in found] != [one.tokens for one in free]
    for sentence, one in enumerate(found):
        written: tuple[int, ...] = ()
        while True:
            row = model.row(sentence, written)
            token = max(model.allowed(written, search), key=lambda t: float(row[t]))
            if token == 2:
                break
            written += (token,)
        assert one.tokens == written
        score, log_prob, _ = model.scored(sentence, written, search)
        assert (one.score, one.log_prob) == pytest.approx((score, log_prob), abs=1e-5)
