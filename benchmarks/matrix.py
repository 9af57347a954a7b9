"""Train every encoder with every decoder on a generated task, and print how well each does.

    python benchmarks/matrix.py train FOLDER [--encoder gru] [--decoder "gru luong"]
    python benchmarks/matrix.py train FOLDER --selection sampled
    python benchmarks/matrix.py table FOLDER

The task is to reverse 3 to 6 of 10 symbols. The mean of embeddings knows no order, so that it
sorts 3 to 6 distinct ones of 12 instead. Nothing that is scored was trained on, nor any other order
of the symbols to be sorted. A pair with an attention is to get 95 % of the sequences right; one
that sees the source through a vector of fixed length ("constant": a constant context; "none": the
first state alone) is to get 90 % of the symbols in their place, as one slip spoils a sequence.
Training stops when 99.5 % of a development set is right, or after so many steps. One pair is
trained with every selection, Sampled by REINFORCE; those that only move forward learn to copy.
`train` skips what stands in FOLDER; all of it takes half an hour on one core. `table` prints the
results and writes `benchmarks/results/matrix.json`.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import SELECTIONS
from regard.attention.losses import Reinforce
from regard.data.batches import pad
from regard.data.generated import copy, reversal, sorting
from regard.models.decoder import Decoded
from regard.models.decoding import Search, Symbols, greedy_search
from regard.models.seq2seq import Seq2Seq, token_loss
from regard.models.settings import Seq2SeqSettings, build_seq2seq

HERE = Path(__file__).parent
PAD, BOS, EOS, FIRST = 0, 1, 2, 3
SEARCH = Search(beam=1, maximum_length=8)
SIZE = 64
RECURRENT = {
    f"{both}{cell}": (cell, both) for cell in ("rnn", "gru", "lstm") for both in ("", "bi")
}
ENCODERS: dict[str, dict[str, Any]] = {
    "embedding": {"kind": "embedding"},
    "convolution": {"kind": "convolution", "hidden_dim": SIZE, "layers": 3, "width": 3},
    **{
        name: {"kind": cell, "hidden_dim": SIZE // (2 if both else 1), "bidirectional": bool(both)}
        for name, (cell, both) in RECURRENT.items()
    },
    "transformer": {"kind": "transformer", "num_heads": 4, "layers": 2, "hidden_dim": 128},
}
LOOKS: dict[str, dict[str, Any]] = {
    "bahdanau": {"order": "bahdanau"},
    "luong": {"order": "luong"},
    "input_feeding": {"order": "input_feeding"},
    "constant": {"order": "bahdanau", "attention": "none"},
    "none": {"order": "none", "attention": "none"},
}
DECODERS: dict[str, dict[str, Any]] = {
    **{
        f"{cell} {look}": {"kind": cell, "hidden_dim": SIZE, "attention_dim": SIZE, **own}
        for cell in ("rnn", "gru", "lstm")
        for look, own in LOOKS.items()
    },
    "convolution": {"kind": "convolution", "hidden_dim": SIZE, "layers": 3, "width": 3},
    "transformer": {"kind": "transformer", "num_heads": 4, "layers": 2, "hidden_dim": 128},
}
# The largest learning rate of each kind; a pair takes the smaller one of its two.
RATES = {"rnn": 0.002, "gru": 0.005, "lstm": 0.005, "convolution": 0.002, "transformer": 0.002}
STEPS, STEPS_OF_FIXED = 1200, 2000  # at most: with an attention, without
CHECKED_EVERY, BATCH, WARMUP = 100, 64, 100


TASKS = {"reversal": reversal, "sorting": sorting, "copy": copy}


class Data(NamedTuple):
    """Sequences and what is to be made of them: to train on, to stop by, to be scored on."""

    train: tuple[Tensor, Tensor]
    dev: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    size: int


def looks(decoder: str) -> bool:
    """Tell a decoder with an attention from one that sees a vector of fixed length."""
    return not decoder.endswith((" constant", " none"))


@functools.cache
def data(name: str, seed: int = 1) -> Data:
    """Generate a task; what is scored is not among what is trained on."""
    ordered = name != "sorting"
    symbols = 10 if ordered else 12
    make: Callable[..., list[tuple[str, str]]] = TASKS[name]
    pairs = make(20_000, minimum_length=3, maximum_length=6, symbols=symbols, seed=seed)
    groups: dict[str, list[tuple[str, str]]] = {}
    for source, target in pairs:
        groups.setdefault(source if ordered else target, []).append((source, target))
    kinds = list(groups)  # in the order in which they were drawn
    held = kinds[:: len(kinds) // 600][:600]
    dev, test = held[::3], [kind for place, kind in enumerate(held) if place % 3]
    left = [pair for kind in groups.keys() - set(held) for pair in groups[kind]]
    left.sort()
    torch.manual_seed(seed)
    left = [left[place] for place in torch.randperm(len(left)).tolist()]
    return Data(
        _ids(left), *(_ids([groups[kind][0] for kind in part]) for part in (dev, test)), symbols
    )


def _ids(pairs: list[tuple[str, str]]) -> tuple[Tensor, Tensor]:
    sides = zip(*pairs, strict=True)
    sources, targets = (
        [[ord(s) - ord("a") + FIRST for s in line.split()] for line in x] for x in sides
    )
    return pad(sources, value=PAD), pad([[BOS, *target, EOS] for target in targets], value=PAD)


def build(encoder: str, decoder: str, size: int, **changes: str) -> Seq2Seq:
    """Build a small model; changes are those of the decoder's settings."""
    table = {"embedding_dim": SIZE, "dropout": 0.0}
    table |= {"encoder": ENCODERS[encoder], "decoder": {**DECODERS[decoder], **changes}}
    settings = Seq2SeqSettings.model_validate(table)
    count = size + FIRST
    return build_seq2seq(settings, source_size=count, target_size=count, padding=PAD)


