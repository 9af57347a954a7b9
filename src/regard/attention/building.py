"""Building an attention from names and sizes, and checking what is put into it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection

import torch
from torch import Tensor

from regard.attention import masks
from regard.attention.parts import Mechanism, Prepared, Score, Selection, State
from regard.attention.scores import SCORES, Function
from regard.attention.selections import SELECTIONS
from regard.errors import MaskError, MechanismError, ShapeError, did_you_mean

Sizes = dict[str, int | None]


def build_parts(
    score: Score | Callable[[Tensor, Tensor], Tensor] | str,
    selection: Selection | str,
    sizes: Sizes,
) -> tuple[Score, Selection]:
    """Return a score and a selection, built by name from the sizes that they take.

    Args:
        score: A part, a function of query and key, or a name in `SCORES`.
        selection: A part, or a name in `SELECTIONS`.
        sizes: Sizes by the names of the parts' arguments; None where none is given.

    Returns:
        The parts.

    Raises:
        MechanismError: A name is unknown, a size is missing or belongs to neither part, or the
            two parts mean nothing together.
    """
    given = {name: size for name, size in sizes.items() if size is not None}
    built_score, taken = _score(score, given)
    built_selection = _selection(selection, given, built_score)
    if isinstance(score, Score) and given:
        listed = ", ".join(f"{name}={size}" for name, size in given.items())
        raise MechanismError(
            f"sizes must be left out where the score is built; got {listed}. The score has its own."
        )
    surplus = [name for name in given if name not in taken]
    if surplus:
        raise _wrong_sizes(score, given, taken, surplus=surplus)
    _check_parts(built_score, built_selection)
    return built_score, built_selection


def _score(
    score: Score | Callable[[Tensor, Tensor], Tensor] | str, given: dict[str, int]
) -> tuple[Score, Collection[str]]:
    """Return the score, and which sizes belong to it."""
    if isinstance(score, Score):
        return score, given
    if not isinstance(score, (str, type)) and callable(score):
        return Function(score, given.get("query_dim"), given.get("key_dim")), (
            "query_dim",
            "key_dim",
        )
    name = _checked_name("score", score)
    if name not in SCORES:
        known = did_you_mean(name, SCORES)
        raise MechanismError(f"score must be the name of a score; got {name!r}: {known}")
    taken = sizes_of(SCORES[name])
    missing = [size for size, needed in taken.items() if needed and size not in given]
    if missing:
        raise _wrong_sizes(name, given, taken, missing=missing)
    return SCORES[name](**{size: given[size] for size in taken if size in given}), taken


def _selection(selection: Selection | str, given: dict[str, int], score: Score) -> Selection:
    if isinstance(selection, Selection):
        built = selection
    else:
        name = _checked_name("selection", selection)
        if name not in SELECTIONS:
            known = did_you_mean(name, SELECTIONS)
            raise MechanismError(f"selection must be the name of one; got {name!r}: {known}")
        built = _selection_of(name, given.get("query_dim", score.query_dim))
    if None not in (built.query_dim, score.query_dim) and built.query_dim != score.query_dim:
        raise MechanismError(
            f"selection must take queries of the score's size; got query_dim={built.query_dim} and "
            f"{score.query_dim}. Both look at the same query."
        )
    return built


def _selection_of(name: str, query_dim: int | None) -> Selection:
    if "query_dim" not in sizes_of(SELECTIONS[name]):
        return SELECTIONS[name]()
    if query_dim is None:
        raise MechanismError(
            f"query_dim must be given for selection {name!r}; got none. It looks at the query."
        )
    return SELECTIONS[name](query_dim=query_dim)


def _check_parts(score: Score, selection: Selection) -> None:
    names = f"{type(score).__name__} and {type(selection).__name__}"
    if score.constant and selection.needs_preference:
        raise MechanismError(
            f"selection must not need a preference among keys that all score alike; got {names}. "
            "Use Softmax for their mean."
        )
    if score.traits.positional_queries and selection.traits.stateful:
        raise MechanismError(
            f"selection must not go step by step where the score needs the queries' places in a "
            f"sequence; got {names}. Use a score without such a term."
        )


def sizes_of(part: type[Score] | type[Selection]) -> dict[str, bool]:
    """Return which of the sizes a part takes, and whether each is needed."""
    parameters = inspect.signature(part).parameters
    found = [name for name in ("query_dim", "key_dim", "hidden_dim") if name in parameters]
    return {name: parameters[name].default is inspect.Parameter.empty for name in found}


def _wrong_sizes(
    score: object,
    given: dict[str, int],
    taken: Collection[str],
    *,
    missing: Collection[str] = (),
    surplus: Collection[str] = (),
) -> MechanismError:
    listed = ", ".join(f"{name}={size}" for name, size in given.items())
    return MechanismError(
        f"sizes must be those of {score!r}: {', '.join(taken)}; got {listed or 'none'}. "
        f"Missing: {', '.join(missing) or 'none'}; too many: {', '.join(surplus) or 'none'}."
    )


def _checked_name(what: str, name: object) -> str:
    if not isinstance(name, str):
        raise MechanismError(
            f"{what} must be a {what.capitalize()} or the name of one; got {name!r}. Call a class "
            "to build the part."
        )
    return name


def checked_dropout(dropout: float) -> float:
    """Return a dropout probability, or raise where it is none."""
    if not 0.0 <= dropout < 1.0:
        raise MechanismError(f"dropout must lie in [0, 1); got {dropout}. 0.1 is usual.")
    return dropout


def split_mask(mask: Tensor | None, key: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Tell a per-query mask from one shared by all queries: (per query, shared).

    What fits neither goes with the per-query masks, whose check knows all the sizes.
    """
    if mask is not None and not isinstance(mask, Tensor):
        raise MaskError(
            f"mask must be a bool tensor; got {type(mask).__name__}. Use torch.as_tensor(mask)."
        )
    if mask is None or mask.dtype != torch.bool or mask.shape != key.shape[:2]:
        return mask, None
    return None, mask


