"""Load quickly what is large."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Let the garbage collector rest.

    An import makes many objects that stay; each walk over all that PyTorch and numba hold takes
    time and finds nothing to free. `benchmarks/additive.py first` measures the time until a call.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
