"""The command in this process, and in one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def regard(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SimpleNamespace]:
    """Run the command here: `regard("translate", "x", stdin=b"...")` gives code, out and err."""
    from regard.cli.app import run

    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object, stdin: bytes | io.BytesIO = b"") -> SimpleNamespace:
        stream = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        with pytest.raises(SystemExit) as caught:
            run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=caught.value.code, out=out, err=err)

    return call


@pytest.fixture
def refused(regard: Any) -> Callable[..., str]:
    """Run the command and expect one line on standard error; return what it says."""

    def call(*arguments: object, code: int = 2, **own: Any) -> str:
        result = regard(*arguments, **own)
        assert result.code == code, result
        assert result.err.startswith("regard: error: "), result.err
        assert result.err.endswith("\n")
        assert result.err.count("\n") == 1, result.err
        assert result.out == ""
        line: str = result.err.removeprefix("regard: error: ").rstrip("\n")
        where, _, rest = line.partition(": ")
        assert where
        assert rest
        return line

    return call


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run the command in a process of its own; `shell` is a line in which it is `"$@"`."""

    def call(
        *arguments: object, shell: str = '"$@"', env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        program = [sys.executable, "-c", "from regard.cli import main; main()"]
        line = ["bash", "-c", shell, "bash", *program, *map(str, arguments)]
        own = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
        return subprocess.run(line, capture_output=True, check=False, timeout=120, env=own)

    return call
