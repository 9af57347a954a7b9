"""Real signals to a real process (row T5), workers that die (T7), and a bare environment (T9)."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.data.generated import reversal
from regard.tasks.translation_job import TranslationJob
from regard.tasks.translation_training import train_translation
from regard.training import RunOptions

# PyTorch warns where a machine has fewer cores than there are workers.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
TRAIN = [sys.executable, "-c", "from regard.cli import main; main()", "train"]
PATIENCE = 60  # seconds; a noisy machine starts slowly
CONFIG = """
task = "translation"
metric = "loss"
data = { train = "train.tsv", dev = "dev.tsv" }
[model]
embedding_dim = 8
encoder = { kind = "gru", hidden_dim = 8 }
decoder = { kind = "gru", hidden_dim = 8, attention_dim = 8 }
[training]
epochs = 4
batch_tokens = 64
checkpoint_steps = 7
learning_rate = 0.01
threads = 1
device = "cpu"
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config and its data: 15 steps an epoch, and evaluations that take as long."""
    folder = tmp_path_factory.mktemp("data")
    pairs = reversal(700, minimum_length=2, maximum_length=6, seed=3)
    for name, part in (("train", pairs[:150]), ("dev", pairs[150:])):
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (folder / f"{name}.tsv").write_text(text)
    (folder / "config.toml").write_text(CONFIG)
    return folder / "config.toml"


@pytest.fixture(scope="module")
def expected(config: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_translation(config, [], RunOptions(folder, quiet=True))
    return _outcome(folder)


def _outcome(folder: Path) -> tuple[str, Any]:
    digest = hashlib.sha256((folder / "model/model.safetensors").read_bytes()).hexdigest()
    lines = _lines(folder)
    return digest, [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def _lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "log.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start processes that do not outlive their test."""
    begun: list[subprocess.Popen[str]] = []

    def run(command: list[str], *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield run
    for process in begun:
        if process.poll() is None:
            process.kill()
        with process:  # closes its pipes
            pass


def _until(process: subprocess.Popen[str], ready: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def _stopped(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=10)  # the row's bound
    return process.returncode, said


@pytest.mark.parametrize("cut", ["middle of epoch 2", "middle of epoch 3", "evaluation"])
def test_t4_a_translation_goes_on_exactly(
    config: Path, tmp_path: Path, expected: Any, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"middle of epoch 2": 20, "middle of epoch 3": 40, "evaluation": 30}
    real = TranslationJob.loss
    calls: list[int] = []

    def loss(self: TranslationJob, batch: Any) -> Any:
        calls.append(1)
        if len(calls) == steps[cut]:
            signal.raise_signal(signal.SIGTERM)
        return real(self, batch)

    monkeypatch.setattr(TranslationJob, "loss", loss)
    options = RunOptions(tmp_path / "run", quiet=True)
    workers = ["training.workers=2"] if cut == "middle of epoch 2" else []
    with pytest.raises(Exception, match="is saved") as caught:
        train_translation(config, workers, options)
    assert getattr(caught.value, "exit_code", None) == 143
    train_translation(config, [], RunOptions(tmp_path / "run", resume=True, quiet=True))
    assert _outcome(tmp_path / "run") == expected


@pytest.mark.parametrize(
    "case",
    # After one line the evaluation runs that follows the first epoch.
    [
        (signal.SIGINT, 130, 1),
        (signal.SIGTERM, 143, 2),
        pytest.param((signal.SIGUSR1, 143, 3), marks=pytest.mark.slow),  # in test_loop, quickly
    ],
)
def test_t5_a_signal_saves_then_exits(
    start: Any, config: Path, tmp_path: Path, expected: Any, case: tuple[int, int, int]
) -> None:
    number, code, lines = case
    slow = "training.epochs=400" if number != signal.SIGTERM else "training.epochs=4"
    process = start(TRAIN, config, "--output", tmp_path / "run", slow)
    _until(process, lambda: len(_lines(tmp_path / "run")) >= lines)
    process.send_signal(number)
    got, said = _stopped(process)
    assert got == code, said
    assert "is saved. Go on with --resume." in said
    assert not (tmp_path / "run/lock.json").exists()
    if number == signal.SIGTERM:
        train_translation(config, [], RunOptions(tmp_path / "run", resume=True, quiet=True))
        assert _outcome(tmp_path / "run") == expected


HANGS = """
import sys, time, torch
from regard.data.batches import loader
from regard.training import *
class Job:
    model, metric, higher_is_better, identity = torch.nn.Linear(2, 2), "loss", False, {}
    def steps(self, epoch): return 3
    def batches(self, epoch, start): yield from range(start, 3)
    def size(self, batch): return 1
    def loss(self, batch): return Loss(self.model(torch.ones(2)).sum(), {})
    def write(self, folder): pass
    def evaluate(self, poll):
        print("evaluating", flush=True)
        while True: time.sleep(0.01)
class Waits(Job):
    def batches(self, epoch, start):
        yield 0
        print("waiting", flush=True)
        while True: time.sleep(0.01)
class Works(Job):
    def steps(self, epoch): return 9999
    def batches(self, epoch, start):
        plan = [[index] for index in range(9999)]
        yield from loader(range(9999), plan, start=start, workers=2, collate=sum)
    def loss(self, batch):
        if batch == 3: print("working", flush=True)
        time.sleep(0.02)
        return Loss(self.model(torch.ones(2)).sum(), {})
job = {"evaluate": Job, "wait": Waits, "work": Works}[sys.argv[1]]()
from regard.cli.app import report
settings = TrainingSettings(checkpoint_steps=2, schedule="constant", epochs=1)
try: train(job, settings, RunOptions(sys.argv[2], quiet=True))
except BaseException as error: sys.exit(report(error))
"""


def _hanging(start: Any, what: str, folder: Path) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] = start([sys.executable, "-c", HANGS], what, folder)
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    return process


def test_t5_a_second_signal_leaves_at_once_without_damage(start: Any, tmp_path: Path) -> None:
    from regard.training.checkpoint import Checkpoints

    process = _hanging(start, "evaluate", tmp_path / "run")
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGUSR1)
    assert _stopped(process)[0] == 143
    step, faults = Checkpoints(tmp_path / "run").newest()
    assert (step, faults) == (2, {})


