"""Measure fused additive attention against the formula, torch.compile, Keras and C++.

    python benchmarks/additive.py [first] [small] [sizes] [growth] [--peers PYTHON]

Times: every implementation in turn, again and again, in one process for each size and number of
threads; the least time of each counts, so that other work on the machine hurts none more than
another. Memory: a fresh process for each, the peak of forward + backward over what it held before.
PEERS is the Python of an environment with keras, jax and torch. The loop in C++ is compiled with
g++ or clang++ where there is one. Writes `results/additive.json`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from regard.attention import functional, kernels
from regard.attention.kernels import choosing

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "additive.json"
SIZES = (
    (32, 1, 30, 256),
    (32, 30, 30, 256),
    (16, 128, 128, 256),
    (4, 512, 512, 256),
    (1, 4096, 4096, 256),
)
SMALL_SIZES = (
    (8, 1, 30, 256),
    (32, 1, 30, 256),
    (64, 1, 30, 256),
    (1, 16, 16, 64),
    (1, 16, 16, 256),
    (1, 16, 32, 256),
    (1, 32, 32, 256),
    (8, 4, 32, 256),
)
SECONDS = 4.0  # for the implementations of one size together
MODES = ("forward", "forward + backward")
Size = tuple[int, int, int, int]
Tensors = tuple[Tensor, Tensor, Tensor, Tensor]
Run = Callable[[], object]


def drawn(size: Size) -> Tensors:
    """Return projected queries and keys, the vector and values of unit variance."""
    batch, queries, keys, hidden = size
    torch.manual_seed(0)
    parts = (batch, queries, hidden), (batch, keys, hidden), (hidden,), (batch, keys, hidden)
    query, key, vector, value = (torch.randn(shape).requires_grad_() for shape in parts)
    return query, key, vector, value


def eager_scores(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    """Score by the formula."""
    return functional.additive_scores(query, key, vector)


def eager(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """Read by the formula."""
    return eager_scores(query, key, vector).softmax(dim=-1) @ value


def kept(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """Read with fused scores, where the weights are kept."""
    return kernels.additive_scores(query, key, vector).softmax(dim=-1) @ value


def fused(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """Read in one pass."""
    return kernels.additive_attention(query, key, vector, value)


def reference(query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> Tensor:
    """Read by the formula, a few queries at a time."""
    inputs = kernels.reference.Inputs(query, key, vector)
    return kernels.reference.contexts(inputs, kernels.reference.Source(value, None))


def implementations(names: str = "") -> dict[str, Callable[..., Tensor]]:
    """Return what is compared, by name; of scores alone, the first three tensors are taken."""
    found: dict[str, Callable[..., Tensor]] = {
        "eager": eager,
        "compile": torch.compile(eager, dynamic=False),
        "reference": reference,
        "kernel": fused,
        "kernel, weights kept": kept,
        "eager scores": eager_scores,
        "compile scores": torch.compile(eager_scores, dynamic=False),
        "kernel scores": kernels.additive_scores,
    }
    return {name: found[name] for name in names.split(";")} if names else found


def forward(function: Callable[..., Tensor], tensors: tuple[Tensor, ...]) -> Run:
    """Return a call without gradients."""

    def run() -> object:
        with torch.no_grad():
            return function(*tensors)

    return run


def both(function: Callable[..., Tensor], tensors: tuple[Tensor, ...]) -> Run:
    """Return a call with gradients of everything."""
    given: list[Tensor] = []

    def run() -> object:
        result = function(*tensors)
        if not given:
            given.append(torch.randn(result.shape))
        return torch.autograd.grad(result, tensors, given[0])

    return run


def timed(runs: dict[str, Run], seconds: float = SECONDS) -> dict[str, float]:
    """Run all in turn until the time is up; return the least milliseconds of each."""
    least = dict.fromkeys(runs, math.inf)
    for run in runs.values():
        run()
    begun, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - begun < seconds:
        rounds += 1
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            least[name] = min(least[name], 1000 * (time.perf_counter() - started))
    return least


def runs_of(size: Size, names: list[str]) -> tuple[dict[str, Run], dict[str, Run]]:
    """Return what is to be timed, forward and with gradients."""
    torch._dynamo.reset()  # or after eight sizes PyTorch compiles no more, and takes the formula
    tensors = drawn(size)
    functions = {name: f for name, f in implementations().items() if name in names}
    parts = {name: tensors[:3] if name.endswith("scores") else tensors for name in functions}
    return (
        {name: forward(f, parts[name]) for name, f in functions.items()},
        {name: both(f, parts[name]) for name, f in functions.items()},
    )


def fits(size: Size) -> bool:
    """Tell whether the formula's tensors fit in memory."""
    return math.prod(size) * 4 * 4 < 16e9