def right(model: Seq2Seq, source: Tensor, target: Tensor) -> float:
    """Return the share of sequences that the greedy search would write, by teacher forcing."""
    with torch.no_grad():
        best = model.logits(model(source, source != PAD, target[:, :-1]).features).argmax(dim=-1)
    wanted = target[:, 1:]
    return ((best == wanted) | (wanted == PAD)).all(dim=1).float().mean().item()


def train(model: Seq2Seq, task: Data, *, rate: float, steps: int, seed: int) -> int:
    """Train until the development set is right, or to the last step; return how many were made."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, (steps - step) / (steps - WARMUP))
    )
    sources, targets = task.train
    generator, reinforce = torch.Generator().manual_seed(seed), Reinforce()
    for step in range(steps):
        chosen = torch.randint(len(sources), (BATCH,), generator=generator)
        source, target = sources[chosen], targets[chosen]
        decoded = model(source, source != PAD, target[:, :-1])
        wanted = target[:, 1:]
        loss = token_loss(model, decoded.features, wanted, padding=PAD) / (wanted != PAD).sum()
        if decoded.log_prob is not None:
            loss = loss + drawn(model, decoded, wanted, reinforce)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % CHECKED_EVERY == 0 and right(model.eval(), *task.dev) >= 0.995:
            return step + 1
        model.train()
    return steps


def drawn(model: Seq2Seq, decoded: Decoded, wanted: Tensor, reinforce: Reinforce) -> Tensor:
    """Return the loss of the choices that were drawn, each rewarded by the log of its own token.

    In the order "luong" a choice bears on its own token alone.
    """
    with torch.no_grad():
        logits = model.logits(decoded.features).transpose(1, 2)
        reward = -nn.functional.cross_entropy(logits, wanted, reduction="none")
    real = wanted != PAD
    return reinforce(decoded.log_prob, reward, mask=real).loss / real.sum()


def score(model: Seq2Seq, source: Tensor, target: Tensor) -> tuple[float, float]:
    """Write every output; return how many % of the sequences and of the symbols are right."""
    symbols = Symbols(BOS, EOS, banned=(PAD, BOS))
    state = model.begin(source, source != PAD)
    found = greedy_search(model, state, len(source), symbols, SEARCH)
    whole, places, count = 0, 0, 0
    for row, hypothesis in zip(target.tolist(), found, strict=True):
        wanted = [token for token in row if token >= FIRST]
        whole += list(hypothesis.tokens) == wanted
        places += sum(a == b for a, b in zip(wanted, hypothesis.tokens, strict=False))
        count += len(wanted)
    return 100 * whole / len(found), 100 * places / count


def train_pair(encoder: str, decoder: str, seed: int = 1) -> dict[str, Any]:
    """Train a pair and score it on sequences that it has not seen."""
    task = data("sorting" if encoder == "embedding" else "reversal")
    torch.manual_seed(seed)
    model = build(encoder, decoder, task.size)
    parts = (ENCODERS[encoder]["kind"], DECODERS[decoder]["kind"])
    rate = min(RATES.get(part, 1.0) for part in parts)
    began = time.perf_counter()
    limit = STEPS if looks(decoder) else STEPS_OF_FIXED
    steps = train(model, task, rate=rate, steps=limit, seed=seed)
    seconds = time.perf_counter() - began
    sequences, symbols = score(model.eval(), *task.test)
    enough = sequences >= 95 if looks(decoder) else symbols >= 90
    return {
        "sequences": round(sequences, 1),
        "symbols": round(symbols, 1),
        "enough": enough,
        "steps": steps,
        "seconds": round(seconds, 1),
        "rate": rate,
    }


def train_selection(selection: str, seed: int = 1) -> dict[str, Any]:
    """Train a decoder that looks with a selection; one that only moves forward learns to copy.

    Hardmax, which lets no gradient pass, reads out what was learned by drawing.
    """
    name = "copy" if selection in ("monotonic", "local_monotonic") else "reversal"
    task = data(name)
    torch.manual_seed(seed)
    learned = "sampled" if selection == "hardmax" else selection
    model = build("bigru", "gru luong", task.size, selection=learned)
    began = time.perf_counter()
    steps = train(model, task, rate=RATES["gru"], steps=STEPS, seed=seed)
    seconds = time.perf_counter() - began
    read = build("bigru", "gru luong", task.size, selection=selection).eval()
    read.load_state_dict(model.state_dict())
    sequences, symbols = score(read, *task.test)
    return {
        "task": name,
        "sequences": round(sequences, 1),
        "symbols": round(symbols, 1),
        "enough": sequences >= 95,
        "steps": steps,
        "seconds": round(seconds, 1),
    }


def run(folder: Path, encoders: list[str], decoders: list[str], seed: int) -> None:
    """Train the pairs whose result is not in the folder yet."""
    for encoder in encoders:
        for decoder in decoders:
            _kept(folder, f"{encoder} - {decoder} - {seed}", train_pair, encoder, decoder, seed)


def run_selections(folder: Path, selections: list[str], seed: int) -> None:
    """Train the selections whose result is not in the folder yet."""
    for selection in selections:
        _kept(folder, f"selection - {selection} - {seed}", train_selection, selection, seed)


def _kept(folder: Path, name: str, make: Callable[..., dict[str, Any]], *arguments: object) -> None:
    path = folder / f"{name}.json"
    if path.exists():
        return
    row = make(*arguments)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(row), encoding="utf-8")
    unfinished.replace(path)
    print(f"{name:34} {json.dumps(row)}", flush=True)


def table(folder: Path, seed: int) -> None:
    """Print what is in the folder, and write the results."""
    rows = {
        decoder: _found(folder, {encoder: f"{encoder} - {decoder}" for encoder in ENCODERS}, seed)
        for decoder in DECODERS
    }
    chosen = _found(folder, {name: f"selection - {name}" for name in SELECTIONS}, seed)
    print("Whole sequences right, % (symbols in their place, %); * falls short")
    print(f"{'':18}" + "".join(f"{encoder:>16}" for encoder in ENCODERS))
    for decoder, found in rows.items():
        cells = [_cell(found[encoder]) if encoder in found else "-" for encoder in ENCODERS]
        print(f"{decoder:18}" + "".join(f"{cell:>16}" for cell in cells))
    every = [row for found in rows.values() for row in found.values()]
    enough = sum(row["enough"] for row in every)
    print(f"{enough} of {len(every)} pairs get what they are to get")
    print("\nA bidirectional GRU and a GRU in Luong's order, with every selection")
    for selection, row in chosen.items():
        print(f"{selection:18}{_cell(row):>16}  {row['task']}, {row['steps']} steps")
    path = HERE / "results" / "matrix.json"
    report = {**_header(seed), "pairs": len(every), "pairs that get enough": enough, "rows": rows}
    path.write_text(json.dumps({**report, "selections": chosen}, indent=1) + "\n", encoding="utf-8")


def _header(seed: int) -> dict[str, Any]:
    sizes = "20_000, minimum_length=3, maximum_length=6"
    return {
        "commands": [
            f"python benchmarks/matrix.py {verb} FOLDER --seed {seed}"
            for verb in ("train", "table")
        ],
        "tasks": {
            "embedding": f"sorting({sizes}, symbols=12, seed=1)",
            "others": f"reversal({sizes}, symbols=10, seed=1)",
            "monotonic, local_monotonic": f"copy({sizes}, symbols=10, seed=1)",
            "scored": "400 sequences (sorting: sets) that are not trained on, by greedy search",
        },
        "enough": {
            "with an attention": "95 % of the sequences right",
            "constant, none": "90 % of the symbols in their place",
        },
        "seed": seed,
        "seconds": "on one core, shared with other work",
        "threads": 1,
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
    }


def _found(folder: Path, names: dict[str, str], seed: int) -> dict[str, dict[str, Any]]:
    paths = {key: folder / f"{name} - {seed}.json" for key, name in names.items()}
    return {
        key: json.loads(path.read_text(encoding="utf-8"))
        for key, path in paths.items()
        if path.exists()
    }


def _cell(row: dict[str, Any]) -> str:
    return f"{row['sequences']:.1f} ({row['symbols']:.1f}){' ' if row['enough'] else '*'}"


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", choices=list(ENCODERS))
    parser.add_argument("--decoder", choices=list(DECODERS))
    parser.add_argument("--selection", choices=list(SELECTIONS))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder, seed = arguments.folder, arguments.seed
    if arguments.action == "table":
        table(folder, seed)
        return
    folder.mkdir(parents=True, exist_ok=True)
    some = bool(arguments.encoder or arguments.decoder or arguments.selection)
    if arguments.selection or not some:
        run_selections(folder, [arguments.selection] if some else list(SELECTIONS), seed)
    if arguments.selection is None:
        encoders = [arguments.encoder] if arguments.encoder else list(ENCODERS)
        decoders = [arguments.decoder] if arguments.decoder else list(DECODERS)
        run(folder, encoders, decoders, seed)


if __name__ == "__main__":
    main()
