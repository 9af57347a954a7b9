"""Settings: read from TOML, checked strictly, changed by `key=value`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

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
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"is not valid TOML: {error}.", where=str(path)) from None


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
        raise ConfigError(f"a change must read key=value; got {change!r}.", where="arguments")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{parent} must be a table; it is a value.", where=key)
    table[last] = value


def _one_line(error: ValidationError, kind: type[BaseModel]) -> str:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    field = ".".join(path) or "settings"
    if first["type"] == "extra_forbidden":
        known = _fields_at(kind, path[:-1])
        return f"{field}: is not a setting; {did_you_mean(path[-1], known)}"
    if first["type"] == "missing":
        return f"{field}: is missing; add it."
    if first["type"] == "finite_number":
        return f"{field}: must be a finite number; got {first['input']}."
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    lead = "" if first["msg"].startswith("Value error") else "must be "
    shown = repr(first["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return f"{field}: {lead}{message}; got {shown}."


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