def times(size: Size, threads: int, library: ctypes.CDLL | None) -> dict[str, Any]:
    """Time all implementations of one size."""
    torch.set_num_threads(threads)
    names = list(implementations()) if fits(size) else ["kernel", "kernel, weights kept"]
    once, twice = runs_of(size, names)
    if library is not None and fits(size) and size[1] % 128 == 0 and size[0] % threads == 0:
        tensors = [t.detach() for t in drawn(size)[:3]]
        once["C++ scores"], twice["C++ gradients"] = by_hand(library, tensors, threads)
        spread = kernels.cpu.spread_scores
        inputs, given = kernels.reference.Inputs(*tensors), torch.ones(size[:3])
        twice["kernel gradients"] = lambda: spread(inputs, given)
    return dict(zip(MODES, (timed(once), timed(twice)), strict=True))


def by_hand(library: ctypes.CDLL, tensors: list[Tensor], threads: int) -> tuple[Run, Run]:
    """Return calls of the loop in C++: scores, and gradients from those of the scores."""
    (batch, queries, hidden), keys = tensors[0].shape, tensors[1].shape[1]
    sizes = (ctypes.c_long * 5)(batch, queries, keys, hidden, threads)
    result, given = torch.empty(batch, queries, keys), torch.ones(batch, queries, keys)
    gradients = [torch.empty_like(tensor) for tensor in tensors]

    def pointers(*them: Tensor) -> list[ctypes.c_void_p]:
        return [ctypes.c_void_p(tensor.data_ptr()) for tensor in them]

    own = kernels.additive_scores(*tensors)
    library.scores(*pointers(*tensors, result), sizes)
    if not torch.allclose(own, result, atol=1e-4):
        raise SystemExit("the loop in C++ gives other scores")
    return (
        lambda: library.scores(*pointers(*tensors, result), sizes),
        lambda: library.gradients(*pointers(*tensors, given, *gradients), sizes),
    )


def built(folder: Path) -> tuple[ctypes.CDLL | None, str]:
    """Compile the loop in C++, where there is a compiler and AVX-512; say with what."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    flags = Path("/proc/cpuinfo")
    if compiler is None or not flags.exists() or "avx512f" not in flags.read_text():
        return None, "none"
    options = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
    target = folder / "loop.so"
    source = HERE / "additive_loop.cpp"
    subprocess.run([compiler, *options, str(source), "-o", str(target)], check=True)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return ctypes.CDLL(str(target)), version.stdout.splitlines()[0]


def memory(name: str, size: Size) -> float:
    """Return the peak megabytes of forward + backward in this process, over what it held."""
    (function,) = implementations(name).values()
    small = drawn((2, 32, 32, 256))  # of more than the formula is taken for
    both(function, small)()  # compiled or loaded, and buffers of libraries made
    run = both(function, drawn(size))
    status = Path("/proc/self/status")
    Path("/proc/self/clear_refs").write_text("5")
    held = _kilobytes(status, "VmRSS")
    run()
    return (_kilobytes(status, "VmHWM") - held) / 1024


def _kilobytes(status: Path, name: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])


def memories(size: Size) -> dict[str, float]:
    """Measure memory of each implementation in a process of its own."""
    names = ("eager", "compile", "reference", "kernel", "kernel, weights kept")
    found = {}
    for name in names if fits(size) else ("reference", "kernel", "kernel, weights kept"):
        if name == "reference" and not fits(size):
            continue  # as bounded as before, and minutes long
        command = [sys.executable, __file__, "--memory", name, json.dumps(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = float(done.stdout.split()[-1])
    return found


def growth() -> dict[str, list[dict[str, float]]]:
    """Time the kernel and the formula as each of the four sizes doubles."""
    torch.set_num_threads(1)
    found: dict[str, list[dict[str, float]]] = {}
    for axis, label in enumerate(("batch", "queries", "keys", "hidden")):
        found[label] = []
        for factor in (1, 2, 4, 8):
            size = [8, 32, 32, 64]
            size[axis] *= factor
            _, twice = runs_of((size[0], size[1], size[2], size[3]), ["eager", "kernel"])
            found[label].append({"size": size[axis], **timed(twice, seconds=0.8)})
    return found


def small() -> list[dict[str, Any]]:
    """Time the kernel's scores, taken by force, and the formula's, where a call is much of it."""
    rows, names = [], ["eager scores", "kernel scores"]
    for size in SMALL_SIZES:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            row: dict[str, Any] = {"size": size, "threads": threads}
            for mode, runs in zip(MODES, runs_of(size, names), strict=True):
                with mock.patch.dict(os.environ, {choosing.VARIABLE: "cpu"}):
                    spent = timed(runs, seconds=0.4)
                row[mode] = {"eager / kernel": spent["eager scores"] / spent["kernel scores"]}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


FIRST_CALL = """
import time, torch
from regard.attention import kernels
query, key, vector = torch.ones(1, 64, 64), torch.ones(1, 64, 64), torch.ones(64)
begun = time.perf_counter()
kernels.additive_scores(query, key, vector)
print(time.perf_counter() - begun)
query.requires_grad_()
begun = time.perf_counter()
kernels.additive_scores(query, key, vector).sum().backward()
print(time.perf_counter() - begun)
"""


def first_calls() -> dict[str, float]:
    """Time the first forward and the first backward of fresh processes, without cache and with."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for label, repeats in (("without cache", 1), ("with cache", 5)):
            least = [math.inf, math.inf]
            for _ in range(repeats):
                done = subprocess.run(
                    [sys.executable, "-c", FIRST_CALL],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "NUMBA_CACHE_DIR": folder, choosing.VARIABLE: "cpu"},
                )
                least = [min(a, float(b)) for a, b in zip(least, done.stdout.split(), strict=True)]
            found[f"forward, {label}"], found[f"backward, {label}"] = least
        return found


