"""Compiling and keeping what is compiled; what the passes compute is tested in test_cpu.py."""

import os
import subprocess
import sys

import pytest

from regard.attention.kernels import passes

SCORES = """
import torch
from regard.attention.kernels import cpu
from regard.attention.kernels.inputs import Inputs
found = cpu.scores(Inputs(torch.zeros(1, 2, 4), torch.zeros(1, 3, 4), torch.ones(4)))
print(torch.equal(found, torch.zeros(1, 2, 3)))
"""


def test_the_digest_is_that_of_the_loops():
    # Otherwise nothing is kept on disk: write what is found into passes.LOOPS.
    assert passes.digest() == passes.LOOPS


def _started(code, folder):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_several_processes_may_start_at_once(tmp_path):
    running = [_started(SCORES, tmp_path) for _ in range(3)]
    for process in running:
        out, errors = process.communicate(timeout=240)
        assert out.strip() == "True", errors
    assert len(list(tmp_path.rglob("passes.score-*.nbi"))) == 1
    again = _started(
        SCORES + "from regard.attention.kernels import passes\n"
        "print(sum(passes.compiled('score').stats.cache_hits.values()))",
        tmp_path,
    )
    out, errors = again.communicate(timeout=240)
    assert out.split() == ["True", "1"], errors


def test_no_folder_to_keep_anything_in_is_no_error(tmp_path):
    nowhere = "import numba.core.caching as c\nc.FunctionCache._impl_class._locator_classes = []\n"
    out, errors = _started(nowhere + SCORES, tmp_path).communicate(timeout=240)
    assert out.strip() == "True", errors
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("no locator available")])
def test_what_cannot_be_kept_is_compiled_all_the_same(monkeypatch, error):
    tried = []

    def njit(signature, *, cache=False, **options):
        tried.append(cache)
        if cache:
            raise error
        return lambda function: function

    monkeypatch.setattr(passes, "njit", njit)
    assert passes._compiled.__wrapped__("score") is passes.score
    assert tried == [True, False]


def test_loops_that_changed_are_not_kept(monkeypatch):
    tried = []
    monkeypatch.setattr(passes, "njit", lambda _, **options: tried.append(options) or (lambda f: f))
    monkeypatch.setattr(passes, "LOOPS", "of older loops")
    passes._compiled.__wrapped__("score")
    assert "cache" not in tried[0]
