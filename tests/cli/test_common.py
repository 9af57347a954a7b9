from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.cli.common import check_output, set_threads
from regard.errors import EnvironmentFault, UserError


def test_a_place_that_is_free_is_taken(tmp_path: Path) -> None:
    check_output(tmp_path / "new.svg", force=False)
    (tmp_path / "old.svg").write_text("x")
    check_output(tmp_path / "old.svg", force=True, inputs=[tmp_path / "other", Path("new.svg")])


@pytest.mark.parametrize(
    ("name", "force", "message"),
    [
        ("old.svg", False, "exists already; choose another name, or use --force"),
        (".", True, "is a folder; add a file name"),
        ("no/new.svg", True, "its folder does not exist; make it first"),
        ("old.svg/new.svg", True, "its folder does not exist"),
    ],
)
def test_c5_other_places_are_refused(name: str, force: bool, message: str, tmp_path: Path) -> None:
    (tmp_path / "old.svg").write_text("x")
    with pytest.raises(UserError, match=message):
        check_output(tmp_path / name, force=force)


def test_c5_a_folder_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(EnvironmentFault, match="its folder cannot be written to"):
        check_output(tmp_path / "new.svg", force=False)


def test_threads_are_set_where_a_number_is_given() -> None:
    before = torch.get_num_threads()
    set_threads(None)
    assert torch.get_num_threads() == before
    set_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)


SWALLOWING = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(100_000))
except KeyboardInterrupt:
    pass
"""


def test_t5_ctrl_c_while_torch_is_imported_is_not_lost(tmp_path: Path) -> None:
    """Importing torch swallows a KeyboardInterrupt: it must come when the import is done."""
    (tmp_path / "torch.py").write_text(SWALLOWING)
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # not inherited
        "from regard.cli.common import load_torch; load_torch(); print('lost')"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=False
    )
    assert b"lost" not in ended.stdout
    assert b"KeyboardInterrupt" in ended.stderr
