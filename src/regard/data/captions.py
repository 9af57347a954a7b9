"""Read a folder of pictures and their captions, and never leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from regard.data.files import file_sha256, resolve_inside
from regard.data.listed import Columns, Images, Kind, Row, check_text, find_list, read_list
from regard.data.normalisation import is_blank
from regard.data.text import MAX_CHARACTERS
from regard.errors import DataError, UserError

CAPTIONS = Kind("caption", "captions")
"""The keys of captions; a folder's are in `captions.jsonl` or `captions.tsv`."""


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
class CaptionedImages(Images):
    """Pictures and their captions; see `Images` for what it shares.

    Args:
        captions: The captions of each, at least one.
        lines: The line of each caption in the file, counted from 1.
        dropped_empty: Captions left out because they were blank.
        dropped_long: Captions left out because they had too many characters.
    """

    KIND: ClassVar[Kind] = CAPTIONS
    EACH: ClassVar[tuple[str, ...]] = (*Images.EACH, "captions", "lines")

    captions: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    dropped_empty: int
    dropped_long: int

    @property
    def said(self) -> tuple[tuple[str, ...], ...]:
        """The captions."""
        return self.captions

    @property
    def summary(self) -> str:
        """How many captions there are, in words."""
        return (
            f"{sum(map(len, self.captions)):,} captions, {self.dropped_empty} blank and "
            f"{self.dropped_long} overlong captions left out"
        )

    @property
    def doubts(self) -> dict[str, int]:
        """How many captions stand twice."""
        repeated = sum(len(several) - len(set(several)) for several in self.captions)
        return {"captions repeat another of the same image": repeated}

    def where(self, index: int, caption: int = 0) -> str:
        """Name the place of a picture's caption.

        Args:
            index: Which picture.
            caption: Which of its captions.

        Returns:
            `file:line`.
        """
        return f"{self.file}:{self.lines[index][caption]}"


@dataclass(slots=True)
class _Found:
    """What was gathered of one picture."""

    first: Row
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
    file = find_list(Path(path), CAPTIONS)
    own = columns or CaptionColumns()
    chosen = Columns(own.image, own.caption, own.split, own.header)
    rows, known = read_list(file, CAPTIONS, chosen, split=split, encoding=encoding)
    return _gather(rows, file, Path(root or file.parent), known, max_characters)


def _gather(
    rows: Sequence[Row], file: Path, root: Path, known: frozenset[str], max_characters: int
) -> CaptionedImages:
    found: dict[str, _Found] = {}
    empty = long = 0
    for row in rows:
        entry = found.setdefault(row.name, _Found(row))
        _check_repeated(row, entry.first, file)
        for caption in row.said:
            check_text("caption", caption, f"{file}:{row.line}")
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


def _check_repeated(row: Row, first: Row, file: Path) -> None:
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
