"""Fused additive attention as operators that PyTorch can differentiate and compile.

Outside a compiler a `torch.autograd.Function` costs least; inside one, operators of the library
`regard` stand in the graph and choose an implementation when they run. A second derivative is
taken of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.attention.kernels import reference
from regard.attention.kernels.inputs import Inputs, Source

Grads = tuple[Tensor | None, ...]


class Kernel(Protocol):
    """What an implementation offers."""

    def scores(self, inputs: Inputs) -> Tensor:
        """Return the scores."""

    def spread_scores(self, inputs: Inputs, given: Tensor) -> list[Tensor | None]:
        """Return the gradients of the inputs."""

    def attention(self, inputs: Inputs, source: Source) -> tuple[Tensor, Tensor]:
        """Return the contexts and the logarithms of the sums of exponentials."""

    def spread_context(
        self, inputs: Inputs, source: Source, kept: tuple[Tensor, Tensor], given: Tensor
    ) -> list[Tensor | None]:
        """Return the gradients of the inputs and the values."""


class Scores(torch.autograd.Function):
    """Scores `(batch, queries, keys)` of a kernel and the tensors of `Inputs`."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, *tensors: Tensor | None) -> Tensor:
        """Compute the scores."""
        ctx.kernel = kernel
        ctx.save_for_backward(*tensors)
        return kernel.scores(Inputs(*tensors))  # type: ignore[arg-type]

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> Grads:  # type: ignore[override]
        """Compute the gradients."""
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, *differentiable(_reference_scores, tensors, given)
        return None, *ctx.kernel.spread_scores(Inputs(*tensors), given)


class Context(torch.autograd.Function):
    """Contexts `(batch, queries, value_dim)` of a kernel, a mask, values and `Inputs`."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, mask: Tensor | None, *tensors: Tensor) -> Tensor:
        """Compute the contexts."""
        inputs, source = Inputs(*tensors[1:]), Source(tensors[0], mask)
        context, log_totals = kernel.attention(inputs, source)
        ctx.kernel = kernel
        ctx.save_for_backward(mask, context, log_totals, *tensors)
        return context.to(tensors[0].dtype)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> Grads:  # type: ignore[override]
        """Compute the gradients."""
        mask, context, log_totals, *tensors = ctx.saved_tensors
        if torch.is_grad_enabled():

            def function(*own: Tensor) -> Tensor:
                return reference.contexts(Inputs(*own[1:]), Source(own[0], mask))

            return None, None, *differentiable(function, tensors, given)
        inputs, source = Inputs(*tensors[1:]), Source(tensors[0], mask)
        *found, value = ctx.kernel.spread_context(inputs, source, (context, log_totals), given)
        return None, None, value, *found


def _reference_scores(*tensors: Tensor) -> Tensor:
    return reference.scores(Inputs(*tensors))


def differentiable(function: Callable[..., Tensor], tensors: Any, given: Tensor) -> Grads:
    """Return gradients that can be differentiated again."""
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    found = iter(
        torch.autograd.grad(function(*tensors), wanted, given, create_graph=True, allow_unused=True)
    )
    return tuple(next(found) if t is not None and t.requires_grad else None for t in tensors)
