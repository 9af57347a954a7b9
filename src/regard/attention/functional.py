"""The arithmetic of attention, as free functions of tensors.

Half precision is raised to float32 before anything is summed or exponentiated, and
autocast is held off, so that scores of ±1e4 stay finite; float64 stays float64.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def widened(tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Raise half precision to float32 and leave float32 and float64 as they are."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def full_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which autocast does not lower the precision of results."""
    kind = tensor.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()


def dot_scores(
    query: Float[Tensor, "*lead queries dim"],
    key: Float[Tensor, "*lead keys dim"],
    scale: float = 1.0,
) -> Float[Tensor, "*lead queries keys"]:
    """Score by the dot product: `scale · q_i · k_j`.

    Args:
        query: The queries `q_i`.
        key: The keys `k_j`.
        scale: A factor on every score.

    Returns:
        The scores, in float32 or wider.

    References:
        Luong, Pham and Manning 2015 (dot); Vaswani et al. 2017 (scaled).
    """
    with full_precision(query):
        return (widened(query) * scale) @ widened(key).transpose(-1, -2)


def additive_scores(
    query: Float[Tensor, "*lead queries hidden"],
    key: Float[Tensor, "*lead keys hidden"],
    vector: Float[Tensor, " hidden"],
    *,
    extra: Float[Tensor, "*lead queries keys hidden"] | None = None,
) -> Float[Tensor, "*lead queries keys"]:
    """Score by a layer with tanh: `w · tanh(q_i + k_j + x_ij)`.

    Args:
        query: The projected queries `q_i`.
        key: The projected keys `k_j`.
        vector: The vector `w` that turns the hidden layer into one number.
        extra: What else enters the hidden layer, `x_ij`; nothing by default.

    Returns:
        The scores, in float32 or wider.

    References:
        Bahdanau, Cho and Bengio 2015.
    """
    with full_precision(query):
        hidden = widened(query).unsqueeze(-2) + widened(key).unsqueeze(-3)
        hidden = hidden if extra is None else hidden + widened(extra)
        return torch.tanh(hidden) @ widened(vector)  # (..., queries, keys)


def unit(vectors: Float[Tensor, "*lead dim"]) -> Float[Tensor, "*lead dim"]:
    """Bring vectors to length 1, in float32 or wider; a vector of zeros stays zero.

    Args:
        vectors: The vectors.

    Returns:
        Each over its length, or over 1e-6 where it is shorter.
    """
    with full_precision(vectors):
        return nn.functional.normalize(widened(vectors), dim=-1, eps=1e-6)


def rotated(
    vectors: Float[Tensor, "*lead places dim"], *, start: int, base: float
) -> Float[Tensor, "*lead places dim"]:
    """Turn pairs of features by angles that grow with the place.

    Feature `n` is paired with feature `n + d/2`, and at place `p` the pair turns by
    `p · base^(-2n/d)`.

    Args:
        vectors: One vector for each place; its size `d` is even.
        start: The first place.
        base: Sets how slowly the last pairs turn.

    Returns:
        The vectors turned, in float32 or wider.

    References:
        Su et al. 2021.
    """
    with full_precision(vectors):
        wide = widened(vectors)
        length, half = vectors.shape[-2], vectors.shape[-1] // 2
        places = torch.arange(start, start + length, device=wide.device, dtype=wide.dtype)
        pairs = torch.arange(half, device=wide.device, dtype=wide.dtype)
        angles = places.unsqueeze(-1) * base ** (-pairs / max(half, 1))  # (places, dim / 2)
        left, right = wide[..., :half], wide[..., half:]
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)


def masked_softmax(
    scores: Float[Tensor, "*lead keys"],
    mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "*lead keys"]:
    """Take the softmax over the keys that may be attended to.

    `s_j = exp(e_j) / Σ exp(e_k)` over allowed keys; masked keys get exactly zero, and a row
    with nothing to attend to gets zeros, with zero gradients.

    Args:
        scores: The scores, of any size and any value where masked.
        mask: True = may attend; broadcast against the scores. None allows every key.

    Returns:
        The weights, in float32 or wider.
    """
    scores = widened(scores)
    with full_precision(scores):
        if mask is None:
            return scores.softmax(dim=-1)
        # A row of -inf alone would give NaN: it gets zeros to work on, then zero weights.
        fill = scores.new_full((), -torch.inf).where(mask.any(dim=-1, keepdim=True), 0.0)
        return scores.where(mask, fill).softmax(dim=-1).masked_fill(~mask, 0.0)


