"""The passes of fused additive attention over a range of rows, compiled when first called for.

Each takes tuples of arrays and a range of rows `(batch, query)`; ranges can be worked through at
the same time. `inputs` are query `(batch, queries, hidden)`, key `(batch, keys, hidden)`, the
vector, and features `(batch, queries, keys, channels)` with a matrix `(channels, hidden)` that
add to the hidden layer; channels is 0 without them. A mask of size 0 allows every pair.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numba import njit, types

from regard.attention.kernels import loops, softmax
from regard.attention.kernels.loading import without_collection
from regard.attention.kernels.loops import (
    KEYS,
    finish_query,
    gathering,
    load,
    load_exp,
    load_keys,
    make_tile,
    next_tile,
    score_tile,
    shared,
    spread_slope,
)
from regard.attention.kernels.softmax import (
    accumulate,
    allowed,
    finish_context,
    hide,
    inner_products,
    return_values,
    slope,
    weigh,
)

LOOPS = "387bd4baf0e02ab8b53b157ae1d340bc5cb8fb1fe0844ac2cc00597f21024fb9"
"""SHA-256 of loops.py and softmax.py: numba's cache looks at this file alone, and must not outlive
them."""


def score(inputs, results, rows):
    """Write the scores of a range of rows."""
    queries, keys = inputs[0].shape[1], inputs[1].shape[1]
    tile = make_tile(inputs[2].shape[0], queries)
    row = rows[0]
    while row < rows[1]:
        batch, i, count = next_tile(row, rows[1], queries)
        largest = load_exp(inputs[0][batch], i, count, tile[0])
        for j in range(0, keys, KEYS):
            counts = (count, min(KEYS, keys - j))
            near = load_keys(inputs, (batch, i, j), counts[1], tile, largest)
            score_tile(inputs, (batch, i, j), counts, tile, near)
            for n in range(count):
                for k in range(counts[1]):
                    results[0][batch, i + n, j + k] = tile[3][n, k]
        row += count


def spread_scores(inputs, given, gradients, rows):
    """Turn gradients of the scores of a range of rows into gradients of what made them."""
    queries, keys = inputs[0].shape[1], inputs[1].shape[1]
    to_query, to_key, own = gradients[:3]
    tile = make_tile(inputs[2].shape[0], queries)
    row = rows[0]
    while row < rows[1]:
        batch, i, count = next_tile(row, rows[1], queries)
        largest = load_exp(inputs[0][batch], i, count, tile[0])
        target = shared(to_key, own, batch, rows, queries)
        gathered = gathering(inputs, count, target, gradients[3:6])
        for j in range(0, keys, KEYS):
            counts = (count, min(KEYS, keys - j))
            near = load_keys(inputs, (batch, i, j), counts[1], tile, largest)
            for n in range(count):
                for k in range(counts[1]):
                    tile[3][n, k] = given[0][batch, i + n, j + k]
            spread_slope(inputs, (batch, i, j), counts, tile, gathered, near)
        finish_query(inputs, (batch, i), count, tile, gathered[:2], to_query)
        row += count


def attend(inputs, reading, results, rows):
    """Write the contexts of a range of rows, and the logarithms of their sums of exponentials."""
    value, mask = reading
    queries, keys, width = inputs[0].shape[1], inputs[1].shape[1], value.shape[2]
    tile = make_tile(inputs[2].shape[0], queries)
    values = np.empty((KEYS, width), np.float32)
    row = rows[0]
    while row < rows[1]:
        batch, i, count = next_tile(row, rows[1], queries)
        largest = load_exp(inputs[0][batch], i, count, tile[0])
        sums = np.zeros((count, width), np.float32)
        highest = np.full(count, -np.float32(np.inf), np.float32)
        totals = np.zeros(count, np.float32)
        for j in range(0, keys, KEYS):
            place, counts = (batch, i, j), (count, min(KEYS, keys - j))
            if not allowed(mask, place, counts):
                continue
            near = load_keys(inputs, place, counts[1], tile, largest)
            score_tile(inputs, place, counts, tile, near)
            hide(mask, place, counts, tile[3])
            load(value[batch], j, counts[1], values)
            accumulate(tile[3], counts, values, (highest, totals), sums)
        finish_context(results, (batch, i), (highest, totals), sums)
        row += count


def spread_context(inputs, reading, kept, gradients, rows):
    """Turn gradients of the contexts of a range of rows into gradients of what made them."""
    value, mask = reading
    given, contexts, log_totals = kept
    to_query, to_key, own = gradients[:3]
    queries, keys, width = inputs[0].shape[1], inputs[1].shape[1], value.shape[2]
    tile = make_tile(inputs[2].shape[0], queries)
    values = np.empty((KEYS, width), np.float32)
    slopes = np.empty((tile[3].shape[0], width), np.float32)
    row = rows[0]
    while row < rows[1]:
        batch, i, count = next_tile(row, rows[1], queries)
        largest = load_exp(inputs[0][batch], i, count, tile[0])
        load(given[batch], i, count, slopes)
        target = shared(to_key, own, batch, rows, queries)
        to_value = shared(gradients[6], gradients[7], batch, rows, queries)
        gathered = gathering(inputs, count, target, gradients[3:6])
        inner = inner_products(slopes, contexts, (batch, i), count)
        for j in range(0, keys, KEYS):
            place, counts = (batch, i, j), (count, min(KEYS, keys - j))
            if not allowed(mask, place, counts):
                continue
            near = load_keys(inputs, place, counts[1], tile, largest)
            score_tile(inputs, place, counts, tile, near)
            hide(mask, place, counts, tile[3])
            load(value[batch], j, counts[1], values)
            weigh(tile[3], place, counts, log_totals)
            return_values(tile[3], counts, slopes, to_value, j)
            slope(tile[3], counts, slopes, values, inner)
            spread_slope(inputs, place, counts, tile, gathered, near)
        finish_query(inputs, (batch, i), count, tile, gathered[:2], to_query)
        row += count


_ARRAYS = {
    "vector": types.Array(types.float32, 1, "C"),
    "table": types.Array(types.float32, 2, "C"),
    "block": types.Array(types.float32, 3, "C"),
    "strided": types.Array(types.float32, 3, "A"),
    "features": types.Array(types.float32, 4, "A"),
    "pairs": types.Array(types.float32, 4, "C"),
    "mask": types.Array(types.boolean, 3, "A"),
    "sum": types.Array(types.float64, 1, "C"),
    "sums": types.Array(types.float64, 2, "C"),
}
_INPUTS = "strided strided vector features table"
_GRADIENTS = "block block table sum sums pairs"
_PASSES = {
    "score": (score, _INPUTS, "block"),
    "spread_scores": (spread_scores, _INPUTS, "strided", _GRADIENTS),
    "attend": (attend, _INPUTS, "strided mask", "block table"),
    "spread_context": (
        spread_context,
        _INPUTS,
        "strided mask",
        "strided block table",
        f"{_GRADIENTS} block table",
    ),
}
_COMPILING = threading.Lock()
Pass = Callable[..., None]


def compiled(name: str) -> Pass:
    """Return a pass ready to run, from numba's cache on disk where it is there.

    Args:
        name: "score", "spread_scores", "attend" or "spread_context".
    """
    with _COMPILING:
        return _compiled(name)


def digest() -> str:
    """Return the SHA-256 of the loops that the passes are made of."""
    files = (Path(module.__file__ or "") for module in (loops, softmax))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _compiled(name: str) -> Pass:
    function, *groups = _PASSES[name]
    tuples = [types.Tuple(tuple(_ARRAYS[kind] for kind in group.split())) for group in groups]
    signature = types.void(*tuples, types.UniTuple(types.int64, 2))
    options = {"fastmath": loops.FAST, "error_model": "numpy", "nogil": True}
    with without_collection():
        if digest() == LOOPS:
            try:
                return njit(signature, cache=True, **options)(function)
            except (OSError, RuntimeError):
                pass  # no folder can be written to: compile for this process alone
        return njit(signature, **options)(function)
