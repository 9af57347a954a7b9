"""Splits of generated data: what is in an example decides where it belongs."""

from __future__ import annotations

import hashlib

from regard.errors import UserError, did_you_mean

SPLITS = {"train": 8, "dev": 1, "test": 1}
"""The splits, and how many of ten examples belong to each."""


def check_split(split: str) -> None:
    """Refuse a split that does not exist.

    Args:
        split: Its name.

    Raises:
        UserError: It is not one of `SPLITS`.
    """
    if split not in SPLITS:
        raise UserError(f"split must be known; got {split!r}; {did_you_mean(split, SPLITS)}.")


def split_of_content(content: str) -> str:
    """Say to which split an example belongs, so that none stands in two, whatever their seeds.

    Args:
        content: All that makes the example what it is.

    Returns:
        The split.

    Example:
        >>> split_of_content("a red circle"), split_of_content("a blue circle")
        ('train', 'train')
    """
    names = [name for name, share in SPLITS.items() for _ in range(share)]
    return names[hashlib.sha256(content.encode()).digest()[0] % 10]
