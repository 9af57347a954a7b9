"""Show that a fixed vector fails on long inputs and attention does not.

    python benchmarks/reversal.py train FOLDER --context additive --seed 1
    python benchmarks/reversal.py table FOLDER

The same network learns to reverse sequences of 5 to 80 symbols, once looking at the items
(`additive`), once with the encoder's last states as a constant context (`none`); each first learns
sequences of 5 to 20 symbols and goes on from there (`init`). `table` scores what it finds in FOLDER
by length, writes `benchmarks/results/reversal.json`, and draws
`docs/images/reversal.svg`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch

from regard.data.generated import reversal
from regard.tasks import load
from regard.tasks.translation_training import train_translation
from regard.training import RunOptions

HERE = Path(__file__).parent
LENGTHS = (5, 10, 20, 30, 40, 50, 60, 70, 80)
CONTEXTS = {"additive": "attention", "none": "fixed vector"}
CONFIG = """
task = "translation"
metric = "loss"
[data]
train = "train.tsv"
dev = "dev.tsv"
[model]
embedding_dim = 64
dropout = 0.0
[model.encoder]
kind = "gru"
hidden_dim = 128
[model.decoder]
kind = "gru"
hidden_dim = 128
order = "input_feeding"
attention_dim = 128
[training]
epochs = 2
batch_tokens = 640
batch_sentences = 64
learning_rate = 0.003
warmup_steps = 100
label_smoothing = 0.0
threads = 1
device = "cpu"
[decoding]
beam = 1
maximum_length = 100
"""


STAGES = {"short": (20_000, 20, 640, 0.003), "long": (12_000, 80, 1600, 0.002)}
SYMBOLS = 26


def write(path: Path, *, count: int, longest: int, seed: int) -> None:
    """Write sequences and their reverse."""
    pairs = reversal(
        count, minimum_length=LENGTHS[0], maximum_length=longest, symbols=SYMBOLS, seed=seed
    )
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def train(folder: Path, *, context: str, seed: int) -> None:
    """Train one network on short sequences, then on all, or go on with it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "reversal.toml"
    config.write_text(CONFIG, encoding="utf-8")
    before = ""
    for stage, (count, longest, tokens, rate) in STAGES.items():
        write(folder / "train.tsv", count=count, longest=longest, seed=1)
        write(folder / "dev.tsv", count=200, longest=longest, seed=2)
        name = f"{context}-{seed}" + ("" if stage == "long" else f"-{stage}")
        changes = [
            f"model.decoder.attention={context}",
            f"training.seed={seed}",
            f"training.batch_tokens={tokens}",
            f"training.learning_rate={rate}",
            *([f"init={before}"] if before else []),
        ]
        outcome = train_translation(config, changes, RunOptions(folder / name, resume=True))
        before = str(outcome.folder.relative_to(folder))


def accuracy(run: Path) -> dict[str, dict[str, float]]:
    """Score a network by length: sequences all right, and symbols in their place, in %."""
    translator = load(run / "model", device="cpu")
    rows = {}
    for length in LENGTHS:
        pairs = reversal(
            100, minimum_length=length, maximum_length=length, symbols=SYMBOLS, seed=100 + length
        )
        results = translator([source for source, _ in pairs])
        whole, places = 0, 0
        for (_, target), result in zip(pairs, results, strict=True):
            wanted, written = target.split(), result.text.split()
            whole += wanted == written
            places += sum(a == b for a, b in zip(wanted, written, strict=False))
        rows[str(length)] = {"sequences": whole, "symbols": round(places / length, 1)}
    return rows


def draw(table: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw symbols in their place by length, one line for each kind of network."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "regard", "svg.fonttype": "none", "font.size": 11})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.4))
    styles = {"additive": ("#1f5fa8", "o", "-"), "none": ("#b5532a", "s", "--")}
    for context, rows in table.items():
        colour, marker, line = styles[context]
        means = [statistics.mean(rows[str(length)]) for length in LENGTHS]
        axes.plot(LENGTHS, means, color=colour, marker=marker, ls=line, label=CONTEXTS[context])
    axes.set(xlabel="length of the input", ylabel="symbols in their place, %", ylim=(-3, 103))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def table(folder: Path) -> None:
    """Score every network found, write the results and draw them."""
    torch.set_num_threads(1)
    runs, drawn = {}, {}
    for context, name in CONTEXTS.items():
        found = sorted(run for run in folder.glob(f"{context}-[0-9]") if (run / "model").is_dir())
        scores = [accuracy(run) for run in found]
        runs.update({run.name: score for run, score in zip(found, scores, strict=True)})
        drawn[context] = {str(n): [s[str(n)]["symbols"] for s in scores] for n in LENGTHS}
        print(f"{name} ({len(found)} seeds): length, sequences all right %, symbols in place %")
        for length in LENGTHS:
            whole = [score[str(length)]["sequences"] for score in scores]
            spread = statistics.stdev(whole) if len(whole) > 1 else 0.0
            symbols = statistics.mean(drawn[context][str(length)])
            print(f"{length:4}  {statistics.mean(whole):5.1f} ± {spread:4.1f}  {symbols:5.1f}")
    report = {
        "command": "python benchmarks/reversal.py table FOLDER",
        "versions": {"torch": torch.__version__},
        "runs": runs,
    }
    (HERE / "results" / "reversal.json").write_text(json.dumps(report, indent=1) + "\n")
    draw(drawn, HERE.parent / "docs" / "images" / "reversal.svg")


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--context", choices=list(CONTEXTS), default="additive")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.action == "train":
        train(arguments.folder, context=arguments.context, seed=arguments.seed)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
