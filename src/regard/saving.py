"""Files and folders that are written whole or not at all, and verified when read."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from regard.errors import EnvironmentFault, UserError


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
    content = data.encode("utf-8", errors="surrogatepass") if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise EnvironmentFault(f"cannot be written: {error.strerror}.", where=str(path)) from error
