"""Attention by dot products through PyTorch's own fused kernels.

They have no second derivative and give NaN where there is nothing to attend to: both are seen to
here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import functional
from regard.attention.kernels import choosing
from regard.attention.kernels.fused import Grads, differentiable


def dot_attention(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, scale: float
) -> Tensor:
    """Read values by the softmax of dot products: `z_i = Σ_j softmax_j(g · q_i · k_j) v_j`.

    On a processor half precision is raised to float32, as everywhere; on other devices PyTorch's
    kernels sum in float32 by themselves.

    Args:
        query: The queries, `(batch, ..., queries, dim)`.
        key: The keys, `(batch, ..., keys, dim)`.
        value: The values, `(batch, ..., keys, value_dim)`.
        mask: True = may attend; broadcasts against the scores. None allows every key.
        scale: A factor `g` on every score.

    Returns:
        The contexts, `(batch, ..., queries, value_dim)`, zero where there is nothing to attend to.

    References:
        Vaswani et al. 2017; Dao et al., FlashAttention, 2022.
    """
    tensors = [query, key, value]
    if torch.compiler.is_compiling():
        return _fused(query, key, value, mask, scale)
    if key.shape[-2] == 0 or not choosing.plain(tensors):
        return _formula(query, key, value, mask, scale)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Differentiable.apply(scale, mask, *tensors)  # type: ignore[no-any-return, no-untyped-call]
    return _fused(query, key, value, mask, scale)


class _Differentiable(torch.autograd.Function):
    """The fused kernel, with the derivative of the formula where one is taken twice."""

    @staticmethod
    def forward(ctx: Any, scale: float, mask: Tensor | None, *tensors: Tensor) -> Tensor:
        """Run the kernel, and keep its own graph."""
        with torch.enable_grad():
            own = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
            result = _fused(*own, mask, scale)
        ctx.kept, ctx.scale = (own, result), scale
        ctx.save_for_backward(mask, *tensors)
        return result.detach()

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> Grads:  # type: ignore[override]
        """Differentiate the kernel, or the formula."""
        mask, *tensors = ctx.saved_tensors
        if torch.is_grad_enabled():

            def function(*parts: Tensor) -> Tensor:
                return _formula(*parts, mask, ctx.scale)

            return None, None, *differentiable(function, tensors, given)
        own, result = ctx.kept
        wanted = [tensor for tensor in own if tensor.requires_grad]
        found = iter(torch.autograd.grad(result, wanted, given, retain_graph=True))
        return None, None, *(next(found) if t.requires_grad else None for t in own)


def _formula(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    weights = functional.masked_softmax(functional.dot_scores(query, key, scale), mask)
    return functional.weighted_sum(weights, value)


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    three = query.dim() == 3  # the fast kernels want heads
    parts = [t.unsqueeze(1) if three else t for t in (query, key, value)]
    if query.device.type == "cpu" or not (query.dtype == key.dtype == value.dtype):
        parts = [functional.widened(part) for part in parts]
    alive = None
    if mask is not None:
        mask = mask.unsqueeze(1) if three and mask.dim() == 3 else mask
        alive = mask.any(dim=-1, keepdim=True)
        mask = mask | ~alive
    with functional.full_precision(query):
        context = nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask, scale=scale)
    if alive is not None:
        context = context.masked_fill(~alive, 0.0)
    return (context.squeeze(1) if three else context).to(value.dtype)
