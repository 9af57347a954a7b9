"""The arithmetic of attention, as free functions of tensors.

Half precision is raised to float32 before anything is summed or exponentiated, and
autocast is held off, so that scores of ±1e4 stay finite; float64 stays float64.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Bool, Float
from torch import Tensor


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
) -> Float[Tensor, "*lead queries keys"]:
    """Score by a layer with tanh: `w · tanh(q_i + k_j)`.

    Args:
        query: The projected queries `q_i`.
        key: The projected keys `k_j`.
        vector: The vector `w` that turns the hidden layer into one number.

    Returns:
        The scores, in float32 or wider.

    References:
        Bahdanau, Cho and Bengio 2015.
    """
    with full_precision(query):
        hidden = torch.tanh(widened(query).unsqueeze(-2) + widened(key).unsqueeze(-3))
        return hidden @ widened(vector)  # (..., queries, keys)


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
