"""The Triton kernel under its interpreter, in a process of its own: the reference is beside it."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from tests.attention.kernels import cases

from regard.attention.kernels import cuda

TRITON = importlib.util.find_spec("triton") is not None

CHECKS = """
import torch
from regard.attention.kernels import choosing, cuda
from tests.attention.kernels.cases import Sizes, check_attention, check_scores, inputs
assert choosing.kernel([torch.ones(2)]) is cuda
for sizes in (Sizes(), Sizes(2, 20, 37, 40, 10), Sizes(1, 1, 1, 1, 1), Sizes(1, 17, 16, 65, 3)):
    check_scores(cuda, sizes)
    check_attention(cuda, sizes)
check_scores(cuda, Sizes(1, 5, 6, 8), scale=1e3)
cuda.PAIRS = 40
check_attention(cuda, Sizes(2, 20, 9, 12, 4), masked=False)
check_attention(cuda, Sizes(2, 20, 9, 12, 4))
own = inputs(Sizes(2, 20, 17, 12))
odd = own._replace(query=own.query.transpose(1, 2).contiguous().transpose(1, 2))
assert torch.equal(cuda.scores(odd), cuda.scores(own))
half = inputs(Sizes(2, 20, 17, 12), dtype=torch.bfloat16)
found = cuda.spread_scores(half, torch.ones(2, 20, 17))
assert [g.dtype for g in found[:3]] == [torch.bfloat16] * 3
print("agree")
"""


@pytest.mark.skipif(not TRITON, reason="triton is not installed")
def test_the_interpreted_kernel_agrees_with_the_formula():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "REGARD_KERNEL": "cuda"}
    done = subprocess.run(
        [sys.executable, "-c", CHECKS],
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
        env=environment,
    )
    assert done.stdout.strip() == "agree", done.stderr


def test_what_it_serves():
    on_cpu = [torch.ones(2)]
    assert not cuda.serves(on_cpu)
    assert not cuda.serves([torch.ones(2, dtype=torch.float64)])
    features = cases.inputs(cases.Sizes(channels=2)).given
    assert not cuda.serves(features)


@pytest.mark.skipif(TRITON, reason="triton is installed")
def test_without_triton_the_reference_serves(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cuda")
    scores = cases.kernels_scores(cases.inputs(cases.Sizes()))
    assert scores.shape == (2, 5, 7)
    with pytest.raises(ImportError, match="triton must be installed"):
        cuda.scores(cases.inputs(cases.Sizes()))
