"""Forced decoding: what a model says of outputs that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.models.decoding.base import Hypothesis, S, Search, Steppable, Symbols
from regard.models.decoding.constraints import coverage


def forced(
    model: Steppable[S],
    state: S,
    tokens: Int[Tensor, "batch length"],
    symbols: Symbols,
) -> tuple[Float[Tensor, "batch steps"], Float[Tensor, "batch maps steps keys"]]:
    """Step a model over given outputs, as a search would have.

    Args:
        model: The model.
        state: Its state before the first token, one hypothesis for each sentence.
        tokens: The outputs, with the end mark, all of one length.
        symbols: The control tokens.

    Returns:
        The logarithm of the probability of each token, and where the model looked for it.
    """
    previous = torch.full_like(tokens[:, :1], symbols.bos)
    log_probs, weights = [], []
    for place in range(tokens.shape[1]):
        step = model.step(previous, state)
        state, previous = step.state, tokens[:, place : place + 1]
        log_probs.append(step.log_probs.gather(2, previous.unsqueeze(-1)).flatten(1))
        weights.append(step.weights)
    return torch.cat(log_probs, dim=1), torch.cat(weights, dim=2)


class Said(NamedTuple):
    """What a model says of one output.

    Args:
        log_prob: `log P(tokens, end mark | input)`.
        weights: Where it looked for each token and for the end mark, on the CPU.
    """

    log_prob: float
    weights: Float[Tensor, "maps steps keys"]

    def hypothesis(
        self,
        tokens: tuple[int, ...],
        search: Search,
        mask: Bool[Tensor, " keys"] | None = None,
    ) -> Hypothesis:
        """Return the output as if a search had found it.

        Args:
            tokens: The output, without the end mark.
            search: Its penalties are those of the score.
            mask: True where an item is real, for the coverage penalty; None where all are.
        """
        covered = 0.0
        if search.coverage_penalty and len(self.weights):
            total = self.weights.float().mean(dim=0).sum(dim=0)
            covered = float(coverage(total if mask is None else total.masked_fill(~mask, 1.0)))
        return Hypothesis(
            tokens=tokens,
            log_prob=self.log_prob,
            score=search.scored(self.log_prob, len(tokens) + 1, covered),
            weights=self.weights,
            ended=len(tokens) < search.maximum_length,
        )


def forced_each(
    model: Steppable[S],
    state: S,
    outputs: Sequence[Sequence[tuple[int, ...]]],
    symbols: Symbols,
) -> list[list[Said]]:
    """Step a model over several outputs of each sentence, of any lengths, in one batch.

    The outputs of a sentence are read as its hypotheses are, so that its items are not copied.

    Args:
        model: The model.
        state: Its state before the first token, one hypothesis for each sentence.
        outputs: For each sentence its outputs, without the end mark.
        symbols: The control tokens.

    Returns:
        For each output what `forced` says of it alone.
    """
    tokens, lengths = _padded(outputs, symbols)
    if not tokens.numel():
        return [[] for _ in outputs]
    log_probs, weights = [], []
    previous = torch.full((len(outputs), 1), symbols.bos)
    for place in range(tokens.shape[2]):
        step = model.step(previous, state)
        previous, state = tokens[..., place], step.state
        said, looked = step.log_probs, step.weights
        if place == 0:  # one hypothesis for each sentence has become several
            said = said.expand(-1, tokens.shape[1], -1)
            looked = looked.expand(-1, -1, tokens.shape[1], -1)
            state = state.select(torch.zeros_like(previous).to(said.device))
        wanted = previous.to(said.device).unsqueeze(-1)
        log_probs.append(said.gather(2, wanted).squeeze(-1).cpu())
        weights.append(looked.cpu())
    every, where = torch.stack(log_probs, dim=2), torch.stack(weights, dim=3)
    return [
        [
            Said(float(every[row, place, :length].sum()), where[row, :, place, :length])
            for place, length in enumerate(own)
        ]
        for row, own in enumerate(lengths)
    ]


def _padded(
    outputs: Sequence[Sequence[tuple[int, ...]]], symbols: Symbols
) -> tuple[Int[Tensor, "batch hypotheses steps"], list[list[int]]]:
    """Put outputs into one tensor, each filled up with end marks, and count their steps."""
    lengths = [[len(output) + 1 for output in own] for own in outputs]
    most = max((len(own) for own in outputs), default=0)
    longest = max((length for own in lengths for length in own), default=0)
    tokens = torch.full((len(outputs), most, longest), symbols.eos)
    for row, own in enumerate(outputs):
        for place, output in enumerate(own):
            tokens[row, place, : len(output)] = torch.tensor(output, dtype=torch.long)
    return tokens, lengths
