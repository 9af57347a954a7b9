"""Read lines, parallel files and tables of sentence pairs; never guess, never lose a line."""

from __future__ import annotations

import codecs
import hashlib
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.files import read_bytes
from regard.data.normalisation import is_blank, normalise
from regard.errors import DataError, UserError, did_you_mean

LARGEST_FILE = 2 * 2**30
MAX_CHARACTERS = 10_000

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentence pairs, and where each came from.

    Args:
        sources: The source sentences.
        targets: The target sentence of each.
        file: The file (of the sources) that they were read from.
        lines: The line of each pair in it, counted from 1.
        dropped_empty: Pairs left out because one side or both were blank.
        dropped_long: Pairs left out because a side had too many characters.
        sha256: Hash of the kept sentences; the same for other line ends or a byte order mark.
    """

    sources: list[str]
    targets: list[str]
    file: str
    lines: Sequence[int]
    dropped_empty: int
    dropped_long: int
    sha256: str

    def __len__(self) -> int:
        return len(self.sources)

    def where(self, index: int) -> str:
        """Name the place of a pair.

        Args:
            index: Which pair.

        Returns:
            `file:line`.
        """
        return f"{self.file}:{self.lines[index]}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of one set of pairs is known from another.

    Args:
        pairs: Pairs that stand in both.
        sources: Pairs whose source sentence stands in both.
        targets: Pairs whose target sentence stands in both.
        total: Pairs of the set that was looked at.
    """

    pairs: int
    sources: int
    targets: int
    total: int


def read_lines(
    path: str | Path, *, encoding: str = "utf-8-sig", largest: int = LARGEST_FILE
) -> list[str]:
    r"""Read the lines of a text file.

    A line ends at `\n` and nowhere else, so that two parallel files keep in step; one `\r`
    before it goes too, any other `\r` becomes a space. U+2028, U+0085, VT and FF are ordinary
    characters. A byte order mark of UTF-8 is not part of the text.

    Args:
        path: The file.
        encoding: How its text is encoded.
        largest: Most bytes to read.

    Returns:
        The lines, without their ends; what follows the last `\n` is a line if it is not empty.

    Raises:
        DataError: The file is missing, not a regular file, too large, not in this encoding,
            or holds a NUL character.
        UserError: The encoding does not exist.
    """
    return split_lines(read_bytes(Path(path), largest), encoding=encoding, where=str(path))


def split_lines(data: bytes, *, encoding: str = "utf-8-sig", where: str) -> list[str]:
    """Split bytes into lines, as `read_lines` does.

    Args:
        data: The bytes of a text.
        encoding: How it is encoded.
        where: The place that errors name.

    Returns:
        The lines, without their ends.

    Raises:
        DataError: The bytes are not of this encoding, or hold a NUL character.
        UserError: The encoding does not exist.
    """
    text = _decode(data, encoding, where=where)
    nul = text.find("\0")
    if nul >= 0:
        raise DataError(
            "text must hold no NUL character; got one. The file is UTF-16 or no text: save it "
            "as UTF-8, or name its encoding.",
            where=f"{where}:{text.count(chr(10), 0, nul) + 1}",
        )
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if "\r" in text:
        lines = [line.removesuffix("\r").replace("\r", " ") for line in lines]
    return lines


def read_parallel(
    source_path: str | Path,
    target_path: str | Path,
    *,
    encoding: str = "utf-8-sig",
    max_characters: int = MAX_CHARACTERS,
) -> Pairs:
    """Read two files whose lines belong together.

    Args:
        source_path: The file of source sentences.
        target_path: The file of target sentences.
        encoding: How both are encoded.
        max_characters: A pair with a longer side is left out and counted.

    Returns:
        The pairs.

    Raises:
        DataError: A file cannot be read, the numbers of lines differ, or no pair is left.
    """
    sources = read_lines(source_path, encoding=encoding)
    targets = read_lines(target_path, encoding=encoding)
    if len(sources) != len(targets):
        raise DataError(
            f"source and target must have equally many lines; got {len(sources)} and "
            f"{len(targets)} in {target_path}.{_suspicion(sources, targets)} "
            "Compare the files there.",
            where=str(source_path),
        )
    rows = zip(itertools.count(1), sources, targets, strict=False)
    return _keep(rows, str(source_path), max_characters)


def read_tsv(
    path: str | Path,
    *,
    source_column: int | str = 0,
    target_column: int | str = 1,
    header: bool = False,
    encoding: str = "utf-8-sig",
    max_characters: int = MAX_CHARACTERS,
) -> Pairs:
    """Read pairs from two columns of a table separated by tabs, without any quoting.

    Args:
        path: The file. A cell that begins with a double quote is text like any other.
        source_column: Number of the column from 0, or its name in the header.
        target_column: Number of the column from 0, or its name in the header.
        header: Whether the first line holds names; a column given by name means yes.
        encoding: How the file is encoded.
        max_characters: A pair with a longer side is left out and counted.

    Returns:
        The pairs; columns beside the two are ignored.

    Raises:
        DataError: The file or a row is wrong, or no pair is left.
    """
    wanted = (source_column, target_column)
    cells = read_columns(path, wanted, header=header, encoding=encoding)
    rows = ((number, source, target) for number, (source, target) in cells)
    return _keep(rows, str(path), max_characters)


