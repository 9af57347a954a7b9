"""Reading: scores, weights and the weighted sum, on any leading axes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional, masks
from regard.attention.parts import Attended, Prepared, Score, Selection, State
from regard.errors import DivergedError


class Reading(NamedTuple):
    """Queries, what they read, and which pairs are allowed."""

    query: Float[Tensor, "*lead queries query_dim"]
    prepared: Prepared
    allowed: Bool[Tensor, "..."] | None


class Mechanism(Protocol):
    """What `attend` needs: a score, a selection, dropout, and a check for finite scores."""

    score: Score
    selection: Selection
    dropout: float
    check_finite: bool
    label: str
    training: bool


def attend(mechanism: Mechanism, reading: Reading, state: State | None) -> Attended:
    """Score, select and sum, on any leading axes.

    Args:
        mechanism: What holds the parts.
        reading: Queries, keys, values and the pairs that are allowed.
        state: The state before this step.

    Returns:
        What was attended to.

    Raises:
        DivergedError: A score is not finite and the mechanism checks for it.
    """
    query, prepared, allowed = reading
    if allowed is not None:
        # A query with nothing to attend to may hold anything: NaN must not reach the projections.
        query = query.masked_fill(~allowed.any(dim=-1).unsqueeze(-1), 0.0)
    scores = mechanism.score(query, prepared.key, state)
    if mechanism.check_finite:
        _require_finite(mechanism, scores, allowed, state)
    selected = mechanism.selection(scores, allowed, query=query, state=state)
    kept = nn.functional.dropout(selected.weights, mechanism.dropout, mechanism.training)
    context = functional.weighted_sum(kept, prepared.value)
    # Keys that were not finite were set to zero; whoever may attend to one is told so here, where
    # it cannot reach other rows or any gradient.
    lost = _lost_queries(prepared, allowed, context)
    weights = selected.weights.masked_fill(lost, torch.nan)
    sampled = selected.distribution is not selected.weights
    following = State.following(state, weights) if _stateful(mechanism) else None
    return Attended(
        context.masked_fill(lost, torch.nan),
        weights,
        following,
        selected.distribution.masked_fill(lost, torch.nan) if sampled else weights,
        selected.log_prob,
    )


def _stateful(mechanism: Mechanism) -> bool:
    return mechanism.score.traits.stateful or mechanism.selection.traits.stateful


def _lost_queries(prepared: Prepared, allowed: Tensor | None, context: Tensor) -> Tensor:
    broken = prepared.broken
    while broken.dim() < context.dim():
        broken = broken.unsqueeze(1)  # (batch, 1.., keys)
    lost = broken if allowed is None else broken & allowed
    return lost.any(dim=-1, keepdim=True)


def _require_finite(
    mechanism: Mechanism, scores: Tensor, allowed: Tensor | None, state: State | None
) -> None:
    seen = scores if allowed is None else scores.masked_fill(~allowed, 0.0)
    if not bool(torch.isfinite(seen).all()):
        step = 0 if state is None else state.step
        raise DivergedError(
            f"scores must be finite; got NaN or infinity from {type(mechanism.score).__name__} at "
            f"step {step}. Look at the queries and keys that reach it.",
            where=mechanism.label or "attention",
        )


def sanitised(tensors: list[Tensor], mask: Tensor | None) -> tuple[list[Tensor], Tensor]:
    """Set to zero every item that is hidden or not finite.

    Args:
        tensors: Keys and values, `(batch, keys, dim)` each.
        mask: `(batch, keys)`, True = may attend; None hides nothing.

    Returns:
        The tensors with those items zeroed, and a mask of the items that are not finite though
        they may be attended to.
    """
    finite = torch.isfinite(tensors[0]).all(dim=-1)
    for tensor in tensors[1:]:
        finite = finite & torch.isfinite(tensor).all(dim=-1)
    kept = finite if mask is None else finite & mask
    clean = [tensor.masked_fill(~kept.unsqueeze(-1), 0.0) for tensor in tensors]
    return clean, ~finite if mask is None else mask & ~finite


def allowed_pairs(
    prepared: Prepared, mask: Tensor | None, queries: int, heads: int | None = None
) -> Tensor | None:
    """Join the mask of the keys with the mask of the call.

    Args:
        prepared: The keys, with the mask they were prepared under.
        mask: The mask of the call, of any allowed shape, or None.
        queries: How many queries there are.
        heads: How many heads there are, or None.

    Returns:
        A mask that broadcasts against the scores, or None where everything is allowed.

    Raises:
        MaskError: The mask of the call has the wrong type or shape.
    """
    shared = prepared.mask
    if shared is not None:
        shared = shared.unsqueeze(1) if heads is None else shared[:, None, None]
    if mask is None:
        return shared
    batch, keys = prepared.broken.shape
    own = masks.checked(mask, batch=batch, queries=queries, keys=keys, heads=heads)
    return own if shared is None else own & shared


def check_finite(model: nn.Module, enabled: bool = True) -> None:
    """Let every attention in a model check its scores, and name itself when they are not finite.

    Args:
        model: Any model.
        enabled: Whether to check from now on.
    """
    for path, module in model.named_modules():
        if isinstance(getattr(module, "check_finite", None), bool):
            module.check_finite = enabled
            module.label = path
