"""A hand-made model: a table of probabilities that depends on the tokens written so far."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest
import torch

from regard.models.decoding import Search, Symbols
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import DecoderSettings

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

    def __init__(self, batch: int, *, seed: int, sharpness: float = 1.5, keys: int = 0) -> None:
        self.batch, self.seed, self.sharpness, self.keys = batch, seed, sharpness, keys
        self.steps = 0
        self.sizes: list[int] = []

    def begin(self, sentences: list[int] | None = None) -> Path:
        chosen = list(range(self.batch)) if sentences is None else sentences
        empty = torch.zeros(len(chosen), 1, 0, dtype=torch.long)
        return Path(empty, torch.tensor(chosen, dtype=torch.long))

    @functools.cache  # noqa: B019 - a table lives as long as its test
    def row(self, sentence: int, written: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, sentence, *written)) % 2**31)
        return (torch.randn(VOCABULARY, generator=generator) * self.sharpness).log_softmax(0)

    def mask(self, sentences: list[int] | None = None) -> torch.Tensor:
        """Of `keys` items, sentence `s` has the first `1 + s % keys`."""
        chosen = torch.arange(self.batch) if sentences is None else torch.tensor(sentences)
        return torch.arange(self.keys) <= chosen.unsqueeze(-1) % self.keys

    @functools.cache  # noqa: B019
    def looked(self, sentence: int, written: tuple[int, ...]) -> torch.Tensor:
        """Two maps over the items of a sentence, exactly 0 on padding."""
        seed = hash((self.seed + 1, sentence, *written)) % 2**31
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(2, self.keys, generator=generator) * 3
        return scores.masked_fill(~self.mask([sentence]), -torch.inf).softmax(-1)

    def step(self, tokens: torch.Tensor, state: Path) -> Step:
        self.steps += 1
        self.sizes.append(len(state.sentences))
        written = torch.cat([state.written, tokens.unsqueeze(-1)], dim=-1)
        rows = [
            [self.row(int(s), tuple(w[1:])) for w in hypotheses]
            for s, hypotheses in zip(state.sentences, written.tolist(), strict=True)
        ]
        log_probs = torch.stack([torch.stack(row) for row in rows])
        if self.keys:
            maps = [
                torch.stack([self.looked(int(s), tuple(w[1:])) for w in hypotheses], dim=1)
                for s, hypotheses in zip(state.sentences, written.tolist(), strict=True)
            ]
            return Step(log_probs, torch.stack(maps), Path(written, state.sentences))
        # One map over two keys: the sentence, and a number for what had been written.
        code = (written * 7 ** torch.arange(written.shape[-1])).sum(-1)
        named = state.sentences.unsqueeze(-1).expand_as(code)
        weights = torch.stack([named, code], dim=-1).float().unsqueeze(1)
        return Step(log_probs, weights, Path(written, state.sentences))

    def allowed(self, written: tuple[int, ...], search: Search) -> list[int]:
        """What may be written next, in plain loops."""
        if len(written) == search.maximum_length:
            return [SYMBOLS.eos]
        size = search.block_ngrams
        free = [t for t in range(VOCABULARY) if t not in (*SYMBOLS.banned, SYMBOLS.eos)]
        if size:
            seen = {written[i : i + size] for i in range(len(written) - size + 1)}
            free = [t for t in free if (*written, t)[-size:] not in seen]
        ends = len(written) >= search.minimum_length or not free
        return free + [SYMBOLS.eos] * ends

    def scored(
        self, sentence: int, tokens: tuple[int, ...], search: Search
    ) -> tuple[float, float, tuple[int, ...]]:
        """Score and log-probability of an output, in plain loops."""
        path = (*tokens, SYMBOLS.eos)
        log_prob = sum(float(self.row(sentence, path[:i])[t]) for i, t in enumerate(path))
        score = log_prob / ((5 + len(path)) / 6) ** search.length_penalty
        if search.coverage_penalty:
            for key in range(1 + sentence % self.keys):
                looks = [self.looked(sentence, path[:i])[:, key] for i in range(len(path))]
                total = sum(float(look.mean()) for look in looks)
                score += search.coverage_penalty * math.log(min(total, 1.0))
        return score, log_prob, tokens

    def everything(self, sentence: int, search: Search) -> Iterator[tuple[float, float, tuple]]:
        """Every output that may be written, the best first: score, log-probability, tokens."""
        found, open_ends = [], [()]
        while open_ends:
            written = open_ends.pop()
            for token in self.allowed(written, search):
                if token == SYMBOLS.eos:
                    found.append(self.scored(sentence, written, search))
                else:
                    open_ends.append((*written, token))
        return iter(sorted(found, reverse=True))


@pytest.fixture(scope="session")
def table() -> Callable[..., Table]:
    return Table


@pytest.fixture(scope="session")
def symbols() -> Symbols:
    return SYMBOLS


TARGET = Symbols(bos=1, eos=2, banned=(0, 1, 3))  # of the models below
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "recurrent": (
        {"kind": "gru", "hidden_dim": 3},
        {"kind": "lstm", "hidden_dim": 4, "order": "bahdanau", "attention_dim": 3, "layers": 2},
    ),
    "luong": (
        {"kind": "transformer", "num_heads": 5, "layers": 1, "hidden_dim": 7},
        {"kind": "gru", "hidden_dim": 5, "order": "luong", "attention": "scaled_dot"},
    ),
    "input feeding": (
        {"kind": "lstm", "hidden_dim": 3},
        {"kind": "gru", "hidden_dim": 4, "order": "input_feeding", "attention": "bilinear"},
    ),
    "uniform": (
        {"kind": "gru", "hidden_dim": 3},
        {"kind": "lstm", "hidden_dim": 4, "attention": "uniform"},
    ),
    "fixed": (
        {"kind": "gru", "hidden_dim": 3},
        {"kind": "gru", "hidden_dim": 4, "attention": "none"},
    ),
    "transformer": (
        {"kind": "transformer", "num_heads": 5, "layers": 1, "hidden_dim": 7},
        {"kind": "transformer", "num_heads": 5, "layers": 2, "hidden_dim": 7},
    ),
}


def _others() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """One model of each kind of decoder that is not among those above."""
    union, _ = get_args(DecoderSettings)
    kinds = {kind for one in get_args(union) for kind in _kinds(one)}
    known = {str(decoder["kind"]) for _, decoder in MODELS.values()}
    encoder = {"kind": "gru", "hidden_dim": 3}
    return {kind: (encoder, {"kind": kind, "hidden_dim": 5}) for kind in sorted(kinds - known)}


def _kinds(settings: Any) -> tuple[str, ...]:
    return get_args(get_type_hints(settings)["kind"])


MODELS = {**MODELS, **_others()}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, build: Callable[..., Seq2Seq]) -> Seq2Seq:
    """A model of every kind, of which no two outputs are alike.

    In float64: normalising five numbers of a small model makes rounding large, on some processors
    more than on others, and what is tested is the search.
    """
    made = build(*MODELS[request.param]).eval().double()
    for parameter in made.parameters():
        parameter.data *= 2  # so that hypotheses differ and sentences end at different times
    made.bias.data[2] = 0.7
    return made


@pytest.fixture(scope="session")
def target() -> Symbols:
    return TARGET
