"""A record as JSON, and back: strict, because the file may come from anyone."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from regard.errors import FileFormatError, UserError, did_you_mean
from regard.pictures.picture import LARGEST_COPY, Box, Picture
from regard.pictures.records import Detail, Map, Record
from regard.pictures.series import Series
from regard.pictures.texts import Document, Passage, Text, Token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")
_RECORD_KEYS = ("schema_version", "task", "read", "written", "maps", "details")
_TEXT_KEYS = ("type", "text", "language", "tokens")
_DOCUMENT_KEYS = (*_TEXT_KEYS, "sentences")
_SERIES_KEYS = (*_TEXT_KEYS, "features", "values")
_PICTURE_KEYS = (
    "type",
    "name",
    "width",
    "height",
    "rows",
    "columns",
    "sentinel",
    "box",
    "media_type",
    "data",
)
_MAP_KEYS = ("name", "weights")


def encode(record: Record) -> str:
    """Return a record as JSON.

    Args:
        record: The record.

    Returns:
        One line of valid JSON, with a line end.
    """
    read = record.read
    data = {
        "schema_version": _version(read),
        "task": record.task,
        "read": _encode_picture(read) if isinstance(read, Picture) else _encode_text(read),
        "written": _encode_text(record.written),
        "maps": _encode_maps(record.maps),
        "details": dict(record.details),
    }
    if isinstance(read, Document):
        data["sentence_maps"] = _encode_maps(record.sentence_maps)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SURROGATE.sub("\ufffd", text) + "\n"


def _version(read: Text | Picture) -> int:
    """Return the oldest version that has what was read, so that older readers read it."""
    if isinstance(read, Series):
        return 4
    if isinstance(read, Document):
        return 3
    return 2 if isinstance(read, Picture) else 1


def _encode_maps(maps: Iterable[Map]) -> list[dict[str, object]]:
    return [{"name": m.name, "weights": round_weights(m.weights)} for m in maps]


def round_weights(weights: NDArray[np.float32], digits: int = 6) -> list[list[float]]:
    """Round weights to significant digits; six survive float32 and back.

    Args:
        weights: A matrix.
        digits: How many significant digits to keep.

    Returns:
        The rows as lists.
    """
    return [[float(f"{value:.{digits}g}") for value in row] for row in weights.tolist()]


def _encode_text(text: Text) -> dict[str, object]:
    data: dict[str, object] = {
        "type": "text",
        "text": text.text,
        "language": text.language,
        "tokens": [list(token) for token in text.tokens],
    }
    if isinstance(text, Document):
        data |= {"type": "document", "sentences": [list(one) for one in text.sentences]}
    if isinstance(text, Series):
        rows = [list(row) for row in text.values]
        data |= {"type": "series", "features": list(text.features), "values": rows}
    return data


def _encode_picture(picture: Picture) -> dict[str, object]:
    return {
        "type": "picture",
        "name": picture.name,
        "width": picture.width,
        "height": picture.height,
        "rows": picture.rows,
        "columns": picture.columns,
        "sentinel": picture.sentinel,
        "box": None if picture.box is None else list(picture.box),
        "media_type": picture.media_type,
        "data": base64.b64encode(picture.data).decode("ascii"),
    }


def decode(text: str) -> Record:
    """Read a record from JSON; `Record.from_json` says what is refused.

    Args:
        text: The JSON.

    Returns:
        The record.

    Raises:
        FileFormatError: The text is not a record of a known schema version.
    """
    data = _parse(text)
    if not isinstance(data, dict):
        raise _wrong("record", "be an object", data)
    version = data.get("schema_version")
    if type(version) is not int or not 1 <= version <= Record.SCHEMA_VERSION:
        raise _wrong("schema_version", f"be from 1 to {Record.SCHEMA_VERSION}", version)
    is_document = version == 3
    keys = (*_RECORD_KEYS, "sentence_maps") if is_document else _RECORD_KEYS
    record = _object(data, "record", keys)
    read, written = _read(record["read"], version), _text(record["written"], "written")
    columns = read.cells if isinstance(read, Picture) else len(read.tokens)
    rows = len(written.tokens)
    try:
        maps = _maps(record["maps"], "maps", (rows, columns))
        over = (
            _maps(record["sentence_maps"], "sentence_maps", _over(read, rows))
            if is_document
            else ()
        )
        task, details = _value(record["task"], "task", str), _details(record["details"])
        return Record(task, read, written, maps, details, over)
    except FileFormatError:
        raise
    except UserError as error:
        raise FileFormatError(error.message) from error


def _over(read: Text | Picture, rows: int) -> tuple[int, int]:
    return rows, len(read.sentences) if isinstance(read, Document) else 0


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"record must be JSON; got {error.msg} (line {error.lineno}, column {error.colno}). "
            "Save the record again."
        ) from error
    except RecursionError as error:
        raise FileFormatError(
            "record must nest at most 5 levels; got too many to read. Save the record again."
        ) from error
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            "record must hold numbers of ordinary length; got thousands of digits."
        ) from error


def _refuse_constant(name: str) -> object:
    raise FileFormatError(f"record must hold finite numbers; got {name}. Save the record again.")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise FileFormatError(
            f"record must name {len(pairs)} different keys in an object; got {len(data)}."
        )
    return data


def _wrong(name: str, condition: str, value: object) -> FileFormatError:
    plain = value is None or isinstance(value, (str, int, float))
    shown = repr(value[:40] if isinstance(value, str) else value) if plain else ""
    shown = shown[:60] or f"a {type(value).__name__}"
    return FileFormatError(f"{name} must {condition}; got {shown}. Save the record again.")


def _object(value: object, name: str, keys: Iterable[str]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _wrong(name, "be an object", value)
    keys = tuple(keys)
    missing = [key for key in keys if key not in value]
    if missing:
        raise FileFormatError(f"{name} must have the key {missing[0]!r}; got {len(value)} others.")
    extra = [key for key in value if key not in keys]
    if extra:
        key = extra[0][:40]
        raise FileFormatError(
            f"{name} must have no key besides its {len(keys)}; got {key!r}; "
            f"{did_you_mean(key, keys)}"
        )
    return value


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise _wrong(name, "be a list", value)
    return value


def _value(value: object, name: str, kind: type[T]) -> T:
    if type(value) is not kind:  # bool is no int here
        raise _wrong(name, f"be {kind.__name__}", value)
    return value


def _read(value: object, version: int) -> Text | Picture:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "document" and version == 3:
        return _document(value, "read")
    if kind == "series" and version > 3:
        return _series(value, "read")
    return _picture(value, "read") if kind == "picture" and version > 1 else _text(value, "read")


def _document(value: object, name: str) -> Document:
    data = _object(value, name, _DOCUMENT_KEYS)
    text = _text({**{key: data[key] for key in _TEXT_KEYS}, "type": "text"}, name)
    entries = _list(data["sentences"], f"{name}.sentences")
    sentences = tuple(_passage(entry, f"{name}.sentences[{i}]") for i, entry in enumerate(entries))
    try:
        return Document(text.text, text.tokens, text.language, sentences)
    except UserError as error:
        raise FileFormatError(f"{name}.{error.message}") from error


def _series(value: object, name: str) -> Series:
    data = _object(value, name, _SERIES_KEYS)
    text = _text({**{key: data[key] for key in _TEXT_KEYS}, "type": "text"}, name)
    names = _list(data["features"], f"{name}.features")
    features = tuple(_value(one, f"{name}.features[{i}]", str) for i, one in enumerate(names))
    rows = _list(data["values"], f"{name}.values")
    values = [
        tuple(None if number is None else _number(number, f"{name}.values[{i}]") for number in row)
        for i, row in enumerate(_list(one, f"{name}.values[{i}]") for i, one in enumerate(rows))
    ]
    try:
        return Series(text.text, text.tokens, text.language, features, tuple(values))
    except UserError as error:
        raise FileFormatError(f"{name}.{error.message}") from error


def _passage(value: object, name: str) -> Passage:
    entry = _list(value, name)
    if len(entry) != 4:
        raise _wrong(name, "hold 4 numbers (start, end, first, last)", len(entry))
    start, end, first, last = (_value(number, name, int) for number in entry)
    return Passage(start, end, first, last)


def _picture(value: object, name: str) -> Picture:
    data = _object(value, name, _PICTURE_KEYS)
    width, height, rows, columns = (
        _value(data[key], f"{name}.{key}", int) for key in ("width", "height", "rows", "columns")
    )
    copy = _bytes(data["data"], f"{name}.data")
    media_type = _value(data["media_type"], f"{name}.media_type", str)
    title = _value(data["name"], f"{name}.name", str)
    sentinel = _value(data["sentinel"], f"{name}.sentinel", bool)
    box = None if data["box"] is None else _box(data["box"], f"{name}.box")
    try:
        return Picture(width, height, rows, columns, copy, media_type, title, sentinel, box)
    except UserError as error:
        raise FileFormatError(f"{name}.{error.message}") from error


def _box(value: object, name: str) -> Box:
    edges = _list(value, name)
    if len(edges) != 4:
        raise _wrong(name, "hold 4 numbers (left, top, right, bottom)", len(edges))
    left, top, right, bottom = (_number(edge, name) for edge in edges)
    return left, top, right, bottom


def _bytes(value: object, name: str) -> bytes:
    text = _value(value, name, str)
    if len(text) > (LARGEST_COPY + 2) // 3 * 4:
        raise _wrong(name, f"be at most {LARGEST_COPY} bytes in base64", len(text))
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(name, "be base64", text) from None


def _text(value: object, name: str) -> Text:
    data = _object(value, name, _TEXT_KEYS)
    if data["type"] != "text":
        raise _wrong(f"{name}.type", "be 'text'", data["type"])
    language = data["language"]
    if language is not None:
        language = _value(language, f"{name}.language", str)
    entries = _list(data["tokens"], f"{name}.tokens")
    tokens = tuple(_token(entry, f"{name}.tokens[{i}]") for i, entry in enumerate(entries))
    try:
        return Text(_value(data["text"], f"{name}.text", str), tokens, language)
    except UserError as error:
        raise FileFormatError(f"{name}.{error.message}") from error


def _token(value: object, name: str) -> Token:
    entry = _list(value, name)
    if len(entry) != 3:
        raise _wrong(name, "hold 3 values (text, start, end)", len(entry))
    text, start, end = entry
    return Token(_value(text, name, str), _value(start, name, int), _value(end, name, int))


def _maps(value: object, name: str, shape: tuple[int, int]) -> tuple[Map, ...]:
    entries = _list(value, name)
    return tuple(_map(entry, f"{name}[{i}]", shape) for i, entry in enumerate(entries))


def _map(value: object, name: str, shape: tuple[int, int]) -> Map:
    import numpy as np  # noqa: PLC0415

    data = _object(value, name, _MAP_KEYS)
    rows = _list(data["weights"], f"{name}.weights")
    if len(rows) != shape[0]:
        raise _wrong(f"{name}.weights", f"have {shape[0]} rows (written tokens)", len(rows))
    checked = [_row(row, f"{name}.weights[{i}]", shape[1]) for i, row in enumerate(rows)]
    weights = np.array(checked, dtype=np.float64).reshape(shape)
    return Map(_value(data["name"], f"{name}.name", str), weights)  # type: ignore[arg-type]


def _row(value: object, name: str, length: int) -> list[float]:
    row = _list(value, name)
    if len(row) != length:
        raise _wrong(name, f"have {length} weights (read tokens)", len(row))
    return [_number(number, name) for number in row]


def _number(value: object, name: str) -> float:
    if type(value) is float:
        return value
    if type(value) is int and abs(value) < 2**64:
        return float(value)
    raise _wrong(name, "hold numbers", value)


def _details(value: object) -> dict[str, Detail]:
    if not isinstance(value, dict):
        raise _wrong("details", "be an object", value)
    return value
