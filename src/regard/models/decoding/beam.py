"""Beam search over a batch of sentences; with a beam of 1 it is the greedy search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.models.decoding.base import Hypothesis, S, Search, Steppable, Symbols
from regard.models.decoding.constraints import Past, restricted
from regard.models.decoding.diversity import Candidates, candidates


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
    past: Past


@torch.no_grad()
def beam_search(
    model: Steppable[S],
    state: S,
    batch: int,
    symbols: Symbols,
    search: Search,
    *,
    mask: Bool[Tensor, "batch keys"] | None = None,
) -> list[list[Hypothesis]]:
    """Search for the outputs of the highest score, for a batch at once.

    At each step the `2 · beam` best continuations are looked at: those of the first `beam` that
    write the end mark are done, and the best `beam` that do not go on. A sentence is done when
    `beam` of its hypotheses are, or when nothing that goes on can still reach the `nbest`; with
    a beam of 1 this is the greedy search. Sentences that are done leave the batch.

    With several groups each is a search with its share of the beam, and a sentence is done when
    its groups are; an output that several groups found is returned once.

    Args:
        model: The model to step.
        state: Its state before the first token, one hypothesis for each sentence.
        batch: How many sentences.
        symbols: The control tokens.
        search: The settings.
        mask: True where an item is real, for the coverage penalty; None where all are.

    Returns:
        For each sentence at least one and at most `nbest` hypotheses, the best first.

    Raises:
        DivergedError: The model says NaN, or leaves nothing that may be written.
        UserError: There is a coverage penalty, and the model does not look at the items.

    References:
        Wu et al., Google's neural machine translation system, 2016 (length and coverage penalty);
        Paulus, Xiong and Socher 2018 (n-grams); Vijayakumar et al. 2018 (groups).
    """
    runner = _Runner(model, symbols, search, batch)
    return runner.run(state, Past.begin(batch, search, mask)) if batch else []


class _Runner(Generic[S]):
    """One search: its settings, what each step did, and what has ended."""

    def __init__(self, model: Steppable[S], symbols: Symbols, search: Search, batch: int) -> None:
        self.model, self.symbols, self.search = model, symbols, search
        self.traces: list[_Trace] = []
        self.width = search.beam // search.groups
        self.endings: list[list[list[_Ending]]] = [  # those of each group of each sentence
            [[] for _ in range(search.groups)] for _ in range(batch)
        ]

    def run(self, state: S, past: Past) -> list[list[Hypothesis]]:
        batch = len(self.endings)
        start = torch.full((batch, 1), self.symbols.bos)
        live = _Live(list(range(batch)), torch.zeros(batch, 1), start, state, past)
        for length in range(self.search.maximum_length + 1):
            live = self._advance(live, length)
            if not live.sentences:
                break
        return [self._hypotheses(sentence) for sentence in range(batch)]

    def _advance(self, live: _Live[S], length: int) -> _Live[S]:
        step = self.model.step(live.tokens, live.state)
        weights = step.weights.cpu()
        past = live.past.look(weights)
        found = self._candidates(live, step.log_probs, length)
        self._end(live.sentences, found, past, length)
        # Put those that end behind the others, in their order, and go on with the first ones.
        ends = found.tokens == self.symbols.eos
        going = ends.to(torch.int8).sort(dim=2, stable=True).indices[..., : self.width]
        log_probs = found.log_probs.masked_fill(ends, -torch.inf).gather(2, going).flatten(1)
        parents = found.parents.gather(2, going).flatten(1)
        tokens = found.tokens.gather(2, going).flatten(1)
        rows = {sentence: row for row, sentence in enumerate(live.sentences)}
        self.traces.append(_Trace(rows, weights, parents, tokens))
        state = step.state.select(parents.to(step.log_probs.device))
        past = past.follow(parents, tokens)
        return self._kept(_Live(live.sentences, log_probs, tokens, state, past))

    def _candidates(self, live: _Live[S], log_probs: Tensor, length: int) -> Candidates:
        written = live.past.written
        allowed = restricted(log_probs, self.symbols, self.search, length, written)
        totals = live.log_probs.to(allowed.device).unsqueeze(-1) + allowed
        return candidates(totals, self.search, self.symbols.eos)

    def _end(self, sentences: list[int], found: Candidates, past: Past, length: int) -> None:
        """Note those among the first candidates of each group that wrote the end mark."""
        coverage = past.coverage()
        ends = (found.tokens == self.symbols.eos) & (found.log_probs > -torch.inf)
        for row, group, rank in ends[..., : self.width].nonzero().tolist():
            log_prob = float(found.log_probs[row, group, rank])
            place = int(found.parents[row, group, rank])
            covered = 0.0 if coverage is None else float(coverage[row, place])
            score = self.search.scored(log_prob, length + 1, covered)
            ending = _Ending(length, place, log_prob, score)
            self.endings[sentences[row]][group].append(ending)

    def _kept(self, live: _Live[S]) -> _Live[S]:
        """Drop the sentences that are done."""
        groups = live.log_probs.view(len(live.sentences), self.search.groups, -1)
        best = groups.max(dim=2).values.tolist()
        kept = [
            row
            for row, sentence in enumerate(live.sentences)
            if not all(map(self._done, self.endings[sentence], best[row]))
        ]
        if len(kept) == len(live.sentences):
            return live
        rows = torch.tensor(kept, dtype=torch.long)
        state = live.state.keep(rows, live.tokens.shape[1]) if kept else live.state
        sentences = [live.sentences[row] for row in kept]
        past = live.past.keep(rows)
        return _Live(sentences, live.log_probs[rows], live.tokens[rows], state, past)

    def _done(self, endings: list[_Ending], best: float) -> bool:
        """Say whether a group has found enough, or cannot find better."""
        search, wanted = self.search, min(self.search.nbest, self.width)
        if best == -torch.inf or len(endings) >= self.width:
            return True
        if len(endings) < wanted:
            return False
        # Adding tokens lowers the logarithm, no length divides it by more than the longest, and
        # the best coverage there is takes nothing from it.
        reachable = search.normalised(best, search.maximum_length + 1)
        scores = sorted((ending.score for ending in endings), reverse=True)
        return scores[wanted - 1] >= reachable

    def _hypotheses(self, sentence: int) -> list[Hypothesis]:
        endings = [ending for group in self.endings[sentence] for ending in group]
        found: dict[tuple[int, ...], Hypothesis] = {}  # groups may find the same
        for ending in sorted(endings, key=lambda ending: -ending.score):
            if len(found) == self.search.nbest:
                break
            hypothesis = self._followed(sentence, ending)
            found.setdefault(hypothesis.tokens, hypothesis)
        return list(found.values())

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
