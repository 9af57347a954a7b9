"""Machines and stacks learn algorithms: how soon, and how far beyond their training.

    python benchmarks/machines.py train FOLDER --task copy --machine ntm --seed 1
    python benchmarks/machines.py table FOLDER

Batches of one sequence, so that sequences are used most thriftily: RMSProp with a rate of 1e-4, a
decay of 0.95, momentum of 0.9, each number of the gradient held within 10, and a constant memory
of 1e-6. Every 500 sequences the machine is tried on 50 others of the same sizes; it has converged
where its error is first below `BOUND` bits a sequence and stays there for `STEADY` trials in a
row. It trains on to the end, is saved at every trial, and goes on from there when called again.
At the end it answers 50 sequences of each of the sizes in `FAR`. `table` prints what is in FOLDER
and writes `benchmarks/results/machines.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.algorithmic import ALGORITHMS, Algorithm, bit_loss, bits_wrong
from regard.memory import ADDRESSINGS, Layout, Machine, MemoryLayer, NeuralStack
from regard.saving import load_tensors, save_tensors, verify_folder, write_folder
from regard.training.checkpoint import versions

RESULTS = Path(__file__).parent / "results" / "machines.json"
SIZES = {
    "copy": (1, 20),
    "repeat_copy": (1, 10),
    "associative_recall": (2, 6),
    "priority_sort": (20, 20),
    "reversal": (1, 10),
}
FAR = {
    "copy": (20, 40, 80, 120),
    "repeat_copy": (10, 20),
    "associative_recall": (6, 8, 12),
    "priority_sort": (20,),
    "reversal": (10, 20, 40),
}
MACHINES = (*ADDRESSINGS, "stack", "queue", "deque")
SEQUENCES, EVERY, TRIED = 30_000, 500, 50
BOUND, STEADY = 0.05, 3
RATE, DECAY, MOMENTUM, CLIP = 1e-4, 0.95, 0.9, 10.0
TRIALS, TESTS = 1_000_003, 2_000_003  # added to the seed: other sequences than in training


def built(machine: str, algorithm: Algorithm) -> MemoryLayer:
    """Build a machine of the published size for a problem."""
    sizes = (algorithm.input_dim, algorithm.output_dim)
    if machine in ADDRESSINGS:
        return Machine(*sizes, Layout(slots=128, width=20), addressing=machine, hidden_dim=100)
    return NeuralStack(*sizes, kind=machine, width=20, hidden_dim=100)


class Training:
    """A machine that learns, and what is known of how it did."""

    def __init__(self, task: str, machine: str, seed: int, folder: Path) -> None:
        torch.manual_seed(seed)
        self.task, self.seed = task, seed
        self.algorithm = ALGORITHMS[task]()
        self.model = built(machine, self.algorithm)
        self.optimizer = torch.optim.RMSprop(
            self.model.parameters(), lr=RATE, alpha=DECAY, momentum=MOMENTUM
        )
        self.folder = folder
        self.known: dict[str, Any] = {"sequences": 0, "errors": [], "losses": [], "seconds": 0.0}
        if folder.exists():
            self.restore()

    def restore(self) -> None:
        """Go on from where it was saved."""
        verify_folder(self.folder)
        self.model.load_state_dict(load_tensors(self.folder / "model.safetensors"))
        kept: dict[int, dict[str, Tensor]] = {}
        for name, tensor in load_tensors(self.folder / "optimizer.safetensors").items():
            place, field = name.split(".")
            kept.setdefault(int(place), {})[field] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": kept})
        self.known = json.loads((self.folder / "known.json").read_text())

    def save(self) -> None:
        """Write all of it as one folder."""
        state = self.optimizer.state_dict()["state"]
        kept = {f"{place}.{name}": one[name] for place, one in state.items() for name in one}

        def fill(folder: Path) -> None:
            save_tensors(folder / "model.safetensors", self.model.state_dict())
            save_tensors(folder / "optimizer.safetensors", kept)
            (folder / "known.json").write_text(json.dumps(self.known))

        write_folder(self.folder, fill, versions=versions(), overwrite=True)

    def learn(self) -> None:
        """Take one sequence."""
        problem = self.algorithm.draw(
            1, sizes=SIZES[self.task], seed=self.seed, index=self.known["sequences"]
        )
        loss = bit_loss(self.model(problem.inputs)[0], problem)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.known["sequences"] += 1

    @torch.no_grad()
    def error(self, sizes: tuple[int, int], seed: int) -> tuple[float, float]:
        """Return bits wrong in a sequence, and the share of sequences without any, in %."""
        problem = self.algorithm.draw(
            TRIED, sizes=sizes, seed=seed + self.seed, index=self.known["sequences"]
        )
        wrong = bits_wrong(self.model(problem.inputs, lengths=problem.lengths)[0], problem)
        return float(wrong.float().mean()), 100 * float((wrong == 0).float().mean())

    def run(self, sequences: int) -> None:
        """Learn to the end, with a trial every so many sequences."""
        while self.known["sequences"] < sequences:
            begun = time.perf_counter()
            for _ in range(EVERY):
                self.learn()
            self.known["seconds"] += time.perf_counter() - begun
            self.known["errors"].append(self.error(SIZES[self.task], TRIALS)[0])
            self.save()
            print(
                f"{self.folder.name}: {self.known['sequences']} sequences, "
                f"{self.known['errors'][-1]:.2f} bits wrong",
                flush=True,
            )
        self.known["far"] = {str(size): self.error((size, size), TESTS) for size in FAR[self.task]}
        self.known["converged"] = converged(self.known["errors"])
        self.save()


def converged(errors: list[float]) -> int | None:
    """Return when the error was first below the bound, and stayed for several trials."""
    for place in range(len(errors) - STEADY + 1):
        if max(errors[place : place + STEADY]) < BOUND:
            return EVERY * (place + 1)
    return None


def table(folder: Path) -> None:
    """Print what has been learned, and write it."""
    rows: dict[str, dict[str, Any]] = {}
    for place in sorted(folder.glob("*/known.json")):
        known = json.loads(place.read_text())
        if "far" in known:
            name, _, seed = place.parent.name.rpartition("-")
            rows.setdefault(name, {})[seed] = known
    for name, seeds in rows.items():
        found = [known["converged"] for known in seeds.values()]
        there = [one for one in found if one is not None]
        middle = f"median {statistics.median(there):.0f}, worst {max(there)}" if there else "-"
        print(f"{name}: {len(there)} of {len(found)} seeds converged; {middle} sequences")
        for size in next(iter(seeds.values()))["far"]:
            errors = [known["far"][size][0] for known in seeds.values()]
            perfect = [known["far"][size][1] for known in seeds.values()]
            spread = statistics.stdev(errors) if len(errors) > 1 else 0.0
            print(
                f"  size {size:>4}: {statistics.mean(errors):.2f} ± {spread:.2f} bits wrong, "
                f"{statistics.mean(perfect):.1f} % perfect"
            )
    report = {
        "command": "python benchmarks/machines.py table FOLDER",
        "versions": {"torch": torch.__version__},
        "bound": BOUND,
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", choices=list(SIZES), default="copy")
    parser.add_argument("--machine", choices=MACHINES, default="ntm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=SEQUENCES)
    own = parser.parse_args()
    own.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    if own.action == "table":
        table(own.folder)
        return
    place = own.folder / f"{own.task}-{own.machine}-{own.seed}"
    Training(own.task, own.machine, own.seed, place).run(own.sequences)


if __name__ == "__main__":
    main()
