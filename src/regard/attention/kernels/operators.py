"""The operators of fused additive attention that stand in graphs of torch.compile and torch.export.

`regard::additive_scores` and `regard::additive_attention`, each with a second one for gradients.
What computes them is chosen when they run. They take float32 and half precision, and return
float32; gradients have the precision of what they belong to.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.attention.kernels import choosing, reference
from regard.attention.kernels.fused import Kernel
from regard.attention.kernels.inputs import Inputs, Source

_PARTS = "Tensor query, Tensor key, Tensor vector, Tensor? features, Tensor? matrix"
Parts = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]


def scores(*tensors: Any) -> Tensor:
    """Return the scores of the tensors of `Inputs`."""
    inputs = Inputs(*tensors)
    result: Tensor = _kernel(inputs.given).scores(inputs)
    return result.contiguous()


def spread_scores(given: Tensor, *tensors: Any) -> list[Tensor]:
    """Return the gradients of the tensors of `Inputs`."""
    inputs = Inputs(*tensors)
    found = _kernel(inputs.given).spread_scores(inputs, given)
    return [_there(gradient, given) for gradient in found]


def context(value: Tensor, mask: Tensor | None, *tensors: Any) -> tuple[Tensor, Tensor]:
    """Return the contexts and the logarithms of the sums of exponentials, in float32."""
    inputs = Inputs(*tensors)
    return _kernel([*inputs.given, value]).attention(inputs, Source(value, mask))


def spread_context(
    given: Tensor, kept: list[Tensor], value: Tensor, mask: Tensor | None, *tensors: Any
) -> list[Tensor]:
    """Return the gradients of the tensors of `Inputs`, then that of the values."""
    inputs, source = Inputs(*tensors), Source(value, mask)
    kernel = _kernel([*inputs.given, value])
    found = kernel.spread_context(inputs, source, (kept[0], kept[1]), given)
    return [_there(gradient, given) for gradient in found]


def _kernel(tensors: list[Tensor]) -> Kernel:
    chosen: Kernel | None = choosing.kernel(tensors)
    return reference if chosen is None else chosen


def _there(gradient: Tensor | None, like: Tensor) -> Tensor:
    return like.new_zeros(0) if gradient is None else gradient


def _fake_scores(*tensors: Any) -> Tensor:
    inputs = Inputs(*tensors)
    return inputs.query.new_empty(inputs.pairs, dtype=torch.float32)


def _fake_gradients(given: Tensor, *tensors: Tensor | None) -> list[Tensor]:
    return [given.new_empty(0) if t is None else t.new_empty(t.shape) for t in tensors]


def _fake_context(value: Tensor, mask: Tensor | None, *tensors: Any) -> tuple[Tensor, Tensor]:
    batch, queries, _ = Inputs(*tensors).pairs
    contexts = value.new_empty((batch, queries, value.shape[2]), dtype=torch.float32)
    return contexts, value.new_empty((batch, queries), dtype=torch.float32)


def _keep_scores(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _keep_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs)


def _given(found: list[Tensor], tensors: Any) -> list[Tensor | None]:
    return [None if t is None else gradient for gradient, t in zip(found, tensors, strict=True)]


def _scores_backward(ctx: Any, given: Tensor) -> Any:
    tensors = ctx.saved_tensors
    return tuple(_given(SPREAD_SCORES(given, *tensors), tensors))


def _context_backward(ctx: Any, given: Tensor, _: Tensor) -> Any:
    context, log_totals, value, mask, *tensors = ctx.saved_tensors
    found = SPREAD_CONTEXT(given, [context, log_totals], value, mask, *tensors)
    *parts, to_value = _given(found, [*tensors, value])
    return (to_value, None, *parts)


def _operator(name: str, function: Any, arguments: str, result: str) -> Any:
    schema = f"({arguments}) -> {result}"
    return torch.library.custom_op(f"regard::{name}", function, mutates_args=(), schema=schema)


SCORES = _operator("additive_scores", scores, _PARTS, "Tensor")
SPREAD_SCORES = _operator(
    "additive_scores_backward", spread_scores, f"Tensor given, {_PARTS}", "Tensor[]"
)
CONTEXT = _operator(
    "additive_attention", context, f"Tensor value, Tensor? mask, {_PARTS}", "(Tensor, Tensor)"
)
SPREAD_CONTEXT = _operator(
    "additive_attention_backward",
    spread_context,
    f"Tensor given, Tensor[] kept, Tensor value, Tensor? mask, {_PARTS}",
    "Tensor[]",
)
SCORES.register_fake(_fake_scores)
SPREAD_SCORES.register_fake(_fake_gradients)
CONTEXT.register_fake(_fake_context)
SPREAD_CONTEXT.register_fake(
    lambda given, kept, value, mask, *tensors: _fake_gradients(given, *tensors, value)
)
SCORES.register_autograd(_scores_backward, setup_context=_keep_scores)
CONTEXT.register_autograd(_context_backward, setup_context=_keep_context)
