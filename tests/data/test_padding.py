"""Sequences of vectors in one tensor."""

import numpy as np
import torch

from regard.data.padding import pad_vectors


def test_vectors_are_padded_under_a_mask() -> None:
    one = np.arange(6.0).reshape(3, 2)
    values, mask = pad_vectors([one[:1], np.zeros((0, 2)), one[::-1]], features=2)
    assert values.tolist() == [[[0, 1], [0, 0], [0, 0]], [[0, 0]] * 3, [[4, 5], [2, 3], [0, 1]]]
    assert mask.tolist() == [[True, False, False], [False] * 3, [True] * 3]
    assert values.dtype == torch.float64
    assert pad_vectors([], features=2)[0].shape == (0, 0, 2)
