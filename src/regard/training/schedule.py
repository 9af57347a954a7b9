"""Learning rates as a pure function of the step, so that a resumed run needs no memory of them."""

from __future__ import annotations

import math


def factor(step: int, *, schedule: str, warmup: int, total: int) -> float:
    """Return the share of the highest learning rate at a step.

    Args:
        step: The step to be made, from 0.
        schedule: "constant", "linear", "cosine", "inverse_sqrt" or "halving" (after each quarter).
        warmup: Steps over which the rate rises evenly.
        total: Steps of the whole training.

    Returns:
        A number from 0 to 1.

    References:
        Vaswani et al. 2017 (inverse square root); Loshchilov and Hutter 2017 (cosine).

    Example:
        >>> [factor(s, schedule="linear", warmup=2, total=6) for s in range(6)]
        [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < warmup:
        return (step + 1) / warmup
    done = min((step - warmup) / max(total - warmup, 1), 1.0)
    if schedule == "linear":
        return 1.0 - done
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * done))
    if schedule == "halving":
        return float(0.5 ** min(int(4.0 * done), 3))
    if schedule == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / (step + 1))
    return 1.0
