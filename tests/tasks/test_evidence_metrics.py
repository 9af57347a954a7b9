from __future__ import annotations

import numpy as np
import pytest

from regard.tasks.evidence_metrics import area, average_precision, evidence_scores


def test_worked_by_hand():
    weights = [np.array([0.5, 0.1, 0.3, 0.1]), np.array([0.2, 0.8])]
    truth = [np.array([True, True, False, False]), np.array([True, False])]
    scores = evidence_scores(weights, truth)
    # The first: 0.5 beats both, 0.1 loses to 0.3 and ties with 0.1: 2.5 of 4. The second: 0 of 1.
    assert scores["auc"] == pytest.approx(100 * (2.5 / 4 + 0.0) / 2)
    # Half is marked, 3 of 6: two of the first, of which one is right, and one of the second.
    assert scores["f1"] == pytest.approx(100 * (2 * 1 / 4 + 0.0) / 2)
    # Precision 1 at the first mark, 2/4 at the second; 1/2 at the only one.
    assert scores["average_precision"] == pytest.approx(100 * ((1 + 0.5) / 2 + 0.5) / 2)
    assert scores["documents"] == 2


def test_documents_of_one_kind_of_items_do_not_count():
    weights = [np.array([0.5, 0.5]), np.array([1.0]), np.array([])]
    truth = [np.array([False, False]), np.array([True]), np.array([], dtype=bool)]
    assert evidence_scores(weights, truth) == {"documents": 0.0}


def test_equal_weights_are_chance():
    weights, truth = np.full(10, 0.1), np.arange(10) < 3
    assert area(weights, truth) == 0.5
    assert average_precision(weights, truth) == pytest.approx(0.3)


def test_scores_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(1)
    for _ in range(50):
        weights = generator.integers(0, 8, 20) / 8  # with ties
        truth = generator.random(20) < 0.3
        truth[:2] = True, False
        assert area(weights, truth) == pytest.approx(metrics.roc_auc_score(truth, weights))
        expected = metrics.average_precision_score(truth, weights)
        assert average_precision(weights, truth) == pytest.approx(expected)
