"""The loops of softmax and weighted sums over tiles of scores, compiled by numba.

The running maximum and sum of a row are renewed tile by tile, and what it has read so far is
scaled with them, so that no row of weights is ever whole.
"""

from __future__ import annotations

import numpy as np

from regard.attention.kernels.loops import by_four, clear, exp, loop

ONE = np.float32(1.0)
LOWEST = np.float32(-87.0)  # exp below is 0 here


@loop
def allowed(mask, place, counts):
    """Tell whether anything in a tile may be attended to."""
    if mask.shape[2] == 0:
        return True
    for i in range(counts[0]):
        for j in range(counts[1]):
            if mask[place[0], place[1] + i, place[2] + j]:
                return True
    return False


@loop
def hide(mask, place, counts, scores):
    """Set scores that may not be attended to to minus infinity."""
    if mask.shape[2] == 0:
        return
    for i in range(counts[0]):
        for j in range(counts[1]):
            if not mask[place[0], place[1] + i, place[2] + j]:
                scores[i, j] = -np.float32(np.inf)


@loop
def _exp_or_zero(y):
    return np.float32(0.0) if y < LOWEST else exp(y)


@loop
def renew(scores, i, keys, running):
    """Turn a row of scores into exponentials; return what older ones are to be multiplied by."""
    highest, totals = running
    best = highest[i]
    for j in range(keys):
        best = max(best, scores[i, j])
    if best == -np.float32(np.inf):
        for j in range(scores.shape[1]):
            scores[i, j] = np.float32(0.0)
        return ONE
    total = np.float32(0.0)
    for j in range(keys):
        scores[i, j] = _exp_or_zero(scores[i, j] - best)
        total += scores[i, j]
    for j in range(keys, scores.shape[1]):
        scores[i, j] = np.float32(0.0)
    older = _exp_or_zero(highest[i] - best)
    highest[i], totals[i] = best, totals[i] * older + total
    return older


@loop
def read(weights, i, value, count, sums):
    """Add weighted values to a row, four by four."""
    target = sums[i]
    for j in range(0, count, 4):
        p, q, r, s = weights[i, j], weights[i, j + 1], weights[i, j + 2], weights[i, j + 3]
        for d in range(target.shape[0]):
            target[d] += (p * value[j, d] + q * value[j + 1, d]) + (
                r * value[j + 2, d] + s * value[j + 3, d]
            )


@loop
def inner_products(slopes, contexts, place, count):
    """Return g_i · z_i of a tile of queries."""
    products = np.empty(count, np.float32)
    for i in range(count):
        products[i] = _dot(slopes[i], contexts[place[0], place[1] + i])
    return products


@loop
def _dot(left, right):
    total = np.float32(0.0)
    for d in range(left.shape[0]):
        total += left[d] * right[d]
    return total


@loop
def weigh(scores, place, counts, log_totals):
    """Turn scores into weights, and fill up with zeros to four rows."""
    for i in range(counts[0]):
        for j in range(counts[1]):
            scores[i, j] = _exp_or_zero(scores[i, j] - log_totals[place[0], place[1] + i])
    clear(scores, counts[0], by_four(counts[0]))


@loop
def return_values(weights, counts, given, to_value, start):
    """Add the gradients of values: Σ_i s_ij g_i, four by four."""
    for j in range(counts[1]):
        row = to_value[start + j]
        for i in range(0, counts[0], 4):
            p, q, r, s = weights[i, j], weights[i + 1, j], weights[i + 2, j], weights[i + 3, j]
            for d in range(row.shape[0]):
                row[d] += (p * given[i, d] + q * given[i + 1, d]) + (
                    r * given[i + 2, d] + s * given[i + 3, d]
                )


@loop
def slope(weights, counts, given, value, inner):
    """Turn weights into gradients of scores: s_ij (g_i · v_j - Σ_k s_ik g_i · v_k)."""
    for i in range(counts[0]):
        for j in range(counts[1]):
            if weights[i, j] != 0:
                weights[i, j] *= _dot(given[i], value[j]) - inner[i]


@loop
def accumulate(scores, counts, values, running, sums):
    """Take the values of a tile into the weighted sums."""
    for i in range(counts[0]):
        older = renew(scores, i, counts[1], running)
        if older != ONE:
            for d in range(sums.shape[1]):
                sums[i, d] *= older
        read(scores, i, values, counts[1], sums)


@loop
def finish_context(results, place, running, sums):
    """Write what a tile of queries has read; zeros where there was nothing to attend to."""
    contexts, log_totals = results
    highest, totals = running
    for i in range(sums.shape[0]):
        total = totals[i]
        share = ONE / total if total != 0 else np.float32(0.0)
        log_totals[place[0], place[1] + i] = highest[i] + np.log(total) if total != 0 else total
        for d in range(sums.shape[1]):
            contexts[place[0], place[1] + i, d] = sums[i, d] * share
