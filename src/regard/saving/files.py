"""Single files: written whole, read strictly."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.errors import EnvironmentFault, FileFormatError, UserError

_LARGEST_JSON = 2 << 20  # bytes; JSON takes some twenty times its size in memory
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")
_REPLACED = ".replaced"


def write_file(path: Path, data: str | bytes, *, overwrite: bool = True) -> None:
    """Write a file under a temporary name beside it, then rename it.

    Args:
        path: The file to write.
        data: Its content; text is written as UTF-8 with the line ends it has.
        overwrite: Whether an existing file may be replaced.

    Raises:
        UserError: The file exists and may not be replaced, or its folder does not exist.
        EnvironmentFault: The disk is full, or the folder cannot be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError("must be a file; it is a folder. Add a file name.", where=str(path))
    if path.exists() and not overwrite:
        raise UserError("exists already. Choose another name, or use --force.", where=str(path))
    if not path.parent.is_dir():
        raise UserError("its folder does not exist. Make it first.", where=str(path))
    content = data.encode("utf-8", errors="replace") if isinstance(data, str) else data
    temporary = beside(path)
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise EnvironmentFault(f"cannot be written: {reason(error)}.", where=str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_room(files: Iterable[Path], *, overwrite: bool = False) -> None:
    """Refuse files that exist already, and make the folders of the others, before any is written.

    Args:
        files: The files to be written.
        overwrite: Whether they may exist.

    Raises:
        UserError: A file exists already, or a folder's name is that of a file.
        EnvironmentFault: A folder cannot be made.
    """
    every = [Path(file) for file in files]
    for path in every:
        if path.exists() and not overwrite:
            raise UserError(
                "exists already. Choose another folder, or use --force.", where=str(path)
            )
    for folder in dict.fromkeys(path.parent for path in every):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UserError(
                "must be a folder; it is a file. Choose another.", where=str(folder)
            ) from None
        except OSError as error:
            raise EnvironmentFault(
                f"cannot be made: {reason(error)}. Choose another folder.", where=str(folder)
            ) from error


def check_writable(folder: Path) -> None:
    """Check that a folder can be written to and renamed in, before any work is done.

    Args:
        folder: The folder; made where it does not exist.

    Raises:
        EnvironmentFault: It cannot be.
    """
    folder = Path(folder)
    first, second = beside(folder / "probe"), beside(folder / "probe")
    try:
        first.mkdir(parents=True)
        first.rename(second)
        second.rmdir()
    except OSError as error:
        raise EnvironmentFault(
            f"must be writable; got: {reason(error)}. Choose another folder.", where=str(folder)
        ) from error


def remove_leftovers(folder: Path) -> None:
    """Remove what interrupted writes left in a folder, and put back what they had moved away.

    Only names that this package gives are touched. No other process may be writing there.

    Args:
        folder: The folder; it need not exist.
    """
    for path in sorted(Path(folder).glob(".*")):
        if path.name.endswith(_REPLACED):
            put_back(path.with_name(path.name[1 : -len(_REPLACED)]))
            remove_tree(path)
        elif _TEMPORARY.fullmatch(path.name):
            remove_tree(path)


def read_json(path: Path) -> Any:
    """Read a JSON file strictly: no NaN, no double names, nothing huge.

    Args:
        path: The file.

    Returns:
        Its content.

    Raises:
        FileFormatError: It cannot be read or is not such a file.
    """
    return parse_json(read_bytes(Path(path), _LARGEST_JSON), str(path))


def read_bytes(path: Path, most: int) -> bytes:
    """Read a file of a bounded size; pipes and devices are refused, for they may never end."""
    try:
        if path.exists() and not path.is_file():
            raise FileFormatError("must be a file. Name a file.", where=str(path))
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise FileFormatError(f"cannot be read: {reason(error)}.", where=str(path)) from None
    if len(raw) > most:
        raise FileFormatError(f"must be at most {most:,} bytes; it is larger.", where=str(path))
    return raw


def parse_json(raw: bytes, where: str) -> Any:
    """Parse JSON strictly; `where` is the place that errors name."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise ValueError("a name stands twice")
        return table

    def never(text: str) -> float:
        raise ValueError(f"{text} is not a number")

    try:
        return json.loads(raw, object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"is not valid JSON: {error}.", where=where) from None


def beside(path: Path) -> Path:
    """Return a temporary name beside a path: a rename is atomic only within one filesystem."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def replaced(path: Path) -> Path:
    """Return where a folder lies while another takes its place."""
    return path.with_name(f".{path.name}{_REPLACED}")


def put_back(path: Path) -> None:
    """Bring a folder back whose replacement was interrupted between two renames."""
    if not path.exists() and replaced(path).exists():
        with contextlib.suppress(OSError):  # a read-only place: it is missing then
            replaced(path).rename(path)


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all it holds; a link's target stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # pragma: no cover - some filesystems cannot sync folders
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """Say why the system refused."""
    return error.strerror or str(error)
