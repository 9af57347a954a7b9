"""Masks: bool, True = may attend.

A 2-D mask is `(batch, keys)`, a 3-D mask `(batch, queries, keys)` where a batch axis of 1 is
the only broadcast, and a 4-D mask adds heads, second.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import MaskError

MEANING = "a mask is bool and True means 'may attend'"


def lengths(counts: Int[Tensor, " batch"], keys: int | None = None) -> Bool[Tensor, "batch keys"]:
    """Allow the first `counts[b]` keys of every row.

    Args:
        counts: How many keys of each row are real; zero is allowed.
        keys: The width of the mask; by default the largest count.

    Returns:
        The mask.

    Raises:
        MaskError: The counts are not whole numbers, one for each row; one is negative or exceeds
            `keys`.

    Example:
        >>> lengths(torch.tensor([2, 0]), 3).int().tolist()
        [[1, 1, 0], [0, 0, 0]]
    """
    if not isinstance(counts, Tensor):
        raise MaskError(
            f"counts must be a tensor; got {type(counts).__name__}. Use torch.as_tensor(counts)."
        )
    if counts.dim() != 1 or counts.dtype == torch.bool or counts.is_floating_point():
        raise MaskError(
            f"counts must be whole numbers (batch,); got {counts.dtype} {tuple(counts.shape)}. "
            "A mask of bools needs no counting: pass it as it is."
        )
    longest = int(counts.max()) if counts.numel() else 0
    width = longest if keys is None else keys
    if longest > width or (counts.numel() and int(counts.min()) < 0):
        raise MaskError(f"counts must lie in 0..{width}; got {counts.tolist()}. Check the lengths.")
    return torch.arange(width, device=counts.device) < counts.unsqueeze(-1)


def causal(
    queries: int, keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "1 queries keys"]:
    """Allow every query to attend to its own place and those before it.

    With more keys than queries the last query is aligned with the last key, as it is when
    new queries read a growing cache.

    Args:
        queries: How many queries there are.
        keys: How many keys there are; by default as many as queries.
        device: Where the mask lives.

    Returns:
        The mask; its batch axis of 1 broadcasts.

    Example:
        >>> causal(2, 3).int().tolist()
        [[[1, 1, 0], [1, 1, 1]]]
    """
    width = queries if keys is None else keys
    full = torch.ones(1, queries, width, dtype=torch.bool, device=device)
    return full.tril(width - queries)


def window(
    queries: int,
    keys: int | None = None,
    *,
    before: int,
    after: int = 0,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "1 queries keys"]:
    """Allow every query the keys from `before` its own place to `after` it.

    Args:
        queries: How many queries there are.
        keys: How many keys there are; by default as many as queries.
        before: How many earlier places are allowed.
        after: How many later places are allowed.
        device: Where the mask lives.

    Returns:
        The mask; its batch axis of 1 broadcasts.

    Raises:
        MaskError: A reach is negative.

    Example:
        >>> window(3, before=1).int().tolist()
        [[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]
    """
    if before < 0 or after < 0:
        raise MaskError(
            f"before and after must be at least 0; got {before} and {after}. 0 is the own place."
        )
    width = queries if keys is None else keys
    full = torch.ones(1, queries, width, dtype=torch.bool, device=device)
    shift = width - queries
    return full.tril(shift + after).triu(shift - before)


def from_key_padding_mask(mask: Bool[Tensor, "batch keys"]) -> Bool[Tensor, "batch keys"]:
    """Turn a key padding mask (True = ignore) into a mask (True = may attend).

    Args:
        mask: True where a key is padding, as `nn.MultiheadAttention` takes it.

    Returns:
        The mask with the other polarity.

    Raises:
        MaskError: The mask is not a bool tensor of two axes.
    """
    if mask.dtype != torch.bool or mask.dim() != 2:
        raise MaskError(
            f"mask must be a bool tensor (batch, keys); got {mask.dtype} {tuple(mask.shape)}. "
            "Compare your tensor with 0 or -inf first."
        )
    return ~mask


def checked(
    mask: Tensor, *, batch: int, keys: int, queries: int | None = None, heads: int | None = None
) -> Bool[Tensor, "..."]:
    """Check a mask against the sizes it is meant for, and give it its axes.

    Args:
        mask: A mask of 2, 3 or, where there are heads, 4 axes.
        batch: How many rows the keys have.
        keys: How many keys there are.
        queries: How many queries there are, or None where one mask must serve all of them.
        heads: How many heads there are, or None.

    Returns:
        `(batch or 1, queries or 1, keys)`, with heads (or 1) second where there are heads.

    Raises:
        MaskError: The type or shape is wrong; nothing is ever broadcast silently.
    """
    if mask.dtype != torch.bool:
        advice = "use mask != 0, or scores_mask == 0 for an additive mask of 0 and -inf"
        raise MaskError(f"mask must be bool; got {mask.dtype}. {MEANING}: {advice}.")
    shapes: list[dict[str, int]] = [{"batch": batch, "keys": keys}]
    if queries is not None:
        shapes.append({"batch": batch, "queries": queries, "keys": keys})
        if heads is not None:
            shapes.append({"batch": batch, "heads": heads, "queries": queries, "keys": keys})
    shape = tuple(mask.shape)
    if not any(_fits(shape, expected) for expected in shapes):
        raise MaskError(_wrong_shape(shape, shapes))
    mask = mask.unsqueeze(-2) if mask.dim() == 2 else mask
    return mask.unsqueeze(1) if heads is not None and mask.dim() == 3 else mask


def _fits(shape: tuple[int, ...], expected: dict[str, int]) -> bool:
    sizes = tuple(expected.values())
    if shape == sizes:
        return True
    # With an axis for the queries, the axes before it may be 1.
    lead = len(sizes) - 2
    return (
        lead > 0
        and len(shape) == len(sizes)
        and shape[lead:] == sizes[lead:]
        and all(got in (1, size) for got, size in zip(shape[:lead], sizes[:lead], strict=True))
    )


def _wrong_shape(shape: tuple[int, ...], shapes: list[dict[str, int]]) -> str:
    listed = [", ".join(f"{axis}={n}" for axis, n in expected.items()) for expected in shapes]
    last = shapes[-1]
    hint = ""
    if len(shape) > 1 and any(
        shape == (*(n := tuple(e.values()))[:-2], n[-1], n[-2]) for e in shapes
    ):
        hint = " It looks transposed."
    elif shape == (last.get("queries"), last["keys"]):
        hint = " Write mask.unsqueeze(0) for one mask over queries and keys."
    expected = " or ".join(f"({sizes})" for sizes in listed)
    return f"mask must have shape {expected}; got {shape}.{hint} {MEANING}."
