"""Files that list pictures and what is said of each: its captions, or its labels."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple, Self

from regard.data.normalisation import is_blank
from regard.data.text import read_columns, read_lines
from regard.errors import DataError, FileFormatError, UserError, did_you_mean
from regard.saving.files import parse_json

JSONL = (".jsonl", ".ndjson")
TSV = (".tsv", ".txt")


class Kind(NamedTuple):
    """What is said of pictures.

    Args:
        one: The key of JSONL that holds one.
        several: The key that holds a list of them, and the name of the file in a folder.
    """

    one: str
    several: str

    @property
    def files(self) -> tuple[str, str]:
        """What the file is called in a folder."""
        return f"{self.several}.jsonl", f"{self.several}.tsv"


class Columns(NamedTuple):
    """Where in a line the image, what is said of it, and the split stand.

    Args:
        image: Key of the image's name (JSONL; by default `image`), or its column (TSV; 0).
        said: Key of what is said, or the column (1).
        split: Key of the split (`split`, where a line has it), or the column (none).
        header: Whether the first line of a TSV holds names; a column given by name means yes.
    """

    image: int | str | None = None
    said: int | str | None = None
    split: int | str | None = None
    header: bool = False


class Row(NamedTuple):
    """A line that says something of a picture.

    Args:
        line: Its number.
        image: The image's name.
        said: What is said; texts, unless the file holds something else.
        split: Its split, or an empty string.
        whole: Whether the line claims to say all there is of the image.
    """

    line: int
    image: str
    said: list[Any]
    split: str
    whole: bool

    @property
    def name(self) -> str:
        """One name for `a.jpg` and `./a.jpg`."""
        return str(PurePosixPath(self.image)) if self.image.strip() else self.image


@dataclass(frozen=True, slots=True)
class Images(abc.ABC):
    """Pictures and what is said of them, and where each came from.

    Args:
        file: The file, or the folder, that names them.
        root: The folder that all names are relative to.
        names: The name of each picture in it.
        digests: SHA-256 of each picture's bytes.
        splits: The split of each; empty where none is named.
        known: Every picture that the file names, in any split.
        sha256: Hash of the names, the pictures' bytes and what is said of them.
    """

    KIND: ClassVar[Kind]
    EACH: ClassVar[tuple[str, ...]] = ("names", "digests", "splits")
    """The fields that have something for each picture."""

    file: str
    root: Path
    names: tuple[str, ...]
    digests: tuple[str, ...]
    splits: tuple[str, ...]
    known: frozenset[str]
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for row in zip(self.names, self.digests, self.said, strict=True):
            digest.update(json.dumps(row).encode() + b"\n")
        object.__setattr__(self, "sha256", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.names)

    @property
    @abc.abstractmethod
    def said(self) -> tuple[tuple[str, ...], ...]:
        """What is said of each picture."""

    @property
    @abc.abstractmethod
    def summary(self) -> str:
        """How much is said of the pictures, in words."""

    @property
    @abc.abstractmethod
    def doubts(self) -> dict[str, int]:
        """What is doubtful in what is said, and how often."""

    @abc.abstractmethod
    def where(self, index: int) -> str:
        """Name the place that speaks of a picture."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path of each picture."""
        return tuple(self.root / name for name in self.names)

    def select(self, indices: Sequence[int]) -> Self:
        """Return some of the pictures, in this order.

        Args:
            indices: Which.

        Returns:
            The same, of these alone; the counts of what was left out stay.
        """
        chosen: dict[str, Any] = {
            name: tuple(getattr(self, name)[i] for i in indices) for name in self.EACH
        }
        return replace(self, **chosen)

    def split(self, name: str) -> Self:
        """Return the pictures of a split.

        Args:
            name: The split.

        Returns:
            Those of it.

        Raises:
            DataError: There is no such split.
        """
        if name not in self.splits:
            raise DataError(_no_split(name, set(self.splits)), where=self.file)
        return self.select([i for i, split in enumerate(self.splits) if split == name])


def find_list(path: Path, kind: Kind) -> Path:
    """Find the file that lists pictures, where its folder may be named.

    Args:
        path: The file, or its folder.
        kind: What is said of the pictures.

    Returns:
        The file.

    Raises:
        DataError: There is none, or the folder holds two.
    """
    if not path.suffix and not path.exists():
        raise DataError(
            "must be a file or a folder; there is none. Check the path.", where=str(path)
        )
    if not path.is_dir():
        return path
    found = [path / name for name in kind.files if (path / name).exists()]
    if len(found) != 1:
        raise DataError(
            f"folder must hold one of {' and '.join(kind.files)}; got {len(found)}. Name the file.",
            where=str(path),
        )
    return found[0]


