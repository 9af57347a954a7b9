"""Sampling: outputs drawn at random, token by token, as the model's probabilities say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.models.decoding.base import (
    Hypothesis,
    S,
    Search,
    SearchStep,
    Steppable,
    Symbols,
    within,
)
from regard.models.decoding.constraints import Past, restricted


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Args:
        samples: How many outputs are drawn for each sentence.
        temperature: `T` in `P(token)^(1/T)`, normalised anew: below 1 likely tokens become
            likelier, above 1 unlikely ones.
        top_k: Only so many of the likeliest tokens may be drawn; 0 for all.
        top_p: Only the likeliest tokens may be drawn that together have at least this probability
            (the nucleus); 1 for all. It is taken after temperature and `top_k`.

    Raises:
        UserError: A setting is out of range.

    References:
        Fan, Lewis and Dauphin 2018 (top-k); Holtzman et al., The curious case of neural text
        degeneration, 2020 (top-p).
    """

    samples: int = 1
    temperature: int | float = 1.0
    top_k: int = 0
    top_p: int | float = 1.0

    def __post_init__(self) -> None:
        within("samples", self.samples, 1, 1000)
        within("temperature", self.temperature, 0.01, 100.0)
        within("top_k", self.top_k, 0, 1_000_000)
        within("top_p", self.top_p, 1e-6, 1.0)


def generators(generator: torch.Generator, count: int) -> list[torch.Generator]:
    """Derive a generator of its own for each sentence.

    What is drawn for a sentence then depends on its place in the order and on nothing that is
    drawn for others: batches may be cut anywhere.

    Args:
        generator: From which their seeds are drawn, one after the other.
        count: How many are wanted.

    Returns:
        The generators, on the CPU.
    """
    seeds = torch.randint(2**62, (count,), generator=generator, device=generator.device)
    return [torch.Generator().manual_seed(seed) for seed in seeds.tolist()]


@torch.no_grad()
def sample(
    model: Steppable[S],
    state: S,
    symbols: Symbols,
    search: Search,
    *,
    sampling: Sampling,
    sources: Sequence[torch.Generator],
    mask: Bool[Tensor, "batch keys"] | None = None,
) -> list[list[Hypothesis]]:
    """Draw outputs at random, for a batch at once.

    Each token is drawn from `P(token | tokens before)`, filtered as `sampling` says. A sentence
    that is done leaves the batch, and so do the outputs that are done where that makes the batch
    smaller.

    Args:
        model: The model to step.
        state: Its state before the first token, one hypothesis for each sentence.
        symbols: The control tokens.
        search: Lengths, penalties and n-grams; the beam and its groups are not looked at.
        sampling: How to draw.
        sources: A generator for each sentence, on the CPU: see `generators`.
        mask: True where an item is real, for the coverage penalty; None where all are.

    Returns:
        For each sentence `samples` hypotheses in the order in which they were drawn; two may be
        the same. Their `log_prob` is the model's own, whatever filter they were drawn through.

    Raises:
        DivergedError: The model says NaN, or leaves nothing that may be written.
        UserError: There is a coverage penalty, and the model does not look at the items.
    """
    batch = len(sources)
    outputs = [[_Output() for _ in range(sampling.samples)] for _ in sources]
    places = torch.zeros(batch, sampling.samples, dtype=torch.long)
    numbers = torch.arange(sampling.samples).expand(batch, -1)
    start = torch.full((batch, 1), symbols.bos)
    past = Past.begin(batch, search, mask)
    live = _Live(outputs, list(sources), numbers, places, start, state, past)
    sampler = _Sampler(model, symbols, search, sampling)
    for length in range(search.maximum_length + 1):
        if not live.outputs:
            break
        live = sampler.advance(live, length)
    return [[one.hypothesis(search) for one in several] for several in outputs]


