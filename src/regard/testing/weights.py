"""Checks on the weights: what they are, and on what they may depend."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import Selection
from regard.testing.subject import (
    Inputs,
    NotApplicable,
    Read,
    Subject,
    require,
    require_close,
    require_same,
)


def _masks(subject: Subject) -> list[tuple[str, Tensor | None]]:
    return [
        ("without a mask", None),
        ("under (batch, keys)", subject.key_mask()),
        ("under (batch, queries, keys)", subject.query_mask()),
    ]


def _spread(mask: Tensor, weights: Tensor) -> Tensor:
    """Give a mask the axes of the weights."""
    mask = mask.unsqueeze(-2) if mask.dim() == 2 else mask
    mask = mask.unsqueeze(1) if weights.dim() == 4 else mask
    return mask.expand(weights.shape)


def _require_sums(weights: Tensor, what: str, *, tolerance: float | None = None) -> None:
    sums = weights.sum(dim=-1)
    require_close(sums, torch.ones_like(sums), f"sum of weights {what}", tolerance=tolerance)


def shapes_and_types_are_right(subject: Subject) -> None:
    """Contexts and weights have the right axes, and contexts the right type."""
    inputs = subject.inputs()
    read = subject.read(inputs)
    lead, keys = tuple(inputs.query.shape[:2]), inputs.key.shape[1]
    require(
        tuple(read.context.shape[:-1]) == lead,
        f"context must begin with (batch, queries) = {lead}; got {tuple(read.context.shape)}",
    )
    seen = tuple(read.weights.movedim(1, 0)[0].shape if read.has_heads else read.weights.shape)
    require(
        seen == (*lead, keys),
        f"weights must be (batch, queries, keys) = {(*lead, keys)}, heads second; got "
        f"{tuple(read.weights.shape)}",
    )
    require(
        read.context.dtype == subject.dtype,
        f"context must be {subject.dtype}; got {read.context.dtype}",
    )


def weights_are_shares(subject: Subject) -> None:
    """Weights are finite and not negative, and sum to one where the traits say so."""
    found = [(what, subject.read(subject.inputs(), mask)) for what, mask in _masks(subject)]
    found.append(("over many keys", subject.read(subject.inputs(keys=70))))
    for what, read in found:
        weights = read.weights
        require(torch.isfinite(weights).all(), f"weights {what} must be finite")
        lowest = weights.min().item()
        require(lowest >= 0.0, f"weights {what} must be at least 0; got {lowest:.3g}")
        if subject.traits.normalised:
            _require_sums(weights, what)


def masked_weights_are_zero(subject: Subject) -> None:
    """A key that may not be attended to gets exactly zero, some other does not."""
    inputs = subject.inputs()
    for what, mask in _masks(subject)[1:]:
        if mask is None:
            continue
        weights = subject.read(inputs, mask).weights
        allowed = _spread(mask, weights)
        most = weights.masked_fill(allowed, 0.0).abs().max().item()
        require(most == 0.0, f"weights of hidden keys {what} must be 0; got up to {most:.3g}")
        if subject.traits.normalised or not subject.traits.hard_evaluation:
            least = weights.masked_fill(~allowed, 0.0).sum(dim=-1).min().item()
            require(least > 0.0, f"weights of allowed keys {what} must not all be 0")


def a_mask_of_ones_changes_nothing(subject: Subject) -> None:
    """A mask that allows everything gives what no mask gives."""
    inputs = subject.inputs()
    plain = subject.read(inputs)
    for mask in (torch.ones_like(subject.key_mask()), torch.ones_like(subject.query_mask())):
        require_same(subject.read(inputs, mask), plain, f"under a {mask.dim()}-D mask of ones")


def one_mask_serves_the_batch(subject: Subject) -> None:
    """A mask `(1, queries, keys)` means the same for every row."""
    inputs = subject.inputs()
    mask = subject.query_mask()[:1]
    full = mask.expand(subject.BATCH, -1, -1)
    require_same(subject.read(inputs, mask), subject.read(inputs, full), "under (1, queries, keys)")


def square_masks_mean_batch_and_keys(subject: Subject) -> None:
    """A mask [N, N] is `(batch, keys)`, also where batch, queries and keys are N."""
    size = subject.BATCH
    inputs = subject.inputs(keys=size)
    mask = torch.ones(size, size, dtype=torch.bool, device=subject.device).tril()
    expected = subject.read(inputs, mask.unsqueeze(1).expand(-1, subject.queries, -1))
    require_same(subject.read(inputs, mask), expected, "under a square mask")


def padding_changes_nothing(subject: Subject) -> None:
    """Keys added behind the others and hidden leave weights and context as they were."""
    short = subject.inputs()
    extra = subject.inputs(keys=subject.KEYS + 2)
    padded = Inputs(
        short.query,
        torch.cat([short.key, extra.key[:, -3:] + 1.0], dim=1),
        torch.cat([short.value, extra.value[:, -3:] - 1.0], dim=1),
    )
    if subject.traits.positional_queries:  # a sequence is padded in both its roles
        padded = padded._replace(query=torch.cat([short.query, extra.query[:, -3:]], dim=1))
    mask = torch.arange(subject.KEYS + 3, device=subject.device) < subject.KEYS
    read = subject.read(padded, mask.expand(subject.BATCH, -1))
    hidden = read.weights[..., subject.KEYS :]
    require((hidden == 0).all(), "weights of added padding must be 0")
    queries = subject.queries
    shown = Read(read.context[:, :queries], read.weights[..., :queries, : subject.KEYS])
    require_same(shown, subject.read(short), "with padding added")


def permuting_keys_permutes_weights(subject: Subject) -> None:
    """Keys in another order, with their values, give the weights in that order."""
    if not subject.traits.permutation_equivariant:
        raise NotApplicable("the order of its keys matters")
    inputs, mask = subject.inputs(), subject.key_mask()
    order = torch.tensor([3, 0, 4, 1, 2], device=subject.device)
    for what, before, after in (("alone", None, None), ("and mask", mask, mask[:, order])):
        plain = subject.read(inputs, before)
        expected = Read(plain.context, plain.weights[..., order])
        moved = subject.read(inputs.items(order), after)
        require_same(moved, expected, f"with keys {what} permuted")


def batch_rows_are_independent(subject: Subject) -> None:
    """Each row alone gives what it gives in a batch."""
    for batch in (subject.BATCH, 10):
        inputs, mask = subject.inputs(batch=batch), subject.key_mask().repeat(4, 1)[:batch]
        together = subject.read(inputs, mask)
        for row in range(batch):
            only = slice(row, row + 1)
            alone = subject.read(inputs.rows(only), mask[only])
            require_same(alone, together.rows(only), f"of row {row} of {batch} alone")


def queries_are_independent(subject: Subject) -> None:
    """Each query alone gives what it gives among others."""
    if subject.traits.stateful:
        raise NotApplicable("it goes step by step")
    if subject.traits.positional_queries:
        raise NotApplicable("a query's place among the others matters")
    for queries in (subject.queries, 12):
        inputs = subject.inputs(queries=queries)
        mask = subject.query_mask().repeat(1, 4, 1)[:, :queries]
        together = subject.read(inputs, mask)
        for place in range(queries):
            only = slice(place, place + 1)
            alone = subject.read(inputs._replace(query=inputs.query[:, only]), mask[:, only])
            expected = Read(together.context[:, only], together.weights[..., only, :])
            require_same(alone, expected, f"of query {place} of {queries} alone")


def context_is_weights_times_values(subject: Subject) -> None:
    """The weights returned are those used: the context is their sum over the values."""
    inputs = subject.inputs()
    for what, mask in _masks(subject):
        read = subject.read(inputs, mask)
        if read.has_heads:
            raise NotApplicable("it projects the values of several heads")
        expected = read.weights.double() @ inputs.value.double()
        expected = expected.to(read.context.dtype)
        require_close(read.context, expected, f"context {what} against weights times values")


def masks_hold_among_low_scores(subject: Subject) -> None:
    """Hidden keys stay at zero also where all allowed scores are near -1e4."""
    mask = subject.key_mask()
    hidden = ~mask.unsqueeze(-1)
    for sign in (-1.0, 1.0):
        strong = subject.strong_inputs(sign)
        strong = strong._replace(key=strong.key.masked_fill(hidden, 0.0))
        weights = subject.read(strong, mask).weights
        _require_masked(subject, weights, mask, f"with scores of {sign:+.0f}e4")
    selection = getattr(subject.attention, "selection", None)
    if isinstance(selection, Selection) and weights.dim() == 3:
        inputs = subject.inputs()
        scores = torch.randn(subject.BATCH, subject.queries, subject.KEYS) - 1e4
        scores = scores.to(subject.device).masked_fill(~mask.unsqueeze(1), 0.0)
        weights = selection(scores, mask.unsqueeze(1), query=inputs.query, state=None).weights
        _require_masked(subject, weights, mask, "selected at -1e4")


def _require_masked(subject: Subject, weights: Tensor, mask: Tensor, what: str) -> None:
    require(torch.isfinite(weights).all(), f"weights {what} must be finite")
    most = weights.masked_fill(_spread(mask, weights), 0.0).max().item()
    require(most == 0.0, f"weights of hidden keys {what} must be 0; got up to {most:.3g}")
    if subject.traits.normalised:
        _require_sums(weights, what)


CHECKS = (
    shapes_and_types_are_right,
    weights_are_shares,
    masked_weights_are_zero,
    a_mask_of_ones_changes_nothing,
    one_mask_serves_the_batch,
    square_masks_mean_batch_and_keys,
    padding_changes_nothing,
    permuting_keys_permutes_weights,
    batch_rows_are_independent,
    queries_are_independent,
    context_is_weights_times_values,
    masks_hold_among_low_scores,
)
