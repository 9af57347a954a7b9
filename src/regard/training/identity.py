"""What must be the same for a run to go on, and saying what is not."""

from __future__ import annotations

import json
import re
from typing import Any

from regard.errors import ResumeError, did_you_mean


def compare(before: dict[str, Any], now: dict[str, Any], *, allowed: tuple[str, ...]) -> None:
    """Compare two identities, field by field, as JSON knows them (a tuple is a list there).

    Args:
        before: That of the checkpoint.
        now: That of this call.
        allowed: Fields that may differ: a dotted name, or the beginning of one.

    Raises:
        ResumeError: Something else differs; the message shows what.
    """
    old, new = _flat(before), _flat(json.loads(json.dumps(now)))
    known = sorted(old.keys() | new.keys())
    for field in allowed:
        if not any(_is_allowed(name, (field,)) for name in known):
            raise ResumeError(
                f"must name a field; got {field!r}: {did_you_mean(field, known)}",
                where="--allow-change",
            )
    changed = [
        name for name in known if old.get(name) != new.get(name) and not _is_allowed(name, allowed)
    ]
    if changed:
        what = "; ".join(f"{n} was {_short(old.get(n))}, is {_short(new.get(n))}" for n in changed)
        flags = " ".join(f"--allow-change {name}" for name in changed)
        raise ResumeError(
            f"a run goes on only as it was: {what}. Put it back, or add {flags}.", where="resume"
        )


def _short(value: object) -> str:
    """Show a value; of a hash, the beginning."""
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value):
        return value[:12]
    return repr(value)


def _is_allowed(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == field or name.startswith(field + ".") for field in allowed)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
