"""Show that the estimate of sampled attention has no bias, and what a baseline is worth.

    python benchmarks/reinforce.py

Four items; one is drawn with probability `s_j`, and its reward is a non-linear function of what
was read. The exact gradient of the expected reward comes from enumeration; 100,000 samples,
in 1,000 batches, estimate it through `Sampled` and `Reinforce`. Writes
`benchmarks/results/reinforce.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from regard.attention import Attention, GumbelSoftmax, Sampled
from regard.attention.losses import Reinforce

RESULTS = Path(__file__).parent / "results" / "reinforce.json"
SEED, BATCHES, ROWS = 1, 1000, 100
KEY = torch.eye(4, dtype=torch.float64).unsqueeze(0)  # so that the scores are the query
SCORES = torch.tensor([0.2, -0.5, 1.0, 0.1], dtype=torch.float64)
VALUES = torch.tensor([0.3, 2.0, -1.0, 1.4], dtype=torch.float64).view(1, 4, 1)


def reward(context: Tensor) -> Tensor:
    """Say what reading a context earned."""
    return 3.0 - (context - 1.0).square()


def exact() -> Tensor:
    """Take the gradient of the expected reward by enumeration."""
    scores = SCORES.clone().requires_grad_()
    expected = (scores.softmax(-1) * reward(VALUES).flatten()).sum()
    return torch.autograd.grad(expected, scores)[0]


def sampled(baseline: str) -> Tensor:
    """Estimate the gradient, one row for each sample."""
    attention = Attention("dot", Sampled()).double().train()
    reinforce = Reinforce(baseline, query_dim=4 if baseline == "learned" else None).double()
    fit = torch.optim.SGD(reinforce.parameters(), 1e-3) if baseline == "learned" else None
    generator = torch.Generator().manual_seed(SEED)
    found = []
    for _ in range(BATCHES):
        query = SCORES.expand(ROWS, 1, 4).clone().requires_grad_()
        attended = attention(
            query, KEY.expand(ROWS, -1, -1), VALUES.expand(ROWS, -1, -1), generator=generator
        )
        earned = reward(attended.context).squeeze(-1)
        loss = reinforce(attended.log_prob, earned, query=query).loss
        found.append(-torch.autograd.grad(loss, query, retain_graph=fit is not None)[0][:, 0])
        if fit is not None:
            fit.zero_grad()
            loss.backward()
            fit.step()
    return torch.cat(found)


def straight_through() -> Tensor:
    """Estimate the gradient by the straight-through Gumbel softmax instead, which has a bias."""
    attention = Attention("dot", GumbelSoftmax(straight_through=True)).double().train()
    query = SCORES.expand(BATCHES * ROWS, 1, 4).clone().requires_grad_()
    key, value = KEY.expand(BATCHES * ROWS, -1, -1), VALUES.expand(BATCHES * ROWS, -1, -1)
    context = attention(query, key, value, generator=torch.Generator().manual_seed(SEED)).context
    return torch.autograd.grad(reward(context).sum(), query)[0][:, 0]


def main() -> None:
    """Print the table and write it."""
    truth = exact()
    print("exact gradient:", [round(number, 5) for number in truth.tolist()])
    estimates = {f"Sampled, baseline {b}": sampled(b) for b in Reinforce.BASELINES}
    estimates["GumbelSoftmax, straight-through"] = straight_through()
    table = {}
    for name, samples in estimates.items():
        mean = samples.mean(0)
        error = samples.std(0) / len(samples) ** 0.5
        distance = ((mean - truth).abs() / error).max().item()
        variance = samples.var(0).sum().item()
        table[name] = {
            "mean": mean.tolist(),
            "standard_errors_away": distance,
            "variance": variance,
        }
        print(
            f"{name:34} mean {[round(number, 4) for number in mean.tolist()]}  at most "
            f"{distance:5.2f} standard errors away  variance {variance:.3f}"
        )
    report = {
        "command": "python benchmarks/reinforce.py",
        "seed": SEED,
        "samples": BATCHES * ROWS,
        "versions": {"torch": torch.__version__},
        "exact": truth.tolist(),
        "table": table,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
