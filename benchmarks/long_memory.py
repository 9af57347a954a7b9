"""Feed-forward attention on problems of long memory: add or multiply two marked numbers.

    python benchmarks/long_memory.py choose FOLDER --problem add
    python benchmarks/long_memory.py train FOLDER --problem add
    python benchmarks/long_memory.py speed FOLDER
    python benchmarks/long_memory.py table FOLDER

A sequence has T pairs of a number and a mark: 1 at two places (one of the first ten, one of the
first half), -1 at both ends, 0 elsewhere. The answer is `0.5 + (x1 + x2) / 4` of numbers between
-1 and 1, or the product of numbers between 0 and 1. An epoch has 1,000 batches of 100 sequences;
a problem is solved when no answer to 1,000 new sequences is off by 0.04. The protocol and the
figures in `PAPER` are those of Raffel and Ellis (2015), who give the best of four learning rates
for each length; here `choose` takes one for each problem at T <= 500. For all models alike, the
rate of epoch n is that divided by n, and what is tested is the running mean of the weights: a
constant rate leaves them trembling, and of 1,000 answers one or two then miss. Where lengths vary,
which takes longer, the rate falls to zero in a line.

`train` runs what is not there yet, shortest first: attention with three seeds up to T = 1,000 and
one above; lengths drawn from 50 to 10,000, for 15 epochs; the mean of the features, with one seed
for twice the epochs of attention; and an LSTM up to T = 1,000, for as many, but for no more than
`LSTM_STEPS` steps of its recurrence, as a batch of T = 1,000 takes it a second or two. `table`
writes `benchmarks/results/long_memory.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from long_memory_kernel import SLOPE, fused
from torch import Tensor, nn

from regard.attention.pooling import FeedForwardAttention

RESULTS = Path(__file__).parent / "results" / "long_memory.json"
LENGTHS = (50, 100, 500, 1_000, 5_000, 10_000)
PAPER = {"add": (1, 1, 1, 1, 2, 3), "multiply": (2, 4, 2, 15, 6, 8)}
MEAN_ANSWER = {"add": 0.5, "multiply": 0.25}
RATES = (0.01, 0.003, 0.001, 0.0003)
BATCH, BATCHES, DIM, CLOSE = 100, 1_000, 100, 0.04
LSTM_STEPS = 1_000_000  # a thousand batches of T = 1,000
VARIABLE, MOST_VARIABLE = 0, 15  # the "length" of lengths that vary, and most epochs of it
CHOOSING_SEED = 100
DECAY = 0.995  # of the running mean of the weights


class Run(NamedTuple):
    """One training."""

    problem: str
    pooling: str
    steps: int
    seed: int

    @property
    def name(self) -> str:
        """Name its file."""
        return f"{self.problem}-{self.pooling}-{self.steps}-{self.seed}.json"


class Reader(nn.Module):
    """A dense layer on every step, a pooling over the steps, two dense layers."""

    def __init__(self, problem: str, pooling: str) -> None:
        super().__init__()
        self.pooling = pooling
        self.first = nn.Linear(2, DIM)
        self.attention = FeedForwardAttention(DIM) if pooling == "attention" else None
        self.lstm = nn.LSTM(2, DIM, batch_first=True) if pooling == "lstm" else None
        self.second, self.last = nn.Linear(DIM, DIM), nn.Linear(DIM, 1)
        for layer in (self.first, self.second, self.last):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
            nn.init.zeros_(layer.bias)
        nn.init.constant_(self.last.bias, MEAN_ANSWER[problem])
        if self.attention is not None:
            own = self.attention.get_submodule("attention.score.projection")
            nn.init.normal_(own.weight, std=DIM**-0.5)
            nn.init.zeros_(own.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Answer."""
        if self.lstm is not None:
            pooled = self.lstm(x)[0][:, -1]
        else:
            pooled = fused(x, self.first, self.attention)
        act = nn.functional.leaky_relu
        answer: Tensor = act(self.last(act(self.second(pooled), SLOPE)), SLOPE)
        return answer.squeeze(-1)


