"""Many weights in little space: 14 bits a weight, its bytes in planes, deflated, base64."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 16383  # of the largest weight: a screen shows fewer, and 16 bits make a third more bytes


def pack(weights: NDArray[np.float32]) -> dict[str, object]:
    """Pack the weights of several maps.

    The high bytes of all weights come before the low ones: they are mostly alike, and deflate to
    little.

    Args:
        weights: Weights of shape (maps, rows, columns).

    Returns:
        Shape, largest weight, number of steps, and the data in base64; a page unpacks it.
    """
    top = float(weights.max(initial=0.0)) or 1.0
    levels = np.rint(weights.astype(np.float64) * (STEPS / top)).astype("<u2")
    planes = levels.reshape(-1).view(np.uint8).reshape(-1, 2).T.tobytes()
    data = base64.b64encode(zlib.compress(planes, 9)).decode("ascii")
    return {"shape": list(weights.shape), "top": top, "steps": STEPS, "data": data}