def test_t7_a_loader_that_hangs_is_left_by_a_signal(start: Any, tmp_path: Path) -> None:
    process = _hanging(start, "wait", tmp_path / "run")
    process.send_signal(signal.SIGTERM)
    code, said = _stopped(process)
    assert code == 143
    assert "step 1 is saved" in said


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
def test_t7_a_worker_that_is_killed(start: Any, tmp_path: Path) -> None:
    process = _hanging(start, "work", tmp_path / "run")
    victim, other = _children(process.pid)
    os.kill(victim, signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, said
    assert "Traceback" not in said
    assert "the data workers must stay alive" in said
    assert not Path(f"/proc/{other}").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)]
)
def test_t5_a_signal_to_all_processes_saves_too(start: Any, tmp_path: Path, number: int) -> None:
    """As systemd and schedulers send it: the workers get it as well."""
    process = _hanging(start, "work", tmp_path / "run")
    assert len(_children(process.pid)) == 2
    os.killpg(process.pid, number)
    code, said = _stopped(process)
    assert code == 143, said
    assert "is saved" in said
    assert "Traceback" not in said


def test_t7_a_worker_that_raises_names_the_sample(
    tmp_path: Path, tiny: Any, go: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.errors import DataError

    def broken(self: Any, index: int) -> Any:
        if index == 13:
            raise KeyError("no such word")
        return index, *self.data[index]

    monkeypatch.setattr(tiny, "__getitem__", broken)
    for workers in (0, 2):
        with pytest.raises(DataError, match=r"pairs\.tsv:14: .*no such word") as caught:
            go(tmp_path / str(workers), tiny(workers=workers))
        assert caught.value.exit_code == 2


def test_t9_t12_without_a_home_and_with_forked_tokenizers(config: Path, tmp_path: Path) -> None:
    own = {k: v for k, v in os.environ.items() if k not in ("HOME", "TOKENIZERS_PARALLELISM")}
    done = subprocess.run(
        [
            *TRAIN, str(config), "--output", str(tmp_path / "run"), "training.epochs=1",
            "training.workers=2", 'tokens.source={kind="bpe",size=30}',
        ],
        capture_output=True, text=True, env={**own, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fork" not in done.stderr
