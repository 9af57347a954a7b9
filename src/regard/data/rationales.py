"""Rationales: where people marked what decides a document's label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.labelled import JSONL
from regard.data.normalisation import is_blank
from regard.data.sentences import Span
from regard.data.text import read_lines
from regard.errors import DataError, FileFormatError
from regard.saving.files import parse_json

KEY = "evidence"


def read_rationales(
    path: str | Path, *, encoding: str = "utf-8-sig"
) -> list[tuple[Span, ...] | None]:
    r"""Read the marked places of each document of a JSONL file, from its key `evidence`.

    They are a list of first characters and those past the last, `[[10, 14], [52, 60]]`, of the text
    or of the sentences joined by a line feed; or an object that has such a list as its `words`.
    Where the key is missing or null nothing is known of the document.

    Args:
        path: The file; another kind than JSONL has none.
        encoding: How the file is encoded.

    Returns:
        For each document, in the order of `read_documents`, the places; None where none is known.

    Raises:
        DataError: The file or a line of it is wrong.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "reviews.jsonl"
        >>> _ = path.write_text('{"text": "A fine film.", "label": 1, "evidence": [[2, 6]]}\n{}\n')
        >>> read_rationales(path)
        [((2, 6),), None]
    """
    if Path(path).suffix.lower() not in JSONL:
        return []
    found: list[tuple[Span, ...] | None] = []
    for line, written in enumerate(read_lines(path, encoding=encoding), start=1):
        if is_blank(written):
            continue
        where = f"{path}:{line}"
        try:
            row = parse_json(written.encode(errors="surrogatepass"), where)
            found.append(_spans(row.get(KEY)))
        except (FileFormatError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                'evidence must be null, a list of [start, end], or {"words": [[start, end], ...]}. '
                "Correct it.",
                where=where,
            ) from error
    return found


def _spans(given: Any) -> tuple[Span, ...] | None:
    if given is None:
        return None
    pairs = given["words"] if isinstance(given, dict) else given
    spans = tuple((_place(start), _place(end)) for start, end in pairs)
    if any(start >= end for start, end in spans):
        raise ValueError("a place ends before it begins")
    return spans


def _place(given: object) -> int:
    if type(given) is not int or given < 0:
        raise TypeError("a place is a whole number")
    return given
