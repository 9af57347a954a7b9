"""Estimators of scikit-learn: its own checks, its own tools, and attention that can be trusted."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from regard.errors import DivergedError, MissingExtraError, ShapeError, UserError
from regard.tasks.estimators import ENCODERS, AttentionClassifier, AttentionRegressor

# Checks that do not apply, each with its reason. There is none.
EXCEPTIONS: dict[str, str] = {}
QUICK = {"epochs": 12, "learning_rate": 0.03}  # the checks fit more than a hundred times


@parametrize_with_checks(
    [AttentionClassifier(**QUICK), AttentionRegressor()],
    expected_failed_checks=lambda _: EXCEPTIONS,
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def series(count: int = 80, steps: int = 12, seed: int = 0) -> tuple[Any, Any, Any]:
    """Noise of two features, with a bump up or down at a known step of the first."""
    generator = np.random.default_rng(seed)
    made = generator.normal(scale=0.3, size=(count, steps, 2))
    places, up = generator.integers(steps, size=count), generator.integers(2, size=count)
    made[np.arange(count), places, 0] += np.where(up, 4.0, -4.0)
    return made, up, places


def test_it_learns_from_series_and_says_where_it_looked() -> None:
    data, y, places = series()
    model = AttentionClassifier(encoder="none", random_state=0).fit(
        data, np.array(["no", "yes"])[y]
    )
    assert model.score(data, np.array(["no", "yes"])[y]) == 1.0
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.attention_.shape == (80, 12)
    np.testing.assert_allclose(model.attention_.sum(axis=1), 1.0, rtol=1e-5)
    assert (model.attention_.argmax(axis=1) == places).mean() > 0.95
    new, y, places = series(seed=1)
    assert (model.attention(new).argmax(axis=1) == places).mean() > 0.95
    assert model.n_features_in_ == 2


def test_series_may_differ_in_length() -> None:
    data, _, _ = series()
    cut = [one[: 6 + n % 7] for n, one in enumerate(data)]
    target = np.array([one.max() for one in cut])
    model = AttentionRegressor(encoder="none", pooling="max", random_state=0).fit(cut, target)
    assert model.score(cut, target) > 0.8
    assert [len(weights) for weights in model.attention_] == [len(one) for one in cut]
    alone = [model.predict([one])[0] for one in cut]
    np.testing.assert_allclose(alone, model.predict(cut), rtol=1e-6)


def test_several_values_and_heads() -> None:
    data, _, _ = series(40)
    y = np.stack([data[:, :, 0].max(axis=1), data[:, :, 1].mean(axis=1) * 100 + 7], axis=1)
    model = AttentionRegressor(pooling="multihead", num_heads=2, epochs=5, random_state=0)
    assert model.fit(data, y).predict(data).shape == (40, 2)
    assert model.attention_.shape == (40, 2, 12)
    assert model.predict(data)[:, 1].mean() == pytest.approx(7, abs=20)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("pooling", ["feed_forward", "step", "last"])
def test_every_encoder_with_every_pooling(encoder: str, pooling: str) -> None:
    data, y, _ = series(12, 5)
    model = AttentionClassifier(
        encoder=encoder, pooling=pooling, hidden_dim=8, epochs=2, random_state=1
    )
    proba = model.fit(data, y).predict_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.attention_.shape == (12, 5)


def test_it_works_in_pipelines_searches_and_copies() -> None:
    data, y = make_blobs(n_samples=60, centers=3, random_state=0)
    data = data * [1, 1000] + 5
    small = AttentionClassifier(epochs=8, hidden_dim=8, learning_rate=0.03, random_state=0)
    pipeline = make_pipeline(StandardScaler(), small)
    assert cross_val_score(pipeline, data, y, cv=2).mean() > 0.6
    grid = {"attentionclassifier__hidden_dim": np.array([4, 8]),
            "attentionclassifier__learning_rate": np.array([0.01, 0.03])}  # fmt: skip
    search = GridSearchCV(pipeline, grid, cv=2).fit(data, y)
    assert search.best_params_.keys() == grid.keys()
    fitted = search.best_estimator_
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(data), fitted.predict_proba(data))
    assert not hasattr(clone(small.fit(data, y)), "reader_")


def test_the_same_random_state_gives_the_same_and_global_ones_stay() -> None:
    data, y, _ = series(20, 5)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    own = {"epochs": 2, "dropout": 0.2}
    results = [
        AttentionClassifier(random_state=state, **own).fit(data, y).predict_proba(data)
        for state in (3, 3, 4, np.random.RandomState(5), np.random.RandomState(5), None, None)
    ]
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[3], results[4])
    for one, other in ((0, 2), (0, 3), (5, 6)):
        assert not np.array_equal(results[one], results[other])


def test_what_is_missing_may_stand_for_the_mean() -> None:
    data, y, _ = series(20, 5)
    data[3, 2, 0] = np.nan
    with pytest.raises(UserError, match=r"sequence '3', step 3: '0' must be a number"):
        AttentionClassifier(epochs=1).fit(data, y)
    model = AttentionClassifier(missing="mean", epochs=1).fit(data, y)
    assert np.isfinite(model.predict_proba(data)).all()
    flat = data[:, :, 0]
    with pytest.raises(ValueError, match="NaN"):
        AttentionClassifier(epochs=1).fit(flat, y)
    assert np.isfinite(
        AttentionRegressor(missing="mean", epochs=1).fit(flat, y).predict(flat)
    ).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"encoder": "grru"}, r"encoder must be known; got 'grru'; did you mean 'gru'"),
        ({"pooling": "maen"}, r"AttentionClassifier: pooling: must be .* got 'maen'"),
        ({"hidden_dim": 0}, "input_dim: must be greater"),
        ({"epochs": 0}, "epochs: must be greater"),
        ({"learning_rate": float("nan")}, "learning_rate: must be a finite number"),
        ({"hidden_dim": 6, "pooling": "multihead", "encoder": "none"}, "num_heads must divide"),
        ({"random_state": -1}, "random_state must be from 0"),
        ({"dropout": 1.0}, "dropout: must be less"),
    ],
)
def test_l8_parameters_are_checked_by_fit(parameters: dict[str, Any], message: str) -> None:
    data, y, _ = series(8, 4)
    with pytest.raises(UserError, match=message):
        AttentionClassifier(**parameters).fit(data, y)


def test_data_that_do_not_fit_are_refused() -> None:
    data, y, _ = series(12, 4)
    model = AttentionClassifier(epochs=1, pooling="step").fit(data, y)
    with pytest.raises(ShapeError, match=r"must be as it was for fit, \(n, steps, features\)"):
        model.predict(data[:, :, 0])
    with pytest.raises(ShapeError, match="must have 2 features; got 3"):
        model.predict(np.zeros((2, 4, 3)))
    with pytest.raises(ShapeError, match="at most 4 steps for this pooling; got 5"):
        model.predict(np.zeros((2, 5, 2)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(data, y[:3])
    with pytest.raises(UserError, match="y must be given to fit"):
        model.fit(data, None)
    with pytest.raises(UserError, match="X must hold a sequence; got 0"):
        model.fit(np.zeros((0, 4, 2)), [])
    with pytest.raises(UserError, match="at least two classes; got 1 class"):
        model.fit(data, y * 0)
    assert model.predict(np.zeros((0, 4, 2))).shape == (0,)


@pytest.mark.filterwarnings("ignore:overflow")
def test_t1_what_diverges_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.tasks.sequence_job import SequenceJob
    from regard.training.job import Loss

    loss = SequenceJob.loss
    monkeypatch.setattr(
        SequenceJob, "loss", lambda self, batch: Loss(loss(self, batch).total * np.nan, {})
    )
    data, y, _ = series(8, 4)
    with pytest.raises(DivergedError, match="loss must be finite; got none at step 1"):
        AttentionClassifier().fit(data, y)


def test_c6_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "regard.tasks.estimators")
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[tables\]'"):
        import regard.tasks.estimators  # noqa: F401