def read_columns(
    path: str | Path,
    columns: Sequence[int | str],
    *,
    header: bool = False,
    encoding: str = "utf-8-sig",
) -> Iterator[tuple[int, list[str]]]:
    """Read columns of a table separated by tabs, without any quoting.

    Args:
        path: The file.
        columns: Number of each column from 0, or its name in the header.
        header: Whether the first line holds names; a column given by name means yes.
        encoding: How the file is encoded.

    Returns:
        For each row the number of its line, from 1, and its cells; a blank line has empty ones.

    Raises:
        DataError: The file or a row is wrong; for rows this is raised on the way.
    """
    rows = [line.split("\t") for line in read_lines(path, encoding=encoding)]
    if not rows:
        raise DataError("file must hold at least one row; got 0. Check the path.", where=str(path))
    places = [_column(column, rows[0], where=f"{path}:1") for column in columns]
    if len(set(places)) < len(places):
        raise DataError(
            f"columns must differ; got {' and '.join(map(repr, columns))}. Name different ones.",
            where=str(path),
        )
    named = any(isinstance(column, str) for column in columns)
    return _cells(rows, places, first=1 if header or named else 0, path=str(path))


def overlap(train: Pairs, other: Pairs) -> Overlap:
    """Count what a development or test set shares with the training set.

    Args:
        train: The training pairs.
        other: The pairs that should be new.

    Returns:
        Counts over `other`; sentences are compared after normalisation.
    """
    known = list(_normal(train))
    pairs, sources, targets = set(known), {s for s, _ in known}, {t for _, t in known}
    found = list(_normal(other))
    return Overlap(
        pairs=sum(pair in pairs for pair in found),
        sources=sum(source in sources for source, _ in found),
        targets=sum(target in targets for _, target in found),
        total=len(found),
    )


def _normal(pairs: Pairs) -> Iterator[tuple[str, str]]:
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        yield normalise(source).text, normalise(target).text


def _decode(data: bytes, encoding: str, *, where: str) -> str:
    skipped = 0
    try:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        if name == "utf-8":
            _refuse_other_marks(data, where)
            skipped = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
        return data[skipped:].decode(name) if skipped else data.decode(name)
    except UnicodeError as error:
        offset = skipped + getattr(error, "start", 0)
        raise DataError(
            f"text must be {name}; got a byte that is not, {data[offset : offset + 1]!r} at "
            f"byte {offset}. Save it as UTF-8, or name its encoding (gb18030, cp1252, utf-16).",
            where=f"{where}:{data.count(10, 0, offset) + 1}",
        ) from error
    except LookupError as error:
        raise UserError(
            f"encoding must be one that Python knows; got {encoding!r}. Use utf-8."
        ) from error


def _refuse_other_marks(data: bytes, where: str) -> None:
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            raise DataError(
                f"text must be utf-8; got the byte order mark of {name} at byte 0. "
                f"Save it as UTF-8, or name its encoding ({name.lower()}).",
                where=f"{where}:1",
            )


def _column(column: int | str, first_row: Sequence[str], *, where: str) -> int:
    if isinstance(column, str):
        count = first_row.count(column)
        if count != 1:
            advice = did_you_mean(column, first_row) if not count else "rename one of them"
            raise DataError(
                f"column {column!r} must stand once in the header; got {count} times; {advice}.",
                where=where,
            )
        return first_row.index(column)
    if not 0 <= column < len(first_row):
        raise DataError(
            f"column must be from 0 to {len(first_row) - 1}; got {column} in a table of "
            f"{len(first_row)} columns. Are they separated by tabs?",
            where=where,
        )
    return column


def _cells(
    rows: Sequence[Sequence[str]], places: Sequence[int], *, first: int, path: str
) -> Iterator[tuple[int, list[str]]]:
    width = len(rows[0])
    for number, row in enumerate(rows[first:], start=first + 1):
        if len(row) == 1 and is_blank(row[0]):
            yield number, [""] * len(places)
        elif len(row) != width:
            raise DataError(
                f"row must have {width} columns as the first line has; got {len(row)}. "
                "Look for a missing or an extra tab.",
                where=f"{path}:{number}",
            )
        else:
            yield number, [row[place] for place in places]


def _keep(rows: Iterable[tuple[int, str, str]], file: str, max_characters: int) -> Pairs:
    if max_characters < 1:
        raise UserError(f"max_characters must be at least 1; got {max_characters}. Raise it.")
    sources: list[str] = []
    targets: list[str] = []
    lines = array("L")
    empty = long = 0
    digest = hashlib.sha256()
    for number, source, target in rows:
        if is_blank(source) or is_blank(target):
            empty += 1
        elif max(len(source), len(target)) > max_characters:
            long += 1
        else:
            sources.append(source)
            targets.append(target)
            lines.append(number)
            digest.update(f"{source}\n{target}\n".encode("utf-8", errors="surrogatepass"))
    if not sources:
        raise DataError(
            f"file must hold at least one pair; got 0 ({empty} with a blank side, {long} longer "
            f"than {max_characters} characters). Check the columns and the files.",
            where=file,
        )
    return Pairs(sources, targets, file, lines, empty, long, digest.hexdigest())


def _suspicion(sources: Sequence[str], targets: Sequence[str]) -> str:
    """Say where lines seem to be missing: where a shift makes the lengths fit best."""
    shorter, longer = sorted((sources, targets), key=len)
    shift = len(longer) - len(shorter)
    if not shorter:
        return ""
    ratio = math.log((1 + sum(map(len, shorter))) / (1 + sum(map(len, longer))))
    sizes = [math.log(1 + len(line)) - ratio for line in shorter]
    others = [math.log(1 + len(line)) for line in longer]
    costs = [sum(abs(a - b) for a, b in zip(sizes, others[shift:], strict=True))]
    for place, size in enumerate(sizes):  # one more line before the gap, one fewer behind it
        change = abs(size - others[place]) - abs(size - others[place + shift])
        costs.append(costs[-1] + change)
    best = min(range(len(costs)), key=costs.__getitem__)
    if costs[best] > 0.9 * max(costs):
        return ""
    return f" They seem to part at line {best + 1}."
