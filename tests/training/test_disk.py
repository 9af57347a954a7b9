"""Disks that are full, for a while or for good (row K3)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.saving import load_tensors
from regard.training.checkpoint import Checkpoints

# At which step files may be no longer than 20,000 bytes, and at which step they may again.
LIMITED = """
import resource, sys, torch
from regard.training import *
from regard.cli.app import report
begin, end = int(sys.argv[2]), int(sys.argv[3])
class Job:
    model, metric, higher_is_better, identity = torch.nn.Linear(100, 100), "loss", False, {}
    made = 0
    def steps(self, epoch): return 10
    def batches(self, epoch, start): yield from range(start, 10)
    def size(self, batch): return 1
    def loss(self, batch):
        self.made += 1
        if self.made == begin: limit(20_000)
        if self.made == end: limit(resource.RLIM_INFINITY)
        return Loss(self.model(torch.ones(100)).sum(), {})
    def write(self, folder): pass
    def evaluate(self, poll): return {"loss": 0.0}
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
settings = TrainingSettings(epochs=2, checkpoint_steps=4, keep=9, select="last")
try: train(Job(), settings, RunOptions(sys.argv[1]))
except BaseException as error: sys.exit(report(error))
"""


def _train(folder: Path, begin: int, end: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), str(begin), str(end)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, " ".join(done.stderr.split())


def test_k3_a_limit_for_a_while(tmp_path: Path) -> None:
    code, said = _train(tmp_path / "run", 7, 11)
    assert code == 0, said
    assert said.count("checkpoint not saved, the training goes on:") == 2
    assert "cannot be written: File too large" in said
    checkpoints = Checkpoints(tmp_path / "run")
    assert checkpoints.steps() == [4, 12, 16, 20]
    assert checkpoints.newest() == (20, {})
    assert not list((tmp_path / "run").rglob(".*"))


def test_k3_a_limit_for_good(tmp_path: Path) -> None:
    code, said = _train(tmp_path / "run", 7, 99)
    assert code == 3, said
    assert "3 checkpoints in a row could not be saved. Make room, then go on with --resume" in said
    checkpoints = Checkpoints(tmp_path / "run")
    assert checkpoints.newest() == (4, {})
    assert not list((tmp_path / "run").rglob(".*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 20 MB, where this machine lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=20)


def test_k3_a_full_disk(small_disk: Path, tiny: Any, go: Any, tmp_path: Path) -> None:
    """Not a byte is left, so log lines are lost too; then there is room again."""
    ballast = small_disk / "ballast"

    def fill() -> None:
        with ballast.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, os.statvfs(small_disk).f_bavail * 4096)

    job = tiny()
    job.at_loss.update({5: fill, 12: ballast.unlink})
    go(small_disk / "run", job, select="last")
    go(tmp_path / "whole", tiny(), select="last")
    ours = load_tensors(small_disk / "run/model/model.safetensors")
    undisturbed = load_tensors(tmp_path / "whole/model/model.safetensors")
    assert all(torch.equal(undisturbed[name], tensor) for name, tensor in ours.items())
    checkpoints = Checkpoints(small_disk / "run")
    assert checkpoints.newest() == (24, {})
    assert not list((small_disk / "run").rglob(".*"))
