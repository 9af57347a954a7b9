"""Which implementation computes fused additive attention.

`REGARD_KERNEL` decides: `auto` (the default) takes the one for the device, `reference` takes none,
`cpu` or `cuda` that one alone. What an implementation cannot serve, the reference does.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.attention.kernels import cpu, cuda
from regard.errors import ConfigError, did_you_mean

VARIABLE = "REGARD_KERNEL"
SETTINGS = ("auto", "reference", "cpu", "cuda")
_IMPLEMENTATIONS: dict[str, Any] = {"cpu": cpu, "cuda": cuda}


def setting() -> str:
    """Return the setting.

    Raises:
        ConfigError: It is none of those known.
    """
    return _checked(os.environ.get(VARIABLE, "auto"))


@cache
def _checked(name: str) -> str:
    if name not in SETTINGS:
        known = did_you_mean(name, SETTINGS)
        raise ConfigError(f"{VARIABLE} must be the name of a kernel; got {name!r}: {known}")
    return name


def kernel(tensors: list[Tensor]) -> Any | None:
    """Return the implementation that serves these tensors; None for the reference.

    Args:
        tensors: All that take part, on one device.

    Raises:
        ConfigError: The setting is none of those known.
    """
    wanted = setting()
    name = tensors[0].device.type if wanted == "auto" else wanted
    chosen = _IMPLEMENTATIONS.get(name)
    return chosen if chosen is not None and chosen.serves(tensors) else None


def plain(tensors: list[Tensor]) -> bool:
    """Tell whether tensors hold numbers that a kernel can read: no transform, no subclass.

    Args:
        tensors: All that take part.
    """
    if torch._C._are_functorch_transforms_active() or torch.jit.is_tracing():
        return False
    if torch.autograd.forward_ad._current_level >= 0:
        return False
    return all(type(t) in (Tensor, torch.nn.Parameter) and not t.is_neg() for t in tensors)
