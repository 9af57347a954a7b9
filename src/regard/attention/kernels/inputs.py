"""What additive attention is made from, and how sizes are read off it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Inputs(NamedTuple):
    """Tensors of additive scores: `e_ij = w · tanh(q_i + k_j + u f_ij)`.

    Args:
        query: The projected queries, `(batch, queries, hidden)`.
        key: The projected keys, `(batch, keys, hidden)`.
        vector: The vector `w`.
        features: What else enters for each pair, `(batch, queries, keys, channels)`, or None.
        matrix: How features enter the hidden layer, `u`: `(channels, hidden)`, or None.
    """

    query: Tensor
    key: Tensor
    vector: Tensor
    features: Tensor | None = None
    matrix: Tensor | None = None

    @property
    def given(self) -> list[Tensor]:
        """The tensors that are there."""
        return [tensor for tensor in self if tensor is not None]

    @property
    def pairs(self) -> tuple[int, int, int]:
        """The shape of the scores."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]


class Source(NamedTuple):
    """What additive attention reads, and what it may read.

    Args:
        value: The values, `(batch, keys, value_dim)`.
        mask: True = may attend, `(batch, queries, keys)`; None allows every pair.
    """

    value: Tensor
    mask: Tensor | None
