from __future__ import annotations

from typing import Any

import pytest

from regard.errors import UserError
from regard.models.decoding import Search, SearchState, Steppable


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
        ({"coverage_penalty": -1}, "coverage_penalty must be from 0.0 to 10.0; got -1."),
        ({"block_ngrams": -1}, "block_ngrams must be from 0 to 1000; got -1."),
        ({"groups": 0}, "groups must be from 1 to 5; got 0."),
        ({"groups": 6}, "groups must be from 1 to 5; got 6."),
        ({"groups": 2}, "groups must divide beam; got 2 and 5. Use a beam of 6."),
        ({"diversity": -0.5}, "diversity must be from 0.0 to 100.0; got -0.5."),
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


def test_a_score_adds_the_coverage() -> None:
    search = Search(length_penalty=0.6, coverage_penalty=0.5)
    assert search.scored(-3.0, 7, -0.4) == pytest.approx(-3.0 / 2**0.6 - 0.2)
    assert Search().scored(-3.0, 7, -0.4) == Search().normalised(-3.0, 7)


def test_models_and_states_are_recognised(table: Any) -> None:
    model = table(1, seed=0)
    assert isinstance(model, Steppable)
    assert isinstance(model.begin(), SearchState)
