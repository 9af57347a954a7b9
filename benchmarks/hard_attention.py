"""Measure the noise of the gradient of hard attention, and what its baseline foretells.

    python benchmarks/hard_attention.py FOLDER

FOLDER is where `benchmarks/scenes.py` trained the runs of its look "watched": hard attention in
five epochs, whose checkpoints are all kept. At the end of each epoch 64 training pictures are read
16 times with other draws, dropout off; the gradient of the score's parameters is taken each time.
The variance is that of one batch's gradient, summed over parameters, given beside its squared mean,
with the baseline and without. The baseline's error is the mean of `(R - b)²` over the choices,
given beside the variance of the rewards `R`, which the best constant would leave. Writes
`benchmarks/results/hard_attention.json` and draws `docs/images/hard_attention.svg`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention.losses import Reinforce
from regard.attention.selections import Sampled
from regard.data.batches import pad
from regard.data.captions import read_captions
from regard.data.images import open_image
from regard.data.tokens import Tokenizer
from regard.models.choices import choice_loss, set_share
from regard.tasks import load
from regard.training.checkpoint import Checkpoints, read_progress

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "hard_attention.json"
PICTURES, DRAWS = 64, 16


def rewards(model: Any, decoded: Any, outputs: Tensor) -> Tensor:
    """Return the logarithm of the probability of each real token, the reward in this order."""
    logits = model.logits(decoded.features).transpose(1, 2)
    found: Tensor = -torch.nn.functional.cross_entropy(logits, outputs, reduction="none")
    return found[outputs != Tokenizer.PAD].detach()


def measure(checkpoint: Path, images: Any) -> dict[str, float]:
    """Measure the gradient and the baseline at a checkpoint."""
    captioner = load(checkpoint, device="cpu")
    model = captioner.model
    for part in model.modules():
        if isinstance(part, Sampled):
            part.train()  # draw, and drop nothing out
    set_share(model, 1.0)
    ids = [captioner.tokenizer.encode(several[0]).ids for several in images.captions]
    inputs = pad([[Tokenizer.BOS, *one] for one in ids], value=Tokenizer.PAD)
    outputs = pad([[*one, Tokenizer.EOS] for one in ids], value=Tokenizer.PAD)
    sources = captioner.sources([open_image(path) for path in images.paths])
    parameters = list(model.decoder.reader.attention.parameters())
    own = model.reinforce
    bare = Reinforce("none", entropy=own.entropy)
    found: dict[str, list[Tensor]] = {"with": [], "without": [], "rewards": []}
    count = int((outputs != Tokenizer.PAD).sum())
    for draw in range(DRAWS):
        torch.manual_seed(draw)
        decoded = model(sources, captioner.mask(len(sources)), inputs)
        for name, reinforce in (("with", own), ("without", bare)):
            model.reinforce = reinforce
            loss = choice_loss(model, decoded, outputs, padding=Tokenizer.PAD) / count
            gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            found[name].append(torch.cat([g.flatten() for g in gradients if g is not None]))
        found["rewards"].append(rewards(model, decoded, outputs))
    row = {}
    for name in ("with", "without"):
        every = torch.stack(found[name])
        row[f"variance {name} baseline"] = float(every.var(dim=0).sum())
        row[f"squared mean {name} baseline"] = float(every.mean(dim=0).square().sum())
    reward = torch.cat(found["rewards"])
    expected = float(own.mean / own.weight.clamp(min=1e-12))
    row["baseline error"] = float((reward - expected).square().mean())
    row["reward variance"] = float(reward.var())
    return row


def draw(rows: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """Draw variance and baseline error by step, a line for each run."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "regard", "svg.fonttype": "none", "font.size": 10})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8.6, 3.4))
    lines = [
        (0, "variance with baseline", "#1f5fa8", "-", "o"),
        (0, "variance without baseline", "#b5532a", "--", "s"),
        (1, "baseline error", "#1f5fa8", "-", "o"),
        (1, "reward variance", "#777777", ":", "^"),
    ]
    for place, name, colour, style, marker in lines:
        for number, run in enumerate(rows.values()):
            steps = [int(step) for step in run]
            label = name if number == 0 else None
            values = [row[name] for row in run.values()]
            own = {"color": colour, "ls": style, "marker": marker, "ms": 4, "label": label}
            axes[place].plot(steps, values, **own)
    axes[0].set(xlabel="updates", ylabel="variance of the gradient", yscale="log")
    axes[1].set(xlabel="updates", ylabel="squared nats", yscale="log")
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure every checkpoint of every run of hard attention."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    images = read_captions(folder / "plain", split="train").select(range(PICTURES))
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for run in sorted(folder.glob("runs/plain-watched-[0-9]")):
        rows[run.name] = {}
        checkpoints = Checkpoints(run)
        for end in read_progress(checkpoints.path(checkpoints.steps()[-1])).epoch_ends:
            step = str(end)
            rows[run.name][step] = measure(checkpoints.path(end), images)
            print(run.name, step, json.dumps(rows[run.name][step]), flush=True)
    report = {
        "command": "python benchmarks/hard_attention.py FOLDER",
        "data": {"pictures": PICTURES, "draws": DRAWS, "captions SHA-256": images.sha256},
        "versions": {"torch": torch.__version__},
        "runs": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    draw(rows, HERE.parent / "docs" / "images" / "hard_attention.svg")


if __name__ == "__main__":
    main()
