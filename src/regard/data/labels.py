"""Labels: what may be one, what has some, and how frequent they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from regard.data.normalisation import normalise
from regard.errors import DataError

_LONGEST = 200  # characters of a label


class Labelled(Protocol):
    """Something that has labels, one or any number, and places in a file."""

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each."""

    @property
    def several(self) -> bool:
        """Whether one may have any number of them."""

    @property
    def file(self) -> str:
        """Where they were read."""

    def where(self, index: int) -> str:
        """Name the place of one."""


def checked_label(given: object, where: str) -> str:
    """Turn what stands for a label into one.

    Args:
        given: A text, or a whole number.
        where: The place of it.

    Returns:
        The label, normalised.

    Raises:
        DataError: It is something else, empty or too long.
    """
    if type(given) is int:
        return str(given)
    if not isinstance(given, str):
        raise DataError(
            f"label must be a text or a whole number; got {type(given).__name__}. Correct it.",
            where=where,
        )
    label = normalise(given).text
    if not 0 < len(label) <= _LONGEST:
        raise DataError(
            f"label must have 1 to {_LONGEST} characters; got {len(label)}. Is it the right "
            "column?",
            where=where,
        )
    return label


def label_shares(labels: Sequence[Sequence[str]]) -> str:
    """Say how frequent labels are.

    Args:
        labels: The labels of each document or picture.

    Returns:
        The ten most frequent with their shares, and how many more there are.

    Example:
        >>> label_shares([("cat",), ("dog",), ("cat",), ("cat",)])
        'cat 75.0 %, dog 25.0 %'
    """
    counts = Counter(label for several in labels for label in several)
    shares = ", ".join(
        f"{label} {100 * count / len(labels):.1f} %" for label, count in counts.most_common(10)
    )
    return f"{shares} and {len(counts) - 10} more" if len(counts) > 10 else shares
