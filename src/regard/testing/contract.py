"""Checks on how an attention is called, copied and saved."""

from __future__ import annotations

import copy
import dataclasses

import torch
from torch import Tensor, nn

from regard.testing.subject import (
    Inputs,
    NotApplicable,
    Read,
    Subject,
    require,
    require_close,
    require_same,
)


def single_queries_need_no_axis(subject: Subject) -> None:
    """A query `(batch, query_dim)` gives what one with a queries axis of 1 gives."""
    inputs, mask = subject.inputs(queries=1), subject.key_mask()
    expected = subject.read(inputs, mask)
    read = subject.read(inputs._replace(query=inputs.query[:, 0]), mask)
    squeezed = Read(expected.context[:, 0], expected.weights.squeeze(-2))
    require_same(read, squeezed, "of a single query")


def values_default_to_keys(subject: Subject) -> None:
    """Left out, the values are the keys."""
    if subject.value_dim != subject.key_dim:
        raise NotApplicable("its values have another size than its keys")
    inputs, mask = subject.inputs(), subject.key_mask()
    inputs = inputs._replace(value=inputs.key)
    read = Read(*subject.attention(inputs.query, inputs.key, mask=mask)[:2])
    require_same(read, subject.read(inputs, mask), "with the values left out")


def inputs_are_not_changed(subject: Subject) -> None:
    """A call changes neither its inputs nor its mask, nor any parameter."""
    inputs, mask = subject.inputs(), subject.key_mask()
    given = [*inputs, mask]
    if isinstance(subject.attention, nn.Module):
        given += list(subject.attention.state_dict().values())
    before = [tensor.clone() for tensor in given]
    subject.read(inputs, mask)
    same = all(torch.equal(old, new) for old, new in zip(before, given, strict=True))
    require(same, "a call changed its inputs, its mask or a parameter")


def calls_leave_no_trace(subject: Subject) -> None:
    """In evaluation a call gives the same again, whatever was called in between."""
    inputs, mask = subject.inputs(), subject.key_mask()
    first = subject.read(inputs, mask)
    kept = Read(first.context.clone(), first.weights.clone())
    subject.read(subject.inputs(batch=2, keys=7))
    subject.read(inputs._replace(query=-inputs.query), mask)
    require_same(first, kept, "of a first call after a second one")
    again = subject.read(subject.inputs(), mask)
    require_same(again, kept, "of a second call")


def strides_do_not_matter(subject: Subject) -> None:
    """Inputs that do not lie in one piece give what contiguous ones give."""
    inputs, mask = subject.inputs(), subject.query_mask()
    turned = Inputs(*[t.transpose(0, 1).contiguous().transpose(0, 1) for t in inputs])
    wide = mask.repeat_interleave(2, dim=-1)[..., ::2]
    require_same(subject.read(turned, wide), subject.read(inputs, mask), "of strided inputs")


def masks_of_numbers_are_refused(subject: Subject) -> None:
    """A mask of integers or floats raises an error instead of meaning something else."""
    mask = subject.key_mask()
    for wrong in (mask.long(), mask.float(), torch.zeros_like(mask, dtype=torch.float32)):
        _require_refused(subject, wrong, f"a mask of {wrong.dtype}")


def misshapen_masks_are_refused(subject: Subject) -> None:
    """A mask that is transposed or of a wrong size raises an error."""
    mask, full = subject.key_mask(), subject.query_mask()
    wrong = {
        "transposed": mask.t(),
        "too wide": torch.cat([mask, mask[:, :1]], dim=1),
        "of another batch": mask[:2],
        "of one axis": mask[0],
        "of one key": mask[:, :1],
        "of other queries": torch.cat([full, full], dim=1),
        "with queries and keys swapped": full.transpose(1, 2),
    }
    for what, given in wrong.items():
        _require_refused(subject, given, f"a mask {what}, {tuple(given.shape)}")


def _require_refused(subject: Subject, mask: Tensor, what: str) -> None:
    try:
        subject.read(subject.inputs(), mask)
    except Exception:  # of whatever kind: what counts is that it is not taken
        return
    require(False, f"{what} must raise an error")


def prepared_keys_agree(subject: Subject) -> None:
    """Keys prepared once give what the keys themselves give, step by step too."""
    prepare = subject.method("prepare")
    inputs, mask = subject.inputs(), subject.key_mask()
    expected = subject.read(inputs, mask)
    prepared = prepare(inputs.key, inputs.value, mask=mask)
    read = Read(*subject.attention(inputs.query, prepared)[:2])
    require_same(read, expected, "of prepared keys")
    both = mask.unsqueeze(1) & subject.query_mask()
    joined = Read(*subject.attention(inputs.query, prepared, mask=subject.query_mask())[:2])
    require_same(joined, subject.read(inputs, both), "of prepared keys under a mask of the call")
    if subject.traits.positional_queries:
        return
    first = Read(*subject.attention(inputs.query[:, :1], prepared)[:2])
    one = Read(expected.context[:, :1], expected.weights[..., :1, :])
    require_same(first, one, "of the first step over prepared keys")


def weights_may_be_left_out(subject: Subject) -> None:
    """Without the weights the context is the same."""
    subject.method("prepare")
    inputs, mask = subject.inputs(), subject.key_mask()
    result = subject.attention(*inputs, mask=mask, need_weights=False)
    require_close(result[0], subject.read(inputs, mask).context, "context without weights")


def weights_are_those_before_dropout(subject: Subject) -> None:
    """In training too the weights returned are whole."""
    module = subject.module()
    if subject.traits.stochastic or subject.traits.hard_evaluation:
        raise NotApplicable("its weights are made otherwise in training")
    dropped = any(getattr(part, "dropout", 0.0) for part in module.modules())
    for inputs, mask in (
        (subject.inputs(), subject.key_mask()),
        (subject.inputs(), subject.query_mask()),
    ):
        expected = subject.read(inputs, mask)
        module.train()
        try:
            read = subject.read(inputs, mask)
        finally:
            module.eval()
        require_close(read.weights, expected.weights, "weights in training")
        if not dropped:
            require_close(read.context, expected.context, "context in training")


def copies_agree(subject: Subject) -> None:
    """A deep copy gives the same."""
    inputs, mask = subject.inputs(), subject.key_mask()
    require_same(subject.copied().read(inputs, mask), subject.read(inputs, mask), "of a copy")


def saved_parameters_agree(subject: Subject) -> None:
    """Parameters loaded into a copy whose own were spoilt give the same."""
    saved = copy.deepcopy(subject.module().state_dict())
    spoilt = copy.deepcopy(subject.module())
    with torch.no_grad():
        for parameter in spoilt.parameters():
            parameter.add_(1.0)
    spoilt.load_state_dict(saved)
    other = dataclasses.replace(subject, attention=spoilt)
    inputs, mask = subject.inputs(), subject.key_mask()
    require_same(other.read(inputs, mask), subject.read(inputs, mask), "after loading")


CHECKS = (
    single_queries_need_no_axis,
    values_default_to_keys,
    inputs_are_not_changed,
    calls_leave_no_trace,
    strides_do_not_matter,
    masks_of_numbers_are_refused,
    misshapen_masks_are_refused,
    prepared_keys_agree,
    weights_may_be_left_out,
    weights_are_those_before_dropout,
    copies_agree,
    saved_parameters_agree,
)
