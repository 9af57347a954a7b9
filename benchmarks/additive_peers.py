"""Time Keras's AdditiveAttention beside the formula in PyTorch, for benchmarks/additive.py.

    PYTHON benchmarks/additive_peers.py "[16, 128, 128, 256]" THREADS

Needs keras, jax and torch, and nothing of regard; each backend is a process of its own. Prints
milliseconds, the least of all rounds, as one line of JSON.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time


def timed(runs: dict, seconds: float = 2.0) -> dict[str, float]:
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


def formula(size: list[int], threads: int) -> tuple:
    """Return calls of the formula in PyTorch: forward, and with gradients."""
    import torch

    torch.set_num_threads(threads)
    batch, queries, keys, hidden = size
    query, key = torch.randn(batch, queries, hidden), torch.randn(batch, keys, hidden)
    vector, value = torch.randn(hidden), torch.randn(batch, keys, hidden)
    tensors = [t.requires_grad_() for t in (query, key, vector, value)]

    def read() -> torch.Tensor:
        hidden_layer = torch.tanh(query.unsqueeze(2) + key.unsqueeze(1))
        return (hidden_layer @ vector).softmax(-1) @ value

    def forward() -> torch.Tensor:
        with torch.no_grad():
            return read()

    given = torch.randn(batch, queries, hidden)
    return forward, lambda: torch.autograd.grad(read(), tensors, given), (tensors, given)


def keras_torch(tensors: list, given: object) -> tuple:
    """Return calls of the layer on Keras's torch backend."""
    import keras
    import torch

    layer = keras.layers.AdditiveAttention()
    query, key, _, value = tensors
    layer([query, value, key])
    wanted = [query, key, value, *(w.value for w in layer.trainable_weights)]

    def forward() -> object:
        with torch.no_grad():
            return layer([query, value, key])

    return forward, lambda: torch.autograd.grad(layer([query, value, key]), wanted, given)


def keras_jax(tensors: list, given: object) -> tuple:
    """Return calls of the layer on Keras's jax backend, compiled by jit."""
    import jax
    import jax.numpy as jnp
    import keras

    layer = keras.layers.AdditiveAttention()
    query, key, _, value = (jnp.asarray(t.detach().numpy()) for t in tensors)
    slope = jnp.asarray(given.numpy())
    layer([query, value, key])
    weights = [w.value for w in layer.trainable_variables]

    def read(weights: list, query: object, value: object, key: object) -> object:
        return layer.stateless_call(weights, [], [query, value, key])[0]

    forward = jax.jit(read)
    gradients = jax.jit(jax.grad(lambda *parts: (read(*parts) * slope).sum(), argnums=(0, 1, 2, 3)))
    return (
        lambda: jax.block_until_ready(forward(weights, query, value, key)),
        lambda: jax.block_until_ready(gradients(weights, query, value, key)),
    )


def main() -> None:
    """Measure one backend, or each in a process of its own."""
    size, threads = json.loads(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) == 3:
        found = {}
        for backend in ("torch", "jax"):
            environment = {**os.environ, "KERAS_BACKEND": backend, "OMP_NUM_THREADS": str(threads)}
            if threads == 1:
                environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
            command = [sys.executable, __file__, sys.argv[1], sys.argv[2], backend]
            command = command if threads > 1 else ["taskset", "-c", "0", *command]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            )
            found[f"keras, {backend}"] = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(found))
        return
    forward, gradients, (tensors, given) = formula(size, threads)
    own = (keras_torch if sys.argv[3] == "torch" else keras_jax)(tensors, given)
    once = timed({"formula": forward, "keras": own[0]})
    twice = timed({"formula": gradients, "keras": own[1]})
    print(json.dumps({"forward": once, "forward + backward": twice}))


if __name__ == "__main__":
    main()