def peers(python: str, size: Size, threads: int) -> dict[str, Any]:
    """Time Keras's layer in its own environment, beside the formula there."""
    command = [python, str(HERE / "additive_peers.py"), json.dumps(size), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ratios(row: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return how many times faster the kernel is than each, and C++ than the kernel."""
    found: dict[str, dict[str, float]] = {}
    for mode in MODES:
        spent = row["times"][mode]
        pairs = {
            "eager / kernel": ("eager", "kernel"),
            "compile / kernel": ("compile", "kernel"),
            "eager / kernel, scores": ("eager scores", "kernel scores"),
            "compile / kernel, scores": ("compile scores", "kernel scores"),
            "kernel / C++, scores": ("kernel scores", "C++ scores"),
            "kernel / C++, gradients": ("kernel gradients", "C++ gradients"),
        }
        found[mode] = {
            label: spent[a] / spent[b]
            for label, (a, b) in pairs.items()
            if a in spent and b in spent
        }
    return found


def of_sizes(library: ctypes.CDLL | None) -> list[dict[str, Any]]:
    """Measure times and memory of all sizes, with one thread and two."""
    rows = []
    for size in SIZES:
        megabytes = memories(size)
        for threads in (1, 2):
            row = {"size": size, "threads": threads, "megabytes": megabytes}
            row["times"] = times(size, threads, library)
            row["ratios"] = ratios(row)
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def of_peers(python: str) -> list[dict[str, Any]]:
    """Measure Keras's layer at all sizes that its tensors allow."""
    rows = []
    for size in SIZES:
        for threads in (1, 2) if fits(size) else ():
            row = {"size": size, "threads": threads, **peers(python, size, threads)}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    """Measure what is asked for, and write it down beside what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", default=["first", "small", "sizes", "growth"])
    parser.add_argument("--peers", help="the Python of an environment with keras and jax")
    parser.add_argument("--memory", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        name, size = arguments.memory[0], json.loads(arguments.memory[1])
        print(memory(name, (size[0], size[1], size[2], size[3])))
        return
    result: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    result["machine"] = f"{platform.machine()}, {torch.get_num_threads()} cores"
    result["versions"] = {"python": platform.python_version(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        library, result["compiler"] = built(Path(folder))
        if "first" in arguments.stages:
            result["first calls, seconds"] = first_calls()
            print(result["first calls, seconds"], flush=True)
        if "small" in arguments.stages:
            result["small problems"] = small()
        if "sizes" in arguments.stages:
            result["sizes"] = of_sizes(library)
    if "growth" in arguments.stages:
        result["growth, milliseconds"] = growth()
        print(json.dumps(result["growth, milliseconds"]))
    if arguments.peers:
        result["peers"] = of_peers(arguments.peers)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
