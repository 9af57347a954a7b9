"""The fused pass of the problems of long memory computes what the layers do."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from regard.attention.pooling import FeedForwardAttention

FILE = Path(__file__).parents[2] / "benchmarks" / "long_memory_kernel.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("long_memory_kernel", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # by this name Numba finds what it has compiled
    spec.loader.exec_module(module)
    return module


kernel = _loaded()


@pytest.mark.parametrize("attend", [True, False])
def test_values_and_gradients_are_those_of_the_layers(attend: bool) -> None:
    torch.manual_seed(1)
    dense, pooling = nn.Linear(2, 100), FeedForwardAttention(100) if attend else None
    x, gradient = torch.randn(5, 200, 2), torch.randn(5, 100)
    parameters = [*dense.parameters(), *(pooling.parameters() if pooling else ())]
    hidden = nn.functional.leaky_relu(dense(x), kernel.SLOPE)
    expected = hidden.mean(dim=1) if pooling is None else pooling(hidden).context
    found = kernel.fused(x, dense, pooling)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    wanted = torch.autograd.grad(expected, parameters, gradient)
    for mine, theirs in zip(torch.autograd.grad(found, parameters, gradient), wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
