"""What all searches share: the model they step, settings, hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import DivergedError, UserError

_Own = TypeVar("_Own", bound="SearchState")


@runtime_checkable
class SearchState(Protocol):
    """What a search needs of the state that a model hands on."""

    def select(self: _Own, index: Tensor) -> _Own:
        """Reorder the hypotheses of each sentence."""

    def keep(self: _Own, rows: Tensor, hypotheses: int) -> _Own:
        """Keep some sentences and drop the others."""


S = TypeVar("S", bound=SearchState)
S_co = TypeVar("S_co", bound=SearchState, covariant=True)


@runtime_checkable
class SearchStep(Protocol[S_co]):
    """What a search needs of a model's step: see `regard.models.seq2seq.Step`."""

    @property
    def log_probs(self) -> Tensor:
        """Logarithms of probabilities, `(batch, hypotheses, vocabulary)`."""

    @property
    def weights(self) -> Tensor:
        """Where the model looked, `(batch, maps, hypotheses, keys)`."""

    @property
    def state(self) -> S_co:
        """The state after the step."""


@runtime_checkable
class Steppable(Protocol[S]):
    """A model that a search can step."""

    def step(self, tokens: Tensor, state: S) -> SearchStep[S]:
        """Read one more token of every hypothesis; the tokens may lie on the CPU."""


class Symbols(NamedTuple):
    """The control tokens that a search knows.

    Args:
        bos: The token read first.
        eos: The token that ends a sequence.
        banned: Tokens that are never written.
    """

    bos: int
    eos: int
    banned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """How to search.

    Args:
        beam: How many hypotheses are kept at each step; 1 is the greedy search.
        nbest: How many are returned.
        length_penalty: `α` in `score = log P / ((5 + n) / 6)^α`, where `n` counts the tokens and
            the end mark (Wu et al. 2016); 0 compares the bare logarithms.
        minimum_length: The end mark may not come before so many tokens.
        maximum_length: After so many tokens the end mark is the only choice.

    Raises:
        UserError: A setting is out of range.
    """

    beam: int = 5
    nbest: int = 1
    length_penalty: int | float = 1.0
    minimum_length: int = 0
    maximum_length: int = 100

    def __post_init__(self) -> None:
        _within("beam", self.beam, 1, 1000)
        _within("nbest", self.nbest, 1, self.beam)
        _within("length_penalty", self.length_penalty, 0.0, 10.0)
        _within("maximum_length", self.maximum_length, 0, 100_000)
        _within("minimum_length", self.minimum_length, 0, self.maximum_length)

    def normalised(self, log_prob: float, length: int) -> float:
        """Return the score by which hypotheses are compared.

        Args:
            log_prob: Sum of the logarithms, that of the end mark included.
            length: How many tokens, the end mark included.

        Returns:
            The logarithm over the penalty of Wu et al. 2016.
        """
        return log_prob / float(((5.0 + length) / 6.0) ** self.length_penalty)


def _within(name: str, value: int | float, low: int | float, high: int | float) -> None:
    if not low <= value <= high:
        raise UserError(
            f"{name} must be from {low} to {high}; got {value}. Choose one between them."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """One output of a search.

    Args:
        tokens: The tokens written, without start and end marks.
        log_prob: `log P(tokens, end mark | input)`, the sum over its own path.
        score: `log_prob` over the length penalty; n-best lists are sorted by it.
        weights: Where the model looked for each token and for the end mark,
            `(maps, tokens + 1, keys)`.
        ended: False where the end mark was forced because the output was as long as allowed.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    weights: Float[Tensor, "maps steps keys"]
    ended: bool


def restricted(
    log_probs: Float[Tensor, "batch hypotheses vocabulary"],
    symbols: Symbols,
    search: Search,
    length: int,
) -> Float[Tensor, "batch hypotheses vocabulary"]:
    """Forbid banned tokens, an end that is too early, a token that is too late.

    Args:
        log_probs: What the model says.
        symbols: The control tokens.
        search: The settings.
        length: How many tokens have been written.

    Returns:
        The same with -inf where a token is forbidden.

    Raises:
        DivergedError: The model says NaN, or leaves nothing that may be written.
    """
    allowed = torch.zeros_like(log_probs[0, 0], dtype=torch.bool)
    if length >= search.maximum_length:
        allowed[symbols.eos] = True
    else:
        allowed[:] = True
        allowed[list(symbols.banned)] = False
        allowed[symbols.eos] = length >= search.minimum_length
    left = log_probs.masked_fill(~allowed, -torch.inf)
    best = left.amax(dim=(1, 2))  # NaN where one is NaN
    if not bool((best > -torch.inf).all()):
        raise DivergedError(
            "probabilities must be numbers and leave a token to write; got NaN or none left for "
            f"token {length + 1}. Look at the model's weights, and at what is banned."
        )
    return left


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
