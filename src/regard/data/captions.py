"""Read a folder of pictures and their captions, and never leave it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from regard.data.files import file_sha256, resolve_inside
from regard.data.normalisation import is_blank
from regard.data.text import MAX_CHARACTERS, read_columns, read_lines
from regard.errors import DataError, FileFormatError, UserError, did_you_mean
from regard.saving.files import parse_json

FILES = ("captions.jsonl", "captions.tsv")
"""What a folder's captions are called."""

_JSONL = (".jsonl", ".ndjson")
_TSV = (".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class CaptionColumns:
    """Where in a line of captions the image, the caption and the split stand.

    Args:
        image: Key of the image's name (JSONL; by default `image`), or its column (TSV; 0).
        caption: Key of one caption or of a list of them (`captions`, else `caption`), or the
            column (1).
        split: Key of the split (`split`, where a line has it), or the column (none).
        header: Whether the first line of a TSV holds names; a column given by name means yes.
    """

    image: int | str | None = None
    caption: int | str | None = None
    split: int | str | None = None
    header: bool = False


@dataclass(frozen=True, slots=True)
class CaptionedImages:
    """Pictures and their captions, and where each came from.

    Args:
        file: The file of captions.
        root: The folder that all names are relative to.
        names: The name of each picture in it.
        captions: The captions of each, at least one.
        lines: The line of each caption in the file, counted from 1.
        digests: SHA-256 of each picture's bytes.
        splits: The split of each; empty where none is named.
        known: Every picture that the file names, in any split.
        dropped_empty: Captions left out because they were blank.
        dropped_long: Captions left out because they had too many characters.
        sha256: Hash of the names, the captions and the pictures' bytes.
    """

    file: str
    root: Path
    names: tuple[str, ...]
    captions: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    digests: tuple[str, ...]
    splits: tuple[str, ...]
    known: frozenset[str]
    dropped_empty: int
    dropped_long: int
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for row in zip(self.names, self.digests, self.captions, strict=True):
            digest.update(json.dumps(row).encode() + b"\n")
        object.__setattr__(self, "sha256", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.names)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path of each picture."""
        return tuple(self.root / name for name in self.names)

    def where(self, index: int, caption: int = 0) -> str:
        """Name the place of a picture's caption.

        Args:
            index: Which picture.
            caption: Which of its captions.

        Returns:
            `file:line`.
        """
        return f"{self.file}:{self.lines[index][caption]}"

    def select(self, indices: Sequence[int]) -> CaptionedImages:
        """Return some of the pictures, in this order.

        Args:
            indices: Which.

        Returns:
            The same, of these alone; the counts of what was left out stay.
        """
        return replace(
            self,
            names=tuple(self.names[i] for i in indices),
            captions=tuple(self.captions[i] for i in indices),
            lines=tuple(self.lines[i] for i in indices),
            digests=tuple(self.digests[i] for i in indices),
            splits=tuple(self.splits[i] for i in indices),
        )

    def split(self, name: str) -> CaptionedImages:
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


class _Row(NamedTuple):
    """One line of a file of captions.

    Args:
        line: Its number.
        image: The image's name.
        captions: Its captions.
        split: Its split, or an empty string.
        whole: Whether the line claims to have all captions of the image.
    """

    line: int
    image: str
    captions: list[str]
    split: str
    whole: bool


@dataclass(slots=True)
class _Found:
    """What was gathered of one picture."""

    first: _Row
    captions: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read_captions(
    path: str | Path,
    *,
    root: str | Path | None = None,
    columns: CaptionColumns | None = None,
    split: str | None = None,
    encoding: str = "utf-8-sig",
    max_characters: int = MAX_CHARACTERS,
) -> CaptionedImages:
    r"""Read pictures' names and captions from JSONL or TSV.

    JSONL has an object a line: `{"image": "a.jpg", "captions": ["...", "..."]}`, or one caption a
    line under `"caption"`; other keys are left alone. TSV has `image<TAB>caption`, with as many
    lines for an image as it has captions, without quoting. Pictures are hashed, not opened:
    `regard.data.check_images` opens them.

    Args:
        path: The file, or the folder that holds `captions.jsonl` or `captions.tsv`.
        root: The folder that images are named relative to; by default the captions' own.
        columns: Which keys or columns to read.
        split: Read the lines of this split only.
        encoding: How the file is encoded.
        max_characters: A longer caption is left out and counted.

    Returns:
        The pictures, in the order in which they first stand in the file.

    Raises:
        DataError: The file or a line of it is wrong; a picture is missing, lies outside the
            folder, has no caption with text, or stands in two splits.
    """
    if max_characters < 1:
        raise UserError(f"max_characters must be at least 1; got {max_characters}. Raise it.")
    file = _caption_file(Path(path))
    rows = _rows(file, columns or CaptionColumns(), encoding)
    wanted, known, splits = [], set(), set()
    for row in rows:
        known.add(_canonical(row.image))
        splits.add(row.split)
        if split is None or row.split == split:
            wanted.append(row)
    if not wanted:
        message = _no_split(split, splits) if split is not None and splits else _NO_ROWS
        raise DataError(message, where=str(file))
    return _gather(wanted, file, Path(root or file.parent), frozenset(known), max_characters)


_NO_ROWS = "file must hold at least one caption; got 0. Check the path."


def _no_split(name: str, known: set[str]) -> str:
    named = sorted(known - {""})
    if not named:
        return f"split must stand in the lines; got none, {name!r} is wanted. Name its column."
    return f"split must be one of the file's; got {name!r}; {did_you_mean(name, named)}."


def _caption_file(path: Path) -> Path:
    try:
        if not path.is_dir():
            if not path.suffix and not path.exists():
                raise DataError("must be a file or a folder; there is none.", where=str(path))
            return path
        found = [path / name for name in FILES if (path / name).exists()]
    except ValueError:  # a NUL in the name: reading says so
        return path
    if len(found) != 1:
        raise DataError(
            f"folder must hold one of {' and '.join(FILES)}; got {len(found)}. Name the file.",
            where=str(path),
        )
    return found[0]


def _rows(file: Path, columns: CaptionColumns, encoding: str) -> Iterator[_Row]:
    ending = file.suffix.lower()
    if ending in _JSONL:
        return _json_rows(file, columns, encoding)
    if ending in _TSV:
        return _table_rows(file, columns, encoding)
    raise DataError(
        f"name must end in {', '.join((*_JSONL, *_TSV))}; got {ending!r}. Rename the file.",
        where=str(file),
    )


def _table_rows(file: Path, columns: CaptionColumns, encoding: str) -> Iterator[_Row]:
    chosen = [
        0 if columns.image is None else columns.image,
        1 if columns.caption is None else columns.caption,
        *([] if columns.split is None else [columns.split]),
    ]
    table = read_columns(file, chosen, header=columns.header, encoding=encoding)
    for line, (image, caption, *split) in table:
        if image or caption:  # a blank line between two is no fault
            yield _Row(line, image, [caption], split[0] if split else "", whole=False)


def _json_rows(file: Path, columns: CaptionColumns, encoding: str) -> Iterator[_Row]:
    for name in (columns.image, columns.caption, columns.split):
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
                '{"image": "a.jpg", "captions": ["..."]}.',
                where=where,
            )
        yield _json_row(entry, columns, line, where)


def _json_row(entry: dict[str, Any], columns: CaptionColumns, line: int, where: str) -> _Row:
    image = _value(entry, str(columns.image or "image"), where)
    default = "captions" if "captions" in entry else "caption"
    given = _value(entry, str(columns.caption or default), where)
    captions = given if isinstance(given, list) else [given]
    named = entry.get(str(columns.split or "split"))
    split = "" if named is None else named
    for name, value in (("image", image), ("split", split), *(("caption", c) for c in captions)):
        if not isinstance(value, str):
            kind = type(value).__name__
            raise DataError(f"{name} must be a text; got {kind}. Correct it.", where=where)
    return _Row(line, image, captions, split, whole=isinstance(given, list))


def _value(entry: dict[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        raise DataError(
            f"line must have the key {key!r}; {did_you_mean(key, [*entry][:10])}.", where=where
        )
    return entry[key]


def _canonical(name: str) -> str:
    """One name for `a.jpg` and `./a.jpg`."""
    return str(PurePosixPath(name)) if name.strip() else name


def _gather(
    rows: Sequence[_Row], file: Path, root: Path, known: frozenset[str], max_characters: int
) -> CaptionedImages:
    found: dict[str, _Found] = {}
    empty = long = 0
    for row in rows:
        entry = found.setdefault(_canonical(row.image), _Found(row))
        _check_repeated(row, entry.first, file)
        for caption in row.captions:
            if is_blank(caption):
                empty += 1
            elif len(caption) > max_characters:
                long += 1
            else:
                entry.captions.append(caption)
                entry.lines.append(row.line)
    digests = tuple(_digest(entry, file, root) for entry in found.values())
    return CaptionedImages(
        file=str(file),
        root=root,
        names=tuple(found),
        captions=tuple(tuple(entry.captions) for entry in found.values()),
        lines=tuple(tuple(entry.lines) for entry in found.values()),
        digests=digests,
        splits=tuple(entry.first.split for entry in found.values()),
        known=known,
        dropped_empty=empty,
        dropped_long=long,
    )


def _check_repeated(row: _Row, first: _Row, file: Path) -> None:
    if row is first:
        return
    if row.whole or first.whole:
        raise DataError(
            f"image must stand once where all its captions are listed; got {row.image[:200]!r} in "
            f"line {first.line} too. Join the lines.",
            where=f"{file}:{row.line}",
        )
    if row.split != first.split:
        raise DataError(
            f"image must be in one split; got {row.image[:200]!r} in {row.split!r}, and in "
            f"{first.split!r} in line {first.line}. Choose one.",
            where=f"{file}:{row.line}",
        )


def _digest(entry: _Found, file: Path, root: Path) -> str:
    where = f"{file}:{entry.first.line}"
    name = entry.first.image
    path = resolve_inside(root, name, where=where)
    if not entry.captions:
        raise DataError(
            f"image must have a caption with text, not too long; got none for {name[:200]!r}. "
            "Write one, or remove the line.",
            where=where,
        )
    return file_sha256(path, where=where)
