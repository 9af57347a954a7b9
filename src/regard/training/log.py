"""What a training says: one JSON line for a program, a progress bar or plain lines for a person."""

from __future__ import annotations

import contextlib
import io
import json
import math
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Log:
    """The log of a run: `log.jsonl`, and lines and a bar on stderr.

    Args:
        folder: The run's folder.
        size: Bytes that stay, None for all; later lines are those of an earlier try and are made
            again.
        quiet: Whether to show nothing.

    Attributes:
        size: Bytes that `log.jsonl` holds.
    """

    def __init__(self, folder: Path, *, size: int | None, quiet: bool) -> None:
        self.path, self.size = Path(folder) / "log.jsonl", 0
        self._kept = size
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._stream: io.FileIO | None = None
        self._begun = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        self._failed = False

    def __enter__(self) -> Log:
        self._stream = io.FileIO(self.path, "ab")
        there = self._stream.tell()
        self.size = there if self._kept is None else min(self._kept, there)
        self._stream.truncate(self.size)
        if self.console.is_terminal and not self.console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._stream is not None:
            self._stream.close()

    def write(self, event: str, **values: Any) -> None:
        """Add a line to `log.jsonl`; a full disk costs the line, not the training.

        Args:
            event: What happened.
            values: What belongs to it; numbers that are not finite are written as words.
        """
        line = {"event": event, "seconds": round(time.monotonic() - self._begun, 3), **values}
        text = json.dumps(_plain(line), ensure_ascii=False) + "\n"
        raw = text.encode("utf-8", errors="replace")
        try:
            self._append(raw)
        except OSError as error:
            if not self._failed:
                self.say(f"log.jsonl cannot be written: {error.strerror}; lines are left out.")
            self._failed = True

    def say(self, text: str) -> None:
        """Show a line to a person."""
        self.console.print(text, markup=False, soft_wrap=True)

    def show(self, epoch: int, done: int, total: int, loss: float | None) -> None:
        """Move the bar."""
        if self._bar is None:
            return
        text = f"epoch {epoch + 1}" + ("" if loss is None else f"  loss {loss:.3f}")
        if self._task is None:
            self._task = self._bar.add_task(text, total=total)
        self._bar.update(self._task, description=text, completed=done, total=total)

    def _append(self, raw: bytes) -> None:
        if self._stream is None:
            return
        try:
            if self._stream.write(raw) != len(raw):
                raise OSError(0, "the disk is full")
        except OSError:
            with contextlib.suppress(OSError):
                self._stream.truncate(self.size)  # no half lines
            raise
        self.size += len(raw)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
