"""One process at a time in a run folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Any

from regard.errors import EnvironmentFault, RunLockedError

LOCK = "lock.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MOST = 4096  # bytes of a lock file that are read


class RunLock:
    """Hold a run folder, so that no second process trains in it.

    The file names its holder (process, host and boot) for those it keeps out. What keeps them out
    is a lock of the operating system on it: that one ends with its process, however it ends, so a
    file that a killed process left is taken over, also where another process has its number now.

    Args:
        folder: The run folder; made where it does not exist.

    Raises:
        RunLockedError: Another process holds it (raised on entering).
        EnvironmentFault: The folder cannot be written to (raised on entering).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / LOCK
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = self._take()
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvironmentFault(
                f"must be writable; got: {reason}. Choose another folder.", where=str(self.folder)
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)  # before the lock ends, or it could be another's
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self) -> int:
        while True:
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
            try:
                if self._claim(descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its holder has just removed it: another file has its name now

    def _claim(self, descriptor: int) -> bool:
        granted = _lock(descriptor)
        holder = _holder(os.pread(descriptor, _MOST, 0))
        if granted is False or (holder is not None and _may_run(holder, certain=granted is True)):
            raise self._refusal(holder)
        try:
            if not os.path.samestat(os.fstat(descriptor), self.path.stat()):
                return False
        except FileNotFoundError:
            return False
        mine = {"pid": os.getpid(), "host": socket.gethostname(), "boot": _boot()}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(mine).encode(), 0)
        os.fsync(descriptor)
        return True

    def _refusal(self, holder: dict[str, Any] | None) -> RunLockedError:
        name = f"process {holder['pid']} on {holder['host']}" if holder else "another process"
        return RunLockedError(
            f"is held by {name}. Wait for it, or train into another folder; where that process "
            f"is gone for certain, remove {LOCK}.",
            where=str(self.folder),
        )


def _lock(descriptor: int) -> bool | None:
    """Ask for the lock: granted or refused, or None where the filesystem has no locks."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


def _holder(raw: bytes) -> dict[str, Any] | None:
    try:
        table = json.loads(raw)
        return {"pid": int(table["pid"]), "host": str(table["host"]), "boot": str(table["boot"])}
    except (ValueError, KeyError, TypeError):
        return None  # half written: its writer was killed


def _may_run(holder: dict[str, Any], *, certain: bool) -> bool:
    """Tell whether a holder may still run; `certain` where its lock on this machine is gone."""
    boot, host = _boot(), socket.gethostname()
    if holder["boot"] == boot if boot else holder["host"] == host:
        return not certain and holder["pid"] != os.getpid() and _runs(holder["pid"])
    return bool(holder["host"] != host)  # else this machine was restarted


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
    except (PermissionError, OverflowError):
        return True
    return True
