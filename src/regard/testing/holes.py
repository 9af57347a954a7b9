"""Checks on what is missing or broken: empty rows, empty sizes, NaN and infinity."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.testing.subject import (
    Inputs,
    Read,
    Subject,
    gradients,
    require,
    require_close,
    require_finite_gradients,
    require_same,
)

BROKEN = (torch.nan, torch.inf, -torch.inf)


def _with_empty_row(subject: Subject) -> tuple[Inputs, Tensor]:
    mask = subject.key_mask()
    mask[1] = False
    return subject.inputs(), mask


def _require_zero(read: Read, what: str) -> None:
    require((read.weights == 0).all(), f"weights of {what} must be 0")
    require((read.context == 0).all(), f"context of {what} must be 0")


def empty_rows_give_zeros(subject: Subject) -> None:
    """A row that may attend to nothing gets zero weights and a zero context."""
    read = subject.read(*_with_empty_row(subject))
    _require_zero(read.rows(slice(1, 2)), "a row with nothing to attend to")
    hidden = torch.zeros(subject.BATCH, 1, dtype=torch.bool, device=subject.device)
    read = subject.read(subject.inputs(keys=1), hidden)
    _require_zero(read, "a memory whose only item is hidden")


def empty_rows_have_finite_gradients(subject: Subject) -> None:
    """A row that may attend to nothing sends finite gradients, to itself zeros."""
    found = gradients(subject, *_with_empty_row(subject))
    require_finite_gradients(found)
    for name in Inputs._fields:
        require((found[name][1] == 0).all(), f"the gradient of an empty row's {name} must be 0")


def empty_rows_leave_other_rows(subject: Subject) -> None:
    """The other rows, and all gradients, are those of the batch without the empty row."""
    inputs, mask = _with_empty_row(subject)
    others = torch.tensor([0, 2], device=subject.device)
    read, fewer = subject.read(inputs, mask), subject.read(inputs.rows(others), mask[others])
    require_same(read.rows(others), fewer, "of the rows beside an empty one")
    found = gradients(subject, inputs, mask)
    expected = gradients(subject, inputs.rows(others), mask[others])
    for name, gradient in found.items():
        kept = gradient[others] if name in Inputs._fields else gradient
        require_close(kept, expected[name], f"gradient of {name} beside an empty row")


def empty_queries_give_zeros(subject: Subject) -> None:
    """A query that may attend to nothing gets zeros and leaves the others alone."""
    inputs, mask = subject.inputs(), subject.query_mask()
    whole = subject.read(inputs, mask)
    mask = mask.clone()
    mask[0, 0] = False
    read = subject.read(inputs, mask)
    weights = read.weights.movedim(1, -2) if read.has_heads else read.weights
    _require_zero(Read(read.context[0, 0], weights[0, 0]), "a query with nothing to attend to")
    require_same(read.rows(slice(1, None)), whole.rows(slice(1, None)), "beside an empty query")
    require_finite_gradients(gradients(subject, inputs, mask))


def broken_items_under_the_mask_change_no_result(subject: Subject) -> None:
    """NaN and infinity under the mask change no result."""
    inputs, mask = subject.inputs(), subject.key_mask()
    expected = subject.read(inputs, mask)
    for number in BROKEN:
        for parts in ("both", "value", "feature"):
            read = subject.read(inputs.holding(~mask, number, parts), mask)
            require_same(read, expected, f"with {number} under the mask ({parts})")


def broken_items_under_the_mask_change_no_gradient(subject: Subject) -> None:
    """NaN and infinity under the mask change no gradient of an input or a parameter."""
    inputs, mask = subject.inputs(), subject.key_mask()
    expected = gradients(subject, inputs, mask)
    for number in BROKEN:
        found = gradients(subject, inputs.holding(~mask, number), mask)
        require_finite_gradients(found)
        for name, gradient in found.items():
            what = f"gradient of {name} with {number} under the mask"
            require_close(gradient, expected[name], what)


def broken_items_reach_only_their_readers(subject: Subject) -> None:
    """NaN in an item changes the queries that may attend to it, and no other."""
    inputs = subject.inputs()
    item = torch.zeros(subject.BATCH, subject.KEYS, dtype=torch.bool, device=subject.device)
    item[:, 2] = True
    mask = torch.ones_like(subject.query_mask())
    mask[0, :, 2] = False
    mask[2, 0, 2] = False
    reads = mask[..., 2]
    broken = inputs.holding(item, torch.nan)
    read, expected = subject.read(broken, mask), subject.read(inputs, mask)
    require(read.context[reads].isnan().all(), "context must be NaN where a NaN is attended to")
    weights, others = _by_query(read)[~reads], _by_query(expected)[~reads]
    require_close(read.context[~reads], expected.context[~reads], "context of other queries")
    require_close(weights, others, "weights of other queries")
    found = gradients(subject, broken, mask, keep=~reads)
    require_finite_gradients(found)
    for name, gradient in gradients(subject, inputs, mask, keep=~reads).items():
        if name not in ("key", "value"):
            require_close(found[name], gradient, f"gradient of {name} from other queries")


def _by_query(read: Read) -> Tensor:
    return read.weights.movedim(1, -2) if read.has_heads else read.weights


def broken_queries_without_keys_give_zeros(subject: Subject) -> None:
    """A query that may attend to nothing may itself hold NaN."""
    inputs, mask = _with_empty_row(subject)
    query = inputs.query.clone()
    query[1] = torch.nan
    broken = inputs._replace(query=query)
    require_same(subject.read(broken, mask), subject.read(inputs, mask), "with NaN in a query")
    require_finite_gradients(gradients(subject, broken, mask))


def no_keys_give_zeros(subject: Subject) -> None:
    """An empty memory gives a zero context and weights without keys."""
    inputs = subject.inputs(keys=0)
    none = torch.ones(subject.BATCH, 0, dtype=torch.bool, device=subject.device)
    expected = subject.read(subject.inputs(keys=1)).context.shape
    for mask in (None, none):
        read = subject.read(inputs, mask)
        require(
            read.context.shape == expected,
            f"context must have shape {tuple(expected)}; got {tuple(read.context.shape)}",
        )
        require(read.weights.shape[-1] == 0, "weights must have no keys")
        _require_zero(read, "an empty memory")


def no_rows_give_no_rows(subject: Subject) -> None:
    """An empty batch gives an empty batch."""
    read = subject.read(subject.inputs(batch=0), subject.key_mask()[:0])
    require(
        read.context.shape[:2] == (0, subject.queries) and read.weights.shape[0] == 0,
        f"an empty batch must stay one; got {tuple(read.context.shape)}",
    )


def no_queries_give_no_contexts(subject: Subject) -> None:
    """No query gives no context."""
    read = subject.read(subject.inputs(queries=0), subject.key_mask())
    require(
        read.context.shape[:2] == (subject.BATCH, 0) and read.weights.shape[-2] == 0,
        f"no query must give no context; got {tuple(read.context.shape)}",
    )


CHECKS = (
    empty_rows_give_zeros,
    empty_rows_have_finite_gradients,
    empty_rows_leave_other_rows,
    empty_queries_give_zeros,
    broken_items_under_the_mask_change_no_result,
    broken_items_under_the_mask_change_no_gradient,
    broken_items_reach_only_their_readers,
    broken_queries_without_keys_give_zeros,
    no_keys_give_zeros,
    no_rows_give_no_rows,
    no_queries_give_no_contexts,
)
