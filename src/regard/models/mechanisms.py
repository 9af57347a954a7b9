"""The attentions of decoders: built from names, checked against the sizes around them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from regard.attention import SCORES, SELECTIONS, Attention, MultiHead
from regard.errors import MechanismError, did_you_mean

_Part = TypeVar("_Part")


def build_mechanism(
    score: str,
    selection: str,
    *,
    query_dim: int,
    key_dim: int,
    hidden_dim: int,
    num_heads: int | None = None,
    dropout: float = 0.0,
) -> Attention | MultiHead:
    """Build an attention whose parts get those of the sizes that they take.

    Args:
        score: A name in `SCORES`.
        selection: A name in `SELECTIONS`.
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer inside a part that has one.
        num_heads: How many heads, each with parts of its own; None for an attention without.
        dropout: Probability that a weight is dropped in training.

    Returns:
        The attention.

    Raises:
        MechanismError: A name is unknown, the sizes do not go together, or a part needs more
            than sizes.

    Example:
        >>> build_mechanism("bilinear", "softmax", query_dim=4, key_dim=6, hidden_dim=5).name
        'Attention(Bilinear, Softmax)'
    """
    sizes = {"query_dim": query_dim, "key_dim": key_dim, "hidden_dim": hidden_dim}
    if num_heads is None:
        return Attention(
            _built("score", SCORES, score, sizes),
            _built("selection", SELECTIONS, selection, sizes),
            dropout=dropout,
        )
    if num_heads < 1 or query_dim % num_heads:
        raise MechanismError(
            f"num_heads must divide query_dim; got {num_heads} and {query_dim}. "
            "Choose sizes such as 8 heads of 64."
        )
    head_dim = query_dim // num_heads
    sizes |= {"query_dim": head_dim, "key_dim": head_dim}
    return MultiHead(
        num_heads,
        query_dim,
        key_dim=key_dim,
        score=_built("score", SCORES, score, sizes),
        selection=_built("selection", SELECTIONS, selection, sizes),
        dropout=dropout,
    )


def _built(
    what: str, parts: Mapping[str, Callable[..., _Part]], name: str, sizes: dict[str, int]
) -> _Part:
    if name not in parts:
        known = did_you_mean(name, parts)
        raise MechanismError(f"{what} must be the name of a {what}; got {name!r}: {known}")
    parameters = inspect.signature(parts[name]).parameters
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name not in sizes
    ]
    if missing:
        raise MechanismError(
            f"{what} must need no more than sizes to be built by name; got {name!r}, which needs "
            f"{', '.join(missing)}. Build the part, and the decoder with it, in Python."
        )
    return parts[name](**{n: size for n, size in sizes.items() if n in parameters})


def check_reads(attention: Attention | MultiHead, *, query_dim: int, memory_dim: int) -> None:
    """Check that an attention takes a decoder's queries and an encoder's items.

    Args:
        attention: The attention.
        query_dim: Size of the decoder's queries.
        memory_dim: Size of the encoder's items.

    Raises:
        MechanismError: A size differs, or the attention goes by the places of queries.
    """
    if attention.traits.positional_queries:
        raise MechanismError(
            f"attention must not go by the places of queries, as written and read places are not "
            f"the same; got {attention.name}. Choose a score without such a term."
        )
    sizes = (
        ("query_dim", attention.query_dim, query_dim, "queries of the decoder"),
        ("key_dim", attention.key_dim, memory_dim, "items of the encoder"),
    )
    for name, own, wanted, whose in sizes:
        if own not in (None, wanted):
            raise MechanismError(
                f"{name} must be {wanted}, the size of the {whose}, for {attention.name}; "
                f"got {own}. Build it with that size."
            )
    one_size = isinstance(attention, Attention) and attention.score.one_size
    if one_size and query_dim != memory_dim:
        raise MechanismError(
            f"query_dim must equal key_dim for {attention.name}; got {query_dim} and "
            f"{memory_dim}. Use Bilinear or Additive for sizes that differ."
        )


def check_stateless(attention: Attention | MultiHead) -> None:
    """Check that an attention that one of several layers holds needs no state.

    Args:
        attention: The attention.

    Raises:
        MechanismError: It depends on where it looked before.
    """
    if attention.traits.stateful:
        raise MechanismError(
            f"attention must not depend on earlier steps in a decoder with one in each layer; got "
            f"{attention.name}. Use it in a recurrent decoder."
        )


def check_order(attention: Attention | MultiHead, *, ordered: bool) -> None:
    """Check that an attention that goes by the places of items reads items with places.

    Args:
        attention: The attention.
        ordered: Whether the encoder keeps the order.

    Raises:
        MechanismError: The items are a set and their places mean nothing.
    """
    if not ordered and not attention.traits.permutation_equivariant:
        raise MechanismError(
            f"attention must not go by the places of items that are a set: a position-dependent "
            f"selection over a set means nothing; got {attention.name}. Choose an encoder that "
            "keeps the order, or another attention."
        )
