"""Vectors of words from a text file as GloVe, word2vec and fastText write them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.files import check_size
from regard.errors import DataError

LARGEST_FILE = 32 * 2**30
LARGEST_DIM = 8192
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """Vectors of the words that were asked for.

    Args:
        dim: Size of a vector.
        vectors: The vector of each word that the file has.
    """

    dim: int
    vectors: dict[str, NDArray[np.float32]]


def read_vectors(path: str | Path, words: Collection[str]) -> WordVectors:
    r"""Read the vectors of some words, a line at a time; the file may be larger than memory.

    A line is a word and its numbers, separated by spaces: `the 0.418 0.24968 -0.41242`. A first
    line of two whole numbers (how many words, and their size) is passed over, and so is what does
    not concern these words; the first of two lines of one word counts.

    Args:
        path: The file.
        words: The words that are wanted, as they are spelled in the file.

    Returns:
        Their vectors.

    Raises:
        DataError: The file or a line of it is wrong.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
        >>> _ = path.write_text("the 0.5 1.0\ncat -1.0 0.25\n")
        >>> read_vectors(path, {"cat", "dog"}).vectors
        {'cat': array([-1.  ,  0.25], dtype=float32)}
    """
    wanted, found, dim = frozenset(words), {}, 0
    for where, raw in _lines(Path(path)):
        if not dim:
            dim = _dim(raw, where)
        word, numbers = _cut(raw, dim, where)
        if word in wanted and word not in found:
            found[word] = _numbers(numbers, where)
    if not dim:
        raise DataError("file must hold at least one vector; got 0. Check it.", where=str(path))
    return WordVectors(dim, found)


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        check_size(path, LARGEST_FILE)
        with path.open("rb") as stream:
            number = 0
            while raw := stream.readline(_LONGEST_LINE):
                number += 1
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                line = line.rstrip(b" \r\n")
                if line and not (number == 1 and _is_header(line)):
                    yield f"{path}:{number}", line
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror or error}. Check the path.", where=str(path)
        ) from error


def _is_header(line: bytes) -> bool:
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _dim(line: bytes, where: str) -> int:
    dim = len(line.split(b" ")) - 1
    if not 1 <= dim <= LARGEST_DIM:
        raise DataError(
            f"line must hold a word and 1 to {LARGEST_DIM} numbers, separated by spaces; got {dim} "
            "numbers. Is it a text file of vectors?",
            where=where,
        )
    return dim


def _cut(line: bytes, dim: int, where: str) -> tuple[str, list[bytes]]:
    """Cut from the right: a word may hold spaces."""
    word, *numbers = line.rsplit(b" ", dim)
    if len(numbers) != dim:
        raise DataError(
            f"line must hold {dim} numbers as the first line does; got {len(numbers)}. Correct or "
            "remove it.",
            where=where,
        )
    try:
        return word.decode(), numbers
    except UnicodeDecodeError as error:
        raise DataError(
            f"word must be UTF-8; got another byte at {error.start}. Correct or remove the line.",
            where=where,
        ) from error


def _numbers(numbers: list[bytes], where: str) -> NDArray[np.float32]:
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = [math.nan]
    with np.errstate(over="ignore"):
        vector = np.array(values, dtype=np.float32)
    if not np.isfinite(vector).all():
        raise DataError(
            "vector must hold finite numbers; got something else. Correct or remove the line.",
            where=where,
        )
    return vector
