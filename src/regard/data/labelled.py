"""Read documents and their labels from the files that people have."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.labels import Labelled, checked_label
from regard.data.normalisation import is_blank, normalise
from regard.data.sentences import Span
from regard.data.text import read_columns, read_lines
from regard.errors import DataError, FileFormatError, UserError, did_you_mean
from regard.saving.files import parse_json

JSONL = (".jsonl", ".ndjson")
TSV = (".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class DocumentColumns:
    """Where in a line of documents the text and its label stand.

    Args:
        text: Key of the text (JSONL; by default `text`, else `sentences`, a list of them), or its
            column (TSV; 1).
        label: Key of the label (JSONL; by default `label`, else `labels`, a list of any number of
            them), or its column (TSV; 0).
        header: Whether the first line of a TSV holds names; a column given by name means yes.
    """

    text: int | str | None = None
    label: int | str | None = None
    header: bool = False


@dataclass(frozen=True, slots=True)
class Documents:
    """Labelled texts, and where each came from.

    Args:
        texts: The texts, as they stand in the file.
        labels: The labels of each: one, or any number where `several`.
        spans: Where the sentences of each lie, where the file says so.
        several: Whether a document may have any number of labels.
        file: The file that they were read from.
        lines: The line of each in it, counted from 1.
        sha256: Hash of texts, labels and spans; the same for other line ends or a byte order mark.
    """

    texts: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    spans: tuple[tuple[Span, ...] | None, ...]
    several: bool
    file: str
    lines: tuple[int, ...]
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for row in zip(self.labels, self.texts, self.spans, strict=True):
            digest.update(json.dumps(row).encode() + b"\n")
        object.__setattr__(self, "sha256", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def blank(self) -> int:
        """How many texts hold nothing that can be read."""
        return sum(map(is_blank, self.texts))

    def where(self, index: int) -> str:
        """Name the place of a document.

        Args:
            index: Which document.

        Returns:
            `file:line`.
        """
        return f"{self.file}:{self.lines[index]}"

    def select(self, indices: Sequence[int]) -> Documents:
        """Return some of the documents, in this order.

        Args:
            indices: Which.

        Returns:
            The same, of these alone.
        """
        return replace(
            self,
            texts=tuple(self.texts[i] for i in indices),
            labels=tuple(self.labels[i] for i in indices),
            spans=tuple(self.spans[i] for i in indices),
            lines=tuple(self.lines[i] for i in indices),
        )

    def without_blank(self) -> Documents:
        """Return the documents that hold something to read."""
        return self.select([i for i, text in enumerate(self.texts) if not is_blank(text)])


class _Row(NamedTuple):
    """A line of documents; `labels` is None where the line has none."""

    line: int
    text: str
    spans: tuple[Span, ...] | None
    labels: list[Any] | None
    several: bool


def read_documents(
    path: str | Path, *, columns: DocumentColumns | None = None, encoding: str = "utf-8-sig"
) -> Documents:
    r"""Read labelled documents from JSONL or TSV.

    JSONL has an object a line: `{"text": "...", "label": "sport"}`; with `"labels": [...]`, a
    document has any number of labels, and with `"sentences": [...]` in the place of the text it is
    cut already. A label may be a whole number. TSV has `label<TAB>text`, without quoting. Blank
    documents are kept and counted.

    Args:
        path: The file.
        columns: Which keys or columns to read.
        encoding: How the file is encoded.

    Returns:
        The documents, in the order of the file.

    Raises:
        DataError: The file or a line of it is wrong.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "reviews.tsv"
        >>> _ = path.write_text("good\tA fine film.\nbad\tToo long. Too loud.\n")
        >>> read_documents(path).labels
        (('good',), ('bad',))
    """
    rows = list(_rows(Path(path), columns or DocumentColumns(), encoding, labelled=True))
    if not rows:
        raise DataError("file must hold a document; got 0. Check the path.", where=str(path))
    several = rows[0].several
    labels = []
    for row in rows:
        where = f"{path}:{row.line}"
        if row.several != several:
            raise DataError(
                "line must have one label, or a list of them, as the first line has; got "
                f"{'a list' if row.several else 'one'}. Write all lines alike.",
                where=where,
            )
        labels.append(
            tuple(dict.fromkeys(checked_label(label, where) for label in row.labels or ()))
        )
    return Documents(
        texts=tuple(row.text for row in rows),
        labels=tuple(labels),
        spans=tuple(row.spans for row in rows),
        several=several,
        file=str(path),
        lines=tuple(row.line for row in rows),
    )


def read_texts(
    path: str | Path, *, columns: DocumentColumns | None = None, encoding: str = "utf-8-sig"
) -> list[tuple[str, tuple[Span, ...] | None]]:
    """Read documents without labels: JSONL as `read_documents` does, else a document a line.

    Args:
        path: The file.
        columns: Which key of JSONL to read.
        encoding: How the file is encoded.

    Returns:
        Each text, with the spans of its sentences where the file gives them.

    Raises:
        DataError: The file or a line of it is wrong.
    """
    if Path(path).suffix.lower() not in JSONL:
        return [(line, None) for line in read_lines(path, encoding=encoding)]
    rows = _rows(Path(path), columns or DocumentColumns(), encoding, labelled=False)
    return [(row.text, row.spans) for row in rows]


def known_labels(documents: Labelled) -> tuple[str, ...]:
    """List the labels of documents: numbers by their size, else by their spelling.

    Args:
        documents: The documents, or pictures.

    Returns:
        Each label once.

    Raises:
        DataError: There is but one to choose from, or none.
    """
    found = {label for labels in documents.labels for label in labels}
    if len(found) < (1 if documents.several else 2):
        raise DataError(
            f"labels must be at least two; got {len(found)} ({', '.join(sorted(found))}). Check "
            "the column of the label.",
            where=documents.file,
        )
    return in_order(found)


def in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Sort labels: numbers by their size, else by their spelling.

    Args:
        labels: The labels.

    Returns:
        Them, each once.
    """
    found = set(labels)
    numbers = all(label.lstrip("-").isdecimal() for label in found)
    return tuple(sorted(found, key=(lambda label: (int(label), label)) if numbers else None))