class _Output:
    """An output while it is written; its last token is the end mark."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.weights: list[Tensor] = []
        self.log_prob = self.coverage = 0.0

    def hypothesis(self, search: Search) -> Hypothesis:
        return Hypothesis(
            tokens=tuple(self.tokens[:-1]),
            log_prob=self.log_prob,
            score=search.scored(self.log_prob, len(self.tokens), self.coverage),
            weights=torch.stack(self.weights, dim=1),
            ended=len(self.tokens) <= search.maximum_length,
        )


@dataclass(frozen=True, slots=True)
class _Live(Generic[S]):
    """The sentences that are not done, and the outputs that are drawn for them."""

    outputs: list[list[_Output]]
    sources: list[torch.Generator]
    numbers: Tensor  # (batch, drawn): which of its sentence's outputs each is; -1: it is done
    places: Tensor  # (batch, drawn): the hypothesis that each goes on from
    tokens: Tensor  # (batch, hypotheses)
    state: S
    past: Past


class _Sampler(Generic[S]):
    """How one call samples."""

    def __init__(
        self, model: Steppable[S], symbols: Symbols, search: Search, sampling: Sampling
    ) -> None:
        self.model, self.symbols, self.search, self.sampling = model, symbols, search, sampling

    def advance(self, live: _Live[S], length: int) -> _Live[S]:
        """Draw one more token for every output."""
        step = self.model.step(live.tokens, live.state)
        weights = step.weights.cpu()
        past = live.past.look(weights)
        allowed = restricted(step.log_probs, self.symbols, self.search, length, past.written)
        tokens = drawn(allowed, self._uniform(live).to(allowed.device), self.sampling)
        said = step.log_probs.gather(2, tokens.view(*allowed.shape[:2], -1)).flatten(1)
        tokens = tokens.cpu()
        self._note(live, tokens, said.cpu(), weights, past)
        return self._kept(live, tokens, step, past)

    def _uniform(self, live: _Live[S]) -> Float[Tensor, "batch drawn"]:
        """Draw as many numbers for a sentence at every step, however many of its outputs go on."""
        count = self.sampling.samples
        rows = [torch.rand(count, generator=source) for source in live.sources]
        return torch.stack(rows).gather(1, live.numbers.clamp(min=0))

    def _note(
        self, live: _Live[S], tokens: Tensor, said: Tensor, weights: Tensor, past: Past
    ) -> None:
        covered = past.coverage()
        for row, rank in (live.numbers >= 0).nonzero().tolist():
            output = live.outputs[row][int(live.numbers[row, rank])]
            place = int(live.places[row, rank])
            output.tokens.append(int(tokens[row, rank]))
            output.weights.append(weights[row, :, place])
            output.log_prob += float(said[row, rank])
            output.coverage = 0.0 if covered is None else float(covered[row, place])

    def _kept(self, live: _Live[S], tokens: Tensor, step: SearchStep[S], past: Past) -> _Live[S]:
        """Drop the outputs and the sentences that are done."""
        done = (live.numbers < 0) | (tokens == self.symbols.eos)
        numbers = live.numbers.masked_fill(done, -1)
        most = int((~done).sum(dim=1).max())
        order = done.to(torch.int8).sort(dim=1, stable=True).indices[:, :most]
        places, tokens = live.places.gather(1, order), tokens.gather(1, order)
        numbers = numbers.gather(1, order)
        rows = (~done).any(dim=1).nonzero().flatten()
        here = torch.arange(most).expand(len(order), -1)
        state = step.state
        if most and (live.tokens.shape[1] != most or not torch.equal(places, here)):
            state = state.select(places.to(step.log_probs.device))
        if len(rows) and len(rows) < len(order):
            state = state.keep(rows, most)
        past = past.follow(places, tokens).keep(rows)
        outputs = [live.outputs[row] for row in rows.tolist()]
        sources = [live.sources[row] for row in rows.tolist()]
        return _Live(outputs, sources, numbers[rows], here[rows], tokens[rows], state, past)


def drawn(
    log_probs: Float[Tensor, "batch hypotheses vocabulary"],
    uniform: Float[Tensor, "batch drawn"],
    sampling: Sampling,
) -> Int[Tensor, "batch drawn"]:
    """Draw tokens: the first whose cumulative probability is above a number from 0 to 1.

    Args:
        log_probs: Logarithms of the probabilities, -inf where a token is forbidden.
        uniform: The numbers: one for each hypothesis, or any number of them for a single one.
        sampling: How the probabilities are filtered.

    Returns:
        The tokens.
    """
    probabilities, tokens = filtered(log_probs, sampling)
    cumulative = probabilities.cumsum(dim=-1)
    total = cumulative[..., -1:]
    wanted = uniform.view(*log_probs.shape[:2], -1) * total
    below = torch.nextafter(total, torch.zeros_like(total))  # a product may round up to the total
    index = torch.searchsorted(cumulative, torch.minimum(wanted, below), right=True)
    index = index.clamp(max=cumulative.shape[-1] - 1)
    return (index if tokens is None else tokens.gather(2, index)).flatten(1)


def filtered(
    log_probs: Float[Tensor, "batch hypotheses vocabulary"], sampling: Sampling
) -> tuple[Float[Tensor, "batch hypotheses kept"], Int[Tensor, "batch hypotheses kept"] | None]:
    """Change probabilities as temperature, top-k and top-p say.

    Args:
        log_probs: Logarithms of the probabilities.
        sampling: How.

    Returns:
        The probabilities, zero where a token may not be drawn and not normalised anew; and which
        token each is of, the likeliest first, or None where they stand in the tokens' order.
    """
    scaled, tokens = log_probs / sampling.temperature, None
    if sampling.top_k:
        scaled, tokens = scaled.topk(min(sampling.top_k, scaled.shape[-1]), dim=-1)
    elif sampling.top_p < 1:
        scaled, tokens = scaled.sort(dim=-1, descending=True)
    probabilities = scaled.softmax(dim=-1)
    if sampling.top_p < 1:
        before = probabilities.cumsum(dim=-1) - probabilities
        probabilities = probabilities.masked_fill(before >= sampling.top_p, 0.0)
    return probabilities, tokens
