"""Attention as estimators of scikit-learn: `fit`, `predict`, and which steps decided."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import checked
from regard.data.series import Sequences, as_sequences
from regard.errors import MissingExtraError, ShapeError, UserError, did_you_mean
from regard.models.sequences import SequenceModelSettings
from regard.tasks.base import choose_device
from regard.tasks.fitting import fit_in_memory, own_random_state, plain
from regard.tasks.sequence_results import Numbers
from regard.tasks.sequence_settings import SequenceDataSettings, SequenceSettings
from regard.tasks.sequence_training import job_of
from regard.tasks.sequences import Read, SequenceReader
from regard.training.settings import TrainingSettings

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError(
        "scikit-learn must be installed for its estimators. Run: pip install 'regard[tables]'"
    ) from None

ENCODERS = ("none", "convolution", "rnn", "gru", "lstm", "transformer")
_AT_ONCE = 256  # sequences that are read together after the training


class AttentionEstimator(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: their parameters, and reading `X`.

    `X` is an array `(n, features)`, each row read as steps of one value; an array `(n, steps,
    features)`; or a list of arrays `(steps, features)` of different length.

    Args:
        encoder: What reads the steps in order: one of `ENCODERS`.
        pooling: How they become one vector: "attention", "feed_forward", "multihead", "step",
            "mean", "max" or "last".
        hidden_dim: Size of the linear layer and of the encoder.
        layers: How many layers the encoder has.
        num_heads: How many heads "multihead" and "transformer" have; they divide the size.
        missing: Whether NaN is an "error", or stands for the "mean" and is told beside.
        dropout: Share of inputs and features dropped in training.
        epochs: Passes over the data.
        batch_size: Examples in a batch.
        learning_rate: The rate at the start; it falls to zero.
        random_state: A number, for the same result each time; a `RandomState`; or None.
        device: "cpu", "cuda", "cuda:1" or "auto".

    Attributes:
        attention_: The weights of the steps of the data it was fitted to: `(n, steps)`, with heads
            second where there are some; a list where lengths differ. Those of any other data come
            from `attention`.
        n_features_in_: How many columns `X` has; of sequences, how many features a step has.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn reads parameters off the signature
        self,
        *,
        encoder: str = "gru",
        pooling: str = "attention",
        hidden_dim: int = 32,
        layers: int = 1,
        num_heads: int = 4,
        missing: str = "error",
        dropout: float = 0.0,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        self.encoder, self.pooling = encoder, pooling
        self.hidden_dim, self.layers, self.num_heads = hidden_dim, layers, num_heads
        self.missing, self.dropout = missing, dropout
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.random_state, self.device = random_state, device

    def attention(self, X: Any) -> Any:  # noqa: N803 - the name that scikit-learn has
        """Say how much each step counts for what is predicted.

        Args:
            X: The data, as it was for `fit`.

        Returns:
            Weights that sum to one over the steps: `(n, steps)`, with heads second where there are
            some; a list of arrays where lengths differ.

        Raises:
            UserError: `X` is wrong.
        """
        check_is_fitted(self)
        return _stacked([one.weights for one in self._read(self._sequences(X))])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    def _given(self, X: Any, y: Any, **checks: Any) -> tuple[Sequences, Any]:  # noqa: N803
        """Take what `fit` was given for sequences, and check the targets."""
        self.tabular_ = not _is_sequences(X)
        if self.tabular_:
            finite = "allow-nan" if self.missing == "mean" else True
            made, y = validate_data(
                self, X, y, dtype=np.float64, ensure_all_finite=finite, **checks
            )
            return _of_table(made), y
        sequences = as_sequences(list(X))
        sequences.check_numbers(missing=self.missing == "mean")
        if not len(sequences):
            raise UserError("X must hold a sequence; got 0. Give a list of arrays.")
        if y is None:
            raise UserError("y must be given to fit; got None. Give a target for each sequence.")
        self.n_features_in_ = len(sequences.features)
        check_consistent_length(list(X), y)
        wide = checks.get("multi_output") and np.ndim(y) == 2
        return sequences, check_array(y, dtype=np.float64) if wide else column_or_1d(y, warn=True)

    def _sequences(self, X: Any) -> Sequences:  # noqa: N803
        """Take what is to be predicted for sequences, as those of `fit` were."""
        if _is_sequences(X) == self.tabular_:
            kinds = "(n, features)", "(n, steps, features), or a list of (steps, features)"
            raise ShapeError(
                f"X must be as it was for fit, {kinds[not self.tabular_]}; got "
                f"{kinds[self.tabular_]}. Reshape it."
            )
        if self.tabular_:
            finite = "allow-nan" if self.missing == "mean" else True
            own = {"dtype": np.float64, "ensure_all_finite": finite}
            return _of_table(validate_data(self, X, reset=False, **own))
        made = as_sequences(list(X), features=self.reader_.settings.features)
        made.check_numbers(missing=self.missing == "mean")
        return made

    def _fit(
        self, sequences: Sequences, target: Literal["label", "value"], names: list[str]
    ) -> None:
        settings = self._settings(sequences, target, names)
        device = choose_device(settings.training.device)
        with own_random_state(settings.training.seed, device):
            job = job_of(settings, sequences, sequences)
            fit_in_memory(job, settings.training)
        if job.reader.device.type == "cpu":  # so that a result does not depend on its batch
            job.model.double()
        self.reader_ = SequenceReader(job.model, job.reader.settings)
        self.attention_ = _stacked([one.weights for one in self._read(sequences)])

    def _read(self, sequences: Sequences) -> list[Read]:
        limit = self.reader_.settings.limit
        if len(sequences) and sequences.lengths.max() > limit:
            raise ShapeError(
                f"X must have at most {limit} steps for this pooling; got "
                f"{sequences.lengths.max()}. Cut the sequences."
            )
        read = self.reader_.read(sequences, batch_size=_AT_ONCE)
        return sorted(read, key=lambda one: one.place)

    def _outputs(self, X: Any) -> torch.Tensor:  # noqa: N803
        check_is_fitted(self)
        read = self._read(self._sequences(X))
        own = self.reader_.settings.outputs
        return torch.stack([one.outputs for one in read]) if read else torch.zeros(0, own)

    def _settings(
        self, sequences: Sequences, target: Literal["label", "value"], names: list[str]
    ) -> SequenceSettings:
        if self.encoder not in ENCODERS:
            raise UserError(
                f"encoder must be known; got {self.encoder!r}; "
                f"{did_you_mean(str(self.encoder), ENCODERS)}."
            )
        part: dict[str, Any] = {"kind": "embedding" if self.encoder == "none" else self.encoder}
        if self.encoder != "none":
            part |= {"hidden_dim": self.hidden_dim, "layers": self.layers}
        if self.encoder in ("rnn", "gru", "lstm"):
            part["bidirectional"] = self.pooling != "last"
        if self.encoder == "transformer":
            part["num_heads"] = self.num_heads
        steps = max(int(sequences.lengths.max()), 1)
        model = {
            "input_dim": self.hidden_dim, "encoder": part, "pooling": self.pooling, "steps": steps,
            "num_heads": self.num_heads, "missing": self.missing, "dropout": self.dropout,
        }  # fmt: skip
        training = {
            "epochs": self.epochs, "batch_sentences": self.batch_size, "batch_tokens": 10**9,
            "learning_rate": self.learning_rate, "seed": _seed(self.random_state),
            "device": self.device, "label_smoothing": 0.0,
        }  # fmt: skip
        where = type(self).__name__
        return SequenceSettings(
            task="sequences",
            target=target,
            data=SequenceDataSettings(train="", dev="", label=names, max_steps=steps),
            model=checked(plain(model), SequenceModelSettings, where=where),
            training=checked(plain(training), TrainingSettings, where=where),
        )


class AttentionClassifier(ClassifierMixin, AttentionEstimator):  # type: ignore[misc]
    """Classify by attention over steps: see `AttentionEstimator` for parameters and `X`.

    Attributes:
        classes_: The labels.

    Example:
        >>> series = np.zeros((20, 5))
        >>> series[range(20), np.arange(20) % 5] = np.where(np.arange(20) < 10, 1, -1)
        >>> model = AttentionClassifier(random_state=0).fit(series, np.arange(20) < 10)
        >>> model.score(series, np.arange(20) < 10), int(model.attention(series[:1]).argmax())
        (1.0, 0)
    """

    def fit(self, X: Any, y: Any) -> AttentionClassifier:  # noqa: N803
        """Learn from labelled data.

        Args:
            X: The data.
            y: A label for each example.

        Returns:
            Itself.

        Raises:
            UserError: A parameter or the data is wrong.
        """
        sequences, y = self._given(X, y)
        check_classification_targets(y)
        self.classes_, places = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError("y must hold at least two classes; got 1 class. Check the labels.")
        self._fit(_with(sequences, labels=tuple(map(str, places))), "label", ["label"])
        return self

    def predict_proba(self, X: Any) -> Numbers:  # noqa: N803
        """Say how probable each label is, in the order of `classes_`.

        Args:
            X: The data, as it was for `fit`.

        Returns:
            A row for each example, which sums to one.

        Raises:
            UserError: `X` is wrong.
        """
        outputs = self._outputs(X)
        return self.reader_.probabilities(outputs)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Say which label is most probable.

        Args:
            X: The data, as it was for `fit`.

        Returns:
            A label for each example.

        Raises:
            UserError: `X` is wrong.
        """
        places = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[places])


