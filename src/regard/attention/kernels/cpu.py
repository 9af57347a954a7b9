"""Fused additive attention on the processor: numba's loops over ranges of rows, in threads.

Arithmetic is float32, whatever the precision of the inputs; strides are followed, not copied.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.kernels.inputs import Inputs, Source
from regard.attention.kernels.loading import without_collection
from regard.attention.kernels.threads import POOL, Range, split
from regard.errors import MissingExtraError

Arrays = tuple[Any, ...]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def serves(tensors: list[Tensor]) -> bool:
    """Tell whether these tensors can be worked on here."""
    known = all(t.dtype in DTYPES and t.device.type == "cpu" for t in tensors)
    return known and _passes() is not None


def scores(inputs: Inputs) -> Tensor:
    """Return the scores, `(batch, queries, keys)`."""
    result = torch.empty(inputs.pairs)
    arrays, results = _arrays(inputs), (result.numpy(),)
    _run("score", inputs, lambda _: (arrays, results))
    return result


def spread_scores(inputs: Inputs, given: Tensor) -> list[Tensor | None]:
    """Return the gradients of the inputs, from those of the scores."""
    arrays, slope = _arrays(inputs), (_array(given),)
    gradients = _Gradients(inputs, None, split(*_work(inputs)))
    _run("spread_scores", inputs, lambda part: (arrays, slope, gradients.of(part)))
    return gradients.tensors()


def attention(inputs: Inputs, source: Source) -> tuple[Tensor, Tensor]:
    """Return the contexts, and the logarithm of each row's sum of exponentials."""
    batch, queries, _ = inputs.pairs
    context = torch.empty(batch, queries, source.value.shape[2])
    log_totals = torch.empty(batch, queries)
    arrays, reading = _arrays(inputs), _reading(source)
    results = context.numpy(), log_totals.numpy()
    _run("attend", inputs, lambda _: (arrays, reading, results))
    return context, log_totals


def spread_context(
    inputs: Inputs, source: Source, kept: tuple[Tensor, Tensor], given: Tensor
) -> list[Tensor | None]:
    """Return the gradients of the inputs and the values, from those of the contexts."""
    arrays, reading = _arrays(inputs), _reading(source)
    results = (_array(given), kept[0].detach().numpy(), kept[1].detach().numpy())
    gradients = _Gradients(inputs, source.value, split(*_work(inputs)))
    _run("spread_context", inputs, lambda part: (arrays, reading, results, gradients.of(part)))
    return gradients.tensors()


class _Gradients:
    """Room for gradients. Where ranges share keys or the vector, each has room of its own."""

    def __init__(self, inputs: Inputs, value: Tensor | None, ranges: list[Range]) -> None:
        hidden = inputs.vector.shape[0]
        self.inputs, self.value, self.ranges = inputs, value, ranges
        channels = 0 if inputs.matrix is None else inputs.matrix.shape[0]
        self.to_query = np.empty(tuple(inputs.query.shape), np.float32)
        self.to_key = np.zeros(tuple(inputs.key.shape), np.float32)
        self.to_vector = np.zeros((len(ranges), hidden))
        self.to_matrix = np.zeros((len(ranges), channels, hidden))
        pairs = (*inputs.pairs, channels) if channels else (0, 0, 0, 0)
        self.to_features = np.zeros(pairs, np.float32)
        self.own_keys = [self._own(part, inputs.key) for part in range(len(ranges))]
        if value is not None:
            self.to_value = np.zeros(tuple(value.shape), np.float32)
            self.own_values = [self._own(part, value) for part in range(len(ranges))]

    def _own(self, part: int, keys: Tensor) -> Any:
        """Make room for the first batch of a range, if the range before has rows of it too."""
        inside = self.ranges[part][0] % max(self.inputs.query.shape[1], 1) > 0
        return np.zeros((keys.shape[1] if inside else 0, keys.shape[2]), np.float32)

    def of(self, part: int) -> Arrays:
        """Return where a range writes."""
        own = (self.to_query, self.to_key, self.own_keys[part])
        sums = (self.to_vector[part], self.to_matrix[part], self.to_features)
        values = () if self.value is None else (self.to_value, self.own_values[part])
        return (*own, *sums, *values)

    def tensors(self) -> list[Tensor | None]:
        """Add up what the ranges have written, in the precision of what it belongs to."""
        self._join(self.to_key, self.own_keys)
        found = [self.to_query, self.to_key, self.to_vector.sum(0), self.to_features]
        found.append(self.to_matrix.sum(0))
        wanted: list[Tensor | None] = list(self.inputs)
        if self.value is not None:
            self._join(self.to_value, self.own_values)
            found.append(self.to_value)
            wanted.append(self.value)
        pairs = zip(found, wanted, strict=True)
        return [None if t is None else torch.from_numpy(a).to(t.dtype) for a, t in pairs]

    def _join(self, whole: Any, own: list[Any]) -> None:
        for (first, _), buffer in zip(self.ranges, own, strict=True):
            if buffer.shape[0]:
                whole[first // self.inputs.query.shape[1]] += buffer


@cache
def _passes() -> ModuleType | None:
    try:
        with without_collection():
            return importlib.import_module("regard.attention.kernels.passes")
    except ImportError:
        return None


def _work(inputs: Inputs) -> tuple[int, int]:
    batch, queries, keys = inputs.pairs
    return batch * queries, batch * queries * keys * inputs.vector.shape[0]


def _run(name: str, inputs: Inputs, arguments: Callable[[int], Arrays]) -> None:
    passes = _passes()
    if passes is None:
        raise MissingExtraError(
            "numba must be installed for the cpu kernel; got none. Install it, or set "
            "REGARD_KERNEL=reference."
        )
    ranges = split(*_work(inputs))
    run = passes.compiled(name)
    POOL.run([partial(run, *arguments(part), rows) for part, rows in enumerate(ranges)])


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().numpy()


_NO_FEATURES = np.zeros((0, 0, 0, 0), np.float32)
_NO_MASK = np.zeros((0, 0, 0), np.bool_)


def _arrays(inputs: Inputs) -> Arrays:
    vector = np.ascontiguousarray(_array(inputs.vector))
    arrays = (_array(inputs.query), _array(inputs.key), vector)
    if inputs.features is None or inputs.matrix is None:
        return (*arrays, _NO_FEATURES, np.zeros((0, vector.shape[0]), np.float32))
    matrix = np.ascontiguousarray(_array(inputs.matrix))
    return (*arrays, _array(inputs.features), matrix)


def _reading(source: Source) -> Arrays:
    mask = _NO_MASK if source.mask is None else source.mask.numpy()
    return _array(source.value), mask
