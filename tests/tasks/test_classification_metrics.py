"""Scores of labels: by hand, and against scikit-learn."""

import warnings

import numpy as np
import pytest

from regard.errors import DataError
from regard.tasks.classification_metrics import (
    calibration_error,
    label_scores,
    macro_f1,
    predicted,
)


def drawn(several: bool, documents: int = 200, labels: int = 5) -> tuple[np.ndarray, list]:
    generator = np.random.default_rng(several)
    logits = 2 * generator.standard_normal((documents, labels))
    if several:
        probabilities = 1 / (1 + np.exp(-logits))
        truth = [np.flatnonzero(row > 0.6).tolist() for row in generator.random((documents, 5))]
        return probabilities, truth
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return probabilities, [[int(place)] for place in generator.integers(0, labels - 1, documents)]


def test_a_case_by_hand() -> None:
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    found = label_scores(probabilities, [[0], [1], [1], [1]], several=False)
    assert found["accuracy"] == 75.0
    # Label 0: precision 1/2, recall 1; label 1: precision 1, recall 2/3.
    assert found["macro_f1"] == pytest.approx(50 * (2 / 3 + 4 / 5))
    # Each confidence stands in a bin of its own: 0.1, 0.8, 0.4 and 0.3 off.
    assert found["calibration_error"] == pytest.approx(100 * (0.1 + 0.8 + 0.4 + 0.3) / 4)


def test_several_labels_by_hand() -> None:
    probabilities = np.array([[0.9, 0.5, 0.1], [0.2, 0.4, 0.1]])
    found = label_scores(probabilities, [[0, 1], [2]], several=True)
    assert found["accuracy"] == 50.0
    assert found["macro_f1"] == pytest.approx(100 * 2 / 3)
    assert found["micro_f1"] == pytest.approx(100 * 4 / 5)
    assert predicted(probabilities, several=True).tolist() == [[True, True, False], [False] * 3]


def test_labels_that_do_not_occur() -> None:
    said = np.array([[True, False, False]])
    assert macro_f1(said, said) == 100.0
    assert macro_f1(said, said, every=True) == pytest.approx(100 / 3)


@pytest.mark.parametrize("several", [False, True])
def test_scores_are_those_of_scikit_learn(several: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    probabilities, truth = drawn(several)
    found = label_scores(probabilities, truth, several=several)
    if several:
        right = np.array([[c in places for c in range(5)] for places in truth])
        said = probabilities >= 0.5
    else:
        right, said = np.array(truth)[:, 0], probabilities.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found["accuracy"] == pytest.approx(100 * metrics.accuracy_score(right, said))
        macro = metrics.f1_score(right, said, average="macro", zero_division=0)
        assert found["macro_f1"] == pytest.approx(100 * macro)
        if several:
            micro = metrics.f1_score(right, said, average="micro")
            assert found["micro_f1"] == pytest.approx(100 * micro)


def test_the_calibration_error_is_that_of_plain_loops() -> None:
    probabilities, truth = drawn(several=False)
    confidence = probabilities.max(axis=1)
    hits = probabilities.argmax(axis=1) == np.array(truth)[:, 0]
    expected = 0.0
    for low in range(15):
        inside = [i for i, c in enumerate(confidence) if low / 15 < c <= (low + 1) / 15]
        if inside:
            gap = np.mean([hits[i] for i in inside]) - np.mean([confidence[i] for i in inside])
            expected += len(inside) / len(hits) * abs(gap)
    assert calibration_error(confidence, hits) == pytest.approx(100 * expected)
    sure = np.ones(4)
    assert calibration_error(sure, sure.astype(bool)) == 0.0
    assert calibration_error(sure, np.zeros(4, dtype=bool)) == 100.0


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(DataError, match="there must be a document to score; got 0"):
        label_scores(np.zeros((0, 2)), [], several=False)
