"""Decoding: from a model that foretells the next token to whole outputs."""

from regard.models.decoding.base import (
    Hypothesis,
    Search,
    SearchState,
    SearchStep,
    Steppable,
    Symbols,
)
from regard.models.decoding.beam import beam_search
from regard.models.decoding.constraints import coverage
from regard.models.decoding.forcing import Said, forced, forced_each
from regard.models.decoding.greedy import greedy_search
from regard.models.decoding.sampling import Sampling, generators, sample

__all__ = [
    "Hypothesis",
    "Said",
    "Sampling",
    "Search",
    "SearchState",
    "SearchStep",
    "Steppable",
    "Symbols",
    "beam_search",
    "coverage",
    "forced",
    "forced_each",
    "generators",
    "greedy_search",
    "sample",
]
