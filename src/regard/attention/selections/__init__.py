"""Selections: how scores become weights."""

from regard.attention.parts import Selection
from regard.attention.selections.hard import GumbelSoftmax, Hardmax, Sampled
from regard.attention.selections.local import LocalMonotonic, LocalPredictive
from regard.attention.selections.monotonic import Monotonic
from regard.attention.selections.soft import Entmax, Sigmoid, Softmax, Sparsemax, TopK

SELECTIONS: dict[str, type[Selection]] = {
    "softmax": Softmax,
    "hardmax": Hardmax,
    "sampled": Sampled,
    "gumbel_softmax": GumbelSoftmax,
    "sparsemax": Sparsemax,
    "entmax": Entmax,
    "sigmoid": Sigmoid,
    "top_k": TopK,
    "local_monotonic": LocalMonotonic,
    "local_predictive": LocalPredictive,
    "monotonic": Monotonic,
}

__all__ = [
    "SELECTIONS",
    "Entmax",
    "GumbelSoftmax",
    "Hardmax",
    "LocalMonotonic",
    "LocalPredictive",
    "Monotonic",
    "Sampled",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "TopK",
]