class AttentionRegressor(RegressorMixin, AttentionEstimator):  # type: ignore[misc]
    """Foretell values by attention over steps: see `AttentionEstimator` for parameters and `X`.

    Example:
        >>> series = np.random.default_rng(0).normal(size=(50, 6))
        >>> model = AttentionRegressor(random_state=0, epochs=60).fit(series, series.max(axis=1))
        >>> model.score(series, series.max(axis=1)) > 0.8
        True
    """

    def fit(self, X: Any, y: Any) -> AttentionRegressor:  # noqa: N803
        """Learn from data with values.

        Args:
            X: The data.
            y: A value for each example, or a row of several.

        Returns:
            Itself.

        Raises:
            UserError: A parameter or the data is wrong.
        """
        sequences, y = self._given(X, y, multi_output=True, y_numeric=True)
        values = np.asarray(y, dtype=np.float64)
        self.flat_ = values.ndim == 1
        values = values.reshape(len(values), -1)
        names = [str(place) for place in range(values.shape[1])]
        self._fit(_with(sequences, targets=values), "value", names)
        return self

    def predict(self, X: Any) -> Numbers:  # noqa: N803
        """Foretell values.

        Args:
            X: The data, as it was for `fit`.

        Returns:
            A value for each example, or a row of several.

        Raises:
            UserError: `X` is wrong.
        """
        outputs = self._outputs(X)
        values = self.reader_.values(outputs)
        return values[:, 0] if self.flat_ else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _is_sequences(given: Any) -> bool:
    """Whether data are sequences of vectors, and no table of numbers."""
    if isinstance(given, np.ndarray | torch.Tensor):
        return given.ndim > 2
    if not isinstance(given, list | tuple) or not given:
        return False
    return isinstance(given[0], np.ndarray | torch.Tensor) and given[0].ndim == 2


def _of_table(table: Numbers) -> Sequences:
    """Read each row of a table as steps of one value."""
    rows, steps = table.shape
    return Sequences(
        names=tuple(map(str, range(rows))),
        features=("0",),
        values=table.reshape(-1, 1),
        starts=np.arange(rows + 1, dtype=np.int64) * steps,
    )


def _with(
    sequences: Sequences, *, labels: tuple[str, ...] | None = None, targets: Numbers | None = None
) -> Sequences:
    own = sequences
    return Sequences(own.names, own.features, own.values, own.starts, labels, targets)


def _stacked(weights: list[Any]) -> Any:
    """One array where all have as many steps, else a list."""
    alike = len({one.shape for one in weights}) == 1
    return np.stack(weights) if alike else weights


def _seed(given: Any) -> int:
    if given is None:  # and NumPy's global generator stays as it is
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(given, int | np.integer) and not 0 <= given < 2**32:
        raise UserError(f"random_state must be from 0 to 2**32 - 1; got {given}. Use 0.")
    if isinstance(given, int | np.integer):
        return int(given)
    return int(check_random_state(given).randint(2**31))
