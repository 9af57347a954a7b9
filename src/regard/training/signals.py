"""Signals that ask for a stop: noted at once, obeyed where nothing is half done."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_SHOW_CURSOR = b"\x1b[?25h"


class StopRequested(BaseException):
    """Raised where a signal asked for a stop.

    Not an Exception, as KeyboardInterrupt is none: code that survives any error of a sample must
    not survive this.
    """


class SignalWatch:
    """Note signals while training; a second one ends the process at once.

    Files are written under temporary names and renamed, so that ending at once damages none.

    Attributes:
        received: The number of the first signal, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._at_once = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

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
            # None stands for a handler that was not set by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    @property
    def exit_signal(self) -> int:
        """The signal that the exit code names: SIGUSR1 asks for what SIGTERM asks for."""
        return _exit_signal(self.received or signal.SIGTERM)

    def poll(self) -> None:
        """Raise StopRequested where a signal has come."""
        if self.received is not None:
            raise StopRequested

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal interrupt what is done inside, such as waiting for a worker that hangs."""
        self._at_once = True
        try:
            self.poll()
            yield
        finally:
            self._at_once = False

    def leave_children_alone(self) -> None:
        """Hear of a dead worker only when waiting for it.

        PyTorch's own handler raises at any moment, also in the middle of a step.
        """
        if signal.SIGTERM not in self._before:
            return  # not in the main thread
        current = signal.getsignal(signal.SIGCHLD)
        if current is not signal.SIG_DFL:
            self._before[signal.SIGCHLD] = current
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            return  # a worker, which the training process ends
        if self.received is not None:
            if sys.stderr is not None and sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)  # the bar has hidden it
            os._exit(128 + _exit_signal(number))
        self.received = number
        if self._at_once:
            raise StopRequested


def _exit_signal(number: int) -> int:
    return int(signal.SIGTERM if number == signal.SIGUSR1 else number)
