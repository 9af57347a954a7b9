"""Read pictures and their labels: a folder for each label, or a file that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from regard.data.captions import CAPTIONS
from regard.data.files import file_sha256, resolve_inside
from regard.data.images import ENDINGS
from regard.data.labels import checked_label, label_shares
from regard.data.listed import JSONL, Columns, Images, Kind, Row, find_list, read_list
from regard.data.splits import split_of_content
from regard.errors import DataError, FileFormatError, UserError
from regard.saving.files import parse_json

LABELS = Kind("label", "labels")
"""The keys of labels; a folder's are in `labels.jsonl` or `labels.tsv`."""

_FIRST = 1 << 16  # bytes in which the first line of a file is looked for


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Where in a line of labels the image, the label and the split stand.

    Args:
        image: Key of the image's name (JSONL; by default `image`), or its column (TSV; 0).
        label: Key of one label (JSONL; by default `label`, else `labels`, a list of any number of
            them), or the column (1).
        split: Key of the split (`split`, where a line has it), or the column (none).
        header: Whether the first line of a TSV holds names; a column given by name means yes.
    """

    image: int | str | None = None
    label: int | str | None = None
    split: int | str | None = None
    header: bool = False


@dataclass(frozen=True, slots=True)
class LabelledImages(Images):
    """Pictures and their labels; see `Images` for what it shares.

    Args:
        labels: The labels of each: one, or any number where `several`.
        several: Whether a picture may have any number of labels.
        lines: The line of each in the file, counted from 1; 0 where a folder says the label.
    """

    KIND: ClassVar[Kind] = LABELS
    EACH: ClassVar[tuple[str, ...]] = (*Images.EACH, "labels", "lines")

    labels: tuple[tuple[str, ...], ...]
    several: bool
    lines: tuple[int, ...]

    @property
    def said(self) -> tuple[tuple[str, ...], ...]:
        """The labels."""
        return self.labels

    @property
    def summary(self) -> str:
        """How many labels there are, and how frequent each is."""
        count = len({label for labels in self.labels for label in labels})
        return f"{count:,} labels ({label_shares(self.labels)})"

    @property
    def doubts(self) -> dict[str, int]:
        """How many pictures have the bytes of another, but not its labels."""
        first: dict[str, tuple[str, ...]] = {}
        other = 0
        for digest, labels in zip(self.digests, self.labels, strict=True):
            other += sorted(first.setdefault(digest, labels)) != sorted(labels)
        return {"images have the same bytes as another of another label": other}

    def where(self, index: int) -> str:
        """Name the place of a picture's label.

        Args:
            index: Which picture.

        Returns:
            `file:line`, or the picture's path where its folder says the label.
        """
        line = self.lines[index]
        return f"{self.file}:{line}" if line else str(self.root / self.names[index])

    def split_by_content(self) -> LabelledImages:
        """Let the bytes of each picture decide its split: eight of ten train, one dev, one test.

        Equal pictures come into one split, and a picture stays where it is when others are added.
        """
        return replace(self, splits=tuple(map(split_of_content, self.digests)))


def read_labelled_images(
    path: str | Path,
    *,
    root: str | Path | None = None,
    columns: LabelColumns | None = None,
    split: str | None = None,
    encoding: str = "utf-8-sig",
) -> LabelledImages:
    r"""Read pictures' names and labels.

    A folder holds a folder of pictures for each label: `pictures/cat/tom.jpg`; what lies deeper is
    not read, nor are folders that begin with a full stop. Or it holds a file that lists them.
    JSONL has an object a line: `{"image": "a.jpg", "label": "cat"}`; with `"labels": [...]` a
    picture has any number of labels. A label may be a whole number. TSV has `image<TAB>label`,
    without quoting. Pictures are hashed, not opened: `regard.data.check_images` opens them.

    Args:
        path: The file, the folder that holds `labels.jsonl` or `labels.tsv`, or the folder of
            labels' folders.
        root: The folder that images are named relative to; by default that of the file.
        columns: Which keys or columns to read.
        split: Read the lines of this split only.
        encoding: How the file is encoded.

    Returns:
        The pictures, in the order of the file, or of their names.

    Raises:
        DataError: The file or a line of it is wrong; a picture is missing, lies outside the
            folder, or stands twice.
    """
    path = Path(path)
    if is_folder_of_labels(path):
        if root is not None or split is not None:
            raise UserError(
                "images and named splits must be left out where folders say the labels. Name a "
                'folder for each part, or use splits = "content".',
                where=str(path),
            )
        return _read_folders(path)
    if path.is_dir() and not _is_listed(path):
        raise DataError(
            f"folder must hold {' or '.join(LABELS.files)}, or a folder of pictures "
            f"({', '.join(ENDINGS)}) for each label; it holds none. Check the path.",
            where=str(path),
        )
    file = find_list(path, LABELS)
    own = columns or LabelColumns()
    chosen = Columns(own.image, own.label, own.split, own.header)
    rows, known = read_list(file, LABELS, chosen, split=split, encoding=encoding)
    return _gather(rows, file, Path(root or file.parent), known)


def is_folder_of_labels(path: Path) -> bool:
    """Say whether a folder holds a folder of pictures for each label, and no list of them.

    Args:
        path: The folder, or anything else.

    Returns:
        Whether it does.
    """
    return path.is_dir() and not _is_listed(path) and next(_pictures(path), None) is not None


def holds_labels(path: str | Path) -> bool:
    """Say whether a file, or a folder, says labels of pictures, and not captions.

    Args:
        path: What a person named.

    Returns:
        Whether it is called so, holds such a file or folders of pictures, or has labels in its
        first line.
    """
    path = Path(path)
    if path.is_dir():
        captioned = any((path / name).exists() for name in CAPTIONS.files)
        return _is_listed(path) or (not captioned and is_folder_of_labels(path))
    if path.suffix.lower() not in JSONL:
        return path.name in LABELS.files
    try:
        with path.open("rb") as stream:
            line = stream.read(_FIRST).removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
        entry = parse_json(line, str(path))
    except (OSError, FileFormatError):  # reading says what is wrong
        return path.name in LABELS.files
    return isinstance(entry, dict) and bool({*LABELS} & {*entry}) and "caption" not in entry


def _is_listed(folder: Path) -> bool:
    return any((folder / name).exists() for name in LABELS.files)


def _pictures(folder: Path) -> Iterator[str]:
    """Name the pictures in the folders of a folder, unsorted."""
    for inside in folder.iterdir():
        if inside.name.startswith(".") or not inside.is_dir():
            continue
        for one in inside.iterdir():
            if one.suffix.lower() in ENDINGS and not one.name.startswith("."):
                yield f"{inside.name}/{one.name}"


def _read_folders(folder: Path) -> LabelledImages:
    names = tuple(sorted(_pictures(folder)))
    labels, digests = [], []
    for name in names:
        path = resolve_inside(folder, name, where=str(folder))
        labels.append((checked_label(name.partition("/")[0], str(folder)),))
        digests.append(file_sha256(path, where=str(folder)))
    return LabelledImages(
        file=str(folder),
        root=folder,
        names=names,
        digests=tuple(digests),
        splits=("",) * len(names),
        known=frozenset(names),
        labels=tuple(labels),
        several=False,
        lines=(0,) * len(names),
    )


def _gather(rows: list[Row], file: Path, root: Path, known: frozenset[str]) -> LabelledImages:
    first: dict[str, Row] = {}
    labels, digests = [], []
    for row in rows:
        where = f"{file}:{row.line}"
        _check_row(row, first.setdefault(row.name, row), rows[0], where)
        said = (checked_label(label, where) for label in row.said)
        labels.append(tuple(dict.fromkeys(said)))
        digests.append(file_sha256(resolve_inside(root, row.image, where=where), where=where))
    return LabelledImages(
        file=str(file),
        root=root,
        names=tuple(first),
        digests=tuple(digests),
        splits=tuple(row.split for row in rows),
        known=known,
        labels=tuple(labels),
        several=rows[0].whole,
        lines=tuple(row.line for row in rows),
    )


def _check_row(row: Row, first: Row, beginning: Row, where: str) -> None:
    if row is not first:
        raise DataError(
            f"image must stand once; got {row.image[:200]!r} in line {first.line} too. List its "
            'labels in one line of a .jsonl, as "labels".',
            where=where,
        )
    if row.whole != beginning.whole:
        raise DataError(
            "line must have one label, or a list of them, as the first line has; got "
            f"{'a list' if row.whole else 'one'}. Write all lines alike.",
            where=where,
        )
