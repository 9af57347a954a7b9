"""Checks on numbers: gradients, types, half precision, autocast."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError

from regard.testing.subject import (
    CheckFailed,
    Inputs,
    Read,
    Subject,
    gradients,
    require,
    require_close,
    require_same,
)


def gradients_reach_the_inputs(subject: Subject) -> None:
    """Values get a gradient, and queries and keys where the traits say so."""
    found = gradients(subject, subject.inputs(), subject.key_mask())
    names = Inputs._fields if subject.traits.differentiable else ("value",)
    for name in names:
        require((found[name] != 0).any(), f"no gradient reaches the {name}")


def gradients_are_right(subject: Subject) -> None:
    """Gradients of inputs and parameters agree with differences, in float64."""
    exact = subject.copied(torch.float64)
    inputs = Inputs(*[t[:2].clone().requires_grad_() for t in exact.inputs()])
    mask = exact.key_mask()[:2]
    sources: list[Tensor] = [inputs.value]
    if exact.traits.differentiable:
        module = exact.attention
        sources = [*inputs, *(module.parameters() if isinstance(module, nn.Module) else ())]

    def read(*_: Tensor) -> tuple[Tensor, ...]:
        context, weights = exact.read(inputs, mask)
        return (context, weights) if weights.requires_grad else (context,)

    try:
        torch.autograd.gradcheck(read, sources, fast_mode=True)
    except GradcheckError as error:
        line = str(error).strip().splitlines()[0]
        raise CheckFailed(f"gradient against differences: {line}") from error


def float64_stays_float64(subject: Subject) -> None:
    """With float64 in, context and weights are float64, and as exact."""
    exact = subject.copied(torch.float64)
    read = exact.read(exact.inputs(), exact.key_mask())
    for name, tensor in read._asdict().items():
        require(tensor.dtype == torch.float64, f"{name} must be float64; got {tensor.dtype}")
    if exact.traits.normalised:
        sums = read.weights.sum(dim=-1)
        require_close(sums, torch.ones_like(sums), "sum of weights", tolerance=1e-12)


def half_precision_is_finite(subject: Subject) -> None:
    """In half precision, scores of ±1e4 give finite weights that are shares."""
    for dtype in (torch.float16, torch.bfloat16):
        half = subject.copied(dtype)
        for sign in (-1.0, 1.0):
            read = half.read(half.strong_inputs(sign), half.key_mask())
            what = f"in {dtype} with scores of {sign:+.0f}e4"
            for name, tensor in read._asdict().items():
                require(torch.isfinite(tensor).all(), f"{name} {what} must be finite")
            if half.traits.normalised:
                sums = read.weights.double().sum(dim=-1)
                require_close(sums, torch.ones_like(sums), f"weights {what}", tolerance=2e-2)


def half_precision_agrees(subject: Subject) -> None:
    """In float16 and bfloat16 the results are those of float32, rounded."""
    for dtype, bound in ((torch.float16, 2e-2), (torch.bfloat16, 1e-1)):
        half = subject.copied(dtype)
        full = half.copied(torch.float32)
        inputs = half.inputs()
        wide = Inputs(*[tensor.float() for tensor in inputs])
        read, expected = half.read(inputs, half.key_mask()), full.read(wide, half.key_mask())
        require_same(_float(read), expected, f"in {dtype}", tolerance=bound)


def _float(read: Read) -> Read:
    return Read(read.context.float(), read.weights.float())


def autocast_agrees(subject: Subject) -> None:
    """Under autocast the results are those without, rounded, and the mask holds."""
    full = subject.copied(torch.float32)
    inputs, mask = full.inputs(), full.key_mask()
    mask[1] = False
    expected = full.read(inputs, mask)
    with torch.autocast(full.device.type, dtype=torch.bfloat16):
        read = full.read(inputs, mask)
        strong = full.read(full.strong_inputs(1.0), mask)
    require_same(_float(read), expected, "under autocast", tolerance=1e-1)
    require((read.weights[1] == 0).all(), "weights of an empty row must be 0 under autocast")
    for name, tensor in strong._asdict().items():
        require(torch.isfinite(tensor).all(), f"{name} of scores of 1e4 under autocast")
    if full.traits.normalised:
        sums = read.weights[[0, 2]].float().sum(dim=-1)
        require_close(sums, torch.ones_like(sums), "weights under autocast", tolerance=2e-2)


def compiled_agrees(subject: Subject) -> None:
    """What `torch.compile` makes of it gives the same (slow: run only by name)."""
    module = subject.module()
    torch.compiler.reset()
    # This backend traces as all do and needs no compiler on the machine.
    compiled = torch.compile(module, backend="aot_eager")
    inputs = subject.inputs()
    mask = subject.key_mask()
    mask[1] = False
    for allowed in (None, mask, subject.query_mask()):
        result = compiled(*inputs, mask=allowed)
        require_same(Read(*result[:2]), subject.read(inputs, allowed), "when compiled")


CHECKS = (
    gradients_reach_the_inputs,
    gradients_are_right,
    float64_stays_float64,
    half_precision_is_finite,
    half_precision_agrees,
    autocast_agrees,
    compiled_agrees,
)
