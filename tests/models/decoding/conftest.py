"""A hand-made model: a table of probabilities that depends on the tokens written so far."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch

from regard.models.decoding import Search, Symbols

SYMBOLS = Symbols(bos=1, eos=2, banned=(0, 1))
VOCABULARY = 5  # padding, start, end, and two tokens that may be written


class Path(NamedTuple):
    """The tokens of every hypothesis so far, and which sentence each belongs to."""

    written: torch.Tensor  # (batch, hypotheses, tokens)
    sentences: torch.Tensor  # (batch,)

    def select(self, index: torch.Tensor) -> Path:
        rows = torch.arange(index.shape[0]).unsqueeze(-1)
        return Path(self.written[rows, index], self.sentences)

    def keep(self, rows: torch.Tensor, hypotheses: int) -> Path:
        assert self.written.shape[1] == hypotheses
        return Path(self.written[rows], self.sentences[rows])


class Step(NamedTuple):
    log_probs: torch.Tensor
    weights: torch.Tensor
    state: Path


class Table:
    """Log-probabilities drawn for each sentence and each beginning, weights that name both."""

    def __init__(self, batch: int, *, seed: int, sharpness: float = 1.5) -> None:
        self.batch, self.seed, self.sharpness = batch, seed, sharpness
        self.steps = 0
        self.sizes: list[int] = []

    def begin(self, sentences: list[int] | None = None) -> Path:
        chosen = list(range(self.batch)) if sentences is None else sentences
        empty = torch.zeros(len(chosen), 1, 0, dtype=torch.long)
        return Path(empty, torch.tensor(chosen, dtype=torch.long))

    def row(self, sentence: int, written: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, sentence, *written)) % 2**31)
        return (torch.randn(VOCABULARY, generator=generator) * self.sharpness).log_softmax(0)

    def step(self, tokens: torch.Tensor, state: Path) -> Step:
        self.steps += 1
        self.sizes.append(len(state.sentences))
        written = torch.cat([state.written, tokens.unsqueeze(-1)], dim=-1)
        rows = [
            [self.row(int(s), tuple(w[1:])) for w in hypotheses]
            for s, hypotheses in zip(state.sentences, written.tolist(), strict=True)
        ]
        log_probs = torch.stack([torch.stack(row) for row in rows])
        # One map over two keys: the sentence, and a number for what had been written.
        code = (written * 7 ** torch.arange(written.shape[-1])).sum(-1)
        named = state.sentences.unsqueeze(-1).expand_as(code)
        weights = torch.stack([named, code], dim=-1).float().unsqueeze(1)
        return Step(log_probs, weights, Path(written, state.sentences))

    def everything(self, sentence: int, search: Search) -> Iterator[tuple[float, float, tuple]]:
        """Every output that may be written, the best first: score, log-probability, tokens."""
        free = [t for t in range(VOCABULARY) if t not in (*SYMBOLS.banned, SYMBOLS.eos)]
        found = []
        for length in range(search.minimum_length, search.maximum_length + 1):
            for tokens in itertools.product(free, repeat=length):
                path = (*tokens, SYMBOLS.eos)
                log_prob = sum(float(self.row(sentence, path[:i])[t]) for i, t in enumerate(path))
                found.append((search.normalised(log_prob, length + 1), log_prob, tokens))
        return iter(sorted(found, reverse=True))


@pytest.fixture(scope="session")
def table() -> Callable[..., Table]:
    return Table


@pytest.fixture(scope="session")
def symbols() -> Symbols:
    return SYMBOLS
