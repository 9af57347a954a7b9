"""Fused additive attention: the score `w · tanh(q_i + k_j)` without a tensor of all pairs.

`additive_scores` gives the scores, `additive_attention` what is read by their softmax, in one pass
whose memory grows with queries plus keys. Three implementations agree: `reference` (PyTorch, a few
queries at a time), `cpu` (numba) and `cuda` (Triton); see `choosing` for which one is taken.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import functional
from regard.attention.kernels import choosing, fused, operators, reference
from regard.attention.kernels.dot import dot_attention
from regard.attention.kernels.inputs import Inputs, Source

__all__ = ["SMALL", "additive_attention", "additive_scores", "dot_attention"]

SMALL = 1 << 18
"""Elements of batch x keys x hidden up to which the formula serves one query no slower than a call.

Of several queries half as many: the kernel then shares what it has loaded of a key among them.
`benchmarks/additive.py small` measures both sides.
"""


def additive_scores(
    query: Tensor,
    key: Tensor,
    vector: Tensor,
    *,
    features: Tensor | None = None,
    matrix: Tensor | None = None,
) -> Tensor:
    """Score by a layer with tanh: `e_ij = w · tanh(q_i + k_j + u f_ij)`.

    Differentiable in all its arguments; a second derivative, transforms of `torch.func`, ONNX
    export and float64 are left to the reference.

    Args:
        query: The projected queries, `(..., queries, hidden)`.
        key: The projected keys, `(..., keys, hidden)`.
        vector: The vector `w`, `(hidden,)`.
        features: What else enters the layer for each pair, `(..., queries, keys, channels)`.
        matrix: How it enters, `u`: `(channels, hidden)`; given with features alone.

    Returns:
        The scores, `(..., queries, keys)`, in float32 or wider.

    References:
        Bahdanau, Cho and Bengio 2015; Chorowski et al. 2015 and Tu et al. 2016 (features).
    """
    if features is None and _small(query, key):
        return functional.additive_scores(query, key, vector)
    inputs, lead = _flat(Inputs(query, key, vector, features, matrix))
    return _scores(inputs).view(*lead, query.shape[-2], key.shape[-2])


def additive_attention(
    query: Tensor,
    key: Tensor,
    vector: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    features: Tensor | None = None,
    matrix: Tensor | None = None,
) -> Tensor:
    """Read values by the softmax of additive scores, without building scores or weights.

    `z_i = Σ_j softmax_j(e_ij) v_j` over the keys that may be attended to; zeros where there are
    none. Values that the mask hides must be finite all the same.

    Args:
        query: The projected queries, `(..., queries, hidden)`.
        key: The projected keys, `(..., keys, hidden)`.
        vector: The vector `w`, `(hidden,)`.
        value: The values, `(..., keys, value_dim)`.
        mask: True = may attend; broadcasts against the scores.
        features: What else enters the layer for each pair, `(..., queries, keys, channels)`.
        matrix: How it enters, `u`: `(channels, hidden)`; given with features alone.

    Returns:
        The contexts, `(..., queries, value_dim)`, in the precision of the values.

    References:
        Bahdanau, Cho and Bengio 2015; Milakov and Gimelshein 2018 (the softmax in one pass).
    """
    if features is None and _small(query, key):
        scores = functional.additive_scores(query, key, vector)
        return functional.weighted_sum(functional.masked_softmax(scores, mask), value)
    inputs, lead = _flat(Inputs(query, key, vector, features, matrix))
    value = _rows(value, lead)
    if mask is not None:
        mask = _rows(mask.expand(*lead, query.shape[-2], key.shape[-2]), lead)
    context = _context(inputs, Source(value, mask))
    return context.view(*lead, query.shape[-2], value.shape[-1])


def _scores(inputs: Inputs) -> Tensor:
    tensors = inputs.given
    if _in_graph(tensors):
        result: Tensor = operators.SCORES(*inputs)
        return result
    kernel = _kernel(inputs, tensors)
    if kernel is None:
        return reference.scores(inputs)
    if not torch.is_grad_enabled():
        return kernel.scores(inputs)  # type: ignore[no-any-return]
    return fused.Scores.apply(kernel, *inputs)  # type: ignore[no-any-return, no-untyped-call]


def _context(inputs: Inputs, source: Source) -> Tensor:
    value, mask = source
    tensors = [*inputs.given, value]
    if _in_graph(tensors):
        return operators.CONTEXT(value, mask, *inputs)[0].to(value.dtype)  # type: ignore[no-any-return]
    kernel = _kernel(inputs, tensors)
    if kernel is None:
        return reference.contexts(inputs, source)
    if not torch.is_grad_enabled():
        return kernel.attention(inputs, source)[0].to(value.dtype)  # type: ignore[no-any-return]
    return fused.Context.apply(kernel, mask, value, *inputs)  # type: ignore[no-any-return, no-untyped-call]


def _small(query: Tensor, key: Tensor) -> bool:
    """Tell whether the formula is the quicker way, and may be taken."""
    if torch.compiler.is_compiling() or choosing.setting() != "auto":
        return False
    lead, other = query.shape[:-2], key.shape[:-2]
    lead = lead if lead == other else torch.broadcast_shapes(lead, other)
    elements = lead.numel() * query.shape[-2] * key.shape[-2] * key.shape[-1]
    return elements <= (SMALL if query.shape[-2] == 1 else SMALL // 2)


def _in_graph(tensors: list[Tensor]) -> bool:
    """Tell whether an operator is to stand in a graph that PyTorch is building."""
    if not torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
        return False
    return all(t.dtype in (torch.float32, torch.bfloat16, torch.float16) for t in tensors)


def _kernel(inputs: Inputs, tensors: list[Tensor]) -> object | None:
    if torch.compiler.is_compiling() or not choosing.plain(tensors):
        return None
    return None if _small(inputs.query, inputs.key) else choosing.kernel(tensors)


def _flat(inputs: Inputs) -> tuple[Inputs, torch.Size]:
    """Join all leading axes to one, and say what they were."""
    if inputs.features is not None and inputs.query.shape[-2] == 1:
        inputs = _into_key(inputs)
    query, key, vector, features, matrix = inputs
    if query.dim() == key.dim() == 3 and query.shape[0] == key.shape[0]:
        return inputs, query.shape[:1]
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    query, key = _rows(query, lead), _rows(key, lead)
    if features is not None:
        own = features.expand(*lead, *features.shape[-3:])
        features = own.reshape(-1, *features.shape[-3:])
    return Inputs(query, key, vector, features, matrix), lead


def _into_key(inputs: Inputs) -> Inputs:
    """Add features to the keys where one query reads them: as large as the keys themselves."""
    key, features, matrix = inputs.key, inputs.features, inputs.matrix
    if features is None or matrix is None:
        return inputs
    with functional.full_precision(key):
        more = functional.widened(features) @ functional.widened(matrix)
        key = functional.widened(key) + more.squeeze(-3)
    return Inputs(inputs.query, key, inputs.vector)


def _rows(tensor: Tensor, lead: torch.Size) -> Tensor:
    whole = tensor.expand(*lead, *tensor.shape[-2:])
    return whole.reshape(lead.numel(), *tensor.shape[-2:])
