import os
import subprocess
import sys
import threading

import pytest
import torch

from regard.attention.kernels import threads
from regard.attention.kernels.threads import Pool, split


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(("rows", "ranges"), [(3, 3), (4, 4), (5, 4), (1, 1), (1000, 4)])
def test_rows_are_split_without_gaps(rows, ranges):
    found = split(rows, 1 << 40)
    assert len(found) == ranges
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert found[-1][1] == rows
    lengths = [last - first for first, last in found]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.usefixtures("four_threads")
def test_threads_are_woken_where_it_is_worth_it():
    assert len(split(100, threads.WORTH)) == 1
    assert len(split(100, 2 * threads.WORTH)) == 2
    torch.set_num_threads(1)
    assert split(100, 1 << 40) == [(0, 100)]


@pytest.mark.usefixtures("four_threads")
def test_parts_run_side_by_side():
    barrier = threading.Barrier(4)  # passes only if all four are there at once
    Pool().run([lambda: barrier.wait(timeout=20)] * 4)


@pytest.mark.usefixtures("four_threads")
def test_a_pool_grows_with_the_number_of_threads():
    pool = Pool()
    pool.run([lambda: None] * 2)
    torch.set_num_threads(6)
    barrier = threading.Barrier(6)
    pool.run([lambda: barrier.wait(timeout=20)] * 6)


def _broken() -> None:
    raise ValueError("broken")


@pytest.mark.parametrize("place", [0, 1])
def test_an_error_is_raised_when_all_parts_are_done(place):
    done = []
    parts = [lambda: done.append(1), lambda: done.append(2)]
    parts.insert(place, _broken)
    with pytest.raises(ValueError, match="broken"):
        Pool().run(parts)
    assert 2 in done


CHILD = """
import os, torch
from regard.attention.kernels import cpu, threads
from regard.attention.kernels.inputs import Inputs
threads.WORTH = 1
torch.set_num_threads(3)
inputs = Inputs(torch.ones(2, 9, 8), torch.ones(2, 5, 8), torch.ones(8))
expected = cpu.scores(inputs)
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(cpu.scores(inputs), expected) else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert torch.equal(cpu.scores(inputs), expected)
import atexit
atexit.register(lambda: print(torch.equal(cpu.scores(inputs), expected)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_and_the_end_of_the_interpreter():
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
