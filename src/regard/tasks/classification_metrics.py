"""Scores of labels: accuracy, F1 and calibration, all in percent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError

BINS = 15

Numbers = NDArray[np.float64]
Truths = NDArray[np.bool_]


def label_scores(
    probabilities: Numbers, truth: Sequence[Sequence[int]], *, several: bool
) -> dict[str, float]:
    """Score the probabilities of labels.

    Where a document has one label, the most probable one is predicted; where it may have several,
    all of at least a half are, and `accuracy` counts the documents whose labels are all right.

    Args:
        probabilities: A row for each document, a column for each label.
        truth: The places of each document's labels.
        several: Whether a document may have any number of labels.

    Returns:
        `accuracy`, `macro_f1` and `calibration_error`; where there may be several labels
        `micro_f1`, too.

    Raises:
        DataError: There are no documents.
    """
    if not len(truth):
        raise DataError("there must be a document to score; got 0. Check the file.", where="scores")
    right: Truths = np.zeros(probabilities.shape, dtype=np.bool_)
    for row, places in enumerate(truth):
        right[row, list(places)] = True
    said = predicted(probabilities, several=several)
    accuracy = 100.0 * float((said == right).all(axis=1).mean())
    scores = {"accuracy": accuracy, "macro_f1": macro_f1(said, right, every=several)}
    if several:
        scores["micro_f1"] = _f1(said, right)
        error = calibration_error(probabilities.ravel(), right.ravel())
    else:
        hits = np.asarray((said & right).any(axis=1))
        error = calibration_error(probabilities.max(axis=1), hits)
    return {**scores, "calibration_error": error}


def predicted(probabilities: Numbers, *, several: bool) -> Truths:
    """Say which labels are predicted.

    Args:
        probabilities: A row for each document, a column for each label.
        several: Whether a document may have any number of labels.

    Returns:
        True where a label is.
    """
    if several:
        return np.asarray(probabilities >= 0.5)
    said: Truths = np.zeros(probabilities.shape, dtype=np.bool_)
    said[np.arange(len(said)), probabilities.argmax(axis=1)] = True
    return said


def macro_f1(said: Truths, right: Truths, *, every: bool = False) -> float:
    """Return the mean over labels of F1, the harmonic mean of precision and recall.

    Args:
        said: The labels that were predicted.
        right: The true labels.
        every: Whether a label that is neither true nor predicted anywhere counts, as 0.

    Returns:
        The score, of 100.
    """
    columns = range(right.shape[1])
    used = [c for c in columns if every or said[:, c].any() or right[:, c].any()]
    return float(np.mean([_f1(said[:, c], right[:, c]) for c in used]))


def _f1(said: Truths, right: Truths) -> float:
    total = int(said.sum()) + int(right.sum())
    return 200.0 * int((said & right).sum()) / total if total else 0.0


def calibration_error(confidence: Numbers, hits: Truths, *, bins: int = BINS) -> float:
    """Return the expected calibration error: `Σ_b n_b / n · |accuracy_b - confidence_b|`.

    Args:
        confidence: How sure the model was each time, from 0 to 1.
        hits: Whether it was right.
        bins: Into how many ranges of equal width confidence is cut.

    Returns:
        The error, of 100.

    References:
        Naeini et al. 2015; Guo et al., On calibration of modern neural networks, 2017.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    places = np.digitize(confidence, edges, right=True)
    gaps = [
        abs(float(hits[places == b].sum()) - float(confidence[places == b].sum()))
        for b in range(bins)
    ]
    return 100.0 * sum(gaps) / len(confidence)
