"""Kill a training with -9 twenty times, go on each time, and compare the weights bit by bit.

    python benchmarks/kills.py              # some minutes; writes benchmarks/results/kills.json

A small translator learns to reverse sequences for five epochs, once undisturbed and once killed in
the middle of epochs, while a checkpoint is being saved and during evaluations, with 0 and with 2
loader workers. The last line is one for the documentation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from regard.data.generated import reversal
from regard.saving import write_file
from regard.training.checkpoint import Checkpoints, read_progress

EPOCHS, STEPS, CHECKPOINT = 5, 60, 6
COMMAND = [sys.executable, "-c", "from regard.cli import main; main()", "train"]
CONFIG = f"""
task = "translation"
metric = "loss"
data = {{ train = "train.tsv", dev = "dev.tsv" }}
[model]
embedding_dim = 32
encoder = {{ kind = "gru", hidden_dim = 32 }}
decoder = {{ kind = "gru", hidden_dim = 32, attention_dim = 32 }}
[training]
epochs = {EPOCHS}
batch_sentences = 10
checkpoint_steps = {CHECKPOINT}
learning_rate = 0.003
threads = 1
device = "cpu"
"""
# Four in epochs 1 and 4, six in epochs 2 and 3, which the usual recipes do not survive.
PLAN = [
    *[(1, "start"), (1, "middle"), (1, "saving"), (1, "evaluating")],
    *[(2, "middle")] * 4,
    *[(2, "saving"), (2, "evaluating")],
    *[(3, "middle")] * 4,
    *[(3, "saving"), (3, "evaluating")],
    *[(4, "middle"), (4, "middle"), (4, "saving"), (4, "evaluating")],
]


@dataclass
class Kill:
    """A kill: what was aimed at, what was hit, and from which step the run went on."""

    aim: str
    hit: str
    epoch: int
    step: int
    damaged: int


class Run:
    """A run that is killed and goes on."""

    def __init__(self, config: Path, folder: Path, workers: int) -> None:
        self.config, self.folder, self.workers = config, folder, workers
        self.checkpoints = Checkpoints(folder)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, or go on."""
        options = ["--output", str(self.folder), "--resume", "--quiet"]
        self.process = subprocess.Popen(
            [*COMMAND, str(self.config), f"training.workers={self.workers}", *options],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def finish(self) -> str:
        """Let it finish and return the hash of its weights."""
        assert self.process is not None
        code = self.process.wait(timeout=300)
        if code:
            raise SystemExit(f"the training ended with code {code}")
        return hashlib.sha256((self.folder / "model/model.safetensors").read_bytes()).hexdigest()

    def kill(self, epoch: int, aim: str, generator: random.Random) -> Kill:
        """Kill it where the plan says, and look at what is left."""
        assert self.process is not None
        before = self.newest()
        ready = self._condition(epoch, aim, before)
        if aim == "start":
            time.sleep(generator.uniform(0.0, 3.0))
        end = time.monotonic() + 60
        while not ready() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.0005)
        if aim in ("middle", "evaluating"):
            time.sleep(generator.uniform(0.0, 0.1))
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return self._looked_at(f"epoch {epoch} {aim}")

    def newest(self) -> int:
        """Return the newest step that is saved, whole or not."""
        return max(self.checkpoints.steps(), default=0)

    def _condition(self, epoch: int, aim: str, before: int) -> Callable[[], bool]:
        first, last = (epoch - 1) * STEPS, epoch * STEPS
        if aim == "saving":
            return lambda: self.newest() >= max(first, before + 1) and self._saving()
        if aim == "evaluating":
            return lambda: self._evaluating(last)
        if aim == "middle":
            return lambda: max(first, before) < self.newest() < last
        return lambda: True

    def _saving(self) -> bool:
        return any(True for _ in self.checkpoints.folder.glob(".step-*.tmp"))

    def _evaluating(self, last: int) -> bool:
        """Tell whether an epoch's last step is saved but its evaluation is not logged."""
        return self._lines()[-1:] == [("training", last)] and self.newest() == last

    def _lines(self) -> list[tuple[str, int]]:
        path = self.folder / "log.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        tables = [json.loads(line) for line in lines if line.endswith("}")]
        return [(table["event"], table["step"]) for table in tables]

    def _looked_at(self, aim: str) -> Kill:
        step, faults = self.checkpoints.newest()
        if step is None:
            return Kill(aim, "before the first checkpoint", 1, 0, len(faults))
        progress = read_progress(self.checkpoints.path(step))
        if self._saving():
            hit = "while saving"
        elif self._evaluating((progress.epoch + 1) * STEPS):
            hit = "while evaluating"
        else:
            hit = "middle of an epoch" if progress.position else "beginning of an epoch"
        return Kill(aim, hit, progress.epoch + 1, step, len(faults))


