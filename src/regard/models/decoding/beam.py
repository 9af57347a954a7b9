"""Beam search over a batch of sentences; with a beam of 1 it is the greedy search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple

import torch
from torch import Tensor

from regard.models.decoding.base import (
    Hypothesis,
    S,
    Search,
    Steppable,
    Symbols,
    restricted,
)


class _Trace(NamedTuple):
    """What one step did, kept to follow each hypothesis back."""

    rows: dict[int, int]  # sentence -> row
    weights: Tensor  # (batch, maps, hypotheses before, keys)
    parents: Tensor  # (batch, hypotheses after): the place each came from
    tokens: Tensor  # (batch, hypotheses after): the token each added


class _Ending(NamedTuple):
    """A hypothesis that wrote its end mark at a step, and its place before that step."""

    step: int
    place: int
    log_prob: float
    score: float


@dataclass(frozen=True, slots=True)
class _Live(Generic[S]):
    """The hypotheses that go on, and the state of the model."""

    sentences: list[int]
    log_probs: Tensor  # (batch, hypotheses), on the CPU
    tokens: Tensor  # (batch, hypotheses), on the CPU
    state: S


class _Candidates(NamedTuple):
    """The best continuations of each sentence, the best first."""

    log_probs: Tensor
    parents: Tensor
    tokens: Tensor


@torch.no_grad()
def beam_search(
    model: Steppable[S], state: S, batch: int, symbols: Symbols, search: Search
) -> list[list[Hypothesis]]:
    """Search for the outputs of the highest score, for a batch at once.

    At each step the `2 · beam` best continuations are looked at: those of the first `beam` that
    write the end mark are done, and the best `beam` that do not go on. A sentence is done when
    `beam` of its hypotheses are, or when nothing that goes on can still reach the `nbest`; with
    a beam of 1 this is the greedy search. Sentences that are done leave the batch.

    Args:
        model: The model to step.
        state: Its state before the first token, one hypothesis for each sentence.
        batch: How many sentences.
        symbols: The control tokens.
        search: The settings.

    Returns:
        For each sentence at least one and at most `nbest` hypotheses, the best first.

    References:
        Wu et al., Google's neural machine translation system, 2016 (length penalty).
    """
    runner = _Runner(model, symbols, search, batch)
    return runner.run(state) if batch else []


class _Runner(Generic[S]):
    """One search: its settings, what each step did, and what has ended."""

    def __init__(self, model: Steppable[S], symbols: Symbols, search: Search, batch: int) -> None:
        self.model, self.symbols, self.search = model, symbols, search
        self.traces: list[_Trace] = []
        self.endings: list[list[_Ending]] = [[] for _ in range(batch)]

    def run(self, state: S) -> list[list[Hypothesis]]:
        batch = len(self.endings)
        start = torch.full((batch, 1), self.symbols.bos)
        live = _Live(list(range(batch)), torch.zeros(batch, 1), start, state)
        for length in range(self.search.maximum_length + 1):
            live = self._advance(live, length)
            if not live.sentences:
                break
        return [self._hypotheses(sentence) for sentence in range(batch)]

    def _advance(self, live: _Live[S], length: int) -> _Live[S]:
        step = self.model.step(live.tokens, live.state)
        found = self._candidates(live, step.log_probs, length)
        self._end(live.sentences, found, length)
        # Put those that end behind the others, in their order, and go on with the first ones.
        ends = found.tokens == self.symbols.eos
        going = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, : self.search.beam]
        log_probs = found.log_probs.masked_fill(ends, -torch.inf).gather(1, going)
        parents, tokens = found.parents.gather(1, going), found.tokens.gather(1, going)
        rows = {sentence: row for row, sentence in enumerate(live.sentences)}
        self.traces.append(_Trace(rows, step.weights.cpu(), parents, tokens))
        state = step.state.select(parents.to(step.log_probs.device))
        return self._kept(_Live(live.sentences, log_probs, tokens, state), length)

    def _candidates(self, live: _Live[S], log_probs: Tensor, length: int) -> _Candidates:
        allowed = restricted(log_probs, self.symbols, self.search, length)
        vocabulary = allowed.shape[-1]
        totals = (live.log_probs.to(allowed.device).unsqueeze(-1) + allowed).flatten(1)
        best, flat = totals.topk(min(2 * self.search.beam, totals.shape[1]), dim=1)
        best, flat = best.cpu(), flat.cpu()
        return _Candidates(best, flat // vocabulary, flat % vocabulary)

    def _end(self, sentences: list[int], found: _Candidates, length: int) -> None:
        """Note those among the first `beam` candidates that wrote the end mark."""
        ends = (found.tokens == self.symbols.eos) & (found.log_probs > -torch.inf)
        for row, place in ends[:, : self.search.beam].nonzero().tolist():
            log_prob = float(found.log_probs[row, place])
            score = self.search.normalised(log_prob, length + 1)
            ending = _Ending(length, int(found.parents[row, place]), log_prob, score)
            self.endings[sentences[row]].append(ending)

    def _kept(self, live: _Live[S], length: int) -> _Live[S]:
        """Drop the sentences that are done."""
        best = live.log_probs.max(dim=1).values.tolist()
        kept = [
            row
            for row, sentence in enumerate(live.sentences)
            if not self._done(self.endings[sentence], best[row], length)
        ]
        if len(kept) == len(live.sentences):
            return live
        rows = torch.tensor(kept, dtype=torch.long)
        state = live.state.keep(rows, live.tokens.shape[1]) if kept else live.state
        sentences = [live.sentences[row] for row in kept]
        return _Live(sentences, live.log_probs[rows], live.tokens[rows], state)

    def _done(self, endings: list[_Ending], best: float, length: int) -> bool:
        search = self.search
        if best == -torch.inf or len(endings) >= search.beam:
            return True
        if len(endings) < search.nbest:
            return False
        # Adding tokens lowers the logarithm, and no length divides it by more than the longest.
        reachable = search.normalised(best, search.maximum_length + 1)
        scores = sorted((ending.score for ending in endings), reverse=True)
        return scores[search.nbest - 1] >= reachable

    def _hypotheses(self, sentence: int) -> list[Hypothesis]:
        endings = sorted(self.endings[sentence], key=lambda ending: -ending.score)
        return [self._followed(sentence, end) for end in endings[: self.search.nbest]]

    def _followed(self, sentence: int, ending: _Ending) -> Hypothesis:
        """Follow a hypothesis back to its start and collect its tokens and weights."""
        place = ending.place
        last = self.traces[ending.step]
        weights = [last.weights[last.rows[sentence], :, place]]
        tokens: list[int] = []
        for trace in reversed(self.traces[: ending.step]):
            row = trace.rows[sentence]
            tokens.append(int(trace.tokens[row, place]))
            place = int(trace.parents[row, place])
            weights.append(trace.weights[row, :, place])
        return Hypothesis(
            tokens=tuple(reversed(tokens)),
            log_prob=ending.log_prob,
            score=ending.score,
            weights=torch.stack(weights[::-1], dim=1),
            ended=ending.step < self.search.maximum_length,
        )
