"""Many maps of one record: which layer and head each is, and records put together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from regard.errors import UserError
from regard.pictures.picture import Picture
from regard.pictures.records import Map, Record

if TYPE_CHECKING:
    from regard.pictures.texts import Text

RECORDED = (
    "attention"  # the task of a record that `regard.record` made: the mean of its maps says little
)
_HEAD = re.compile(r"(?P<group>.*?)[\s,;:·]*(?P<head>head \d+)", re.DOTALL)
_WIDEST = 12  # maps in a row, where their names have no layers


class Row(NamedTuple):
    """Maps that are drawn in a row: those of a layer, or of a call.

    Args:
        name: What they share; empty where they have no layers.
        maps: Their numbers in the record.
    """

    name: str
    maps: tuple[int, ...]


def rows_of(record: Record) -> tuple[Row, ...]:
    """Arrange the maps of a record by layer, from names such as "layer 2, head 1".

    Args:
        record: The record.

    Returns:
        A row for each layer, in order; rows of twelve where the names name no heads.

    """
    found = [_HEAD.fullmatch(one.name) for one in record.maps]
    if not all(found):
        count = len(record.maps)
        starts = range(0, count, _WIDEST)
        return tuple(Row("", tuple(range(i, min(i + _WIDEST, count)))) for i in starts)
    rows: dict[str, list[int]] = {}
    for index, match in enumerate(found):
        rows.setdefault(match["group"] if match else "", []).append(index)
    return tuple(Row(name, tuple(maps)) for name, maps in rows.items())


def join(records: Mapping[str, Record]) -> Record:
    """Put records of the same texts together into one, their maps side by side.

    Args:
        records: Records by the name of their layer or call; map "head 1" of "layer 2" becomes
            "layer 2, head 1".

    Returns:
        A record with all maps, and the details that all share.

    Raises:
        UserError: There is none, one is of a picture, or they are not of the same texts.
    """
    if not records:
        raise UserError("records must hold at least 1 record; got 0. Record something.")
    first = next(iter(records.values()))
    for name, one in records.items():
        if isinstance(one.read, Picture) or _said(one) != _said(first):
            raise UserError(
                f"records must all be of the texts of the first; got others in {name!r}. Join "
                f"those of one call and one shape."
            )
    maps = [
        Map(f"{name}, {one.name}", one.weights)
        for name, record in records.items()
        for one in record.maps
    ]
    shared = {
        key: value
        for key, value in first.details.items()
        if all(one.details.get(key) == value for one in records.values())
    }
    return Record(first.task, first.read, first.written, tuple(maps), shared)


def _said(record: Record) -> tuple[str, int, str, int]:
    read: Text = record.read_text()
    written = record.written
    return read.text, len(read.tokens), written.text, len(written.tokens)
