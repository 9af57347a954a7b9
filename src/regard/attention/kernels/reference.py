"""Additive attention as PyTorch computes it, a few queries at a time, so that memory is bounded.

It serves every device and precision, and every transform of PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention import functional
from regard.attention.kernels.inputs import Inputs, Source

ELEMENTS = 1 << 22
"""How many elements of queries x keys x hidden are in memory at a time."""


def formula(inputs: Inputs) -> Tensor:
    """Return the scores in one go, with a tensor of queries x keys x hidden."""
    extra = None
    if inputs.features is not None and inputs.matrix is not None:
        with functional.full_precision(inputs.query):
            extra = functional.widened(inputs.features) @ functional.widened(inputs.matrix)
    return functional.additive_scores(inputs.query, inputs.key, inputs.vector, extra=extra)


def scores(inputs: Inputs) -> Tensor:
    """Return the scores, `(batch, queries, keys)`."""
    parts = _parts(inputs)
    if len(parts) == 1:
        return formula(inputs)
    return torch.cat([_recomputed(formula, part) for part in parts], dim=1)


def attention(inputs: Inputs, source: Source) -> Tensor:
    """Return the contexts, `(batch, queries, value_dim)`."""
    parts, results, first = _parts(inputs), [], 0
    if len(parts) == 1:
        return _read(inputs, source)
    for part in parts:
        last = first + part.query.shape[1]
        mask = None if source.mask is None else source.mask[:, first:last]
        results.append(_recomputed(partial(_read, source=Source(source.value, mask)), part))
        first = last
    return torch.cat(results, dim=1)


def _read(inputs: Inputs, source: Source) -> Tensor:
    weights = functional.masked_softmax(formula(inputs), source.mask)
    return functional.weighted_sum(weights, source.value)


def _parts(inputs: Inputs) -> list[Inputs]:
    if _traced():
        return [inputs]  # sizes may be symbols, which no loop should be unrolled for
    batch, queries, keys = inputs.pairs
    row = batch * keys * inputs.vector.shape[0]
    size = max(1, ELEMENTS // max(row, 1))
    if size >= queries:
        return [inputs]
    query, _, _, features, _ = inputs
    pieces = query.split(size, dim=1)
    more = [None] * len(pieces) if features is None else features.split(size, dim=1)
    return [inputs._replace(query=q, features=f) for q, f in zip(pieces, more, strict=True)]


def _recomputed(function: Callable[[Inputs], Tensor], inputs: Inputs) -> Tensor:
    """Compute a part, and in training compute it again when its gradient is asked for."""
    if transformed() or not torch.is_grad_enabled():
        return function(inputs)
    result: Tensor = checkpoint(function, inputs, use_reentrant=False, preserve_rng_state=False)
    return result


def _traced() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def transformed() -> bool:
    """Tell whether a transform of `torch.func` is at work."""
    return torch._C._are_functorch_transforms_active()