def weighted_sum(
    weights: Float[Tensor, "*lead queries keys"],
    value: Float[Tensor, "*lead keys value_dim"],
) -> Float[Tensor, "*lead queries value_dim"]:
    """Read the values out: `z_i = Σ_j s_ij v_j`, in the precision of the values.

    Args:
        weights: The weights `s_ij`.
        value: The values `v_j`.

    Returns:
        The contexts `z_i`.
    """
    with full_precision(value):
        return (weights @ value.to(weights.dtype)).to(value.dtype)


def with_floor(
    scores: Float[Tensor, "*lead keys"], mask: Bool[Tensor, "..."] | None, *, margin: float | Tensor
) -> Float[Tensor, "*lead keys"]:
    """Shift each row so that its best allowed score is 0, and cut it off at `-margin`.

    For mappings that do not change when a row is shifted and that give nothing to scores further
    than `margin` below the best: masked keys land on the floor, whatever they held, and a row
    with nothing to attend to becomes zeros.

    Args:
        scores: The scores, of any value where masked.
        mask: True = may attend; None allows every key.
        margin: How far below the best score a key gets no weight.

    Returns:
        Scores from `-margin` to 0, in float32 or wider.
    """
    scores = widened(scores)
    if scores.shape[-1] == 0:
        return scores
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    best = scores.detach().amax(dim=-1, keepdim=True)
    best = best.masked_fill(best == -torch.inf, 0.0)
    shifted = (scores - best).clamp(min=-margin)
    if mask is None:
        return shifted
    return shifted.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


def chosen(
    preferences: Float[Tensor, "*lead keys"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "*lead keys"]:
    """Give all the weight to the allowed key that is preferred, the first one among equals.

    Args:
        preferences: What to compare the keys by.
        mask: True = may attend; None allows every key.

    Returns:
        Ones and zeros; zeros alone where there is nothing to attend to.
    """
    if preferences.shape[-1] == 0:
        return torch.zeros_like(preferences)
    if mask is not None:
        preferences = preferences.masked_fill(~mask, -torch.inf)
    best = preferences.argmax(dim=-1, keepdim=True)
    weights = torch.zeros_like(preferences).scatter(-1, best, 1.0)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def recurrence(
    decay: Float[Tensor, "*lead keys"], inputs: Float[Tensor, "*lead keys"]
) -> Float[Tensor, "*lead keys"]:
    """Solve `y_j = a_j · y_{j-1} + x_j` along the last axis, with `y_{-1} = 0`.

    Takes `log2(keys)` rounds of products and sums, with no division and no logarithm, so that
    a decay of exactly 0 or thousands of small ones neither overflow nor lose the gradient.

    Args:
        decay: The factors `a_j`.
        inputs: The inputs `x_j`.

    Returns:
        The solution `y_j`.
    """
    keys, reach = inputs.shape[-1], 1
    while reach < keys:
        before = nn.functional.pad(inputs[..., :-reach], (reach, 0))
        inputs = inputs + decay * before
        decay = decay * nn.functional.pad(decay[..., :-reach], (reach, 0))
        reach *= 2
    return inputs


def monotonic_weights(
    stop: Float[Tensor, "*lead keys"], before: Float[Tensor, "*lead keys"]
) -> Float[Tensor, "*lead keys"]:
    """Give the expected weights of a reader that only moves forward.

    `α_ij = p_ij · Σ_{k ≤ j} α_{i-1,k} · Π_{k ≤ l < j} (1 - p_il)`: from the item of the step
    before, item after item is passed over until one is stopped at.

    Args:
        stop: Probabilities `p_ij` of stopping at an item, zero where it may not be attended to.
        before: The weights of the step before.

    Returns:
        The weights; what is missing from one is the probability of running off the end.

    References:
        Raffel et al., Online and linear-time attention by enforcing monotonic alignments, 2017.
    """
    passed = nn.functional.pad(1.0 - stop, (1, 0))[..., :-1]
    return stop * recurrence(passed, before)


def places_of_keys(
    scores: Float[Tensor, "*lead keys"], mask: Bool[Tensor, "..."] | None
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Number the keys that may be attended to, and count them.

    Args:
        scores: Of the shape and type of what is numbered.
        mask: True = may attend; None allows every key.

    Returns:
        The place of each allowed key among the allowed ones, from 0, and the last place, at
        least 0, with an axis of 1; both broadcast against the scores.
    """
    if mask is None:
        places = torch.arange(scores.shape[-1], device=scores.device, dtype=scores.dtype)
        return places, places.new_full((1,), max(scores.shape[-1] - 1, 0))
    counted = mask.cumsum(dim=-1).to(scores.dtype)
    last = mask.sum(dim=-1, keepdim=True).to(scores.dtype) - 1.0
    return counted - 1.0, last.clamp(min=0.0)
