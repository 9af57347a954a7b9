"""The best continuations of a beam, or of each group of a diverse one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.decoding.base import Search


class Candidates(NamedTuple):
    """The best continuations of each group of each sentence, the best first, on the CPU.

    Args:
        log_probs: Logarithm of the probability of each, without the diversity term.
        parents: The place of the hypothesis that each continues.
        tokens: The token that each adds.
    """

    log_probs: Float[Tensor, "batch groups candidates"]
    parents: Int[Tensor, "batch groups candidates"]
    tokens: Int[Tensor, "batch groups candidates"]


def candidates(
    totals: Float[Tensor, "batch hypotheses vocabulary"], search: Search, eos: int
) -> Candidates:
    """Choose the `2 · beam / groups` best continuations of each group.

    The groups choose one after the other: a continuation with token `y` is ranked by its
    logarithm less `λ · n(y)`, where `λ` is the diversity and `n(y)` counts the hypotheses of
    earlier groups that go on with `y` at this step (the Hamming term of Vijayakumar et al.). With
    one group it is the usual beam.

    Args:
        totals: Logarithm of the probability of every continuation. The hypotheses stand group by
            group; a single one is where all groups begin.
        search: The settings.
        eos: The end mark.

    Returns:
        The continuations.

    References:
        Vijayakumar et al., Diverse beam search for improved description of complex scenes, 2018.
    """
    batch, hypotheses, vocabulary = totals.shape
    own = max(hypotheses // search.groups, 1)
    taken = totals.new_zeros(batch, vocabulary)
    best, places = [], []
    for group in range(search.groups):
        first = group * own if hypotheses > 1 else 0
        part = totals[:, first : first + own]
        width = 2 * search.beam // search.groups
        ranked = part if group == 0 else part - search.diversity * taken.unsqueeze(1)
        value, flat = ranked.flatten(1).topk(min(width, own * vocabulary), dim=1)
        best.append(value if group == 0 else part.flatten(1).gather(1, flat))
        places.append(flat + first * vocabulary)
        if group + 1 < search.groups:
            tokens = flat % vocabulary
            taken.scatter_add_(1, tokens, _going(best[-1], tokens == eos, width // 2))
    flat = torch.stack(places, dim=1).cpu()
    return Candidates(torch.stack(best, dim=1).cpu(), flat // vocabulary, flat % vocabulary)


def _going(
    log_probs: Float[Tensor, "batch candidates"], ends: Tensor, width: int
) -> Float[Tensor, "batch candidates"]:
    """Return 1 for the candidates that a group goes on with, and 0 for the others."""
    going = ~ends & (log_probs > -torch.inf)
    return (going & (going.cumsum(dim=1) <= width)).to(log_probs.dtype)
