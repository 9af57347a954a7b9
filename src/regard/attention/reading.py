"""Reading: scores, weights and the weighted sum, on any leading axes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional, masks
from regard.attention.parts import Attended, Mechanism, Prepared, State
from regard.attention.selections.soft import Softmax
from regard.errors import DivergedError

HARMLESS = 1.0
"""What stands for items that nobody reads: unlike zeros it has a length to be divided by."""


class Reading(NamedTuple):
    """Queries, what they read, which pairs are allowed, what draws, and if weights are wanted."""

    query: Float[Tensor, "*lead queries query_dim"]
    prepared: Prepared
    allowed: Bool[Tensor, "..."] | None
    generator: torch.Generator | None = None
    need_weights: bool = True


def attend(mechanism: Mechanism, reading: Reading, state: State | None) -> Attended:
    """Score, select and sum, on any leading axes.

    Keys that were not finite take part as ones: `marked` tells who may attend to one.

    Args:
        mechanism: What holds the parts.
        reading: Queries, keys, values, the pairs that are allowed, what draws, and whether the
            weights are wanted.
        state: The state before this step.

    Returns:
        What was attended to.

    Raises:
        DivergedError: A score, or an item that may be attended to, is not finite and the
            mechanism checks for it.
    """
    query, prepared, allowed, generator, need_weights = reading
    if allowed is not None:
        # A query with nothing to attend to may hold anything: NaN must not reach the projections.
        query = query.masked_fill(~allowed.any(dim=-1, keepdim=True), HARMLESS)
    if not need_weights:
        context = _read(mechanism, query, prepared, allowed)
        if context is not None:
            return Attended(context, None, None, None, None)
    scores = mechanism.score(query, prepared.key, state)
    if mechanism.check_finite:
        _require_finite(mechanism, scores, reading, state)
    weights, distribution, log_prob = mechanism.selection(
        scores, allowed, query=query, state=state, generator=generator
    )
    kept = weights
    if mechanism.training and mechanism.dropout > 0.0:
        kept = nn.functional.dropout(weights, mechanism.dropout)
    context = functional.weighted_sum(kept, prepared.value)
    following = State.following(state, weights) if mechanism.traits.stateful else None
    return Attended(context, weights, following, distribution, log_prob)


def _read(
    mechanism: Mechanism, query: Tensor, prepared: Prepared, allowed: Tensor | None
) -> Tensor | None:
    """Read without weights, where the parts have a way and nobody has to see the weights."""
    selection = mechanism.selection
    if type(selection) is not Softmax or mechanism.traits.stateful or mechanism.check_finite:
        return None
    if mechanism.training and mechanism.dropout > 0.0:
        return None
    temperature = selection.temperature
    return mechanism.score.read(
        query, prepared.key, prepared.value, allowed, temperature=temperature
    )


def lost_queries(reading: Reading) -> Bool[Tensor, "..."]:
    """Tell which queries may attend to an item that is not finite.

    Args:
        reading: Queries, keys and the pairs that are allowed.

    Returns:
        `(batch, queries or 1, 1)`, with heads (or 1) second where there are heads.
    """
    broken = reading.prepared.broken
    while broken.dim() < reading.query.dim():
        broken = broken.unsqueeze(1)  # (batch, 1.., keys)
    lost = broken if reading.allowed is None else broken & reading.allowed
    return lost.any(dim=-1, keepdim=True)


def marked(attended: Attended, lost: Bool[Tensor, "..."]) -> Attended:
    """Write NaN where a query may attend to an item that is not finite.

    Done last, so that it reaches neither other queries, nor any gradient, nor the next state.

    Args:
        attended: What was attended to.
        lost: What `lost_queries` found.

    Returns:
        The same with NaN in the context, the weights and the distribution of those queries.
    """
    weights = attended.weights
    weights = None if weights is None else weights.masked_fill(lost, torch.nan)
    distribution = attended.distribution
    if distribution is attended.weights:
        distribution = weights
    elif distribution is not None:
        distribution = distribution.masked_fill(lost, torch.nan)
    anywhere = lost.any(dim=1) if lost.dim() > attended.context.dim() else lost
    context = attended.context.masked_fill(anywhere, torch.nan)
    return attended._replace(context=context, weights=weights, distribution=distribution)


def without_queries_axis(attended: Attended) -> Attended:
    """Take the axis of a single query from the results; the state keeps it.

    Args:
        attended: What one query attended to.

    Returns:
        Context `(batch, value_dim)`, weights `(batch, keys)`, with heads second where there are
        heads.
    """
    _, weights, state, distribution, log_prob = attended
    flat = None if weights is None else weights.squeeze(-2)
    if distribution is weights:
        distribution = flat
    elif distribution is not None:
        distribution = distribution.squeeze(-2)
    log_prob = None if log_prob is None else log_prob.squeeze(-1)
    return Attended(attended.context.squeeze(1), flat, state, distribution, log_prob)


def _require_finite(
    mechanism: Mechanism, scores: Tensor, reading: Reading, state: State | None
) -> None:
    allowed = reading.allowed
    seen = scores if allowed is None else scores.masked_fill(~allowed, 0.0)
    found = ""
    if bool(lost_queries(reading).any()):
        found = "in a key or value that may be attended to"
    elif not bool(torch.isfinite(seen).all()):
        found = f"from {type(mechanism.score).__name__}"
    if found:
        step = state.step if state is not None else 0
        raise DivergedError(
            f"scores must be finite; got NaN or infinity {found} at step {step}. Look at the "
            "queries and keys that reach it.",
            where=mechanism.label or mechanism.name,
        )


def sanitised(tensors: list[Tensor], mask: Tensor | None) -> tuple[list[Tensor], Tensor]:
    """Put something harmless in the place of every item that is hidden or not finite.

    Args:
        tensors: Keys and values, `(batch, keys, dim)` each.
        mask: `(batch, keys)`, True = may attend; None hides nothing.

    Returns:
        The tensors with those items replaced, and a mask of the items that are not finite though
        they may be attended to.
    """
    finite = torch.isfinite(tensors[0]).all(dim=-1)
    for tensor in tensors[1:]:
        finite = finite & torch.isfinite(tensor).all(dim=-1)
    kept = finite if mask is None else finite & mask
    clean = [tensor.masked_fill(~kept.unsqueeze(-1), HARMLESS) for tensor in tensors]
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
    batch, keys = prepared.broken.shape
    # Without any key there is nothing to attend to, mask or no mask.
    shared = prepared.mask if keys else ~prepared.broken
    if shared is not None:
        shared = shared.unsqueeze(1) if heads is None else shared[:, None, None]
    if mask is None:
        return shared
    own = masks.checked(mask, batch=batch, keys=keys, queries=queries, heads=heads)
    return own if shared is None else own & shared


def check_finite(model: nn.Module, enabled: bool = True) -> None:
    """Let every attention in a model check that its scores are finite.

    One that finds NaN or infinity raises an error with its own name.

    Args:
        model: Any model.
        enabled: Whether to check from now on.
    """
    for path, module in model.named_modules():
        if isinstance(getattr(module, "check_finite", None), bool):
            module.check_finite = enabled
            module.label = path
