"""What a training says: one JSON line for a program, a progress bar or plain lines for a person."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Log:
    """The log of a run: `log.jsonl`, and lines and a bar on stderr.

    Args:
        folder: The run's folder.
        step: The step the training goes on from; later lines of an earlier try are removed.
        quiet: Whether to show nothing.
    """

    def __init__(self, folder: Path, *, step: int, quiet: bool) -> None:
        self.path = Path(folder) / "log.jsonl"
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._stream: IO[str] | None = None
        self._begun = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        _cut(self.path, step)

    def __enter__(self) -> Log:
        self._stream = self.path.open("a", encoding="utf-8")
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
        """Add a line to `log.jsonl`.

        Args:
            event: What happened.
            values: What belongs to it; numbers that are not finite are written as words.
        """
        line = {"event": event, "seconds": round(time.monotonic() - self._begun, 3), **values}
        if self._stream is not None:
            self._stream.write(json.dumps(_plain(line), ensure_ascii=False) + "\n")
            self._stream.flush()

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


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _cut(path: Path, step: int) -> None:
    """Remove the lines that an interrupted try wrote after the checkpoint it goes on from."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            if line and json.loads(line).get("step", 0) <= step:
                kept.append(line + "\n")
        except ValueError:
            continue  # half a line: its writer was killed
    path.write_text("".join(kept), encoding="utf-8")
