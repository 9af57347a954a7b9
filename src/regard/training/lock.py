"""One process at a time in a run folder."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path
from types import TracebackType

from regard.errors import EnvironmentFault, RunLockedError

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class RunLock:
    """Hold a run folder, so that no second process trains in it.

    A lock left by a process that no longer runs on this machine is taken over.

    Args:
        folder: The run folder; made where it does not exist.

    Raises:
        RunLockedError: Another process holds it (raised on entering).
        EnvironmentFault: The folder cannot be written to (raised on entering).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "lock.json"

    def __enter__(self) -> RunLock:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take()
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvironmentFault(
                f"must be writable: {reason}. Choose another folder.", where=str(self.folder)
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _take(self) -> None:
        mine = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "boot": _boot()})
        for _ in range(2):
            try:
                descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                self._refuse_or_remove()
                continue
            with os.fdopen(descriptor, "w") as stream:
                stream.write(mine)
                stream.flush()
                os.fsync(stream.fileno())
            return
        raise RunLockedError("is held by another process.", where=str(self.folder))

    def _refuse_or_remove(self) -> None:
        try:
            holder = json.loads(self.path.read_text(encoding="utf-8"))
            pid, host, boot = int(holder["pid"]), str(holder["host"]), str(holder["boot"])
        except (OSError, ValueError, KeyError, TypeError):
            self.path.unlink(missing_ok=True)  # half written: its writer died
            return
        elsewhere = host != socket.gethostname()
        if elsewhere or (boot == _boot() and pid != os.getpid() and _runs(pid)):
            raise RunLockedError(
                f"is held by process {pid} on {host}. Wait for it, or train into another folder.",
                where=str(self.folder),
            )
        self.path.unlink(missing_ok=True)


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
