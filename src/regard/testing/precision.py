"""Checks on numbers: gradients, types, half precision, autocast."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError

from regard.testing.subject import (
    CheckFailed,
    Inputs,
    NotApplicable,
    Read,
    Subject,
    gradients,
    require,
    require_close,
    require_same,
)


def gradients_reach_the_inputs(subject: Subject) -> None:
    """Values get a gradient, and queries and keys where the traits say so."""
    wanted = {"value"}
    if subject.smooth:
        wanted |= {"query", "key"} if subject.traits.reads_keys else {"query"}
    chose = False
    for keys in (subject.KEYS, 8, 11, 16):  # sparse weights may be constant around some inputs
        inputs = subject.inputs(keys=keys)
        chose = chose or bool((subject.read(inputs).weights != 0).any())
        found = gradients(subject, inputs, None)
        wanted = {name for name in wanted if not (found[name] != 0).any()}
    if not chose and subject.traits.hard_evaluation:
        raise NotApplicable("it chose nothing that could have a gradient")
    require(not wanted, f"no gradient reaches the {' or the '.join(sorted(wanted))}")


def gradients_are_right(subject: Subject) -> None:
    """Gradients of inputs and parameters agree with differences, in float64."""
    exact = subject.copied(torch.float64)
    for mask in (exact.key_mask()[:2], exact.query_mask()[:2]):

        def read(inputs: Inputs, mask: Tensor = mask) -> tuple[Tensor, ...]:
            return tuple(exact.read(inputs, mask))

        check_gradients(exact, exact.inputs(batch=2), read, smooth=exact.smooth)


def check_gradients(
    exact: Subject,
    inputs: Inputs,
    read: Callable[[Inputs], tuple[Tensor, ...]],
    *,
    smooth: bool = True,
) -> None:
    """Fail the check unless gradients agree with differences.

    Args:
        exact: The attention, in float64.
        inputs: What it is given.
        read: From the inputs to results.
        smooth: Whether gradients reach all inputs and parameters, or the values alone.
    """
    leaves = Inputs(*[tensor.clone().requires_grad_() for tensor in inputs])
    sources: list[Tensor] = [leaves.value]
    if smooth:
        module = exact.attention
        sources = [*leaves, *(module.parameters() if isinstance(module, nn.Module) else ())]

    def results(*_: Tensor) -> tuple[Tensor, ...]:
        return tuple(part for part in read(leaves) if part.requires_grad)

    try:
        torch.autograd.gradcheck(results, sources, fast_mode=True)
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
    if subject.traits.hard_evaluation:
        raise NotApplicable("which key it chooses may turn on a rounding")
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
    if not subject.traits.hard_evaluation:  # else a rounding may change which key is chosen
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
