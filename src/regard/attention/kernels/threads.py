"""A pool of threads for loops that let go of Python's lock.

numba's own layers are not used: one kills a child of fork, another aborts when two Python threads
enter it. Here every caller splits its work in advance, takes the first part itself and waits for
the others, which wait for nobody.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch

WORTH = 1 << 18
"""How much work, in elements of queries x keys x hidden, another thread is worth waking for."""

Range = tuple[int, int]


class Pool:
    """Threads that are started when there is work, and anew in a forked child."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def run(self, parts: list[Callable[[], None]]) -> None:
        """Run parts side by side, and return when all are done.

        Args:
            parts: What to run; the first runs in this thread.

        Raises:
            Exception: What a part raised.
        """
        waiting = [self._start(part) for part in parts[1:]]
        try:
            parts[0]()
        finally:
            failures = [started.exception() for started in waiting if started is not None]
        for failure in failures:
            if failure is not None:
                raise failure

    def _start(self, part: Callable[[], None]) -> Future[None] | None:
        try:
            with self._lock:
                return self._threads().submit(part)
        except RuntimeError:  # the interpreter is shutting down and starts no thread any more
            part()
            return None

    def _threads(self) -> ThreadPoolExecutor:
        wanted = torch.get_num_threads()
        if self._executor is None or wanted > self._size:
            # Threads that are idle end with the executor that nobody refers to any longer.
            self._size = wanted
            self._executor = ThreadPoolExecutor(wanted, thread_name_prefix="regard-kernel")
        return self._executor


POOL = Pool()


def split(rows: int, work: int) -> list[Range]:
    """Split rows into ranges, one for each of PyTorch's threads that is worth it.

    Args:
        rows: How many rows.
        work: How much work they are, in elements of queries x keys x hidden.

    Returns:
        Ranges that are the same for the same sizes and the same number of threads.
    """
    count = max(1, min(torch.get_num_threads(), rows, work // WORTH))
    return [(rows * part // count, rows * (part + 1) // count) for part in range(count)]
