"""A tiny translator to train, and ways to cut its training off."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.batches import loader, pad, plan
from regard.data.generated import reversal
from regard.errors import Interrupted
from regard.models.seq2seq import token_loss
from regard.models.settings import Seq2SeqSettings, build_seq2seq
from regard.training import Loss, Outcome, RunOptions, TrainingSettings, train

PAD, BOS, EOS, FIRST = 0, 1, 2, 4
SIZES = {
    "embedding_dim": 8,
    "dropout": 0.3,
    "encoder": {"kind": "gru", "hidden_dim": 8},
    "decoder": {"kind": "gru", "hidden_dim": 8, "attention_dim": 8},
}


class Crash(Exception):
    """Stands for a process that is gone: nothing is saved."""


def stop(*_: object) -> None:
    """Ask for a stop, as the system does."""
    signal.raise_signal(signal.SIGTERM)


def crash(*_: object) -> None:
    raise Crash


class TinyJob:
    """Reversing short sequences; `at_loss` and `at_evaluation` say what happens at which call."""

    higher_is_better = False

    def __init__(self, *, workers: int = 0, seed: int = 1, metric: str = "loss") -> None:
        torch.manual_seed(seed)
        self.metric, self.workers, self.seed = metric, workers, seed
        sizes = Seq2SeqSettings.model_validate(SIZES)
        self.model = build_seq2seq(sizes, source_size=14, target_size=14, padding=PAD)
        pairs = reversal(24, minimum_length=2, maximum_length=6, seed=seed)
        self.data = [([_id(s) for s in a.split()], [_id(s) for s in b.split()]) for a, b in pairs]
        self.identity: dict[str, Any] = {"data": {"train": "abc", "seed": seed}, "torch": "1"}
        self.at_loss: dict[int, Callable[[], float | None]] = {}
        self.at_evaluation: dict[int, Callable[[], float | None]] = {}
        self.losses = self.evaluations = 0
        self.seen: list[list[int]] = []

    def steps(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def batches(self, epoch: int, start: int) -> Generator[Any, None, None]:
        yield from loader(
            self, self._plan(epoch), start=start, workers=self.workers, collate=_collate
        )

    def __getitem__(self, index: int) -> tuple[int, list[int], list[int]]:
        return index, *self.data[index]

    def where(self, index: int) -> str:
        return f"pairs.tsv:{index + 1}"

    def size(self, batch: Any) -> int:
        return int((batch[3] != PAD).sum())

    def loss(self, batch: Any) -> Loss:
        self.losses += 1
        self.seen.append(batch[0])
        scale = self.at_loss.get(self.losses, lambda: 1.0)()
        total = self._loss(batch) * (1.0 if scale is None else scale)
        return Loss(total, {})

    def split(self, batch: Any) -> tuple[Any, Any] | None:
        half = len(batch[0]) // 2
        if not half:
            return None
        return tuple(part[:half] for part in batch), tuple(part[half:] for part in batch)

    def describe(self, batch: Any) -> str:
        longest = batch[1].shape[1]
        places = ", ".join(self.where(index) for index in batch[0])
        return f"{len(batch[0])} pairs of at most {longest} tokens: {places}"

    def evaluate(self, poll: Callable[[], None]) -> dict[str, float]:
        self.evaluations += 1
        torch.rand(3)  # an evaluation may draw; the training must not notice
        value = self.at_evaluation.get(self.evaluations, lambda: None)()
        poll()
        batch = _collate([self[index] for index in range(8)])
        loss = float(self._loss(batch)) / self.size(batch)
        return {"loss": loss if value is None else value}

    def write(self, folder: Path) -> None:
        (folder / "config.json").write_text('{"task": "tiny"}\n', encoding="utf-8")

    def _loss(self, batch: Any) -> torch.Tensor:
        _, source, inputs, outputs = batch
        decoded = self.model(source, source != PAD, inputs)
        return token_loss(self.model, decoded.features, outputs, padding=PAD, smoothing=0.1)

    def _plan(self, epoch: int) -> list[list[int]]:
        lengths = [(len(source),) for source, _ in self.data]
        return plan(lengths, tokens=100, seed=self.seed, epoch=epoch, max_sentences=4)


def _id(symbol: str) -> int:
    return FIRST + ord(symbol) - ord("a")


def _collate(items: list[tuple[int, list[int], list[int]]]) -> Any:
    return (
        [index for index, _, _ in items],
        pad([source for _, source, _ in items]),
        pad([[BOS, *target] for _, _, target in items]),
        pad([[*target, EOS] for _, _, target in items]),
    )


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk guards against a loss of power, which no test here brings about."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture
def tiny() -> type[TinyJob]:
    """The class of the job: 6 steps an epoch."""
    return TinyJob


@pytest.fixture
def settings() -> Callable[..., TrainingSettings]:
    """Make settings: 4 epochs, a checkpoint every 4 steps, a rate that moves the weights."""

    def make(**changes: Any) -> TrainingSettings:
        own = {"epochs": 4, "checkpoint_steps": 4, "learning_rate": 0.01, "warmup_steps": 5}
        return TrainingSettings.model_validate({**own, "threads": 1, **changes})

    return make


@pytest.fixture
def go(settings: Callable[..., TrainingSettings]) -> Callable[..., Outcome]:
    """Train quietly."""

    def run(
        folder: Path, job: Any, *, resume: bool = False, allow: tuple[str, ...] = (), **own: Any
    ) -> Outcome:
        options = RunOptions(folder, resume=resume, allow_change=allow, quiet=True)
        return train(job, settings(**own), options)

    return run


@pytest.fixture
def cut() -> Any:
    """Ways to cut a training off: `cut.stop`, `cut.crash`, and the exceptions they lead to."""

    class Cut:
        ends = (Crash, Interrupted)

    Cut.stop, Cut.crash = staticmethod(stop), staticmethod(crash)  # type: ignore[attr-defined]
    return Cut


@pytest.fixture
def result() -> Callable[[Path], tuple[str, list[dict[str, Any]]]]:
    """What must be equal: the hash of the model, and the log without its seconds."""

    def read(folder: Path) -> tuple[str, list[dict[str, Any]]]:
        digest = hashlib.sha256((folder / "model/model.safetensors").read_bytes()).hexdigest()
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        for line in lines:
            del line["seconds"]
        return digest, lines

    return read
