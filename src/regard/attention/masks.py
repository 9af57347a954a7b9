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
        MaskError: A count is negative or exceeds `keys`.

    Example:
        >>> lengths(torch.tensor([2, 0]), 3).int().tolist()
        [[1, 1, 0], [0, 0, 0]]
    """
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
    """Allow every query the keys from `before` places before its own to `after` behind it.

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
        raise MaskError(f"before and after must be at least 0; got {before} and {after}.")
    width = queries if keys is None else keys
    full = torch.ones(1, queries, width, dtype=torch.bool, device=device)
    shift = width - queries
    return full.tril(shift + after).triu(shift - before)


def from_key_padding_mask(mask: Bool[Tensor, "batch keys"]) -> Bool[Tensor, "batch keys"]:
    """Turn PyTorch's key padding mask (True = ignore) into regard's (True = may attend).

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
    mask: Tensor, *, batch: int, queries: int, keys: int, heads: int | None = None
) -> Bool[Tensor, "..."]:
    """Check a mask against the sizes it is meant for, and give it an axis for the queries.

    Args:
        mask: A mask of 2, 3 or, where there are heads, 4 axes.
        batch: How many rows the keys have.
        queries: How many queries there are.
        keys: How many keys there are.
        heads: How many heads there are, or None.

    Returns:
        `(batch or 1, queries or 1, keys)`, with heads (or 1) second where there are heads.

    Raises:
        MaskError: The type or shape is wrong; nothing is ever broadcast silently.
    """
    if mask.dtype != torch.bool:
        advice = "use mask != 0, or scores_mask == 0 for an additive mask of 0 and -inf"
        raise MaskError(f"mask must be bool; got {mask.dtype}. {MEANING}: {advice}.")
    allowed: dict[int, set[tuple[int, ...]]] = {
        2: {(batch, keys)},
        3: {(batch, queries, keys), (1, queries, keys)},
    }
    if heads is not None:
        allowed[4] = {(b, h, queries, keys) for b in (1, batch) for h in (1, heads)}
    shape = tuple(mask.shape)
    if shape not in allowed.get(len(shape), set()):
        expected = (
            f"(batch={batch}, keys={keys}) or (batch={batch}, queries={queries}, keys={keys})"
        )
        if heads is not None:
            expected += f" or (batch={batch}, heads={heads}, queries={queries}, keys={keys})"
        hint = " It looks transposed." if shape == (keys, batch) else ""
        raise MaskError(f"mask must have shape {expected}; got {shape}.{hint} {MEANING}.")
    mask = mask.unsqueeze(-2) if mask.dim() == 2 else mask
    return mask.unsqueeze(1) if heads is not None and mask.dim() == 3 else mask
