"""What all searches share: the model they step, settings, hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.errors import UserError

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
        coverage_penalty: `β` in `score + β · Σ_j log min(Σ_t p_tj, 1)`, where `p_tj` is the weight
            of item `j` at step `t`, the mean of all maps (Wu et al. 2016): at most 0, and lower
            where an item was overlooked. It ranks whole outputs and steers no step.
        block_ngrams: No run of so many tokens occurs twice in an output (Paulus et al. 2018); 0
            allows any. An output that could only go on with such a run may end, however short.
        groups: Into how many groups the beam is divided, each of which avoids what those before
            it write (Vijayakumar et al. 2018); 1 is the usual beam.
        diversity: What a group loses, in logarithm of the probability, for each hypothesis of an
            earlier group that writes the same token at the same step. Scores are without it.

    Raises:
        UserError: A setting is out of range, or the groups do not divide the beam.
    """

    beam: int = 5
    nbest: int = 1
    length_penalty: int | float = 1.0
    minimum_length: int = 0
    maximum_length: int = 100
    coverage_penalty: int | float = 0.0
    block_ngrams: int = 0
    groups: int = 1
    diversity: int | float = 0.5

    def __post_init__(self) -> None:
        within("beam", self.beam, 1, 1000)
        within("nbest", self.nbest, 1, self.beam)
        within("length_penalty", self.length_penalty, 0.0, 10.0)
        within("maximum_length", self.maximum_length, 0, 100_000)
        within("minimum_length", self.minimum_length, 0, self.maximum_length)
        within("coverage_penalty", self.coverage_penalty, 0.0, 10.0)
        within("block_ngrams", self.block_ngrams, 0, 1000)
        within("groups", self.groups, 1, self.beam)
        within("diversity", self.diversity, 0.0, 100.0)
        if self.beam % self.groups:
            raise UserError(
                f"groups must divide beam; got {self.groups} and {self.beam}. Use a beam of "
                f"{-(-self.beam // self.groups) * self.groups}."
            )

    def normalised(self, log_prob: float, length: int) -> float:
        """Return the score by which hypotheses are compared.

        Args:
            log_prob: Sum of the logarithms, that of the end mark included.
            length: How many tokens, the end mark included.

        Returns:
            The logarithm over the penalty of Wu et al. 2016.
        """
        return log_prob / float(((5.0 + length) / 6.0) ** self.length_penalty)

    def scored(self, log_prob: float, length: int, coverage: float = 0.0) -> float:
        """Return the score of a whole output: `normalised`, and the coverage penalty.

        Args:
            log_prob: Sum of the logarithms, that of the end mark included.
            length: How many tokens, the end mark included.
            coverage: What `regard.models.decoding.coverage` says of its weights.

        Returns:
            The score by which n-best lists are sorted.
        """
        return self.normalised(log_prob, length) + self.coverage_penalty * coverage


def within(name: str, value: int | float, low: int | float, high: int | float) -> None:
    """Refuse a setting that is out of range."""
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
        score: `log_prob` over the length penalty, with the coverage penalty; n-best lists are
            sorted by it.
        weights: Where the model looked for each token and for the end mark,
            `(maps, tokens + 1, keys)`.
        ended: False where the end mark was forced because the output was as long as allowed.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    weights: Float[Tensor, "maps steps keys"]
    ended: bool
