"""Tensors for kernels, and how far they are from the formula in float64."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention import functional, kernels
from regard.attention.kernels.inputs import Inputs, Source


class Sizes(NamedTuple):
    batch: int = 2
    queries: int = 5
    keys: int = 7
    hidden: int = 6
    value_dim: int = 3
    channels: int = 0


ODD = (
    Sizes(),
    Sizes(1, 1, 1, 1, 1),
    Sizes(3, 70, 37, 33, 5),  # more queries than a tile, keys that are odd
    Sizes(1, 130, 16, 64, 16),
    Sizes(2, 3, 18, 300, 2),
    Sizes(4, 1, 30, 256, 8),
)


def inputs(sizes: Sizes, *, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Inputs:
    batch, queries, keys, hidden, _, channels = sizes
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return (torch.randn(shape, generator=generator) * scale).to(dtype).requires_grad_()

    features = drawn(batch, queries, keys, channels) if channels else None
    matrix = drawn(channels, hidden) if channels else None
    query, key = drawn(batch, queries, hidden), drawn(batch, keys, hidden)
    vector = torch.randn(hidden, generator=generator).to(dtype).requires_grad_()
    return Inputs(query, key, vector, features, matrix)


def source(sizes: Sizes, *, masked: bool = True, dtype: torch.dtype = torch.float32) -> Source:
    generator = torch.Generator().manual_seed(1)
    value = torch.randn(sizes.batch, sizes.keys, sizes.value_dim, generator=generator)
    mask = None
    if masked:
        mask = torch.rand(sizes[:3], generator=generator) > 0.3
        mask[0, 0] = False  # nothing to attend to
    return Source(value.to(dtype).requires_grad_(), mask)


def exact(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().double().requires_grad_()


def exact_scores(own: Inputs) -> Tensor:
    """The formula written out once more, in the precision of what it is given."""
    layer = own.query.unsqueeze(2) + own.key.unsqueeze(1)
    if own.features is not None and own.matrix is not None:
        layer = layer + own.features @ own.matrix
    return layer.tanh() @ own.vector


def exact_context(own: Inputs, read: Source) -> Tensor:
    weights = functional.masked_softmax(exact_scores(own), read.mask)
    return weights @ read.value


def given_like(tensor: Tensor) -> Tensor:
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2))


def distance(found: Tensor | None, expected: Tensor | None) -> float:
    """The largest difference, over the largest number that is expected."""
    assert found is not None
    assert expected is not None
    assert found.shape == expected.shape
    if expected.numel() == 0:
        return 0.0
    found, expected = found.detach(), expected.detach()
    whole = float(expected.abs().max())
    return float((found.double() - expected).abs().max()) / max(whole, 1e-9)


def check_scores(kernel: object, sizes: Sizes, *, scale: float = 1.0) -> None:
    """Compare scores and their gradients with the formula in float64."""
    own = inputs(sizes, scale=scale)
    wide = Inputs(*map(exact, own))
    expected = exact_scores(wide)
    scores = kernel.scores(own)
    assert scores.dtype == torch.float32
    assert float((scores - expected).detach().abs().max()) <= 2e-5
    given = given_like(expected)
    wanted = torch.autograd.grad(expected, wide.given, given.double())
    found = [g for g in kernel.spread_scores(own, given) if g is not None]
    assert max(map(distance, found, wanted)) <= 1e-4


def check_attention(kernel: object, sizes: Sizes, *, masked: bool = True) -> None:
    """Compare contexts and their gradients with the formula in float64."""
    own, read = inputs(sizes), source(sizes, masked=masked)
    wide, wide_read = Inputs(*map(exact, own)), Source(exact(read.value), read.mask)
    expected = exact_context(wide, wide_read)
    context, log_totals = kernel.attention(own, read)
    assert float((context - expected).detach().abs().max()) <= 2e-5
    given = given_like(expected)
    wanted = torch.autograd.grad(expected, [*wide.given, wide_read.value], given.double())
    spread = kernel.spread_context(own, read, (context, log_totals), given)
    found = [g for g in spread if g is not None]
    assert max(map(distance, found, wanted)) <= 1e-4


def kernels_scores(own: Inputs) -> Tensor:
    """Score through the public door."""
    more = {"features": own.features, "matrix": own.matrix}
    return kernels.additive_scores(own.query, own.key, own.vector, **more)
