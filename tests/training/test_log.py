"""The log: cut where a checkpoint says, never half a line, never the end of a training."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from regard.training.log import Log


def _events(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in (path / "log.jsonl").read_text().splitlines()]


def test_lines_after_the_checkpoint_are_cut(tmp_path: Path) -> None:
    with Log(tmp_path, size=0, quiet=True) as log:
        log.write("one", text="日本\nline", loss=float("nan"))
        size = log.size
        log.write("two")
    with (tmp_path / "log.jsonl").open("a") as stream:
        stream.write('{"event": "hal')
    with Log(tmp_path, size=size, quiet=True) as log:
        log.write("three", nested={"worst": float("-inf")})
    assert _events(tmp_path) == ["one", "three"]
    first = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    assert (first["text"], first["loss"]) == ("日本\nline", "nan")


def test_a_checkpoint_that_knows_no_size_cuts_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with Log(tmp_path, size=None, quiet=True) as log:
            log.write("one")
    assert _events(tmp_path) == ["one", "one"]


def test_a_log_that_was_removed_begins_anew(tmp_path: Path) -> None:
    with Log(tmp_path, size=500, quiet=True) as log:
        log.write("one")
        assert log.size == (tmp_path / "log.jsonl").stat().st_size


def test_k3_a_full_disk_costs_lines_not_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Log(tmp_path, size=0, quiet=False) as log:
        log.write("one")
        real = log._stream
        assert real is not None

        class Full:
            def write(self, raw: bytes) -> int:
                real.write(raw[:5])
                raise OSError(errno.ENOSPC, "No space left on device")

            truncate = staticmethod(real.truncate)

        log._stream = Full()  # type: ignore[assignment]
        log.write("two")
        log.write("three")
        log._stream = real
        log.write("four")
    assert _events(tmp_path) == ["one", "four"]
    assert capsys.readouterr().err.count("log.jsonl cannot be written: No space left") == 1


def test_the_bar_moves_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Log(tmp_path, size=0, quiet=False) as log:
        log.show(0, 1, 4, None)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Log(tmp_path, size=0, quiet=False) as log:
        log.show(0, 1, 4, None)
        log.show(0, 2, 4, 1.25)
    assert "loss 1.250" in capsys.readouterr().err