def unknown_label(label: str, known: Sequence[str], *, where: str) -> DataError:
    """Say that a label is none of those that a model knows.

    Args:
        label: The label.
        known: Those that the model knows.
        where: The place of the label.

    Returns:
        The error, to be raised.
    """
    return DataError(
        f"label must be one of those of the training data; got {label[:60]!r}; "
        f"{did_you_mean(label, known)}.",
        where=where,
    )


def label_places(documents: Labelled, known: Sequence[str]) -> list[list[int]]:
    """Turn labels into their places in a list.

    Args:
        documents: The documents, or pictures.
        known: The labels that a model knows.

    Returns:
        For each document the places of its labels, ascending.

    Raises:
        DataError: A label is not known; its line is named.
    """
    place = {label: index for index, label in enumerate(known)}
    found = []
    for index, labels in enumerate(documents.labels):
        for label in labels:
            if label not in place:
                raise unknown_label(label, known, where=documents.where(index))
        found.append(sorted(place[label] for label in labels))
    return found


def document_overlap(train: Documents, other: Documents) -> int:
    """Count the documents that stand in the training data too.

    Args:
        train: The training documents.
        other: Those that should be new.

    Returns:
        How many of `other`, compared after normalisation.
    """
    known = {normalise(text).text for text in train.texts}
    return sum(normalise(text).text in known for text in other.texts if not is_blank(text))


def _rows(file: Path, columns: DocumentColumns, encoding: str, *, labelled: bool) -> Iterator[_Row]:
    ending = file.suffix.lower()
    if ending in JSONL:
        return _json_rows(file, columns, encoding, labelled=labelled)
    if ending in TSV:
        return _table_rows(file, columns, encoding)
    raise DataError(
        f"name must end in {', '.join((*JSONL, *TSV))}; got {ending!r}. Rename the file.",
        where=str(file),
    )


def _table_rows(file: Path, columns: DocumentColumns, encoding: str) -> Iterator[_Row]:
    chosen = [
        0 if columns.label is None else columns.label,
        1 if columns.text is None else columns.text,
    ]
    for line, (label, text) in read_columns(file, chosen, header=columns.header, encoding=encoding):
        if label or text:  # a blank line between two is no fault
            yield _Row(line, text, None, [label], several=False)


def _json_rows(
    file: Path, columns: DocumentColumns, encoding: str, *, labelled: bool
) -> Iterator[_Row]:
    for name in (columns.text, columns.label):
        if isinstance(name, int):
            raise UserError(f"column must be a key in JSONL; got the number {name}. Name the key.")
    for line, written in enumerate(read_lines(file, encoding=encoding), start=1):
        if not is_blank(written):
            where = f"{file}:{line}"
            entry = _object(written, where)
            text, spans = _text(entry, columns.text, where)
            default = "labels" if "labels" in entry else "label"
            given = _value(entry, str(columns.label or default), where) if labelled else []
            several = isinstance(given, list)
            yield _Row(line, text, spans, given if several else [given], several)


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        entry = parse_json(text.encode(errors="surrogatepass"), where)
    except FileFormatError as error:
        raise DataError(f"line {error.message} Correct it.", where=where) from error
    if not isinstance(entry, dict):
        raise DataError(
            f"line must be a JSON object; got {type(entry).__name__}. Write "
            '{"text": "...", "label": "..."}.',
            where=where,
        )
    return entry


def _text(
    entry: dict[str, Any], key: int | str | None, where: str
) -> tuple[str, tuple[Span, ...] | None]:
    default = "text" if "text" in entry or "sentences" not in entry else "sentences"
    name = str(key or default)
    given = _value(entry, name, where)
    if isinstance(given, str):
        return given, None
    if not isinstance(given, list) or not all(isinstance(part, str) for part in given):
        raise DataError(
            f"{name} must be a text, or a list of sentences; got {type(given).__name__}. "
            "Correct it.",
            where=where,
        )
    ends = list(itertools.accumulate((len(part) + 1 for part in given), initial=0))
    spans = tuple((start, end - 1) for start, end in itertools.pairwise(ends))
    return "\n".join(given), spans


def _value(entry: dict[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        raise DataError(
            f"line must have the key {key!r}; {did_you_mean(key, [*entry][:10])}.", where=where
        )
    return entry[key]
