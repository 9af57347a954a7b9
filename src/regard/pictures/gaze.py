"""Where in a picture each written word, or label, looked, and what of it can be said in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import UserError
from regard.pictures.lettering import visible
from regard.pictures.picture import NOT_LOOKING, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regard.pictures.records import Record

_SAME = 0.02  # share of the weight that may lie elsewhere in maps that count as the same
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Gaze:
    """Where one word looked.

    Args:
        word: The word, visible.
        grid: Its weights over the cells, of shape (rows, columns).
        aside: The weight of not looking; None where the picture has no sentinel.
        strongest: The cell with the most weight; None where no cell stands out.
        said: The same in words, such as "top left 0.31".
    """

    word: str
    grid: NDArray[np.float32]
    aside: float | None
    strongest: int | None
    said: str

    @property
    def top(self) -> float:
        """The word's largest weight, that of not looking included: it is drawn strongest.

        A scale from 0 to it shows a narrow map as a spot, a broad one as a broad light, a
        uniform one as no difference, and a word that did not look at the picture as dark.
        """
        return max(float(self.grid.max()), self.aside or 0.0) or 1.0


@dataclass(frozen=True, eq=False)
class Gazes:
    """Where all words looked.

    Args:
        picture: What they looked at.
        words: One for each word; marks that are not in the text are left out.
        verdict: What must be said of all words together where their maps do not differ, or
            show nothing; "" where they do.
        shared: Whether one map stands for all words.
        sentence: What was written: a caption, or labels with their probabilities.
        unit: What a word is: "word" of a caption, or "label".
    """

    picture: Picture
    words: tuple[Gaze, ...]
    verdict: str
    shared: bool
    sentence: str
    unit: str

    @property
    def drawn(self) -> tuple[Gaze, ...]:
        """The maps worth a drawing: all, one that is shared, or none."""
        if not self.verdict:
            return self.words
        return self.words[:1] if self.shared else ()


def gazes(record: Record, name: str | None = None) -> Gazes:
    """Work out where each word of a caption looked.

    Pieces are merged into words, their weights averaged.

    Args:
        record: A record whose `read` is a picture.
        name: The map; the mean when it is not given.

    Returns:
        The words in their order.

    Raises:
        UserError: A text was read, or no map has this name.
    """
    merged = record.merge_words()
    picture = merged.read
    if not isinstance(picture, Picture):
        raise UserError("read must be a picture here; got a text. Use the matrix instead.")
    weights = merged.weights(name)
    kept = [i for i, token in enumerate(merged.written.tokens) if token.start < token.end]
    words = [_gaze(picture, merged.written.tokens[i].text, weights[i]) for i in kept]
    own = unit(record)
    verdict, shared = _verdict(picture, weights[kept], own)
    if shared:
        words = [_gaze(picture, f"all {len(words)} {own}s", weights[kept].mean(axis=0))]
    return Gazes(picture, tuple(words), verdict, shared, _sentence(record), own)


def unit(record: Record) -> str:
    """Say what was written of a picture.

    Args:
        record: A record whose `read` is a picture.

    Returns:
        "label" where it was classified, else "word".
    """
    return "label" if record.task.endswith("classification") else "word"


def _sentence(record: Record) -> str:
    """Return the text that was written, with the probabilities that are known of labels."""
    parts = []
    for token in record.written.tokens:
        named = record.details.get(f"probability of {token.text}")
        sure = record.details.get("probability") if named is None else named
        if unit(record) != "label" or not isinstance(sure, float):
            return record.written.text
        parts.append(f"{token.text} (probability {number(sure)})")
    return ", ".join(parts)


def _gaze(picture: Picture, word: str, weights: NDArray[np.float32]) -> Gaze:
    grid = picture.grid(weights)
    aside = float(weights[-1]) if picture.sentinel else None
    total, best = float(grid.sum()), int(grid.argmax())
    strongest: int | None = best
    said = f"{picture.place(best)} {number(float(grid.max()))}"
    if total < _NOTHING:
        strongest, said = None, NOT_LOOKING if aside else "nowhere"
    elif picture.rows * picture.columns > 1 and _is_uniform(grid.ravel()):
        strongest, said = None, f"everywhere alike {number(total / grid.size)}"
    return Gaze(visible(word), grid, aside, strongest, said)


def number(weight: float) -> str:
    """Write a weight so that a small one is not shown as nothing.

    Args:
        weight: 0 or more.

    Returns:
        Two decimals, or one significant digit below 0.005.

    Example:
        >>> number(0.314), number(0.0021), number(1e-7), number(0.0)
        ('0.31', '0.002', '<0.0001', '0')
    """
    if weight == 0:
        return "0"
    if weight < 0.0001:
        return "<0.0001"
    return f"{weight:.2f}" if weight >= 0.005 else f"{weight:.1g}"


def _is_uniform(weights: NDArray[np.float32]) -> bool:
    shares = weights / weights.sum()
    return bool(0.5 * np.abs(shares - 1 / len(shares)).sum() <= _SAME)


_ONE_CELL = {
    "word": "The grid has one cell: every word looked at the whole picture.",
    "label": "The grid has one cell: the whole picture decided.",
}
_NOWHERE = {
    "word": "No word looked at the picture.",
    "label": "No cell of the picture has any weight.",
}
_EVEN = {
    "word": "Every cell has the same weight: no word looked anywhere in particular.",
    "label": "Every cell has the same weight: none of them decided.",
}
_SHARED = {
    "word": "this does not say where each looked.",
    "label": "the model looked once, and said them all.",
}


def _verdict(picture: Picture, weights: NDArray[np.float32], unit: str) -> tuple[str, bool]:
    """Return what is said of all maps together, and whether one of them stands for all."""
    if not len(weights):
        return "Nothing was written.", False
    cells = weights[:, : picture.rows * picture.columns]
    if not picture.sentinel and cells.shape[1] == 1:
        return _ONE_CELL[unit], False
    looking = cells[cells.sum(axis=1) >= _NOTHING]
    if not len(looking):
        return _NOWHERE[unit], False
    if cells.shape[1] > 1 and all(_is_uniform(row) for row in looking):
        return _EVEN[unit], False
    if len(weights) > 1 and all(_are_same(row, weights.mean(axis=0)) for row in weights):
        count = len(weights)
        return f"The same for all {count} {unit}s: {_SHARED[unit]}", True
    return "", False


def _are_same(first: NDArray[np.float32], second: NDArray[np.float32]) -> bool:
    total = max(float(first.sum()), float(second.sum()))
    return bool(0.5 * np.abs(first - second).sum() <= _SAME * total)
