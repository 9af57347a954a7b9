"""Samples come as the probabilities say, whatever batch they are drawn in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DivergedError, UserError
from regard.models.decoding import Sampling, Search, forced, generators, sample
from regard.models.decoding.sampling import drawn, filtered


def seeded(count: int, seed: int = 0) -> list[torch.Generator]:
    return generators(torch.Generator().manual_seed(seed), count)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples must be from 1 to 1000; got 0."),
        ({"temperature": 0.0}, "temperature must be from 0.01 to 100.0; got 0.0."),
        ({"temperature": -1.0}, "temperature must be from 0.01 to 100.0; got -1.0."),
        ({"temperature": float("nan")}, "temperature must be from 0.01 to 100.0; got nan."),
        ({"top_k": -1}, "top_k must be from 0 to 1000000; got -1."),
        ({"top_p": 0.0}, "top_p must be from 1e-06 to 1.0; got 0.0."),
        ({"top_p": 1.1}, "top_p must be from 1e-06 to 1.0; got 1.1."),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    """Row L8: negative temperature."""
    with pytest.raises(UserError) as caught:
        Sampling(**settings)
    assert str(caught.value).startswith(message)


@given(
    logits=st.lists(st.integers(-20, 20), min_size=6, max_size=6, unique=True),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
    top_k=st.integers(0, 7),
    top_p=st.sampled_from([1e-6, 0.3, 0.9, 1.0]),
)
def test_what_is_filtered_in_plain_loops(
    logits: list[int], temperature: float, top_k: int, top_p: float
) -> None:
    log_probs = (0.37 * torch.tensor(logits)).log_softmax(0)
    scaled = (log_probs.double() / temperature).softmax(0).tolist()
    order = sorted(range(6), key=lambda token: -scaled[token])[: top_k or 6]
    total = sum(scaled[token] for token in order)
    expected, before = {}, 0.0
    for token in order:
        share = scaled[token] / total
        assert top_p == 1 or abs(before - top_p) > 1e-9
        if top_p == 1 or before < top_p:
            expected[token] = share
        before += share
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    probabilities, tokens = filtered(log_probs.view(1, 1, 6), sampling)
    named = torch.arange(6) if tokens is None else tokens[0, 0]
    found = {t: p for t, p in zip(named.tolist(), probabilities[0, 0].tolist(), strict=True) if p}
    assert found == pytest.approx({t: p for t, p in expected.items() if p > 1e-30}, abs=1e-5)


@given(numbers=st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=1, max_size=5))
def test_what_is_drawn_in_plain_loops(numbers: list[float]) -> None:
    """A number on a boundary draws the token after it, and no number a token of probability 0."""
    log_probs = torch.tensor([0.0, 0.25, 0.5, 0.0, 0.25, 0.0]).log().view(1, 1, 6)
    tokens = drawn(log_probs, torch.tensor([numbers]), Sampling())
    expected = [1 if n < 0.25 else 2 if n < 0.75 else 4 for n in numbers]
    assert tokens.tolist() == [expected]


def test_the_largest_number_draws_the_last_token_that_may_be_drawn() -> None:
    log_probs = torch.full((1, 1, 9), 1 / 7).log()
    log_probs[..., [0, 8]] = -torch.inf
    largest = torch.tensor([[1 - 2**-24]])
    assert drawn(log_probs, largest, Sampling()).item() == 7
    assert drawn(log_probs, torch.zeros(1, 1), Sampling()).item() == 1
    assert drawn(log_probs, largest, Sampling(top_k=8)).item() in range(1, 8)


@pytest.mark.parametrize("block_ngrams", [0, 1])
def test_samples_come_as_often_as_they_are_likely(
    block_ngrams: int, table: Any, symbols: Any
) -> None:
    """A chi-square statistic over every output that may be written."""
    model, count = table(2, seed=3, sharpness=0.8), 1000
    search = Search(minimum_length=1, maximum_length=3, block_ngrams=block_ngrams)
    tallies: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
    for seed in range(4):
        sampling = Sampling(samples=count)
        found = sample(
            model, model.begin(), symbols, search, sampling=sampling, sources=seeded(2, seed)
        )
        for tally, several in zip(tallies, found, strict=True):
            tally.update(one.tokens for one in several)
    for sentence, tally in enumerate(tallies):
        statistic, outputs = 0.0, 0
        for _, _, tokens in model.everything(sentence, search):
            probability, path = 1.0, (*tokens, 2)
            for place, token in enumerate(path):
                row = model.row(sentence, path[:place]).exp()
                allowed = model.allowed(path[:place], search)
                probability *= float(row[token] / row[allowed].sum())
            expected = probability * 4 * count
            statistic += (tally.pop(tokens, 0) - expected) ** 2 / expected
            outputs += 1
        assert not tally  # nothing else was written
        assert statistic < outputs + 5 * (2 * outputs) ** 0.5


def test_the_log_prob_is_the_models_own(model: Any, tokens: Any, target: Any) -> None:
    lengths = (5, 1, 3)
    source = tokens(*lengths)
    search = Search(maximum_length=7, minimum_length=1, length_penalty=0.7)
    sampling = Sampling(samples=6, temperature=1.5, top_k=5, top_p=0.9)
    with torch.no_grad():
        state = model.begin(source, source != 0)
        found = sample(model, state, target, search, sampling=sampling, sources=seeded(3))
        assert len({len(one.tokens) for several in found for one in several}) > 1
        for row, several in enumerate(found):
            assert len(several) == 6
            alone = source[row : row + 1, : lengths[row]]
            for one in several:
                output = torch.tensor([[*one.tokens, 2]])
                state = model.begin(alone, alone != 0)
                log_probs, weights = forced(model, state, output, target)
                log_prob = float(log_probs.sum())
                assert one.log_prob == pytest.approx(log_prob, abs=1e-4)
                score = search.normalised(log_prob, len(one.tokens) + 1)
                assert one.score == pytest.approx(score, abs=1e-4)
                keys = weights.shape[-1]
                torch.testing.assert_close(
                    one.weights[..., :keys], weights[0], atol=1e-5, rtol=1e-4
                )
                assert not {0, 1, 2, 3} & set(one.tokens)
                assert 1 <= len(one.tokens) <= 7
                assert one.ended == (len(one.tokens) < 7)


def test_coverage_and_blocked_ngrams(table: Any, symbols: Any) -> None:
    model = table(4, seed=1, keys=3)
    search = Search(maximum_length=6, block_ngrams=2, coverage_penalty=0.5)
    found = sample(
        model,
        model.begin(),
        symbols,
        search,
        sampling=Sampling(samples=20),
        sources=seeded(4),
        mask=model.mask(),
    )
    for sentence, several in enumerate(found):
        for one in several:
            pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
            assert len(pairs) == len(set(pairs))
            score, log_prob, _ = model.scored(sentence, one.tokens, search)
            assert (one.score, one.log_prob) == pytest.approx((score, log_prob), abs=1e-4)


def test_what_is_done_leaves_the_batch(table: Any, symbols: Any) -> None:
    model, search = table(16, seed=4), Search(maximum_length=12)
    shapes = []
    step = model.step
    model.step = lambda tokens, state: shapes.append(tuple(tokens.shape)) or step(tokens, state)
    sampling = Sampling(samples=3)
    found = sample(model, model.begin(), symbols, search, sampling=sampling, sources=seeded(16))
    longest = [max(len(one.tokens) for one in several) for several in found]
    assert [rows for rows, _ in shapes] == [
        sum(length >= step for length in longest) for step in range(len(shapes))
    ]
    for step, (_, drawn_at_once) in enumerate(shapes[1:], start=1):
        going = [sum(len(one.tokens) >= step for one in several) for several in found]
        assert drawn_at_once == max(going)
    assert shapes[0] == (16, 1)
    assert shapes[-1][1] < 3


def test_a_seed_gives_the_same_and_another_gives_others(table: Any, symbols: Any) -> None:
    model, search = table(8, seed=4), Search(maximum_length=8)
    runs = [
        sample(model, model.begin(), symbols, search, sampling=Sampling(), sources=seeded(8, seed))
        for seed in (1, 1, 2)
    ]
    written = [[several[0].tokens for several in found] for found in runs]
    assert written[0] == written[1] != written[2]
    assert len(set(written[0])) > 1


def test_generators_are_in_order_and_apart() -> None:
    generator = torch.Generator().manual_seed(3)
    parts = [*generators(generator, 2), *generators(generator, 3)]
    whole = seeded(5, 3)
    seeds = [one.initial_seed() for one in whole]
    assert [one.initial_seed() for one in parts] == seeds
    assert len(set(seeds)) == 5


def test_a_tiny_nucleus_and_a_single_token_are_greedy(table: Any, symbols: Any) -> None:
    from regard.models.decoding import greedy_search

    model, search = table(8, seed=6), Search(maximum_length=6)
    greedy = greedy_search(model, model.begin(), 8, symbols, search)
    for sampling in (Sampling(top_k=1), Sampling(top_p=1e-6), Sampling(temperature=0.01)):
        found = sample(model, model.begin(), symbols, search, sampling=sampling, sources=seeded(8))
        assert [several[0].tokens for several in found] == [one.tokens for one in greedy]


def test_l4_a_model_that_says_nan_is_refused(model: Any, tokens: Any, target: Any) -> None:
    model.bias.data[5] = torch.nan
    source = tokens(3, 2)
    with torch.no_grad():
        state = model.begin(source, source != 0)
    with pytest.raises(DivergedError, match="got NaN"):
        sample(model, state, target, Search(), sampling=Sampling(), sources=seeded(2))


def test_nothing_to_sample(table: Any, symbols: Any) -> None:
    model = table(0, seed=0)
    found = sample(model, model.begin(), symbols, Search(), sampling=Sampling(), sources=[])
    assert found == []
