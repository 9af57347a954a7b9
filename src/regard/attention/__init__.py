"""Attention: scores -> weights -> context."""

from regard.attention.core import Attention, unroll
from regard.attention.multihead import MultiHead
from regard.attention.parts import (
    Attended,
    Prepared,
    Score,
    Selected,
    Selection,
    State,
    Traits,
)
from regard.attention.reading import check_finite
from regard.attention.scores import SCORES, Additive, Bilinear, Dot, ScaledDot, Uniform
from regard.attention.selections import SELECTIONS, Softmax

__all__ = [
    "SCORES",
    "SELECTIONS",
    "Additive",
    "Attended",
    "Attention",
    "Bilinear",
    "Dot",
    "MultiHead",
    "Prepared",
    "ScaledDot",
    "Score",
    "Selected",
    "Selection",
    "Softmax",
    "State",
    "Traits",
    "Uniform",
    "check_finite",
    "unroll",
]
