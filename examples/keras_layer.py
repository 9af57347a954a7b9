"""A pooling of regard as a layer of Keras 3, on the torch backend, trained by `fit`.

    python examples/keras_layer.py

Sequences of 20 pairs of a number and a mark; the answer is the number that is marked. Keras
builds and trains the model; the attention is regard's, and its weights are read after it.
"""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras.layers import Dense, Input, TorchModuleWrapper

from regard.attention import ContextOnly
from regard.attention.pooling import AttentionPooling


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw sequences, answers and marked places."""
    generator = np.random.default_rng(seed)
    numbers = generator.uniform(-1, 1, (count, 20)).astype("float32")
    places = generator.integers(0, 20, count)
    marks = np.eye(20, dtype="float32")[places]
    return np.stack([numbers, marks], axis=2), numbers[np.arange(count), places], places


def main() -> None:
    """Build, train, and look."""
    keras.utils.set_random_seed(1)
    pooling = AttentionPooling(16)
    x = Input((20, 2))
    items = Dense(16, activation="tanh")(x)
    context = TorchModuleWrapper(ContextOnly(pooling), output_shape=(None, 16))(items)
    model = keras.Model(x, Dense(1)(context))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    sequences, answers, _ = drawn(2_000, 1)
    model.fit(sequences, answers, epochs=6, batch_size=50, verbose=0)

    sequences, answers, places = drawn(500, 2)
    error = float(np.abs(model.predict(sequences, verbose=0)[:, 0] - answers).mean())
    with torch.no_grad():
        states = keras.Model(x, items)(torch.from_numpy(sequences))
        weights = pooling(states).weights
    looked = (weights.argmax(1).cpu().numpy() == places).mean()
    print(
        f"mean error {error:.3f}; {100 * looked:.0f} % of the largest weights on the marked number"
    )


if __name__ == "__main__":
    main()
