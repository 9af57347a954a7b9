"""Decoding: from a model that foretells the next token to whole outputs."""

from regard.models.decoding.base import (
    Hypothesis,
    Search,
    SearchState,
    SearchStep,
    Steppable,
    Symbols,
    forced,
)
from regard.models.decoding.beam import beam_search
from regard.models.decoding.greedy import greedy_search

__all__ = [
    "Hypothesis",
    "Search",
    "SearchState",
    "SearchStep",
    "Steppable",
    "Symbols",
    "beam_search",
    "forced",
    "greedy_search",
]
