"""Parts for several heads: each head with parameters of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.building import Sizes, build_parts, sizes_of
from regard.attention.parts import Score, Selected, Selection, State
from regard.attention.scores import SCORES, Sum
from regard.errors import MechanismError


class HeadScores(Score):
    """One copy of a score for each head, each with its own parameters.

    Args:
        score: The score to copy; its parameters are drawn anew in each copy, by the
            `reset_parameters` of what has it. What has none begins alike in every head.
        num_heads: How many copies.
    """

    def __init__(self, score: Score, num_heads: int) -> None:
        super().__init__()
        self.traits, self.one_size, self.constant = score.traits, score.one_size, score.constant
        self.query_dim, self.key_dim = score.query_dim, score.key_dim
        self.heads = _copies(score, num_heads)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Prepare the keys of every head with its own score."""
        prepared = [s.prepare(k) for s, k in zip(self._scores(), key.unbind(1), strict=True)]
        return torch.stack(prepared, dim=1)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every head's keys for its queries."""
        pairs = zip(self._scores(), query.unbind(1), prepared_key.unbind(1), strict=True)
        scored = [s(q, k, _of_head(state, h)) for h, (s, q, k) in enumerate(pairs)]
        return torch.stack(scored, dim=1)

    def read(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        value: Float[Tensor, "*lead keys value_dim"],
        mask: Bool[Tensor, "..."] | None,
        *,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*lead queries value_dim"] | None:
        """Read every head's values by its own score, if that has such a pass."""
        contexts = []
        for head, score in enumerate(self._scores()):
            shown = None if mask is None else mask[:, head if mask.shape[1] > 1 else 0]
            parts = query[:, head], prepared_key[:, head], value[:, head]
            context = score.read(*parts, shown, temperature=temperature)
            if context is None:
                return None
            contexts.append(context)
        return torch.stack(contexts, dim=1)

    def _scores(self) -> list[Score]:
        return [head for head in self.heads if isinstance(head, Score)]


class HeadSelections(Selection):
    """One copy of a selection for each head, each with its own parameters.

    Args:
        selection: The selection to copy; its parameters are drawn anew in each copy.
        num_heads: How many copies.
    """

    def __init__(self, selection: Selection, num_heads: int) -> None:
        super().__init__()
        self.traits, self.query_dim = selection.traits, selection.query_dim
        self.needs_preference = selection.needs_preference
        self.heads = _copies(selection, num_heads)

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
        generator: torch.Generator | None = None,
    ) -> Selected:
        """Turn every head's scores into its weights."""
        selected = [
            selection(
                scores[:, head],
                None if mask is None else mask[:, head if mask.shape[1] > 1 else 0],
                query=None if query is None else query[:, head],
                state=_of_head(state, head),
                generator=generator,
            )
            for head, selection in enumerate(self.heads)
        ]
        weights = torch.stack([one.weights for one in selected], dim=1)
        alike = all(one.distribution is one.weights for one in selected)
        shares = weights if alike else torch.stack([one.distribution for one in selected], dim=1)
        log_probs = [one.log_prob for one in selected if one.log_prob is not None]
        return Selected(weights, shares, torch.stack(log_probs, dim=1) if log_probs else None)


def parts_of_heads(
    score: Score | Callable[[Tensor, Tensor], Tensor] | str,
    selection: Selection | str,
    num_heads: int,
    head_dim: int,
) -> tuple[Score, Selection]:
    """Build a score and a selection that serve several heads.

    Parts that have parameters are copied for every head; others serve all heads at once. Terms
    that are added to a score know heads by themselves.

    Args:
        score: A part for one head, a function, or a name.
        selection: A part for one head, or a name.
        num_heads: How many heads.
        head_dim: Size of the queries and keys of a head.

    Returns:
        The parts, for tensors with heads second.

    Raises:
        MechanismError: A part is for another size, or a name is unknown.
    """
    built, chosen = build_parts(score, selection, _sizes(score, head_dim))
    for part, name in ((built, "query_dim"), (built, "key_dim"), (chosen, "query_dim")):
        size = getattr(part, name)
        if size not in (None, head_dim):
            raise MechanismError(
                f"{'score' if part is built else 'selection'} must have {name}={head_dim}, the "
                f"size of a head; got {size} in {type(part).__name__}. Divide query_dim by "
                f"num_heads={num_heads}."
            )
    if _has_parameters(chosen):
        chosen = HeadSelections(chosen, num_heads)
    if isinstance(built, Sum):
        return built.of_heads(_score_of_heads(built.score, num_heads), num_heads), chosen
    return _score_of_heads(built, num_heads), chosen


def _score_of_heads(score: Score, num_heads: int) -> Score:
    return HeadScores(score, num_heads) if _has_parameters(score) else score


def _has_parameters(part: nn.Module) -> bool:
    return any(True for _ in part.parameters())


def _copies(part: nn.Module, num_heads: int) -> nn.ModuleList:
    heads = nn.ModuleList(copy.deepcopy(part) for _ in range(num_heads))
    for head in heads:
        _reset(head)
    return heads


def _reset(module: nn.Module) -> None:
    """Draw parameters anew; a module that knows how to does so for all that it holds."""
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    for child in module.children():
        _reset(child)


def _of_head(state: State | None, head: int) -> State | None:
    if state is None:
        return None
    return State(state.weights[:, head], state.total[:, head], state.step)


def _sizes(score: object, head_dim: int) -> Sizes:
    if isinstance(score, Score):
        return {}
    taken = sizes_of(SCORES[score]) if isinstance(score, str) and score in SCORES else {}
    wanted = {"query_dim", "key_dim"} | {name for name, needed in taken.items() if needed}
    return {name: head_dim for name in wanted if not taken or name in taken}
