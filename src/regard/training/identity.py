"""What must be the same for a run to go on, and saying what is not."""

from __future__ import annotations

import json
from typing import Any

from regard.errors import ResumeError


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
    changed = [
        f"{name} was {old.get(name)!r}, is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and not _is_allowed(name, allowed)
    ]
    if changed:
        first = changed[0].partition(" was ")[0]
        raise ResumeError(
            f"a run goes on only as it was: {'; '.join(changed)}. Put it back, or add "
            f"--allow-change {first}.",
            where="resume",
        )


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
