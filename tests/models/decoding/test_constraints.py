from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DivergedError, ShapeError, UserError
from regard.models.decoding import Search, Symbols, coverage
from regard.models.decoding.constraints import Past, repeating, restricted


def test_what_may_not_be_written_is_forbidden() -> None:
    log_probs, symbols = torch.zeros(2, 3, 6), Symbols(1, 2, (0, 4))
    search = Search(minimum_length=1, maximum_length=3)
    for length, allowed in ((0, [1, 3, 5]), (1, [1, 2, 3, 5]), (2, [1, 2, 3, 5]), (3, [2])):
        left = restricted(log_probs, symbols, search, length)
        assert (left[0, 0] == 0).nonzero().flatten().tolist() == allowed
        assert torch.equal(left[0, 0].expand_as(left), left)


def test_nothing_is_banned_by_default() -> None:
    left = restricted(torch.zeros(1, 1, 4), Symbols(1, 2), Search(), 0)
    assert not left.any()


@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
def test_l4_probabilities_that_are_none_are_refused(bad: float) -> None:
    log_probs = torch.zeros(2, 1, 5)
    log_probs[1] = bad
    with pytest.raises(DivergedError, match="got NaN or none left for token 4"):
        restricted(log_probs, Symbols(1, 2, (0, 1)), Search(), 3)


def test_a_ban_of_everything_is_refused() -> None:
    search = Search(minimum_length=2)
    with pytest.raises(DivergedError, match="what is banned"):
        restricted(torch.zeros(1, 1, 4), Symbols(1, 2, (0, 1, 3)), search, 0)


@given(
    written=st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=2, max_size=2),
    length=st.integers(0, 7),
    size=st.integers(1, 8),
)
def test_what_repeats_in_plain_loops(written: list[list[int]], length: int, size: int) -> None:
    histories = [row[:length] for row in written]
    tokens = torch.tensor(histories, dtype=torch.long).view(1, 2, length)
    found = repeating(tokens, size, torch.zeros(1, 2, 4))
    for place, row in enumerate(histories):
        seen = [row[i : i + size] for i in range(length - size + 1)]
        expected = [[*row, token][-size:] in seen for token in range(4)]
        assert found[0, place].tolist() == expected


def test_what_repeats_is_forbidden_and_nothing_left_is_the_end() -> None:
    search = Search(minimum_length=9, block_ngrams=1)
    written = torch.tensor([[[3, 5], [3, 3]]])
    left = restricted(torch.zeros(1, 2, 6), Symbols(1, 2, (0, 4)), search, 2, written)
    assert (left[0, 0] == 0).nonzero().flatten().tolist() == [1]
    assert (left[0, 1] == 0).nonzero().flatten().tolist() == [1, 5]
    left = restricted(torch.zeros(1, 2, 6), Symbols(1, 2, (0, 1, 4)), search, 2, written)
    assert (left[0, 0] == 0).nonzero().flatten().tolist() == [2]  # stuck, however short
    assert (left[0, 1] == 0).nonzero().flatten().tolist() == [5]


def test_l4_nan_is_refused_where_ngrams_are_blocked() -> None:
    log_probs = torch.zeros(1, 1, 5)
    log_probs[0, 0, 4] = torch.nan
    with pytest.raises(DivergedError):
        restricted(log_probs, Symbols(1, 2), Search(block_ngrams=1), 1, torch.tensor([[[3]]]))


def test_coverage_by_hand() -> None:
    total = torch.tensor([[0.5, 2.0, 1.0], [1.0, 1.0, 0.0]])
    found = coverage(total)
    assert float(found[0]) == pytest.approx(math.log(0.5))
    assert float(found[1]) == pytest.approx(math.log(torch.finfo(torch.float32).tiny))
    assert coverage(torch.zeros(2, 0)).tolist() == [0.0, 0.0]  # row L2: no items


def test_padding_counts_for_nothing_in_the_coverage() -> None:
    search = Search(coverage_penalty=1.0)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    weights = torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]).view(2, 1, 1, 3)
    past = Past.begin(2, search, mask).look(weights)
    expected = [math.log(0.25) + math.log(0.75), math.log(0.5) + 2 * math.log(0.25)]
    found = past.coverage()
    assert found is not None
    assert found[:, 0].tolist() == pytest.approx(expected)


def test_a_search_without_constraints_remembers_nothing() -> None:
    past = Past.begin(2, Search(), None)
    assert past == (None, None)
    index = torch.zeros(2, 1, dtype=torch.long)
    assert past.look(torch.ones(2, 1, 1, 3)).follow(index, index).keep(index[:1, 0]) == past
    assert past.coverage() is None


def test_hypotheses_are_followed_with_all_that_is_remembered() -> None:
    past = Past.begin(1, Search(coverage_penalty=1.0, block_ngrams=2), None)
    past = past.look(torch.tensor([[[[0.75, 0.25]]]]))
    past = past.follow(torch.tensor([[0, 0]]), torch.tensor([[3, 4]]))
    past = past.look(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]))
    past = past.follow(torch.tensor([[1, 0]]), torch.tensor([[5, 6]]))
    assert past.written is not None
    assert past.covered is not None
    assert past.written.tolist() == [[[4, 5], [3, 6]]]
    assert past.covered.tolist() == [[[0.75, 1.25], [1.25, 0.75]]]


@pytest.mark.parametrize("mask", [None, torch.ones(1, 3, dtype=torch.bool)])
def test_coverage_needs_a_model_that_looks(mask: torch.Tensor | None) -> None:
    past = Past.begin(1, Search(coverage_penalty=1.0), mask)
    with pytest.raises(UserError, match=r"coverage_penalty must be 0 where .* does not look"):
        past.look(torch.zeros(1, 0, 1, 3))


def test_a_mask_of_other_items_is_refused() -> None:
    past = Past.begin(1, Search(coverage_penalty=1.0), torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match="one column for each item; got 3 and 4 items"):
        past.look(torch.zeros(1, 1, 1, 4))
