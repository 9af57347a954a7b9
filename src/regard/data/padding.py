"""Sequences of vectors of different length in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float64
from numpy.typing import NDArray
from torch import Tensor


def pad_vectors(
    sequences: Sequence[NDArray[np.float64]], *, features: int
) -> tuple[Float64[Tensor, "batch longest features"], Bool[Tensor, "batch longest"]]:
    """Put sequences of vectors of different length into one tensor.

    Args:
        sequences: The sequences, `(steps, features)` each.
        features: How many numbers a step has.

    Returns:
        The sequences, zeros behind the shorter ones; and a mask, True where there is a step.
    """
    longest = max(map(len, sequences), default=0)
    values = np.zeros((len(sequences), longest, features))
    for row, sequence in zip(values, sequences, strict=True):
        row[: len(sequence)] = sequence
    lengths = torch.tensor([len(one) for one in sequences], dtype=torch.int64)
    return torch.from_numpy(values), torch.arange(longest) < lengths.unsqueeze(1)
