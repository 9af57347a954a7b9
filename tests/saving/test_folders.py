"""Folders: whole or not at all, at any moment (rows K1-K5, K11, T4)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import EnvironmentFault, FileFormatError, UserError
from regard.saving import MANIFEST, folders, remove_leftovers, verify_folder, write_folder
from regard.saving.folders import _canonical


def _write(target: Path, text: str = "content", *, overwrite: bool = True) -> None:
    def fill(folder: Path) -> None:
        (folder / "a.txt").write_text(text)
        (folder / "b.bin").write_bytes(bytes(range(256)) * 36)

    write_folder(target, fill, versions={"regard": "1"}, overwrite=overwrite)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_has_a_manifest(folder: Path) -> None:
    manifest = verify_folder(folder)
    assert manifest["format_version"] == 1
    assert manifest["versions"] == {"regard": "1"}
    assert manifest["files"]["b.bin"]["bytes"] == 9216
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_overwriting(folder: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        _write(folder, overwrite=False)
    _write(folder, "new")
    verify_folder(folder)
    assert (folder / "a.txt").read_text() == "new"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_what_is_no_folder_of_regard_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/thesis.txt").write_text("years")
    (tmp_path / "file").write_text("x")
    for name in ("documents", "file"):
        with pytest.raises(UserError, match="must be a folder of regard to be replaced"):
            _write(tmp_path / name)
    (tmp_path / "empty").mkdir()
    _write(tmp_path / "empty")
    assert (tmp_path / "documents/thesis.txt").exists()


def test_k1_every_cut_is_named(folder: Path) -> None:
    for name in ("a.txt", "b.bin", MANIFEST):
        raw = (folder / name).read_bytes()
        for size in {0, 1, len(raw) // 2, len(raw) - 1}:
            (folder / name).write_bytes(raw[:size])
            with pytest.raises(FileFormatError) as caught:
                verify_folder(folder)
            assert name in str(caught.value)
            if name != MANIFEST:
                assert f"{name} is {size:,} of {len(raw):,} bytes" in caught.value.message
        (folder / name).write_bytes(raw)
    verify_folder(folder)


def test_k2_every_flip_is_caught_in_the_manifest_too(folder: Path) -> None:
    generator = random.Random(1)
    raw = (folder / MANIFEST).read_bytes()
    flips = [(place, bit) for place in range(len(raw)) for bit in range(8)]
    for place, bit in generator.sample(flips, 300):
        changed = bytearray(raw)
        changed[place] ^= 1 << bit
        (folder / MANIFEST).write_bytes(changed)
        with pytest.raises(FileFormatError) as caught:
            verify_folder(folder)
        assert "\n" not in str(caught.value)
    (folder / MANIFEST).write_bytes(raw)
    raw = (folder / "b.bin").read_bytes()
    for place in generator.sample(range(len(raw)), 50):
        changed = bytearray(raw)
        changed[place] ^= 1 << generator.randrange(8)
        (folder / "b.bin").write_bytes(changed)
        with pytest.raises(FileFormatError, match=r"b\.bin is damaged: its SHA-256"):
            verify_folder(folder)


def test_a_missing_file_or_manifest(folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").unlink()
    with pytest.raises(FileFormatError, match=r"a\.txt is missing"):
        verify_folder(folder)
    (folder / MANIFEST).unlink()
    for path in (folder, tmp_path / "nowhere"):
        with pytest.raises(FileFormatError, match=r"has no manifest\.json"):
            verify_folder(path)


@pytest.mark.parametrize(
    "files",
    [
        [],
        {"../a.txt": {"bytes": 1, "sha256": ""}},
        {"/etc/passwd": {"bytes": 1, "sha256": ""}},
        {"a.txt": None},
        {"a.txt": {}},
        {"a.txt": {"bytes": "7", "sha256": 3}},
        {"": {"bytes": 1, "sha256": ""}},
        {"..": {"bytes": 1, "sha256": ""}},
    ],
)
def test_k8_a_hostile_manifest(folder: Path, files: object) -> None:
    content = {"format_version": 1, "versions": {}, "files": files}
    (folder / MANIFEST).write_text(_canonical(content))
    with pytest.raises(FileFormatError) as caught:
        verify_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [2, 0, "1", None, True])
def test_k9_another_format_says_which(folder: Path, version: object) -> None:
    content = {"format_version": version, "versions": {}, "files": {}}
    (folder / MANIFEST).write_text(_canonical(content))
    with pytest.raises(FileFormatError, match=rf"from 1 to 1; got {version!r}\. Update regard"):
        verify_folder(folder)


def test_k3_a_failure_leaves_everything_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(inner: Path) -> None:
        (inner / "a.txt").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(EnvironmentFault, match="model: cannot be written: No space left"):
        write_folder(folder, fill, versions={}, overwrite=True)

    def stopped(inner: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, stopped, versions={}, overwrite=True)

    def nested(inner: Path) -> None:
        raise EnvironmentFault("cannot be written: full.", where=str(inner / "tokens.json"))

    with pytest.raises(EnvironmentFault, match=r"/model: cannot be written: full"):
        write_folder(folder, nested, versions={}, overwrite=True)
    verify_folder(folder)
    assert (folder / "a.txt").read_text() == "content"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


KILLED = """
import os, sys
from pathlib import Path
from regard.saving import folders, write_folder
moment, exchange = int(sys.argv[2]), sys.argv[3] == "exchange"
count = 0
def kill(*_):
    global count
    count += 1
    if count == moment:
        os._exit(9)
