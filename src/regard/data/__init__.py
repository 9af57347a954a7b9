"""From files to batches: text, tokens, generated problems and deterministic batches.

Names load when they are touched, so that reading text brings in neither torch nor jieba.
"""

from __future__ import annotations

import importlib

_NAMES = {
    "Encoding": "regard.data.tokens",
    "Example": "regard.data.grammar",
    "Grammar": "regard.data.grammar",
    "Pairs": "regard.data.text",
    "Tokenizer": "regard.data.tokens",
    "loader": "regard.data.batches",
    "overlap": "regard.data.text",
    "pad": "regard.data.batches",
    "plan": "regard.data.batches",
    "read_lines": "regard.data.text",
    "read_parallel": "regard.data.text",
    "read_tsv": "regard.data.text",
}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - the table is the list


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'regard.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
