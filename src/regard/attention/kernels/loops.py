"""The loops of fused additive attention, compiled by numba.

With `a = exp(2 q_id)` and `b = exp(2 k_jd)`, made once for each row, the tanh of every pair is
`tanh(q_id + k_jd) = 1 - 2 / (1 + a b)`: a product, a sum and a reciprocal, and two keys share one
division. Its derivative is `4 a b / (1 + a b)²`, whose constant factors are multiplied in after
the sums. Where `a b` might leave float32, and where something is added for each pair, the
exponential of every pair is taken instead, and the same loops run on that.

Rows `(batch, query)` are worked through in tiles of queries by keys, so that what a tile needs
stays in the cache and no loop needs memory of the size of queries x keys x hidden. A pass takes a
range of rows; gradients of keys that two ranges share go to a buffer of the second.

Floats may be reassociated, but NaN and infinity keep their meaning.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, float32, int32, intp, njit, types
from numba.extending import intrinsic

QUERIES = 128  # in a tile
KEYS = 32
REACH = np.float32(22.0)  # |q| + |k| up to which two products exp(2 q + 2 k) stay in float32
FAR = np.float32(20.0)  # tanh is 1 in float32 from 9 on

FAST = {"contract", "arcp", "reassoc", "nsz", "afn"}
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)
_FOUR = np.float32(4.0)
_SHIFT = np.float32(12582912.0)  # 1.5 · 2^23: adding it rounds to a whole number
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_EXP = tuple(np.float32(c) for c in (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2))

loop = njit(fastmath=FAST, error_model="numpy", nogil=True)
_exact = njit(fastmath={"contract"}, error_model="numpy", nogil=True)  # _SHIFT must not cancel


@intrinsic
def _bits(typing, value):
    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return int32(float32), build


@intrinsic
def _float(typing, value):
    def build(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return float32(int32), build


@intrinsic
def _pointer(typing, address):
    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.FloatType().as_pointer())

    return types.CPointer(float32)(intp), build


@_exact
def exp(y):
    """Return the exponential for |y| up to 87, to a unit in the last place or two."""
    shifted = y * _LOG2E + _SHIFT
    whole = shifted - _SHIFT
    rest = y - whole * _LN2_HIGH - whole * _LN2_LOW
    p = _EXP[0]
    p = p * rest + _EXP[1]
    p = p * rest + _EXP[2]
    p = p * rest + _EXP[3]
    p = p * rest + _EXP[4]
    p = p * rest + _EXP[5]
    p = p * rest * rest + rest + _ONE
    return p * _float(int32((_bits(shifted) << 23) + 0x3F800000))


@loop
def clear(target, first, last):
    """Set rows to zero."""
    for row in range(first, last):
        for d in range(target.shape[1]):
            target[row, d] = np.float32(0.0)


@loop
def _copy(source, row, target, to):
    """Copy a row, at full speed where it is contiguous: a view with strides is read one by one."""
    width = target.shape[1]
    if source.strides[1] == source.itemsize:
        address = source.ctypes.data + row * source.strides[0]
        whole = carray(_pointer(address), (width,))
        for d in range(width):
            target[to, d] = whole[d]
    else:
        for d in range(width):
            target[to, d] = source[row, d]


@loop
def load_exp(source, start, count, target):
    """Fill rows with exp(2 x), cut off at REACH; return the bits of the largest |x|."""
    largest = int32(0)
    for row in range(count):
        _copy(source, start + row, target, row)
        for d in range(target.shape[1]):
            x = target[row, d]
            largest = max(largest, int32(_bits(x) & 0x7FFFFFFF))
            x = REACH if x > REACH else x
            x = -REACH if x < -REACH else x
            target[row, d] = exp(_TWO * x)
    return largest


@loop
def load(source, start, count, target):
    """Copy rows, and fill up to four with zeros, for loops that go by four."""
    for row in range(count):
        _copy(source, start + row, target, row)
    clear(target, count, by_four(count))


@loop
def _load_pairs(inputs, place, count, target):
    """Fill a row for each key with exp(2 (q_i + k_j + u f_ij)), and one more with zeros."""
    clear(target, count, (count + 1) // 2 * 2)
    query, key, _, features, matrix = inputs
    batch, i, start = place
    for j in range(count):
        row = target[j]
        for d in range(row.shape[0]):
            row[d] = query[batch, i, d] + key[batch, start + j, d]
        for c in range(matrix.shape[0]):
            feature = features[batch, i, start + j, c]
            for d in range(row.shape[0]):
                row[d] += feature * matrix[c, d]
        for d in range(row.shape[0]):
            z = row[d]
            z = FAR if z > FAR else z
            z = -FAR if z < -FAR else z
            row[d] = exp(_TWO * z)


@loop
def _sums(a, b, vector, scores, top, counts):
    """Set the scores of a tile from a row on: Σ_d w_d (1 - 2 / (1 + a b))."""
    total = np.float32(0.0)
    for d in range(vector.shape[0]):
        total += vector[d]
    for i in range(counts[0]):
        for j in range(0, counts[1], 2):
            first, second = np.float32(0.0), np.float32(0.0)
            for d in range(vector.shape[0]):
                u = a[i, d] * b[j, d] + _ONE
                v = a[i, d] * b[j + 1, d] + _ONE
                share = vector[d] / (u * v)
                first += v * share
                second += u * share
            scores[top + i, j] = total - _TWO * first
            scores[top + i, j + 1] = total - _TWO * second


@loop
def _spread(a, b, slope, top, sums, counts):
    """Add up gradients: Σ_j s b r² for a, Σ_i s a r² for b and Σ s r, with r = 1 / (1 + a b)."""
    to_a, to_b, to_vector = sums
    for i in range(counts[0]):
        for j in range(0, counts[1], 2):
            s, t = slope[top + i, j], slope[top + i, j + 1]
            for d in range(to_vector.shape[0]):
                x, y, z = a[i, d], b[j, d], b[j + 1, d]
                u, v = x * y + _ONE, x * z + _ONE
                share = _ONE / (u * v)
                u, v = v * share, u * share
                g, h = s * u, t * v
                to_vector[d] += g + h
                g, h = g * u, h * v
                to_a[i, d] += g * y + h * z
                to_b[j, d] += g * x
                to_b[j + 1, d] += h * x


@loop
def load_keys(inputs, place, count, tile, largest):
    """Load the keys of a tile; tell whether its products stay within reach."""
    bits = load_exp(inputs[1][place[0]], place[2], count, tile[1])
    clear(tile[1], count, (count + 1) // 2 * 2)
    return inputs[4].shape[0] == 0 and _float(bits) + _float(largest) <= REACH


@loop
def score_tile(inputs, place, counts, tile, near):
    """Set the scores of a tile."""
    a, b, pairs, scores, ones = tile
    if near:
        _sums(a, b, inputs[2], scores, 0, counts)
        return
    for row in range(counts[0]):
        _load_pairs(inputs, (place[0], place[1] + row, place[2]), counts[1], pairs)
        _sums(ones, pairs, inputs[2], scores, row, (1, counts[1]))


@loop
def _spread_tile(inputs, place, counts, tile, gathered):
    """Add the gradients of a tile whose products were in reach."""
    _, b, _, slope, _ = tile
    to_query, _, to_key, to_vector, _, _, key_sums, _ = gathered
    vector = inputs[2]
    sums = np.zeros(vector.shape[0], np.float32)
    clear(key_sums, 0, KEYS)
    _spread(tile[0], b, slope, 0, (to_query, key_sums, sums), counts)
    _add_vector(slope, counts, sums, to_vector)
    for j in range(counts[1]):
        for d in range(vector.shape[0]):
            to_key[place[2] + j, d] += _FOUR * vector[d] * b[j, d] * key_sums[j, d]


@loop
def _add_vector(slope, counts, sums, to_vector):
    total = np.float64(0.0)
    for i in range(counts[0]):
        for j in range(counts[1]):
            total += slope[i, j]
    for d in range(sums.shape[0]):
        to_vector[d] += total - 2.0 * sums[d]


@loop
def _spread_pairs(inputs, place, counts, tile, gathered):
    """Add the gradients of a tile pair by pair."""
    _, _, pairs, slope, ones = tile
    _, to_pairs, to_key, to_vector, to_features, to_matrix, key_sums, query_sums = gathered
    batch, i, j = place
    vector, features, matrix = inputs[2], inputs[3], inputs[4]
    sums = np.zeros(vector.shape[0], np.float32)
    for row in range(counts[0]):
        _load_pairs(inputs, (batch, i + row, j), counts[1], pairs)
        clear(key_sums, 0, KEYS)
        clear(query_sums, 0, 1)
        _spread(ones, pairs, slope, row, (query_sums, key_sums, sums), (1, counts[1]))
        for d in range(vector.shape[0]):
            to_pairs[row, d] += query_sums[0, d]
        for k in range(counts[1]):
            for d in range(vector.shape[0]):
                key_sums[k, d] *= _FOUR * vector[d] * pairs[k, d]
                to_key[j + k, d] += key_sums[k, d]
            for c in range(matrix.shape[0]):
                total = np.float32(0.0)
                feature = features[batch, i + row, j + k, c]
                for d in range(vector.shape[0]):
                    total += key_sums[k, d] * matrix[c, d]
                    to_matrix[c, d] += feature * key_sums[k, d]
                to_features[batch, i + row, j + k, c] = total
    _add_vector(slope, counts, sums, to_vector)


@loop
def make_tile(hidden, queries):
    """Make what a tile needs: exp(2 q), exp(2 k), pairs, scores and a row of ones."""
    rows = min(QUERIES, queries)
    return (
        np.empty((rows, hidden), np.float32),
        np.empty((KEYS, hidden), np.float32),
        np.empty((KEYS, hidden), np.float32),
        np.zeros((by_four(rows), KEYS), np.float32),
        np.ones((1, hidden), np.float32),
    )


@loop
def by_four(count):
    """Round up to whole fours."""
    return (count + 3) // 4 * 4


@loop
def next_tile(row, last, queries):
    """Return where a tile of queries begins, as (batch, query), and how many it has."""
    i = row % queries
    return row // queries, i, min(QUERIES, queries - i, last - row)


@loop
def finish_query(inputs, place, count, tile, sums, to_query):
    """Write the gradients of a tile of queries."""
    vector = inputs[2]
    near, pairs = sums
    for i in range(count):
        for d in range(vector.shape[0]):
            whole = tile[0][i, d] * near[i, d] + pairs[i, d]
            to_query[place[0], place[1] + i, d] = _FOUR * vector[d] * whole


@loop
def spread_slope(inputs, place, counts, tile, gathered, near):
    """Add the gradients of a tile of scores."""
    if counts[1] % 2:
        for row in range(counts[0]):
            tile[3][row, counts[1]] = np.float32(0.0)
    if near:
        _spread_tile(inputs, place, counts, tile, gathered)
    else:
        _spread_pairs(inputs, place, counts, tile, gathered)


@loop
def gathering(inputs, count, to_key, sums):
    """Make the sums that the gradients of a tile of queries are gathered in."""
    hidden = inputs[2].shape[0]
    to_vector, to_matrix, to_features = sums
    return (
        np.zeros((count, hidden), np.float32),
        np.zeros((count, hidden), np.float32),
        to_key,
        to_vector,
        to_features,
        to_matrix,
        np.empty((KEYS, hidden), np.float32),
        np.empty((1, hidden), np.float32),
    )


@loop
def shared(whole, own, batch, rows, queries):
    """Return where gradients of keys go: to a buffer where another range has the first rows."""
    return own if rows[0] % queries and batch == rows[0] // queries else whole[batch]
