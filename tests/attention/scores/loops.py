"""Every score in plain loops, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention import (
    SCORES,
    Additive,
    Bilinear,
    Cosine,
    Coverage,
    Dot,
    Location,
    LocationSensitive,
    Rotary,
    ScaledDot,
    Score,
    State,
    Uniform,
)
from regard.attention.building import sizes_of


class Pair(NamedTuple):
    query: list[float]
    key: list[float]
    i: int
    j: int
    queries: int
    keys: int
    state: State | None


def built(name: str, query_dim: int = 4, key_dim: int = 4) -> Score:
    torch.manual_seed(5)
    sizes = {"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": 3}
    part = SCORES[name](**{size: sizes[size] for size in sizes_of(SCORES[name])})
    for parameter in part.parameters():  # no number that an error could hide behind
        torch.nn.init.normal_(parameter)
    return part


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def times(matrix: Tensor, vector: list[float]) -> list[float]:
    return [dot(row, vector) for row in matrix.tolist()]


def additive(score: Additive, query: list[float], key: list[float], extra: list[float]) -> float:
    left, right = (
        times(score.query_projection.weight, query),
        times(score.key_projection.weight, key),
    )
    bias = score.key_projection.bias.tolist()
    inner = [math.tanh(sum(four)) for four in zip(left, right, bias, extra, strict=True)]
    vector = score.vector.tolist()
    if score.length is not None:
        norm = math.sqrt(dot(vector, vector))
        vector = [score.length.item() * v / norm for v in vector]
    return dot(vector, inner)


def rotated(vector: list[float], place: int, base: float) -> list[float]:
    half = len(vector) // 2
    turned = [0.0] * len(vector)
    for n in range(half):
        angle = place * base ** (-2.0 * n / len(vector))
        a, b = vector[n], vector[n + half]
        turned[n] = a * math.cos(angle) - b * math.sin(angle)
        turned[n + half] = a * math.sin(angle) + b * math.cos(angle)
    return turned


def convolved(score: LocationSensitive, weights: list[float], place: int) -> list[float]:
    kernel = score.convolution.weight[:, 0].tolist()
    reach = len(kernel[0]) // 2
    features = []
    for channel in kernel:
        total = 0.0
        for offset, factor in enumerate(channel):
            at = place + offset - reach
            total += factor * weights[at] if 0 <= at < len(weights) else 0.0
        features.append(total)
    return features


def covered(score: Coverage, pair: Pair) -> float:
    column = score.coverage_projection.weight[:, 0].tolist()
    seen = 0.0 if pair.state is None else pair.state.total[0, pair.i, pair.j].item()
    return additive(score.additive, pair.query, pair.key, [c * seen for c in column])


def located(score: LocationSensitive, pair: Pair) -> float:
    extra = [0.0] * 3
    if pair.state is not None:
        rows = pair.state.total if score.cumulative else pair.state.weights
        features = convolved(score, rows[0, pair.i].tolist(), pair.j)
        extra = times(score.location_projection.weight, features)
    return additive(score.additive, pair.query, pair.key, extra)


def cosine(score: Cosine, pair: Pair) -> float:
    length = math.sqrt(dot(pair.query, pair.query) * dot(pair.key, pair.key))
    return math.exp(score.log_strength.item()) * dot(pair.query, pair.key) / length


def rotary(score: Rotary, pair: Pair) -> float:
    left = rotated(pair.query, pair.keys - pair.queries + pair.i, score.base)
    return dot(left, rotated(pair.key, pair.j, score.base)) / math.sqrt(len(pair.key))


LOOPS: dict[type[Score], Callable[[Any, Pair], float]] = {
    Additive: lambda s, p: additive(s, p.query, p.key, [0.0] * 3),
    Coverage: covered,
    LocationSensitive: located,
    Bilinear: lambda s, p: dot(p.query, times(s.key_projection.weight, p.key)),
    Location: lambda s, p: dot(s.projection.weight[p.j].tolist(), p.query),
    Uniform: lambda s, p: 0.0,
    Rotary: rotary,
    Cosine: cosine,
    Dot: lambda s, p: dot(p.query, p.key),
    ScaledDot: lambda s, p: dot(p.query, p.key) / math.sqrt(len(p.key)),
}


def in_loops(
    score: Score, queries: list[list[float]], keys: list[list[float]], state: State | None = None
) -> list[list[float]]:
    """Score every pair without a tensor operation; of a state only its first row is read."""
    sizes = (len(queries), len(keys))
    return [
        [LOOPS[type(score)](score, Pair(q, k, i, j, *sizes, state)) for j, k in enumerate(keys)]
        for i, q in enumerate(queries)
    ]
