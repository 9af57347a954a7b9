"""Show that the selections for sequences in order learn a diagonal by themselves.

    python benchmarks/monotone.py

Every symbol of a source is to be written as another symbol, in order; nothing says where to look.
Ten seeds of each selection, as it is when built; what counts is the place looked at most, in
evaluation, on sequences not seen in training. Writes `benchmarks/results/monotone.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.attention import SELECTIONS, Attention, masks, unroll
from regard.attention.scores import Additive

RESULTS = Path(__file__).parent / "results" / "monotone.json"
SYMBOLS, SHORTEST, LONGEST, DIM = 20, 8, 20, 32
STEPS, ROWS, RATE = 1000, 32, 5e-3
NAMES = ("monotonic", "local_monotonic", "local_predictive", "softmax")
ENOUGH = 0.95


class Transducer(nn.Module):
    """A GRU over what was written asks.

    Keys know their item, the one before and a GRU's state; values know their item alone, so that
    looking anywhere else does not help.
    """

    def __init__(self, selection: str) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(SYMBOLS, DIM), nn.Embedding(SYMBOLS + 1, DIM)
        self.encoder = nn.GRU(DIM, DIM, batch_first=True)
        self.key = nn.Linear(3 * DIM, DIM)
        self.core = nn.GRU(DIM, DIM, batch_first=True)
        sizes = {"query_dim": DIM} if selection == "local_predictive" else {}
        self.attention = Attention(
            Additive(DIM, DIM, hidden_dim=DIM), SELECTIONS[selection](**sizes)
        )
        self.output = nn.Linear(2 * DIM, SYMBOLS)

    def forward(self, source: Tensor, mask: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the symbols to write, and where it looked."""
        items = self.source(source)
        earlier = nn.functional.pad(items[:, :-1], (0, 0, 1, 0))
        states, _ = self.encoder(items)
        key = torch.tanh(self.key(torch.cat([items, earlier, states], dim=-1)))
        queries, _ = self.core(self.target(before))
        attended = unroll(self.attention, queries, self.attention.prepare(key, items, mask=mask))
        return self.output(torch.cat([queries, attended.context], dim=-1)), attended.weights


def batch(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw sources without repetition, their lengths, and what is to be written."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (rows,), generator=generator)
    steps = torch.randint(1, SYMBOLS, (rows, LONGEST), generator=generator)
    source = steps.cumsum(dim=1) % SYMBOLS  # no symbol follows itself
    target = (7 * source + 3) % SYMBOLS
    before = nn.functional.pad(target[:, :-1], (1, 0), value=SYMBOLS)
    return source, masks.lengths(lengths, LONGEST), before, target


def learned(selection: str, seed: int) -> tuple[float, float]:
    """Train one, and return the share of steps on the diagonal and of symbols right."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    model = Transducer(selection)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(STEPS):
        source, mask, before, target = batch(ROWS, generator)
        logits, _ = model(source, mask, before)
        loss = nn.functional.cross_entropy(logits[mask], target[mask])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    source, mask, before, target = batch(200, torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits, weights = model.eval()(source, mask, before)
    places = torch.arange(LONGEST)
    looked = (weights.argmax(-1) == places) & (weights.sum(-1) > 0)
    right = logits.argmax(-1) == target
    return looked[mask].float().mean().item(), right[mask].float().mean().item()


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=NAMES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = {}
    for name in NAMES if arguments.only is None else (arguments.only,):
        runs = [learned(name, seed) for seed in range(1, arguments.seeds + 1)]
        diagonal, right = [100 * run[0] for run in runs], [100 * run[1] for run in runs]
        enough = sum(share >= 100 * ENOUGH for share in diagonal)
        table[name] = {"diagonal": diagonal, "right": right, "enough": enough}
        spread = statistics.stdev(diagonal) if len(diagonal) > 1 else 0.0
        print(
            f"{name:17} {enough} of {len(runs)} seeds look along the diagonal: "
            f"{statistics.mean(diagonal):.1f} ± {spread:.1f} % of steps, lowest "
            f"{min(diagonal):.1f}; symbols right {statistics.mean(right):.1f} %",
            flush=True,
        )
    if arguments.only is None:
        report = {
            "command": f"python benchmarks/monotone.py --seeds {arguments.seeds}",
            "versions": {"torch": torch.__version__},
            "enough": ENOUGH,
            "table": table,
        }
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
