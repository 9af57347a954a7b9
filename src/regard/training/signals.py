"""Signals that ask for a stop: noted at once, obeyed between steps."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequested(Exception):
    """Raised by `SignalWatch.poll` where a signal asked for a stop."""


class SignalWatch:
    """Note signals while training; a second one ends the process at once.

    Files are written under temporary names and renamed, so that ending at once damages none.

    Attributes:
        received: The number of the first signal, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            for number in WATCHED:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def poll(self) -> None:
        """Raise StopRequested where a signal has come."""
        if self.received is not None:
            raise StopRequested

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
