"""Scores: how much each key has to do with each query."""

from regard.attention.parts import Score
from regard.attention.scores.additive import Additive, Coverage, LocationSensitive
from regard.attention.scores.plain import Function, Location, Uniform
from regard.attention.scores.products import Bilinear, Cosine, Dot, Rotary, ScaledDot
from regard.attention.scores.terms import TERMS, ALiBi, RelativeBias, Sum, Term

SCORES: dict[str, type[Score]] = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "bilinear": Bilinear,
    "cosine": Cosine,
    "rotary": Rotary,
    "location": Location,
    "location_sensitive": LocationSensitive,
    "coverage": Coverage,
    "uniform": Uniform,
}

__all__ = [
    "SCORES",
    "TERMS",
    "ALiBi",
    "Additive",
    "Bilinear",
    "Cosine",
    "Coverage",
    "Dot",
    "Function",
    "Location",
    "LocationSensitive",
    "RelativeBias",
    "Rotary",
    "ScaledDot",
    "Sum",
    "Term",
    "Uniform",
]
