"""Attention for PyTorch that you can insert anywhere, train on your own data, and look inside.

Names load when they are touched: `import regard` alone brings in neither torch nor any
other heavy package.

Example:
    >>> import regard
    >>> attention = regard.Attention("additive", query_dim=8, key_dim=6, hidden_dim=5)
    >>> attention.query_dim, attention.key_dim
    (8, 6)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard import (
        attention,
        data,
        errors,
        inside,
        memory,
        models,
        pictures,
        tasks,
        testing,
        training,
    )
    from regard.attention import losses, masks, pooling, presets, scores, selections
    from regard.attention.core import Attended, Attention, Prepared, State, unroll
    from regard.attention.multihead import MultiHead
    from regard.inside.insert import insert
    from regard.pictures.records import Record
    from regard.tasks import estimators, load

__version__ = "0.1.0"

__all__ = [
    "Attended",
    "Attention",
    "MultiHead",
    "Prepared",
    "Record",
    "State",
    "__version__",
    "attention",
    "data",
    "errors",
    "estimators",
    "insert",
    "inside",
    "load",
    "losses",
    "masks",
    "memory",
    "models",
    "pictures",
    "pooling",
    "presets",
    "scores",
    "selections",
    "tasks",
    "testing",
    "training",
    "unroll",
]

_NAMES = {
    "Attended": "regard.attention.core",
    "Attention": "regard.attention.core",
    "MultiHead": "regard.attention.multihead",
    "Prepared": "regard.attention.core",
    "Record": "regard.pictures.records",
    "State": "regard.attention.core",
    "insert": "regard.inside.insert",
    "load": "regard.tasks",
    "unroll": "regard.attention.core",
}
_MODULES = {
    "attention": "regard.attention",
    "data": "regard.data",
    "errors": "regard.errors",
    "estimators": "regard.tasks.estimators",
    "inside": "regard.inside",
    "losses": "regard.attention.losses",
    "masks": "regard.attention.masks",
    "memory": "regard.memory",
    "models": "regard.models",
    "pictures": "regard.pictures",
    "pooling": "regard.attention.pooling",
    "presets": "regard.attention.presets",
    "scores": "regard.attention.scores",
    "selections": "regard.attention.selections",
    "tasks": "regard.tasks",
    "testing": "regard.testing",
    "training": "regard.training",
}


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
