"""The loops of fused additive attention for a graphics processor, written in Triton.

A program works on a tile of queries by keys and takes the hidden layer piece by piece, so that
nothing of the size of queries x keys x hidden leaves the registers. Gradients of queries and keys
have a program each that owns what it writes: no atomic sums, the same result every time.
"""

from __future__ import annotations

import triton
import triton.language as tl

QUERIES = 16
KEYS = 16
HIDDEN = 32


@triton.jit
def _rows(base, rows, columns, strides, sizes):
    """Load a piece of a table in float32, zero beyond its edges."""
    places = rows[:, None] * strides[0] + columns[None, :] * strides[1]
    inside = (rows < sizes[0])[:, None] & (columns < sizes[1])[None, :]
    return tl.load(base + places, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _exp(query, key):
    """Return x = exp(2 (q_i + k_j)), (queries, keys, hidden); tanh is 1 - 2 / (1 + x)."""
    z = query[:, None, :] + key[None, :, :]
    return tl.exp(2.0 * tl.minimum(tl.maximum(z, -20.0), 20.0))


@triton.jit
def score(
    query, key, vector, result, query_strides, key_strides, sizes,
    Q: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Write the scores of a tile."""
    queries, keys, hidden = sizes
    batch = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * Q + tl.arange(0, Q)
    j = tl.program_id(1) * K + tl.arange(0, K)
    total = tl.zeros((Q, K), tl.float32)
    for start in range(0, hidden, H):
        d = start + tl.arange(0, H)
        own = query + batch * query_strides[0]
        q = _rows(own, i, d, (query_strides[1], query_strides[2]), (queries, hidden))
        own = key + batch * key_strides[0]
        k = _rows(own, j, d, (key_strides[1], key_strides[2]), (keys, hidden))
        w = tl.load(vector + d, mask=d < hidden, other=0.0)
        total += tl.sum((1.0 - 2.0 / (1.0 + _exp(q, k))) * w[None, None, :], axis=2)
    inside = (i < queries)[:, None] & (j < keys)[None, :]
    tl.store(result + (batch * queries + i[:, None]) * keys + j[None, :], total, mask=inside)


@triton.jit
def spread_query(
    query, key, vector, given, to_query, to_vector, query_strides, key_strides, sizes,
    Q: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Write gradients of a tile of queries, and their part of the vector's."""
    queries, keys, hidden = sizes
    batch = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * Q + tl.arange(0, Q)
    d = tl.program_id(1) * H + tl.arange(0, H)
    own = query + batch * query_strides[0]
    q = _rows(own, i, d, (query_strides[1], query_strides[2]), (queries, hidden))
    near = tl.zeros((Q, H), tl.float32)
    total = tl.zeros((H,), tl.float32)
    for start in range(0, keys, K):
        j = start + tl.arange(0, K)
        own = key + batch * key_strides[0]
        k = _rows(own, j, d, (key_strides[1], key_strides[2]), (keys, hidden))
        slope = _rows(given + batch * queries * keys, i, j, (keys, 1), (queries, keys))
        x = _exp(q, k)
        r = 1.0 / (1.0 + x)
        near += tl.sum(slope[:, :, None] * (4.0 * x * r * r), axis=1)
        total += tl.sum(tl.sum(slope[:, :, None] * (1.0 - 2.0 * r), axis=1), axis=0)
    w = tl.load(vector + d, mask=d < hidden, other=0.0)
    inside = (i < queries)[:, None] & (d < hidden)[None, :]
    places = (batch * queries + i[:, None]) * hidden + d[None, :]
    tl.store(to_query + places, near * w[None, :], mask=inside)
    part = batch * tl.num_programs(0) + tl.program_id(0)
    tl.store(to_vector + part * hidden + d, total, mask=d < hidden)


@triton.jit
def spread_key(
    query, key, vector, given, to_key, query_strides, key_strides, sizes,
    Q: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Write gradients of a tile of keys."""
    queries, keys, hidden = sizes
    batch = tl.program_id(2).to(tl.int64)
    j = tl.program_id(0) * K + tl.arange(0, K)
    d = tl.program_id(1) * H + tl.arange(0, H)
    own = key + batch * key_strides[0]
    k = _rows(own, j, d, (key_strides[1], key_strides[2]), (keys, hidden))
    near = tl.zeros((K, H), tl.float32)
    for start in range(0, queries, Q):
        i = start + tl.arange(0, Q)
        own = query + batch * query_strides[0]
        q = _rows(own, i, d, (query_strides[1], query_strides[2]), (queries, hidden))
        slope = _rows(given + batch * queries * keys, i, j, (keys, 1), (queries, keys))
        x = _exp(q, k)
        r = 1.0 / (1.0 + x)
        near += tl.sum(slope[:, :, None] * (4.0 * x * r * r), axis=0)
    w = tl.load(vector + d, mask=d < hidden, other=0.0)
    inside = (j < keys)[:, None] & (d < hidden)[None, :]
    places = (batch * keys + j[:, None]) * hidden + d[None, :]
    tl.store(to_key + places, near * w[None, :], mask=inside)
