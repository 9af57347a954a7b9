"""Beam search finds what trying everything finds, and says truly how it got there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DivergedError
from regard.models.decoding import Search, Symbols, beam_search, forced, greedy_search
from regard.models.seq2seq import Seq2Seq

TARGET = Symbols(bos=1, eos=2, banned=(0, 1, 3))
LENGTHS = (5, 1, 3, 4, 2, 6)


def searched(model: Seq2Seq, source: torch.Tensor, search: Search) -> Any:
    with torch.no_grad():
        state = model.begin(source, source != 0)
    return beam_search(model, state, len(source), TARGET, search)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("minimum_length", [0, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wide_beam_finds_what_trying_everything_finds(
    length_penalty: float, minimum_length: int, seed: int, table: Any, symbols: Any
) -> None:
    """With the length penalty of Wu et al. 2016, and every output up to the longest."""
    model = table(3, seed=seed)
    search = Search(
        beam=63,
        nbest=12,
        length_penalty=length_penalty,
        minimum_length=minimum_length,
        maximum_length=4,
    )
    found = beam_search(model, model.begin(), 3, symbols, search)
    for sentence in range(3):
        best = list(model.everything(sentence, search))[:12]
        assert [one.tokens for one in found[sentence]] == [tokens for _, _, tokens in best]
        for one, (score, log_prob, tokens) in zip(found[sentence], best, strict=True):
            assert one.score == pytest.approx(score, abs=1e-5)
            assert one.log_prob == pytest.approx(log_prob, abs=1e-5)
            assert one.ended == (len(tokens) < 4)


@pytest.mark.parametrize("coverage_penalty", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("block_ngrams", [0, 1, 2])
@pytest.mark.parametrize("nbest", [1, 3])
def test_a_wide_beam_under_constraints_finds_what_trying_everything_finds(
    coverage_penalty: float, block_ngrams: int, nbest: int, table: Any, symbols: Any
) -> None:
    """Stopping early is right, and is done: a wide beam never has as many ends as its width."""
    saved = 0
    for seed in range(12):
        model = table(4, seed=seed, keys=3, sharpness=2.5)
        search = Search(
            beam=63,
            nbest=nbest,
            length_penalty=0.5,
            minimum_length=seed % 3,
            maximum_length=4,
            coverage_penalty=coverage_penalty,
            block_ngrams=block_ngrams,
        )
        found = beam_search(model, model.begin(), 4, symbols, search, mask=model.mask())
        saved += 5 * 4 - sum(model.sizes)
        for sentence, hypotheses in enumerate(found):
            best = list(model.everything(sentence, search))[:nbest]
            assert [one.tokens for one in hypotheses] == [tokens for _, _, tokens in best]
            for one, (score, log_prob, _) in zip(hypotheses, best, strict=True):
                assert one.score == pytest.approx(score, abs=1e-4)
                assert one.log_prob == pytest.approx(log_prob, abs=1e-5)
    assert saved > 0


def test_the_coverage_penalty_changes_what_is_best(table: Any, symbols: Any) -> None:
    best = []
    for penalty in (0.0, 2.0):
        model = table(8, seed=3, keys=3)
        search = Search(beam=20, maximum_length=4, coverage_penalty=penalty)
        found = beam_search(model, model.begin(), 8, symbols, search, mask=model.mask())
        best.append([own[0].tokens for own in found])
    assert best[0] != best[1]


def test_a_narrow_beam_is_no_better_than_a_wide_one(table: Any, symbols: Any) -> None:
    best = []
    for beam in (1, 2, 4, 63):
        model = table(8, seed=3, sharpness=0.7)
        search = Search(beam=beam, maximum_length=5, length_penalty=0.0)
        found = beam_search(model, model.begin(), 8, symbols, search)
        best.append([one[0].score for one in found])
    assert all(a <= b + 1e-6 for a, b in zip(best[0], best[-1], strict=True))
    assert best[0] != best[-1]


@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 6),
    lengths=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    penalty=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    nbest=st.integers(1, 6),
    constraints=st.fixed_dictionaries(
        {
            "coverage_penalty": st.sampled_from([0.0, 0.4]),
            "block_ngrams": st.integers(0, 3),
            "groups": st.integers(1, 3),
            "diversity": st.sampled_from([0.0, 0.7]),
        }
    ),
)
@settings(max_examples=80, deadline=None)
def test_what_holds_for_any_search(
    *,
    seed: int,
    beam: int,
    lengths: tuple[int, int],
    penalty: float,
    nbest: int,
    constraints: dict[str, Any],
    table: Any,
    symbols: Any,
) -> None:
    minimum, maximum = sorted(lengths)
    beam *= constraints["groups"]
    nbest, batch = min(nbest, beam), 1 + seed % 4
    search = Search(
        beam=beam,
        nbest=nbest,
        length_penalty=penalty,
        minimum_length=minimum,
        maximum_length=maximum,
        **constraints,
    )
    model = table(batch, seed=seed, keys=2)
    found = beam_search(model, model.begin(), batch, symbols, search, mask=model.mask())
    assert len(found) == batch
    assert model.steps <= maximum + 1  # it ends
    for sentence, hypotheses in enumerate(found):
        assert 1 <= len(hypotheses) <= nbest
        assert len({one.tokens for one in hypotheses}) == len(hypotheses)
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for one in hypotheses:
            size = search.block_ngrams
            assert len(one.tokens) <= maximum
            assert len(one.tokens) >= minimum or size
            ngrams = [one.tokens[i : i + size] for i in range(len(one.tokens) - size + 1)]
            assert not size or len(ngrams) == len(set(ngrams))
            assert not {0, 1, 2} & set(one.tokens)
            assert one.ended == (len(one.tokens) < maximum)
            output = torch.tensor([[*one.tokens, 2]])
            log_probs, weights = forced(model, model.begin([sentence]), output, symbols)
            assert one.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-5)
            expected = model.scored(sentence, one.tokens, search)[0]
            assert one.score == pytest.approx(expected, abs=1e-4)
            assert torch.equal(one.weights, weights[0])


def test_sentences_that_are_done_leave_the_batch(table: Any, symbols: Any) -> None:
    model = table(16, seed=4)
    found = beam_search(model, model.begin(), 16, symbols, Search(beam=2, maximum_length=12))
    assert len({len(one[0].tokens) for one in found}) > 1
    assert model.sizes == sorted(model.sizes, reverse=True)
    assert model.sizes[0] == 16
    assert model.sizes[-1] < 16
    for sentence in range(16):  # and each is found as if it were alone
        search = Search(beam=2, maximum_length=12)
        alone = beam_search(model, model.begin([sentence]), 1, symbols, search)[0][0]
        assert alone.tokens == found[sentence][0].tokens
        assert torch.equal(alone.weights, found[sentence][0].weights)


@pytest.mark.parametrize(
    "constraints", [{}, {"block_ngrams": 2}, {"groups": 3}, {"groups": 3, "block_ngrams": 1}]
)
@pytest.mark.parametrize("beam", [1, 3, 6])
def test_every_hypothesis_is_what_forced_decoding_says(
    beam: int, constraints: dict[str, int], model: Seq2Seq, tokens: Any
) -> None:
    source = tokens(*LENGTHS)
    if beam % constraints.get("groups", 1):
        constraints = {**constraints, "groups": 1}
    search = Search(beam=beam, nbest=beam, maximum_length=8, length_penalty=0.7, **constraints)
    found = searched(model, source, search)
    ends = set()
    for row, hypotheses in enumerate(found):
        assert len({one.tokens for one in hypotheses}) == len(hypotheses)
        for one in hypotheses:
            ends.add(len(one.tokens))
            alone = source[row : row + 1, : LENGTHS[row]]
            output = torch.tensor([[*one.tokens, 2]])
            with torch.no_grad():
                log_probs, weights = forced(model, model.begin(alone, alone != 0), output, TARGET)
            assert one.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-4)
            assert one.score == pytest.approx(
                search.normalised(float(log_probs.sum()), len(one.tokens) + 1), abs=1e-4
            )
            keys = weights.shape[-1]
            torch.testing.assert_close(one.weights[..., :keys], weights[0], atol=1e-5, rtol=1e-4)
            assert not one.weights[..., keys:].any()  # padding
            assert one.weights.shape[1] == len(one.tokens) + 1
    assert constraints or beam < 6 or len(ends) > 1  # they end at different times


def test_the_order_of_the_batch_does_not_matter(model: Seq2Seq, tokens: Any) -> None:
    source = tokens(*LENGTHS)
    order = [3, 0, 5, 1, 4, 2]
    search = Search(beam=3, nbest=2, maximum_length=8)
    ours, theirs = searched(model, source, search), searched(model, source[order], search)
    for place, row in enumerate(order):
        assert [one.tokens for one in theirs[place]] == [one.tokens for one in ours[row]]
        for one, other in zip(theirs[place], ours[row], strict=True):
            torch.testing.assert_close(one.weights, other.weights, atol=1e-4, rtol=1e-3)


def test_a_beam_of_one_is_greedy(model: Seq2Seq, tokens: Any) -> None:
    source = tokens(*LENGTHS)
    search = Search(beam=1, maximum_length=8)
    found = searched(model, source, search)
    with torch.no_grad():
        greedy = greedy_search(model, model.begin(source, source != 0), 6, TARGET, search)
    for hypotheses, other in zip(found, greedy, strict=True):
        assert [one.tokens for one in hypotheses] == [other.tokens]
        assert hypotheses[0].log_prob == pytest.approx(other.log_prob, abs=1e-5)
        assert hypotheses[0].ended == other.ended
        torch.testing.assert_close(hypotheses[0].weights, other.weights)


def test_l4_a_model_that_says_nan_is_refused(model: Seq2Seq, tokens: Any) -> None:
    model.bias.data[5] = torch.nan
    source = tokens(3, 2)
    with pytest.raises(DivergedError, match="got NaN or none left for token 1"):
        searched(model, source, Search(beam=3))
    with pytest.raises(DivergedError), torch.no_grad():
        greedy_search(model, model.begin(source, source != 0), 2, TARGET, Search(beam=1))


def test_nothing_to_search(table: Any, symbols: Any) -> None:
    model = table(0, seed=0)
    assert beam_search(model, model.begin(), 0, symbols, Search()) == []
    assert greedy_search(model, model.begin(), 0, symbols, Search()) == []


def test_a_beam_wider_than_the_vocabulary(table: Any, symbols: Any) -> None:
    model = table(1, seed=5)
    search = Search(beam=1000, nbest=1000, maximum_length=3)
    found = beam_search(model, model.begin(), 1, symbols, search)[0]
    assert len(found) == 1 + 2 + 4 + 8
