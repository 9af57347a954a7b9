"""Scores of values: by hand, and as scikit-learn has them."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import DataError
from regard.tasks.value_metrics import value_scores


def test_by_hand() -> None:
    scores = value_scores(np.array([[1.0], [4.0]]), np.array([[1.0], [3.0]]))
    assert scores == pytest.approx({"rmse": 0.5**0.5, "mae": 0.5, "r2": 0.5})


def test_they_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(1)
    for targets in (1, 3):
        foretold, truth = generator.normal(size=(2, 20, targets))
        assert value_scores(foretold, truth) == pytest.approx({
            "rmse": metrics.root_mean_squared_error(truth, foretold),
            "mae": metrics.mean_absolute_error(truth, foretold),
            "r2": metrics.r2_score(truth, foretold),
        })  # fmt: skip
    same = np.full((4, 1), 0.1)
    for foretold in (same, same + 1):
        assert value_scores(foretold, same)["r2"] == metrics.r2_score(same, foretold)


def test_nothing_to_score() -> None:
    with pytest.raises(DataError, match="must be a value to score; got 0"):
        value_scores(np.zeros((0, 1)), np.zeros((0, 1)))
