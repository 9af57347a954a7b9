from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.errors import DivergedError, UserError
from regard.models.decoding import Search, SearchState, Steppable, Symbols, forced
from regard.models.decoding.base import restricted


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam": 0}, "beam must be from 1 to 1000; got 0."),
        ({"beam": 1001}, "beam must be from 1 to 1000; got 1001."),
        ({"beam": 3, "nbest": 4}, "nbest must be from 1 to 3; got 4."),
        ({"nbest": 0}, "nbest must be from 1 to 5; got 0."),
        ({"length_penalty": -0.1}, "length_penalty must be from 0.0 to 10.0; got -0.1."),
        ({"length_penalty": float("nan")}, "length_penalty must be from 0.0 to 10.0; got nan."),
        ({"maximum_length": -1}, "maximum_length must be from 0 to 100000; got -1."),
        ({"minimum_length": 101}, "minimum_length must be from 0 to 100; got 101."),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    """Row S10: a beam of 1,001 and the like."""
    with pytest.raises(UserError) as caught:
        Search(**settings)
    assert str(caught.value).startswith(message)


def test_the_length_penalty_of_wu_by_hand() -> None:
    search = Search(length_penalty=0.6)
    assert search.normalised(-3.0, 1) == -3.0  # ((5 + 1) / 6) ** 0.6 is 1
    assert search.normalised(-3.0, 7) == pytest.approx(-3.0 / 2**0.6)
    assert Search(length_penalty=0).normalised(-3.0, 50) == -3.0


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


def test_forced_reads_each_token_before_it_foretells_the_next(table: Any, symbols: Any) -> None:
    model = table(2, seed=1)
    outputs = torch.tensor([[3, 4, 2], [4, 4, 2]])
    log_probs, weights = forced(model, model.begin(), outputs, symbols)
    for row, path in enumerate(outputs.tolist()):
        for place, token in enumerate(path):
            assert float(log_probs[row, place]) == float(model.row(row, tuple(path[:place]))[token])
    assert weights.shape == (2, 1, 3, 2)
    assert weights[0, 0, :, 1].tolist() == [1.0, 1 + 3 * 7, 1 + 3 * 7 + 4 * 49]


def test_models_and_states_are_recognised(table: Any) -> None:
    model = table(1, seed=0)
    assert isinstance(model, Steppable)
    assert isinstance(model.begin(), SearchState)