class Plain(Reader):
    """The same through the layers themselves."""

    def forward(self, x: Tensor) -> Tensor:
        """Answer."""
        act = nn.functional.leaky_relu
        pooled = self.attention(act(self.first(x), SLOPE)).context  # type: ignore[misc]
        answer: Tensor = act(self.last(act(self.second(pooled), SLOPE)), SLOPE)
        return answer.squeeze(-1)


def drawn(
    problem: str, steps: int, count: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw sequences and their answers."""
    x = torch.zeros(count, steps, 2)
    rows = torch.arange(count)
    numbers = torch.rand(count, steps, generator=generator)
    x[..., 0] = numbers if problem == "multiply" else 2 * numbers - 1
    early = torch.randint(1, 10, (count,), generator=generator)
    late = torch.randint(1, steps // 2 - 1, (count,), generator=generator)
    late += late == early
    x[rows, early, 1] = x[rows, late, 1] = 1.0
    x[:, 0, 1] = x[:, -1, 1] = -1.0
    first, second = x[rows, early, 0], x[rows, late, 0]
    return x, first * second if problem == "multiply" else 0.5 + (first + second) / 4


def tests(run: Run) -> list[tuple[Tensor, Tensor]]:
    """Draw what it is tested on: 1,000 sequences."""
    generator = torch.Generator().manual_seed(10_000 + run.seed)
    if run.steps != VARIABLE:
        return [drawn(run.problem, run.steps, BATCH, generator) for _ in range(10)]
    lengths = torch.linspace(LENGTHS[0], LENGTHS[-1], 100).round().long().tolist()
    return [drawn(run.problem, length, 10, generator) for length in lengths]


@torch.no_grad()
def accuracy(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Count the answers that are close, in percent."""
    close = [((model(x) - y).abs() < CLOSE).float() for x, y in batches]
    return 100 * float(torch.cat(close).mean())


def trained(run: Run, rate: float, most: int) -> dict[str, object]:
    """Train until it is solved, or for so many epochs."""
    torch.manual_seed(run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    model, batches = Reader(run.problem, run.pooling), tests(run)
    averaged = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(DECAY)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    scores: list[float] = []
    begun = time.perf_counter()
    while len(scores) < most and (not scores or scores[-1] < 100):
        done = len(scores)
        share = 1 - done / most if run.steps == VARIABLE else 1 / (done + 1)
        optimizer.param_groups[0]["lr"] = rate * share
        for _ in range(BATCHES):
            steps = run.steps
            if steps == VARIABLE:
                low, high = LENGTHS[0], LENGTHS[-1] + 1
                steps = int(torch.randint(low, high, (1,), generator=generator))
            x, y = drawn(run.problem, steps, BATCH, generator)
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            if run.pooling == "lstm":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            averaged.update_parameters(model)
        scores.append(accuracy(averaged, batches))
        print(f"{run}  epoch {len(scores)}: {scores[-1]:.1f} %", flush=True)
    taken = (time.perf_counter() - begun) / (BATCHES * len(scores))
    return {"rate": rate, "accuracy": scores, "seconds of a batch": round(taken, 4), "most": most}


def choose(folder: Path, problem: str) -> None:
    """Choose the learning rate that solves the short lengths soonest."""
    totals = {}
    for rate in RATES:
        total = 0.0
        for place, steps in enumerate(LENGTHS[:3]):
            most = 2 * PAPER[problem][place]
            run = Run(problem, "attention", steps, CHOOSING_SEED)
            scores = trained(run, rate, most)["accuracy"]
            assert isinstance(scores, list)
            total += len(scores) / most + (100 - scores[-1])
        totals[rate] = total
        print(f"{problem}: rate {rate}: {total:.2f}")
    best = min(totals, key=lambda rate: totals[rate])
    found = {"rate": best, "totals": totals}
    (folder / f"{problem}-rate.json").write_text(json.dumps(found) + "\n")


def runs(folder: Path, problem: str) -> Iterator[tuple[Run, int]]:
    """List all trainings of a problem, and the most epochs of each."""
    for place, steps in enumerate(LENGTHS):
        most = 2 * PAPER[problem][place]
        for seed in (1, 2, 3) if steps <= 1_000 else (1,):
            yield Run(problem, "attention", steps, seed), most
    for pooling in ("attention", "mean"):
        yield Run(problem, pooling, VARIABLE, 1), MOST_VARIABLE
    for pooling in ("mean", "lstm"):
        for steps in LENGTHS:
            solved = read(folder, Run(problem, "attention", steps, 1))
            epochs = 2 * len(solved["accuracy"]) if solved else 0
            if pooling == "lstm":
                epochs = min(epochs, LSTM_STEPS // (BATCHES * steps))
            if epochs:
                yield Run(problem, pooling, steps, 1), epochs


def read(folder: Path, run: Run) -> dict[str, list[float]] | None:
    """Return what is known of a training."""
    file = folder / run.name
    return json.loads(file.read_text()) if file.exists() else None


def train(folder: Path, problem: str, rate: float | None) -> None:
    """Run what is not there yet."""
    if rate is None:
        rate = json.loads((folder / f"{problem}-rate.json").read_text())["rate"]
    for run, most in runs(folder, problem):
        if read(folder, run) is None:
            (folder / run.name).write_text(json.dumps(trained(run, rate, most)) + "\n")


def table(folder: Path) -> None:
    """Print epochs to the solution, and write them."""
    report = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rows = report.get("rows", {})  # what was trained elsewhere stays
    for problem, paper in PAPER.items():
        for pooling in ("attention", "mean", "lstm"):
            for steps in (*LENGTHS, VARIABLE):
                found = [read(folder, Run(problem, pooling, steps, seed)) for seed in (1, 2, 3)]
                scored = [one for one in found if one is not None]
                if not scored:
                    continue
                own = f"{problem} {pooling} {steps or 'variable'}"
                rows[own] = scored
                epochs = [len(one["accuracy"]) for one in scored]
                last = statistics.mean(max(one["accuracy"]) for one in scored)
                given = paper[LENGTHS.index(steps)] if steps and pooling == "attention" else "-"
                print(f"{own:28} epochs {epochs}  best {last:6.2f} %  paper {given}")
    rates = {
        problem: json.loads((folder / f"{problem}-rate.json").read_text()) for problem in PAPER
    }
    times = folder / "speed.json"
    report = {
        "command": "python benchmarks/long_memory.py table FOLDER",
        "versions": {"torch": torch.__version__},
        "rates": rates,
        "rows": rows,
        "seconds of a batch": json.loads(times.read_text())
        if times.exists()
        else report.get("seconds of a batch"),
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def speed(folder: Path) -> None:
    """Time a step by length: the fused pass beside the same layers through PyTorch, and an LSTM."""
    rows = {}
    for steps in LENGTHS:
        x, y = drawn("add", steps, BATCH, torch.Generator().manual_seed(1))
        readers = {"fused": Reader("add", "attention"), "PyTorch": Plain("add", "attention")}
        if steps <= 1_000:
            readers["LSTM"] = Reader("add", "lstm")
        found: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(4):  # the first warms up
            for name, reader in readers.items():
                begun = time.perf_counter()
                (reader(x) - y).square().mean().backward()
                found[name].append(time.perf_counter() - begun)
        rows[steps] = {name: round(min(times[1:]), 4) for name, times in found.items()}
        print(steps, rows[steps])
    (folder / "speed.json").write_text(json.dumps(rows) + "\n")


def main() -> None:
    """Choose, train, time, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["choose", "train", "speed", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problem", choices=list(PAPER), default="add")
    parser.add_argument("--rate", type=float, default=None)
    own = parser.parse_args()
    own.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if own.action == "choose":
        choose(own.folder, own.problem)
    elif own.action == "train":
        train(own.folder, own.problem, own.rate)
    elif own.action == "speed":
        speed(own.folder)
    else:
        table(own.folder)


if __name__ == "__main__":
    main()
