"""Single files (rows K3, K5, K6, T9)."""

from __future__ import annotations

import contextlib
import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import EnvironmentFault, FileFormatError, UserError
from regard.saving import (
    check_writable,
    make_room,
    read_json,
    remove_leftovers,
    write_file,
)
from regard.saving.files import parse_json


def test_a_file_is_written_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_file(path, "eins\r\n二\n")
    assert path.read_bytes() == "eins\r\n二\n".encode()
    write_file(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    write_file(path, "half of a pair: \ud800")
    assert path.read_text(encoding="utf-8") == "half of a pair: ?"
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208 - hidden names too
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_may_not_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    cases = {
        tmp_path: "must be a file; it is a folder",
        tmp_path / "no" / "a": "its folder does not exist",
        tmp_path / "there": "exists already",
    }
    for path, message in cases.items():
        with pytest.raises(UserError, match=message):
            write_file(path, "new", overwrite=False)
    assert (tmp_path / "there").read_text() == "old"


def test_k3_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path / "a", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EnvironmentFault, match="a: cannot be written: No space left") as caught:
        write_file(tmp_path / "a", "new")
    assert caught.value.exit_code == 3
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_k3_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EnvironmentFault, match="File too large"):
            write_file(tmp_path / "a", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_t9_the_probe_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="must be writable; got: Not a directory"):
        check_writable(tmp_path / "file" / "folder")


def test_k5_leftovers(tmp_path: Path) -> None:
    for name in (".a.01234567.tmp", ".b.tmp", ".c.0123456.tmp", "d.01234567.tmp"):
        (tmp_path / name).write_text("x")
    (tmp_path / ".e.89abcdef.tmp/inner").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / ".f.89abcdef.tmp").symlink_to(tmp_path / "kept")
    remove_leftovers(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".b.tmp", ".c.0123456.tmp", "d.01234567.tmp", "kept"]
    remove_leftovers(tmp_path / "missing")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1, "a": 2}', "a name stands twice"),
        (b"[" * 200_000, "must|valid JSON"),
        (b"9" * 5000, "valid JSON"),
        (b"\xff\xfe\xff", "valid JSON"),
        (b"", "valid JSON"),
        (b" " * (3 << 20), "must be at most"),
    ],
)
def test_k8_json_that_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "a.json").write_bytes(raw)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_json(tmp_path / "a.json")
    assert caught.value.exit_code == 2


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(FileFormatError, match="must be a file"):
            read_json(path)
    with pytest.raises(FileFormatError, match="cannot be read: No such file"):
        read_json(tmp_path / "missing")


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with contextlib.suppress(FileFormatError):
        parse_json(raw, "x")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_what_json_writes_is_read(value: Any) -> None:
    assert parse_json(json.dumps(value).encode(), "x") == value


def test_room_is_made_for_new_files_alone(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "b" / "one.txt", tmp_path / "two.txt"]
    make_room(files)
    assert (tmp_path / "a" / "b").is_dir()
    assert not any(file.exists() for file in files)
    files[1].write_text("here")
    with pytest.raises(UserError, match=r"two\.txt: exists already"):
        make_room([tmp_path / "c" / "three.txt", *files])
    assert not (tmp_path / "c").exists()
    make_room(files, overwrite=True)
    with pytest.raises(UserError, match="must be a folder; it is a file"):
        make_room([files[1] / "in" / "it.txt"])
