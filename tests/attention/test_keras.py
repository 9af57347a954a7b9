"""The poolings against Keras layers that are written out by the published formulas."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from regard.attention.pooling import AttentionPooling, FeedForwardAttention, StepAttention

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
pytestmark = pytest.mark.skipif(keras.backend.backend() != "torch", reason="needs Keras on PyTorch")

BATCH, STEPS, FEATURES, HIDDEN = 3, 6, 4, 5


@pytest.fixture
def sequence():
    return np.random.default_rng(1).standard_normal((BATCH, STEPS, FEATURES)).astype("float32")


def copied(dense, weight, bias=None):
    """Give a Keras layer the parameters of one of PyTorch."""
    dense.set_weights(
        [w.detach().numpy() for w in ((weight.T,) if bias is None else (weight.T, bias))]
    )


def block_over_steps(attention):
    """Permute, a dense softmax over the steps, their mean and a copy of it if shared, multiply."""
    inputs = keras.Input((STEPS, FEATURES))
    across = keras.layers.Permute((2, 1))(inputs)
    dense = keras.layers.Dense(STEPS, activation=attention.activation)
    scores = keras.layers.Softmax(axis=-1)(dense(across))
    if attention.shared:
        mean = keras.layers.Lambda(lambda x: keras.ops.mean(x, axis=1))(scores)
        scores = keras.layers.RepeatVector(FEATURES)(mean)
    weights = keras.layers.Permute((2, 1))(scores)
    weighted = keras.layers.Multiply()([inputs, weights])
    if attention.reduce == "sum":
        weighted = keras.layers.Lambda(lambda x: keras.ops.sum(x, axis=1))(weighted)
    model = keras.Model(inputs, [weighted, weights])
    copied(dense, attention.dense.weight, attention.dense.bias)
    return model


@pytest.mark.parametrize("activation", [None, "tanh"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("reduce", [None, "sum"])
def test_step_attention_is_the_block_of_dense_layers(sequence, activation, shared, reduce):
    attention = StepAttention(STEPS, activation=activation, shared=shared, reduce=reduce)
    context, weights = block_over_steps(attention)(sequence)
    mine = attention(torch.from_numpy(sequence))
    assert torch.allclose(mine.context, context, atol=1e-6)
    own = mine.weights.unsqueeze(-1).expand_as(weights) if shared else mine.weights
    assert torch.allclose(own, weights, atol=1e-6)


class LearnedVector(keras.layers.Layer):
    """`softmax(u · tanh(W h + b))`, and the sum of the `h` that it weighs."""

    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(HIDDEN, activation="tanh")
        self.vector = keras.layers.Dense(1, use_bias=False)

    def call(self, items, mask):
        scores = keras.ops.squeeze(self.vector(self.hidden(items)), -1)
        weights = keras.ops.softmax(keras.ops.where(mask, scores, -1e30), axis=-1)
        return keras.ops.sum(items * keras.ops.expand_dims(weights, -1), axis=1), weights


def test_attention_pooling_is_the_layer_of_the_learned_vector(sequence):
    pooling, layer = AttentionPooling(FEATURES, hidden_dim=HIDDEN), LearnedVector()
    mask = np.arange(STEPS) < np.array([[STEPS], [4], [1]])
    layer(sequence, mask)
    score = pooling.attention.score
    copied(layer.hidden, score.hidden.weight, score.hidden.bias)
    copied(layer.vector, score.vector.weight)
    context, weights = layer(sequence, mask)
    mine = pooling(torch.from_numpy(sequence), mask=torch.from_numpy(mask))
    assert torch.allclose(mine.context, context, atol=1e-6)
    assert torch.allclose(mine.weights, weights, atol=1e-6)


def test_feed_forward_attention_is_a_dense_layer_of_tanh(sequence):
    pooling = FeedForwardAttention(FEATURES)
    inputs = keras.Input((STEPS, FEATURES))
    dense = keras.layers.Dense(1, activation="tanh")
    weights = keras.layers.Softmax(axis=1)(dense(inputs))
    context = keras.layers.Dot(axes=1)([weights, inputs])
    model = keras.Model(inputs, [context, weights])
    copied(dense, *pooling.attention.score.projection.parameters())
    context, weights = model(sequence)
    mine = pooling(torch.from_numpy(sequence))
    assert torch.allclose(mine.context, context.squeeze(1), atol=1e-6)
    assert torch.allclose(mine.weights, weights.squeeze(2), atol=1e-6)
