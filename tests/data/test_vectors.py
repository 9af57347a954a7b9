"""Vectors of words from the text files that people have."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.vectors import read_vectors
from regard.errors import DataError


def write(folder: Path, content: bytes | str) -> Path:
    file = folder / "vectors.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_words_that_are_wanted(tmp_path: Path) -> None:
    file = write(tmp_path, "the 1 2\ncat 0.5 -1e-2\n猫 3 4\nthe 9 9\n")
    found = read_vectors(file, {"the", "猫", "dog"})
    assert found.dim == 2
    assert {word: list(vector) for word, vector in found.vectors.items()} == {
        "the": [1.0, 2.0], "猫": [3.0, 4.0],
    }  # fmt: skip
    assert all(vector.dtype == np.float32 for vector in found.vectors.values())


@pytest.mark.parametrize(
    "content",
    ["2 3\nthe 1 2 3\n. . 4 5 6\n", "\ufeff2 3\r\nthe 1 2 3\r\n\r\n. . 4 5 6\r\n",
     "the 1 2 3 \n. . 4 5 6 "],
)  # fmt: skip
def test_headers_line_ends_and_words_with_spaces(tmp_path: Path, content: str) -> None:
    found = read_vectors(write(tmp_path, content), {"the", ". ."})
    assert found.dim == 3
    assert list(found.vectors[". ."]) == [4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must hold at least one vector"),
        ("12 2\n", "must hold at least one vector"),
        ("word\n", r":1: line must hold a word and 1 to 8192 numbers.*got 0"),
        ("the 1 2\ncat 1\n", r":2: line must hold 2 numbers as the first line does; got 1"),
        ("the 1 2\ncat 1 x\n", r":2: vector must hold finite numbers"),
        ("the 1 2\ncat nan 2\n", r":2: vector must hold finite numbers"),
        ("the 1 2\ncat 1e99 2\n", r":2: vector must hold finite numbers"),
        (b"the 1 2\nc\xe9 1 2\n", r":2: word must be UTF-8; got another byte at 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_vectors(write(tmp_path, content), {"cat", "the"})


def test_c2_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_vectors(tmp_path / "none.txt", set())
    with pytest.raises(DataError, match="it is a folder"):
        read_vectors(tmp_path, set())
