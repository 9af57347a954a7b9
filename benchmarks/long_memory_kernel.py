"""A dense layer and feed-forward attention over it in one pass, for very long sequences.

`h_t = leaky(W x_t + b)`, `e_t = tanh(w · h_t + c)`, `z = Σ_t softmax(e)_t h_t`, or the mean of the
`h_t`. PyTorch writes and reads several tensors of batch x steps x features; here a step's features
never leave the processor's nearest cache, and the backward pass computes them again. As `e` lies
between -1 and 1 its exponentials need no shift.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor, nn

from regard.attention.pooling import FeedForwardAttention

SLOPE = 0.01
LANES = 16  # a remainder of features that fills no vector costs as much as several vectors
_FAST = {"fastmath": True, "cache": True, "nogil": True}


@numba.njit(**_FAST)
def _forward(x, weight, bias, vector, offset, attend):  # type: ignore[no-untyped-def]
    batch, steps, _ = x.shape
    dim = bias.shape[0]
    scores = np.zeros((batch, steps), dtype=np.float32)
    context = np.zeros((batch, dim), dtype=np.float32)
    totals = np.zeros(batch, dtype=np.float32)
    h = np.empty(dim, dtype=np.float32)
    for i in range(batch):
        total = np.float64(0.0)
        for t in range(steps):
            a, b = x[i, t, 0], x[i, t, 1]
            s = np.float32(0.0)
            for d in range(dim):
                v = a * weight[0, d] + b * weight[1, d] + bias[d]
                v = max(v, np.float32(SLOPE) * v)
                h[d] = v
                s += v * vector[d]
            e = np.float32(math.tanh(s + offset)) if attend else np.float32(0.0)
            scores[i, t] = e
            p = np.float32(math.exp(e))
            total += p
            for d in range(dim):
                context[i, d] += p * h[d]
        totals[i] = total
        for d in range(dim):
            context[i, d] /= np.float32(total)
    return context, scores, totals


@numba.njit(**_FAST)
def _backward(x, weight, bias, vector, saved, gradient):  # type: ignore[no-untyped-def]
    context, scores, totals, attend = saved
    batch, steps, _ = x.shape
    dim = bias.shape[0]
    d_weight = np.zeros((2, dim), dtype=np.float32)
    d_bias = np.zeros(dim, dtype=np.float32)
    d_vector = np.zeros(dim, dtype=np.float32)
    d_offset = np.float32(0.0)
    h = np.empty(dim, dtype=np.float32)
    for i in range(batch):
        own = gradient[i]
        mean = np.float32(0.0)
        for d in range(dim):
            mean += own[d] * context[i, d]
        for t in range(steps):
            a, b = x[i, t, 0], x[i, t, 1]
            along = np.float32(0.0)
            for d in range(dim):
                v = a * weight[0, d] + b * weight[1, d] + bias[d]
                v = max(v, np.float32(SLOPE) * v)
                h[d] = v
                along += v * own[d]
            e = scores[i, t]
            p = np.float32(math.exp(e)) / totals[i]
            d_score = p * (along - mean) * (np.float32(1.0) - e * e) if attend else np.float32(0.0)
            d_offset += d_score
            for d in range(dim):
                g = p * own[d] + d_score * vector[d]
                g = g if h[d] > 0 else np.float32(SLOPE) * g
                d_weight[0, d] += g * a
                d_weight[1, d] += g * b
                d_bias[d] += g
                d_vector[d] += d_score * h[d]
    return d_weight, d_bias, d_vector, d_offset


def _padded(values: Tensor) -> np.ndarray:
    missing = -values.shape[-1] % LANES
    padded: np.ndarray = nn.functional.pad(values.detach(), (0, missing)).contiguous().numpy()
    return padded


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parts: Any) -> Tensor:
        weight, bias, vector, offset, attend = parts
        own = _padded(weight.T), _padded(bias), _padded(vector.reshape(-1))
        x_array = x.numpy()
        context, scores, totals = _forward(x_array, *own, np.float32(offset.item()), attend)
        ctx.kept = x_array, own, (context, scores, totals, attend)
        return torch.from_numpy(context[:, : len(bias)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        x, own, saved = ctx.kept
        weight, bias, vector, offset = _backward(x, *own, saved, _padded(gradient))
        dim = gradient.shape[1]
        given = weight[:, :dim].T.copy(), bias[:dim], vector[None, :dim], np.array([offset])
        return None, *map(torch.from_numpy, given), None


def fused(x: Tensor, dense: nn.Linear, pooling: FeedForwardAttention | None) -> Tensor:
    """Pool `leaky(dense(x))`, by attention or by its mean.

    Args:
        x: Sequences of pairs of numbers, `(batch, steps, 2)`, float32.
        dense: The layer.
        pooling: The attention, of Softmax and without dropout; None for the mean.

    Returns:
        The pooled features, `(batch, features)`.
    """
    if pooling is None:
        nothing = torch.zeros(1, dense.out_features), torch.zeros(1)
        return _Fused.apply(x, dense.weight, dense.bias, *nothing, False)  # type: ignore[no-any-return]
    own = pooling.get_submodule("attention.score.projection")
    return _Fused.apply(x, dense.weight, dense.bias, own.weight, own.bias, True)  # type: ignore[no-any-return]
