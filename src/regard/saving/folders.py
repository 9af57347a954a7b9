"""Folders with a manifest: written whole, verified when read."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.errors import EnvironmentFault, FileFormatError, UserError
from regard.saving.files import (
    beside,
    parse_json,
    put_back,
    read_bytes,
    reason,
    remove_tree,
    replaced,
    sync,
    write_file,
)

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 1 << 20  # bytes
_AT_WORKING_FOLDER, _EXCHANGE = -100, 2  # of Linux's renameat2


def write_folder(
    target: Path, fill: Callable[[Path], None], *, versions: Mapping[str, str], overwrite: bool
) -> None:
    """Write a folder whole, with its manifest, or leave everything as it was.

    Args:
        target: The folder to be; a link to a folder is followed.
        fill: Writes the files into the folder it is given.
        versions: Versions of libraries, for the manifest.
        overwrite: Whether an existing folder of regard may be replaced. Old and new change places
            in one step where the system can do that; where it cannot, an interrupted replacement
            is undone when the folder is next read or written.

    Raises:
        UserError: The target exists and may not be replaced, or is no folder of regard.
        EnvironmentFault: The disk is full, or the place cannot be written to.
    """
    target = Path(target)
    target = target.resolve() if target.is_symlink() else target
    put_back(target)
    _check_target(target, overwrite=overwrite)
    temporary = beside(target)
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        for path in temporary.iterdir():
            sync(path)
        write_file(temporary / MANIFEST, _manifest_text(temporary, versions))
        sync(temporary)
        _put_in_place(temporary, target)
        sync(target.parent)
    except OSError as error:
        raise EnvironmentFault(f"cannot be written: {reason(error)}.", where=str(target)) from error
    except EnvironmentFault as fault:
        raise EnvironmentFault(fault.message, where=str(target)) from fault
    finally:
        remove_tree(temporary)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that no one reads half of it: it is renamed first.

    Args:
        folder: The folder.

    Raises:
        OSError: It cannot be renamed.
    """
    doomed = beside(folder)
    folder.rename(doomed)
    remove_tree(doomed)


def verify_folder(folder: Path) -> dict[str, Any]:
    """Check a folder against its manifest: every file whole and unchanged.

    Args:
        folder: The folder.

    Returns:
        The manifest.

    Raises:
        FileFormatError: A file is missing, too short, too long or changed; the message names it.
    """
    folder = Path(folder)
    put_back(folder)
    manifest = _read_manifest(folder)
    for name, entry in manifest["files"].items():
        _verify_file(folder, name, entry)
    if _is_open(folder):
        warnings.warn(
            f"{folder} can be changed by everyone; take the right away: chmod o-w",
            UserWarning,
            stacklevel=2,
        )
    return manifest


def _is_open(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:  # it has just been removed: whoever reads on will be told
        return False


def _check_target(target: Path, *, overwrite: bool) -> None:
    if not target.exists():
        return
    if not overwrite:
        raise UserError("exists already. Choose another name, or use --force.", where=str(target))
    try:
        known = (target / MANIFEST).is_file() or not any(target.iterdir())
    except OSError:
        known = False
    if not known:
        raise UserError(
            "must be a folder of regard to be replaced; it has no manifest.json. Choose another "
            "name, or remove it.",
            where=str(target),
        )


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename; what was there before ends up under a temporary name."""
    if not target.exists():
        temporary.rename(target)
        return
    if _exchange(temporary, target):
        return
    old = replaced(target)
    remove_tree(old)
    target.rename(old)
    try:
        temporary.rename(target)
    except OSError:
        old.rename(target)
        raise
    remove_tree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step, where the system can do that."""
    call = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if call is None:
        return False
    here = _AT_WORKING_FOLDER
    return bool(call(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE) == 0)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest_text(folder: Path, versions: Mapping[str, str]) -> str:
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.iterdir())
    }
    content = {"format_version": FORMAT_VERSION, "versions": dict(versions), "files": files}
    return _canonical(content)


def _canonical(content: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": digest}, indent=1, sort_keys=True) + "\n"


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    where = str(path)
    if not path.is_file():
        raise FileFormatError("has no manifest.json; it is no model of regard.", where=str(folder))
    raw = read_bytes(path, _LARGEST_MANIFEST)
    damaged = FileFormatError("manifest.json is damaged. Copy it again.", where=str(folder))
    try:
        manifest = parse_json(raw, where)
    except FileFormatError:
        raise damaged from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FileFormatError("is no manifest.", where=where)
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    # Byte for byte, so that a change that JSON does not see (a space) is seen too.
    if raw != _canonical(content).encode():
        raise damaged
    version = manifest.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise FileFormatError(
            f"format_version must be from 1 to {FORMAT_VERSION}; got {version!r}. Update regard.",
            where=where,
        )
    return manifest


def _verify_file(folder: Path, name: str, entry: Any) -> None:
    path = folder / name
    sound = isinstance(entry, dict) and type(entry.get("bytes")) is int
    if Path(name).name != name or not sound:
        raise FileFormatError(f"names a file unsoundly: {name!r}.", where=str(folder / MANIFEST))
    if not path.is_file():
        raise FileFormatError(f"{name} is missing. Copy it again.", where=str(folder))
    try:
        size, digest = path.stat().st_size, _sha256(path)
    except OSError as error:
        raise FileFormatError(
            f"{name} cannot be read: {reason(error)}.", where=str(folder)
        ) from None
    if size != entry["bytes"]:
        raise FileFormatError(
            f"{name} is {size:,} of {entry['bytes']:,} bytes. Copy it again.", where=str(folder)
        )
    if digest != entry.get("sha256"):
        raise FileFormatError(
            f"{name} is damaged: its SHA-256 is not the manifest's. Copy it again.",
            where=str(folder),
        )