def prepare(folder: Path) -> Path:
    """Write data and config."""
    pairs = reversal(STEPS * 10 + 2000, minimum_length=3, maximum_length=8, seed=5)
    for name, part in (("train", pairs[: STEPS * 10]), ("dev", pairs[STEPS * 10 :])):
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (folder / f"{name}.tsv").write_text(text)
    (folder / "config.toml").write_text(CONFIG)
    return folder / "config.toml"


def attempt(config: Path, folder: Path, workers: int, seed: int) -> tuple[list[Kill], str, str]:
    """Train once undisturbed and once with kills."""
    whole = Run(config, folder / f"whole-{workers}", workers)
    whole.start()
    expected = whole.finish()
    generator = random.Random(seed)
    killed = Run(config, folder / f"killed-{workers}", workers)
    kills = []
    for epoch, aim in PLAN:
        killed.start()
        kills.append(killed.kill(epoch, aim, generator))
        kill = kills[-1]
        print(
            f"{workers:>7}  {len(kills):>4}  {kill.aim:<20}  {kill.hit:<27}  epoch {kill.epoch}"
            f"  step {kill.step:>3}"
        )
    killed.start()
    return kills, expected, killed.finish()


def main() -> int:
    """Run it and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results/kills.json")
    arguments = parser.parse_args()
    begun, runs = time.monotonic(), []
    print("workers  kill  aimed at              hit                          goes on from")
    with tempfile.TemporaryDirectory() as temporary:
        config = prepare(Path(temporary))
        for workers in (0, 2):
            kills, expected, got = attempt(config, Path(temporary), workers, arguments.seed)
            equal = expected == got
            verdict = "equal" if equal else "DIFFER"
            print(f"{workers:>7}  weights {verdict}: {expected[:16]} {got[:16]}")
            runs.append(
                {
                    "workers": workers,
                    "equal": equal,
                    "sha256": {"undisturbed": expected, "killed": got},
                    "hit": dict(Counter(kill.hit for kill in kills)),
                    "kills": [asdict(kill) for kill in kills],
                }
            )
    return report(runs, arguments.output, seconds=time.monotonic() - begun, seed=arguments.seed)


def report(runs: list[dict[str, object]], output: Path, *, seconds: float, seed: int) -> int:
    """Write the result, and a line for the documentation."""
    kills = [kill for run in runs for kill in run["kills"]]  # type: ignore[attr-defined]
    hits = Counter(kill["hit"] for kill in kills)
    equal = all(run["equal"] for run in runs)
    damaged = sum(kill["damaged"] for kill in kills)
    middle = {
        epoch: sum((epoch - 1) * STEPS < kill["step"] < epoch * STEPS for kill in kills)
        for epoch in (2, 3)
    }
    verdict = "equal to" if equal else "DIFFERENT from"
    line = (
        f"{len(kills)} kills with -9 at 0 and 2 loader workers ({middle[2]} in the middle of epoch "
        f"2, {middle[3]} in that of epoch 3; {hits['while saving']} while saving, "
        f"{hits['while evaluating']} while evaluating): {damaged} damaged checkpoints, final "
        f"weights {verdict} those of the undisturbed run, bit for bit."
    )
    table = {
        "command": "python benchmarks/kills.py",
        "seed": seed,
        "seconds": round(seconds),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "machine": platform.machine(),
        "line": line,
        "runs": runs,
    }
    write_file(output, json.dumps(table, indent=1) + "\n")
    print(line)
    print(f"{seconds:.0f} s; written to {output.name}")
    return 0 if equal and not damaged else 1


if __name__ == "__main__":
    sys.exit(main())
