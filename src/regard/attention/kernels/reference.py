"""Additive attention as PyTorch computes it, a few queries at a time, so that memory is bounded.

It serves every device and precision. `scores` and `contexts` can be differentiated, any number of
times and by every transform of PyTorch's; `spread_scores` and `spread_context` are their gradients
written out, for places where PyTorch records nothing.
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


def contexts(inputs: Inputs, source: Source) -> Tensor:
    """Return the contexts, `(batch, queries, value_dim)`, in the precision of the values."""
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


def spread_scores(inputs: Inputs, given: Tensor) -> list[Tensor | None]:
    """Return the gradients of the inputs, from those of the scores."""
    sums, first = _Sums(inputs), 0
    for part in _parts(inputs):
        last = first + part.query.shape[1]
        sums.add(part, given[:, first:last])
        first = last
    return sums.tensors()


def attention(inputs: Inputs, source: Source) -> tuple[Tensor, Tensor]:
    """Return the contexts in float32 or wider, and zeros: nothing is kept for the gradients."""
    wide = Source(functional.widened(source.value), source.mask)
    result = contexts(inputs, wide).contiguous()
    return result, result.new_zeros(result.shape[:2])


def spread_context(
    inputs: Inputs, source: Source, kept: tuple[Tensor, Tensor], given: Tensor
) -> list[Tensor | None]:
    """Return the gradients of the inputs and the values, from those of the contexts."""
    sums, first, given = _Sums(inputs), 0, functional.widened(given)
    value = functional.widened(source.value)
    to_value = torch.zeros_like(value)
    for part in _parts(inputs):
        rows = slice(first, first + part.query.shape[1])
        mask = None if source.mask is None else source.mask[:, rows]
        weights = functional.masked_softmax(formula(part), mask)
        to_value += weights.transpose(-1, -2) @ given[:, rows]
        slope = weights * (given[:, rows] @ value.transpose(-1, -2))
        sums.add(part, slope - weights * slope.sum(dim=-1, keepdim=True))
        first = rows.stop
    return [*sums.tensors(), to_value.to(source.value.dtype)]


class _Sums:
    """Gradients of the inputs, summed over parts of the queries."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.to_query: list[Tensor] = []
        self.to_features: list[Tensor] = []
        shared = (inputs.key, inputs.vector, inputs.matrix)
        self.shared = [
            None if t is None else torch.zeros_like(functional.widened(t)) for t in shared
        ]

    def add(self, part: Inputs, slope: Tensor) -> None:
        """Take in gradients of the scores of a part."""
        query, key, vector, features, matrix = (
            None if t is None else functional.widened(t) for t in part
        )
        layer = query.unsqueeze(2) + key.unsqueeze(1)  # type: ignore[union-attr]
        if features is not None and matrix is not None:
            layer = layer + features @ matrix
        hidden = layer.tanh()
        slope = functional.widened(slope).unsqueeze(-1)
        inner = slope * vector * (1.0 - hidden.square())  # (batch, queries, keys, hidden)
        self.to_query.append(inner.sum(dim=2))
        found = [inner.sum(dim=1), (slope * hidden).sum(dim=(0, 1, 2)), None]
        if features is not None and matrix is not None:
            self.to_features.append(inner @ matrix.t())
            found[2] = features.flatten(0, 2).t() @ inner.flatten(0, 2)
        for total, own in zip(self.shared, found, strict=True):
            if total is not None and own is not None:
                total.add_(own)

    def tensors(self) -> list[Tensor | None]:
        """Return the gradients, in the precision of what they belong to."""
        to_query = torch.cat(self.to_query, dim=1)
        to_features = torch.cat(self.to_features, dim=1) if self.to_features else None
        to_key, to_vector, to_matrix = self.shared
        found = (to_query, to_key, to_vector, to_features, to_matrix)
        pairs = zip(found, self.inputs, strict=True)
        return [None if t is None or g is None else g.to(t.dtype) for g, t in pairs]


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