sys.addaudithook(lambda event, _: kill() if event in ("os.rename", "shutil.rmtree") else None)
if exchange:
    real = folders._exchange
    def noted(*paths):
        kill()
        done = real(*paths)
        kill()
        return done
    folders._exchange = noted
else:
    folders._exchange = lambda *_: False
write_folder(
    Path(sys.argv[1]), lambda f: (f / "a.txt").write_text("new"), versions={}, overwrite=True
)
"""


@pytest.mark.parametrize("way", ["exchange", "renames"])
def test_t4_k4_killed_at_any_moment_of_replacing(folder: Path, way: str) -> None:
    """Old or new is there at every moment, or comes back when the folder is next read."""
    found = []
    for moment in range(1, 9):
        _write(folder, "content")
        command = [sys.executable, "-c", KILLED, str(folder), str(moment), way]
        code = subprocess.run(command, check=False, timeout=60).returncode
        verify_folder(folder)
        found.append((folder / "a.txt").read_text())
        remove_leftovers(folder.parent)
        assert [path.name for path in folder.parent.iterdir()] == ["model"]
        if code == 0:
            break
        assert code == 9
    assert code == 0
    assert set(found) == {"content", "new"}
    assert found == sorted(found)


def test_without_exchange_a_failed_second_rename_is_undone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_exchange", lambda *_: False)
    _write(folder, "new")
    assert (folder / "a.txt").read_text() == "new"
    real, calls = Path.rename, []

    def fails(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(EnvironmentFault, match="Input/output error"):
        _write(folder, "newer")
    assert (folder / "a.txt").read_text() == "new"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_k11_links_are_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere/link"
    link.symlink_to(folder)
    verify_folder(link)
    _write(link, "new")
    assert link.is_symlink()
    assert (folder / "a.txt").read_text() == "new"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link"]
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    _write(tmp_path / "run/model")
    verify_folder(tmp_path / "elsewhere/model")


def test_k11_reading_writes_nothing(folder: Path) -> None:
    def state() -> list[object]:
        paths = [folder.parent, folder, *sorted(folder.iterdir())]
        return [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in paths]

    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    before = state()
    verify_folder(folder)
    assert state() == before
    folder.chmod(0o755)


def test_k11_a_world_writable_folder_warns(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="can be changed by everyone"):
        verify_folder(folder)


def test_versions_are_kept_as_they_are(tmp_path: Path) -> None:
    versions = {"torch": "2.13.0+cpu", "名": "值"}
    write_folder(tmp_path / "m", lambda _: None, versions=versions, overwrite=False)
    assert verify_folder(tmp_path / "m")["versions"] == versions
    assert json.loads((tmp_path / "m" / MANIFEST).read_text())["files"] == {}


@pytest.mark.skipif(os.name != "posix" or sys.platform != "linux", reason="renameat2 is Linux's")
def test_folders_change_places_in_one_step(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    if not folders._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this filesystem cannot")
    assert (tmp_path / "a/b").exists()
    assert (tmp_path / "b/a").exists()
