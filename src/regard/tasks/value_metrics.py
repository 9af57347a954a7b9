"""Scores of values that were foretold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError

Numbers = NDArray[np.float64]


def value_scores(foretold: Numbers, truth: Numbers) -> dict[str, float]:
    """Score values, each target by itself, and take the mean over targets.

    Args:
        foretold: A row for each example, a column for each target.
        truth: What they should have been.

    Returns:
        `rmse`, the root of the mean squared error, and `mae`, the mean absolute error, in the
        units of the values; `r2 = 1 - Σ (t - f)² / Σ (t - mean t)²`, 1 at best and 0 for the mean;
        of truths that are all the same it is 1 where all are met, else 0.

    Raises:
        DataError: There is nothing to score.
    """
    if not len(truth):
        raise DataError("there must be a value to score; got 0. Check the file.", where="scores")
    errors = np.square(foretold - truth).sum(axis=0)
    spread = np.square(truth - truth.mean(axis=0)).sum(axis=0)
    constant = (truth == truth[0]).all(axis=0)
    met = (errors == 0).astype(np.float64)
    r2 = np.where(constant, met, 1.0 - errors / np.where(constant, 1.0, spread))
    return {
        "rmse": float(np.sqrt(errors / len(truth)).mean()),
        "mae": float(np.abs(foretold - truth).mean(axis=0).mean()),
        "r2": float(r2.mean()),
    }