def read_list(
    file: Path, kind: Kind, columns: Columns, *, split: str | None, encoding: str
) -> tuple[list[Row], frozenset[str]]:
    """Read the lines that say something of pictures.

    Args:
        file: The file, JSONL or TSV.
        kind: What is said.
        columns: Which keys or columns to read.
        split: Read the lines of this split only.
        encoding: How the file is encoded.

    Returns:
        The lines, and the names of the pictures of every split.

    Raises:
        DataError: The file or a line of it is wrong, or there is no such split.
    """
    wanted, known, splits = [], set(), set()
    for row in _rows(file, kind, columns, encoding):
        known.add(row.name)
        splits.add(row.split)
        if split is None or row.split == split:
            wanted.append(row)
    if not wanted:
        message = f"file must hold at least one {kind.one}; got 0. Check the path."
        if split is not None and splits:
            message = _no_split(split, splits)
        raise DataError(message, where=str(file))
    return wanted, frozenset(known)


def _no_split(name: str, known: set[str]) -> str:
    named = sorted(known - {""})
    if not named:
        return f"split must stand in the lines; got none, {name!r} is wanted. Name its column."
    return f"split must be one of the file's; got {name!r}; {did_you_mean(name, named)}."


def _rows(file: Path, kind: Kind, columns: Columns, encoding: str) -> Iterator[Row]:
    ending = file.suffix.lower()
    if ending in JSONL:
        return _json_rows(file, kind, columns, encoding)
    if ending in TSV:
        return _table_rows(file, columns, encoding)
    raise DataError(
        f"name must end in {', '.join((*JSONL, *TSV))}; got {ending!r}. Rename the file.",
        where=str(file),
    )


def _table_rows(file: Path, columns: Columns, encoding: str) -> Iterator[Row]:
    chosen = [
        0 if columns.image is None else columns.image,
        1 if columns.said is None else columns.said,
        *([] if columns.split is None else [columns.split]),
    ]
    table = read_columns(file, chosen, header=columns.header, encoding=encoding)
    for line, (image, said, *split) in table:
        if image or said:  # a blank line between two is no fault
            yield Row(line, image, [said], split[0] if split else "", whole=False)


def _json_rows(file: Path, kind: Kind, columns: Columns, encoding: str) -> Iterator[Row]:
    for name in (columns.image, columns.said, columns.split):
        if isinstance(name, int):
            raise UserError(f"column must be a key in JSONL; got the number {name}. Name the key.")
    for line, text in enumerate(read_lines(file, encoding=encoding), start=1):
        if is_blank(text):
            continue
        where = f"{file}:{line}"
        try:
            entry = parse_json(text.encode(), where)
        except FileFormatError as error:
            raise DataError(f"line {error.message} Correct it.", where=where) from error
        if not isinstance(entry, dict):
            raise DataError(
                f"line must be a JSON object; got {type(entry).__name__}. Write "
                f'{{"image": "a.jpg", "{kind.several}": ["..."]}}.',
                where=where,
            )
        yield _json_row(entry, kind, columns, line, where)


def _json_row(entry: dict[str, Any], kind: Kind, columns: Columns, line: int, where: str) -> Row:
    image = _value(entry, str(columns.image or "image"), where)
    default = kind.several if kind.several in entry else kind.one
    given = _value(entry, str(columns.said or default), where)
    named = entry.get(str(columns.split or "split"))
    split = "" if named is None else named
    for name, value in (("image", image), ("split", split)):
        check_text(name, value, where)
    whole = isinstance(given, list)
    return Row(line, image, given if whole else [given], split, whole)


def check_text(name: str, value: object, where: str) -> None:
    """Refuse what is no text.

    Args:
        name: What it is.
        value: What was given.
        where: The place of it.

    Raises:
        DataError: It is none.
    """
    if not isinstance(value, str):
        kind = type(value).__name__
        raise DataError(f"{name} must be a text; got {kind}. Correct it.", where=where)


def _value(entry: dict[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        raise DataError(
            f"line must have the key {key!r}; {did_you_mean(key, [*entry][:10])}.", where=where
        )
    return entry[key]
