"""Files that people name: read whole within a bound, and never outside the folder of the data."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path, PureWindowsPath

from regard.errors import DataError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bytes(path: Path, largest: int) -> bytes:
    """Read a file of a bounded size; pipes and devices are refused, for they may never end.

    Args:
        path: The file.
        largest: Most bytes to read.

    Returns:
        Its bytes.

    Raises:
        DataError: It is missing, no regular file, too large, or cannot be read.
    """
    try:
        check_size(path, largest)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot be read: {reason}. Check the path.", where=str(path)) from error


def check_size(path: Path, largest: int) -> None:
    """Refuse what is not a regular file of a bounded size.

    Args:
        path: The file.
        largest: Most bytes it may have.

    Raises:
        DataError: It is no regular file, or too large.
        OSError: It does not exist, or the system does not say.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait, a device would never end
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise DataError(f"must be a file; it is {kind}. Name a file.", where=str(path))
    if status.st_size > largest:
        raise DataError(
            f"file must have at most {largest} bytes; got {status.st_size}. Split it.",
            where=str(path),
        )


def resolve_inside(root: Path, name: str, *, where: str) -> Path:
    """Find the file that a line of data names, which must lie in the folder of the data.

    Args:
        root: The folder that names are relative to.
        name: The name as it stands in the data, with `/` between its parts.
        where: The place of the name, for errors.

    Returns:
        The path, below `root`.

    Raises:
        DataError: The name is absolute, leads out of the folder (also by a link), or names no
            file that exists.
    """
    shown = repr(name[:200])
    if _leaves(name):
        raise DataError(
            f"image must be named relative to the folder of the data, without '..'; got {shown}. "
            "Put the file into the folder.",
            where=where,
        )
    path = Path(root) / name
    try:
        real, base = (Path(os.path.realpath(p, strict=True)) for p in (path, root))
        kind = stat.S_IFMT(real.stat().st_mode)
    except (OSError, ValueError) as error:  # ValueError: a surrogate, or a loop of links
        reason = getattr(error, "strerror", None) or "no file can have this name"
        raise DataError(
            f"image must be a file in {root}; got {shown}: {reason}. Correct the name.", where=where
        ) from error
    if not real.is_relative_to(base):
        raise DataError(
            f"image must stay in the folder of the data; got {shown}, a link that leads out of "
            "it. Copy the file into the folder.",
            where=where,
        )
    if kind != stat.S_IFREG:
        raise DataError(
            f"image must be a file; got {shown}, which is {_KINDS.get(kind, 'something else')}. "
            "Correct the name.",
            where=where,
        )
    return path


def _leaves(name: str) -> bool:
    """Whether a name is none, or leads elsewhere on some system, or is an address."""
    windows = PureWindowsPath(name)
    rooted = name.startswith(("/", "\\", "~")) or bool(windows.drive or windows.root)
    return not name.strip() or "\0" in name or "://" in name or rooted or ".." in windows.parts


def file_sha256(path: Path, *, where: str) -> str:
    """Hash the bytes of a file.

    Args:
        path: The file.
        where: The place that names it, for errors.

    Returns:
        The SHA-256, in hexadecimal.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}. Check its rights.", where=where
        ) from error
