"""What a person gets of a model of sequences: arrays and tables in, labels and weights out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import DataError, ShapeError, UserError
from regard.models.sequences import SequenceModelSettings, build_sequence_model
from regard.tasks.sequence_settings import ColumnSettings, PredictorSettings
from regard.tasks.sequences import SequenceClassifier, SequenceReader, SequenceRegressor


def reader(target: str = "label", **model: Any) -> SequenceReader:
    torch.manual_seed(0)
    settings = PredictorSettings(
        task="sequences",
        target=target,
        labels=["no", "yes", "maybe"] if target == "label" else [],
        features=["x", "y"],
        columns=ColumnSettings(label=["a", "b"] if target == "value" else "label", max_steps=6),
        model=SequenceModelSettings.model_validate(
            {"input_dim": 8, "encoder": {"kind": "gru", "hidden_dim": 4}, **model}
        ),
    )
    made = build_sequence_model(settings.model, features=2, outputs=settings.outputs)
    return SequenceReader(made, settings)


ARRAYS = [np.random.default_rng(i).normal(size=(i, 2)) for i in (4, 0, 6, 1)]


def test_one_is_one_and_several_are_a_list() -> None:
    classifier = SequenceClassifier(reader())
    several = classifier(ARRAYS, batch_size=2)
    assert [len(one.weights) for one in several] == [4, 0, 6, 1]
    assert [one.name for one in several] == ["0", "1", "2", "3"]
    for array, one in zip(ARRAYS, several, strict=True):
        alone = classifier(array)
        assert alone.label == one.label
        assert alone.probabilities == pytest.approx(one.probabilities, abs=1e-6)
        assert alone.weights == pytest.approx(one.weights, abs=1e-6)
        assert one.weights.sum() == pytest.approx(1.0 if len(array) else 0.0, abs=1e-6)
    first = several[0]
    assert first.probability == max(first.probabilities.values())
    assert list(first.probabilities) == ["no", "yes", "maybe"] == list(classifier.labels)
    assert sum(first.probabilities.values()) == pytest.approx(1.0)
    step, weight = first.strongest(1)[0]
    assert weight == first.weights.max() == first.weights[step]
    assert several[1].strongest() == []
    cube = classifier(np.stack([ARRAYS[0], ARRAYS[0]]))
    assert cube[0].probabilities == pytest.approx(first.probabilities, abs=1e-6)
    assert classifier(torch.from_numpy(ARRAYS[0])).label == first.label
    assert classifier([]) == []


def test_values_come_in_the_units_of_the_data() -> None:
    regressor = SequenceRegressor(reader("value"))
    regressor.reader.model.targets.fit(torch.tensor([[1e6, 0.0], [1e6 + 4, 0.0]]))
    one = regressor(ARRAYS[0])
    assert list(one.values) == ["a", "b"] == list(regressor.targets)
    assert one.values["a"] == pytest.approx(1e6 + 2, abs=10)
    assert one.values["b"] == 0.0  # what was always the same


def test_what_was_read_becomes_a_record(tmp_path: Path) -> None:
    one = SequenceClassifier(reader(), name="pumps")(ARRAYS[0])
    record = one.record
    assert record.read.features == ("x", "y")
    np.testing.assert_allclose(record.read.values, ARRAYS[0], rtol=1e-5)
    np.testing.assert_allclose(record.weights()[0], one.weights)
    assert record.written.text == one.label
    assert record.details["model"] == "pumps"
    assert record.details["probability"] == pytest.approx(one.probability, abs=1e-6)
    for name in ("a.svg", "a.html", "a.json"):
        one.save(tmp_path / name)
    assert "<svg" in (tmp_path / "a.svg").read_text()
    with pytest.raises(UserError, match="exists"):
        one.save(tmp_path / "a.svg", overwrite=False)
    assert one._repr_html_().startswith("<iframe")
    two = SequenceRegressor(reader("value", pooling="multihead", num_heads=2))(ARRAYS[0]).record
    assert [token.text.split()[0] for token in two.written.tokens] == ["a", "b"]
    assert [m.name for m in two.maps] == ["head 1", "head 2"]
    assert SequenceClassifier(reader())(ARRAYS[1]).record.columns == 0
    gappy = SequenceClassifier(reader(missing="mean"))(np.array([[1, np.nan], [2, 3]]))
    assert gappy.record.read.values[0] == (1.0, None)


def test_heads_come_first() -> None:
    one = SequenceClassifier(reader(pooling="multihead", num_heads=2))(ARRAYS[0])
    assert one.weights.shape == (2, 4)
    assert one.strongest(1)[0][1] == pytest.approx(one.weights.mean(axis=0).max())


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((3, 3)), [np.zeros((3, 2)), np.zeros((3, 1))], np.zeros((2, 3, 3)), np.zeros(4)],
)
def test_l5_other_shapes_are_refused(wrong: Any) -> None:
    with pytest.raises(ShapeError, match="must have 2 features"):
        SequenceClassifier(reader())(wrong)


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    classifier = SequenceClassifier(reader())
    with pytest.raises(UserError, match="must be an array of numbers; got str"):
        classifier(["words"])
    with pytest.raises(DataError, match=r"sequence '0', step 2: 'y' must be a number"):
        classifier(np.array([[1, 2], [3, np.nan]]))
    with pytest.raises(DataError, match=r"'x' must be finite"):
        classifier(np.array([[np.inf, 2]]))
    with pytest.raises(UserError, match="batch_size must be at least 1"):
        classifier(ARRAYS, batch_size=0)
    with pytest.raises(DataError, match=r"none\.csv: cannot be read"):
        classifier(tmp_path / "none.csv")
    SequenceClassifier(reader(missing="mean"))(np.array([[1, 2], [3, np.nan]]))


def test_a_table_needs_no_labels(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "a.csv"
    file.write_text("y,sequence,x,note\n1,b,2,n\n3,a,4,n\n5,b,6,n\n")
    classifier = SequenceClassifier(reader())
    found = classifier(str(file))
    assert [one.name for one in found] == ["b", "a"]
    expected = classifier(np.array([[2.0, 1.0], [6.0, 5.0]]))
    assert found[0].probabilities == pytest.approx(expected.probabilities, abs=1e-6)


def test_d7_what_is_cut_is_said() -> None:
    classifier = SequenceClassifier(reader())
    with pytest.warns(UserWarning, match="up to 6 steps; 1 of 2 are longer and were cut") as seen:
        long, short = classifier([np.ones((9, 2)), np.ones((6, 2))])
    assert seen[0].filename == __file__
    assert (long.truncated, short.truncated) == (True, False)
    assert long.probabilities == pytest.approx(short.probabilities, abs=1e-6)
    assert len(long.weights) == 6
