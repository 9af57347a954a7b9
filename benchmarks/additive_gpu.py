"""Check and time the Triton kernel of additive attention where a GPU is at hand.

    python benchmarks/additive_gpu.py

Compares scores, contexts and all gradients with float64, then times the kernel, the formula and
torch.compile at several sizes and in float32 and bfloat16. Says so and ends where there is no GPU.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention import functional, kernels
from regard.attention.kernels import choosing

CHECKED = ((2, 5, 7, 6), (3, 70, 37, 33), (1, 130, 16, 64), (2, 128, 128, 256))
TIMED = ((32, 1, 30, 256), (32, 30, 30, 256), (16, 128, 128, 256), (4, 512, 512, 256))
Size = tuple[int, int, int, int]


def drawn(size: Size, dtype: torch.dtype) -> list[Tensor]:
    """Return queries, keys, the vector and values on the GPU."""
    batch, queries, keys, hidden = size
    torch.manual_seed(0)
    shapes = (batch, queries, hidden), (batch, keys, hidden), (hidden,), (batch, keys, hidden)
    return [torch.randn(s, device="cuda", dtype=dtype).requires_grad_() for s in shapes]


def formula(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """Read by the formula, which builds queries x keys x hidden."""
    weights = functional.masked_softmax(functional.additive_scores(query, key, vector), None)
    return functional.weighted_sum(weights, value)


def distance(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference over the largest number expected."""
    return float(((found.double() - expected).abs().max() / expected.abs().max()).detach())


def check() -> None:
    """Compare with float64, and raise where the tolerance of the tests is not kept."""
    for size in CHECKED:
        tensors = drawn(size, torch.float32)
        if choosing.kernel(tensors) is None:
            raise SystemExit("the cuda kernel does not serve here: is triton installed?")
        wide = [t.detach().double().requires_grad_() for t in tensors]
        found, expected = kernels.additive_attention(*tensors), formula(*wide)
        given = torch.randn_like(found)
        left = torch.autograd.grad(found, tensors, given)
        right = torch.autograd.grad(expected, wide, given.double())
        scores = kernels.additive_scores(*tensors[:3])
        off = float((scores - functional.additive_scores(*wide[:3])).abs().max().detach())
        worst = max(map(distance, (found, *left), (expected, *right)))
        print(f"{size}: scores within {off:.1e}, contexts and gradients within {worst:.1e}")
        if off > 2e-5 or worst > 1e-4:
            raise SystemExit("the kernel does not agree with the formula")


def milliseconds(run: Callable[[], object]) -> float:
    """Return the least time of many runs."""
    least = math.inf
    for _ in range(30):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        run()
        torch.cuda.synchronize()
        least = min(least, 1000 * (time.perf_counter() - begun))
    return least


def measure(size: Size, dtype: torch.dtype) -> None:
    """Print the time and memory of forward + backward of each implementation."""
    tensors = drawn(size, dtype)
    given = torch.randn(size[0], size[1], size[3], device="cuda", dtype=dtype)
    functions = {
        "kernel": kernels.additive_attention,
        "formula": formula,
        "compile": torch.compile(formula, dynamic=False),
    }
    line = []
    for name, function in functions.items():

        def run(function: Callable[..., Tensor] = function) -> object:
            return torch.autograd.grad(function(*tensors), tensors, given)

        run()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        spent = milliseconds(run)
        peak = (torch.cuda.max_memory_allocated() - held) / 1e6
        line.append(f"{name} {spent:.3f} ms, {peak:.0f} MB")
    print(f"{size} {dtype}: {'; '.join(line)}")


def main() -> None:
    """Check, then measure."""
    if not torch.cuda.is_available():
        print("no GPU at hand: nothing was checked")
        return
    os.environ["REGARD_KERNEL"] = "cuda"
    print(torch.cuda.get_device_name(), torch.__version__)
    check()
    for size in TIMED:
        for dtype in (torch.float32, torch.bfloat16):
            torch.compiler.reset()
            measure(size, dtype)


if __name__ == "__main__":
    main()
