"""Settings: read from TOML, checked strictly, changed by `key=value`."""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from regard.errors import ConfigError, did_you_mean

_LARGEST_FILE = 1 << 20  # bytes; no config a person writes comes near


class Strict(BaseModel):
    """Base of all settings: no unknown names, no silent conversions, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, validate_default=True
    )


Settings = TypeVar("Settings", bound=Strict)


def read_config(path: Path, kind: type[Settings], *, changes: Iterable[str] = ()) -> Settings:
    """Read a TOML file into settings.

    Args:
        path: The file.
        kind: The class of the settings.
        changes: `key=value` pairs that replace what the file says; `key` may be dotted, and
            `value` is a TOML value, or else a string.

    Returns:
        The settings, checked.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or holds a wrong field; the message
            names the file, the field and what it must be.
    """
    table = read_table(Path(path))
    for change in changes:
        _apply(table, change)
    return checked(table, kind, where=str(path))


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file as it is.

    Args:
        path: The file.

    Returns:
        Its table.

    Raises:
        ConfigError: The file cannot be read or is no TOML.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise ConfigError("must be a file. Name a TOML file.", where=str(path))
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}.", where=str(path)) from None
    if len(raw) > _LARGEST_FILE:
        raise ConfigError("must be smaller than 1 MiB. Is this a config?", where=str(path))
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"must be UTF-8; byte {error.start} is not.", where=str(path)) from None
    except (ValueError, RecursionError) as error:  # ValueError: a number of 5,000 digits too
        raise ConfigError(f"must be valid TOML; got: {error}.", where=str(path)) from None


def checked(table: Mapping[str, Any], kind: type[Settings], *, where: str) -> Settings:
    """Turn a table into settings, with errors of one line.

    Args:
        table: Names and values.
        kind: The class of the settings.
        where: The place that errors name, a file as a rule.

    Returns:
        The settings.

    Raises:
        ConfigError: A field is wrong.
    """
    try:
        return kind.model_validate(dict(table))
    except ValidationError as error:
        raise ConfigError(_one_line(error, kind), where=where) from None
    except RecursionError:
        raise ConfigError("must not be nested this deeply. Flatten it.", where=where) from None


def _apply(table: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"a change must read key=value; got {change!r}.",
            where="arguments",
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(
                f"{parent} must be a table to hold {last}; it is a value.", where="arguments"
            )
    table[last] = value


def _one_line(error: ValidationError, kind: type[BaseModel]) -> str:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    field = ".".join(_untagged(kind, path))[:200] or "settings"
    explain = _EXPLANATIONS.get(first["type"])
    if explain is not None:
        return field + explain(first)
    if first["type"] == "extra_forbidden":
        known = _fields_at(kind, path[:-1])
        if path[-1] in known:  # that of another kind
            return f"{field}: must be left out for this kind; it is given. Remove it."
        return f"{field}: must be a setting; it is none: {did_you_mean(path[-1], known)}"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if first["msg"].startswith("Value error"):  # a check of ours, which says what it got
        return f"{field}: {message}{'' if message.endswith('?') else '.'}"
    return f"{field}: must be {message}; got {_shown(first['input'])}."


def _wrong_kind(error: ErrorDetails) -> str:
    kinds = error["ctx"]["expected_tags"].replace("'", "").split(", ")
    kind = str(error["ctx"]["tag"])[:60]
    return f".kind: must be one of {', '.join(kinds)}; got {kind!r}: {did_you_mean(kind, kinds)}"


_EXPLANATIONS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: ": must be given; it is missing. Add it.",
    "union_tag_not_found": lambda _: ".kind: must be given; it is missing. Add it.",
    "union_tag_invalid": _wrong_kind,
    "finite_number": lambda error: f": must be a finite number; got {_shown(error['input'])}.",
}


def _shown(value: object) -> str:
    """Show a value that may be huge, deep, or an integer that Python refuses to print."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 60
    brief.maxlevel, brief.maxdict, brief.maxlist = 2, 3, 3
    try:
        return brief.repr(value)
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"


def _untagged(kind: type[BaseModel], path: list[str]) -> list[str]:
    """Leave out of a place what is no name in the file: the kind that was chosen of several."""
    named, models, chosen = [], [kind], False
    for part in path:
        if chosen:
            chosen = False
            continue
        named.append(part)
        fields = [found for model in models if (found := model.model_fields.get(part)) is not None]
        models = [model for found in fields for model in _models_in(found.annotation)]
        chosen = any(_is_choice(found.annotation) for found in fields)
    return named


def _is_choice(annotation: Any) -> bool:
    kinds = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    return get_origin(annotation) in (Union, UnionType) and len(kinds) > 1


def _fields_at(kind: type[BaseModel], path: list[str]) -> set[str]:
    """Return the names that are known at a place, or all names where it cannot be told."""
    current: type[BaseModel] = kind
    for part in path:
        field = current.model_fields.get(part)
        inner = _models_in(field.annotation) if field is not None else []
        tagged = [model for model in inner if part]
        if len(tagged) == 1:
            current = tagged[0]
        elif len(tagged) > 1:
            return {name for model in tagged for name in model.model_fields}
    return set(current.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