def prepared_once(
    name: str, prepared: Prepared, value: Tensor | None, *, heads: int | None
) -> Prepared:
    """Check prepared keys as they come back to a call."""
    if value is not None:
        raise ShapeError(
            f"value must be left out when the keys are prepared; got {tuple(value.shape)}. The "
            "prepared keys hold the values."
        )
    found = prepared.key.shape[1] if prepared.key.dim() == 4 else None
    if found != heads:
        raise ShapeError(
            f"prepared keys must have {heads or 'no'} heads for {name}; got {found or 'none'} in "
            f"{tuple(prepared.key.shape)}. Prepare them with the attention that reads them."
        )
    return prepared


def check_key_mask(mask: Tensor, key: Tensor) -> None:
    """Check the mask that keys are prepared under: bool and (batch, keys)."""
    if mask.dim() > 2:
        raise MaskError(
            f"mask must have shape (batch={key.shape[0]}, keys={key.shape[1]}) where keys are "
            f"prepared; got {tuple(mask.shape)}. Give a per-query mask to the call."
        )
    masks.checked(mask, batch=key.shape[0], keys=key.shape[1])


def check_items(name: str, key_dim: int | None, key: Tensor, value: Tensor | None) -> None:
    """Check the shapes of keys and values against a score's size of keys."""
    if key.dim() != 3:
        raise ShapeError(
            f"key must have shape (batch, keys, key_dim) for {name}; got {tuple(key.shape)}."
        )
    if key_dim is not None and key.shape[-1] != key_dim:
        raise ShapeError(
            f"key must have size key_dim={key_dim} for {name}; got {key.shape[-1]} in "
            f"{tuple(key.shape)}. Check what makes the keys."
        )
    if value is not None and (value.dim() != 3 or value.shape[:2] != key.shape[:2]):
        raise ShapeError(
            f"value must have shape (batch={key.shape[0]}, keys={key.shape[1]}, value_dim); got "
            f"{tuple(value.shape)}."
        )


def with_queries_axis(name: str, query_dim: int | None, query: Tensor) -> tuple[Tensor, bool]:
    """Check a query's shape; give a single query its axis and say that it was single."""
    if query.dim() not in (2, 3) or query.shape[-1] == 0:
        raise ShapeError(
            f"query must have shape (batch, queries, query_dim) or (batch, query_dim), and at "
            f"least 1 feature, for {name}; got {tuple(query.shape)}. Add or remove an axis."
        )
    if query_dim is not None and query.shape[-1] != query_dim:
        raise ShapeError(
            f"query must have size query_dim={query_dim} for {name}; got {query.shape[-1]} in "
            f"{tuple(query.shape)}. Check what makes the queries."
        )
    return (query.unsqueeze(1), True) if query.dim() == 2 else (query, False)


def check_pair(name: str, score: Score | None, query: Tensor, prepared: Prepared) -> None:
    """Check that queries and prepared keys go together; None checks no sizes."""
    if query.shape[0] != prepared.broken.shape[0]:
        raise ShapeError(
            f"query and key must have one batch size for {name}; got {query.shape[0]} and "
            f"{prepared.broken.shape[0]}. Expand the smaller one."
        )
    if score is not None and score.one_size and query.shape[-1] != prepared.key.shape[-1]:
        raise ShapeError(
            f"query and key must have one size for {name}; got {query.shape[-1]} and "
            f"{prepared.key.shape[-1]}. Use Bilinear or Additive for sizes that differ."
        )


def check_state(
    mechanism: Mechanism, query: Tensor, prepared: Prepared, state: State | None
) -> None:
    """Check that a stateful mechanism goes step by step, with a state that fits."""
    if not mechanism.traits.stateful:
        return
    queries = query.shape[1]
    if state is None:
        if queries > 1:
            raise MechanismError(
                f"queries must come one at a time for {mechanism.name} without a state; got "
                f"{queries}. Use regard.unroll to run it over a sequence."
            )
        return
    expected = (*prepared.key.shape[:-2], queries, prepared.key.shape[-2])
    if tuple(state.weights.shape) != expected:
        raise ShapeError(
            f"state must hold weights {expected} for {mechanism.name}; got "
            f"{tuple(state.weights.shape)}. Select the hypotheses of the state with them."
        )
