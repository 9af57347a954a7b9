"""One process at a time in a run folder (row T10)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.errors import EnvironmentFault, RunLockedError
from regard.training import lock
from regard.training.lock import LOCK, RunLock

HOLD = """
import sys, time
from regard.training.lock import RunLock
with RunLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_t10_a_live_lock_is_refused_and_a_killed_one_is_taken_over(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    expected = f"is held by process {holder.pid} on {socket.gethostname()}"
    with pytest.raises(RunLockedError, match=expected) as caught, RunLock(tmp_path / "run"):
        pass
    assert caught.value.exit_code == 3
    assert (tmp_path / "run" / LOCK).exists()
    holder.kill()
    holder.wait()
    with RunLock(tmp_path / "run"):
        table = json.loads((tmp_path / "run" / LOCK).read_text())
        assert table["pid"] == os.getpid()
    assert not (tmp_path / "run" / LOCK).exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"pid": 1',
        "[]",
        '{"pid": "x", "host": "h", "boot": "b"}',
        json.dumps({"pid": os.getpid(), "host": "elsewhere", "boot": lock._boot()}),
        # The number of a process that lives, but does not hold the lock: it was given anew.
        json.dumps({"pid": os.getppid(), "host": socket.gethostname(), "boot": lock._boot()}),
        json.dumps({"pid": 1, "host": socket.gethostname(), "boot": "before the restart"}),
    ],
    ids=["empty", "cut", "list", "words", "other host", "given anew", "before the restart"],
)
def test_t10_stale_locks_are_taken_over(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with RunLock(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_t10_another_machine_may_still_run(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(json.dumps({"pid": 5, "host": "elsewhere", "boot": "another"}))
    with pytest.raises(RunLockedError, match=f"process 5 on elsewhere.*remove {LOCK}"):
        RunLock(tmp_path).__enter__()


def test_t10_without_locks_of_the_system_the_process_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_lock", lambda _: None)
    boot, host = lock._boot(), socket.gethostname()
    (tmp_path / LOCK).write_text(json.dumps({"pid": os.getppid(), "host": host, "boot": boot}))
    with pytest.raises(RunLockedError, match=f"process {os.getppid()} on"):
        RunLock(tmp_path).__enter__()
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    pid = int(gone.stdout)
    (tmp_path / LOCK).write_text(json.dumps({"pid": pid, "host": host, "boot": boot}))
    with RunLock(tmp_path):
        pass


def test_t9_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="must be writable"):
        RunLock(tmp_path / "file" / "run").__enter__()
