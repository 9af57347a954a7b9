"""Training, going on, evaluating, checking and beginning: models that answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.config import read_config
from regard.data.story_worlds import write_world
from regard.errors import DataError, ResumeError, UserError
from regard.tasks import load
from regard.tasks.answering import Answerer, load_restarts
from regard.tasks.answering_settings import AnsweringSettings
from regard.tasks.answering_training import (
    build_job,
    check_answering,
    evaluate_answering,
    new_answering,
    train_answering,
)
from regard.tasks.base import open_model, task_kind
from regard.training import RunOptions

CONFIG = """
task = "answering"
restarts = 2
linear_epochs = 2
[data]
train = "train.txt"
dev = "dev.txt"
test = "test.txt"
[model]
embedding_dim = 8
hops = 2
[training]
epochs = 4
evaluate_epochs = 2
threads = 1
device = "cpu"
"""
ROOMS = ("garden", "hall", "office", "attic")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stories")
    write_world(made, {"train": 40, "dev": 8, "test": 8}, seed=1)
    (made / "config.toml").write_text(CONFIG)
    return made


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("runs") / "run"
    train_answering(folder / "config.toml", [], RunOptions(where, quiet=True))
    return where


def job(folder: Path, *changes: str) -> Any:
    settings = read_config(folder / "config.toml", AnsweringSettings, changes=changes)
    return build_job(settings, root=folder)


def weights_of(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def test_a_trained_model_is_loaded_and_scored(folder: Path, run: Path) -> None:
    answerer = load(run)
    assert isinstance(answerer, Answerer)
    assert answerer.model.restarts == 1
    found = evaluate_answering(str(run), [])
    assert len(found.written) == 40
    (row,) = found.rows.values()
    truth = [one.answer for one in found.stories[0].questions]
    wrong = sum(a != b for a, b in zip(found.written, truth, strict=True))
    assert row["error"] == pytest.approx(100 * wrong / 40)
    assert 0 <= row["supported"] <= 100
    both = evaluate_answering(str(run), [str(folder / "test.txt"), str(folder / "dev.txt")])
    assert len(both.rows) == 2
    errors = [one["error"] for one in both.rows.values()]
    assert both.table()["mean_error"] == pytest.approx(sum(errors) / 2)
    assert both.lines()[-1].startswith("mean")
    with pytest.raises(UserError, match="not searched for"):
        evaluate_answering(str(run), [], beam=2)
    with pytest.raises(UserError, match="stories have none"):
        evaluate_answering(str(run), [], reading={"header": True})


def test_the_restart_of_least_training_error_answers(folder: Path, run: Path) -> None:
    model, _, settings = load_restarts(open_model(str(run)))
    assert settings.restarts == 2
    made = job(folder)
    made.model.load_state_dict(model.state_dict())
    made.model.eval()
    errors = made.errors(made.data, lambda: None)
    assert int(model.chosen) == int(errors.argmin())
    answerer = load(run)
    for own, every in zip(answerer.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(own[0], every[int(model.chosen)])


def test_it_learns_and_looks_at_the_supporting_fact(tmp_path: Path) -> None:
    """Who is where, four people, five sentences: each answer follows from the last move."""
    import random

    chance = random.Random(1)
    for name, count in (("train", 240), ("test", 40)):
        lines = []
        for _ in range(count):
            last: dict[str, tuple[str, int]] = {}
            for number in range(1, 6):
                who, room = chance.choice(["Tom", "Ann", "Joe"]), chance.choice(ROOMS)
                last[who] = (room, number)
                lines.append(f"{number} {who} went to the {room}.")
            who = chance.choice([*last])
            lines.append(f"6 Where is {who}?\t{last[who][0]}\t{last[who][1]}")
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    config = CONFIG.replace('dev = "dev.txt"\n', "").replace("= 4", "= 40").replace("= 8", "= 16")
    (tmp_path / "config.toml").write_text(config)
    train_answering(
        tmp_path / "config.toml", ["linear_epochs=8"], RunOptions(tmp_path / "run", quiet=True)
    )
    (row,) = evaluate_answering(str(tmp_path / "run"), []).rows.values()
    assert row["error"] <= 5
    assert row["supported"] >= 90


def test_two_runs_are_the_same_to_the_bit(folder: Path, run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    changes = ["training.workers=1", "training.checkpoint_steps=3"]
    train_answering(folder / "config.toml", changes, RunOptions(again, quiet=True))
    assert weights_of(again) == weights_of(run)


@pytest.mark.parametrize("epoch", [1, 2])  # without the softmax, and with it
def test_t4_a_run_that_was_stopped_in_an_epoch_goes_on(
    folder: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    where = tmp_path / "stopped"
    made = job(folder)
    stop = epoch * made.steps(0) + made.steps(0) // 2
    from regard.training import loop

    original = loop.Stepper.step
    seen = SimpleNamespace(steps=0)

    def step(self: Any, batch: Any, rate: float) -> Any:
        if seen.steps == stop + 1:
            raise KeyboardInterrupt
        seen.steps += 1
        return original(self, batch, rate)

    monkeypatch.setattr(loop.Stepper, "step", step)
    changes = [f"training.checkpoint_steps={stop}"]
    with pytest.raises(KeyboardInterrupt):
        train_answering(folder / "config.toml", changes, RunOptions(where, quiet=True))
    monkeypatch.undo()
    options = RunOptions(where, resume=True, quiet=True)
    train_answering(folder / "config.toml", changes, options)
    assert weights_of(where) == weights_of(run)


def test_t6_what_changes_the_result_is_in_the_identity(folder: Path, run: Path) -> None:
    ours = job(folder).identity
    assert job(folder, "training.workers=2", "data.test=other.txt").identity == ours
    changes = ("restarts=3", "linear_epochs=1", "clip=2.0", "model.hops=3", "data.dev=test.txt")
    for change in changes:
        assert job(folder, change).identity != ours, change
    options = RunOptions(run, resume=True, quiet=True)
    with pytest.raises(ResumeError, match="linear_epochs"):
        train_answering(folder / "config.toml", ["linear_epochs=1"], options)


def test_the_loss_is_a_sum_over_questions_and_restarts(folder: Path) -> None:
    made = job(folder, "model.noise=0.0")
    batch = next(made.batches(0, 0))
    assert batch.linear
    assert not next(made.batches(2, 0)).linear
    whole = made.loss(batch).total
    halves = made.split(batch)
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert made.size(batch) == 32
    assert "questions about at most" in made.describe(batch)
    assert "train.txt:" in made.describe(batch)
    with torch.no_grad():
        made.model.embeddings[0][1] = torch.nan
    lost = made.loss(batch)
    assert torch.isfinite(lost.total)
    assert lost.shown == {"lost_restarts": 1.0}


def test_several_files_are_learnt_together(folder: Path) -> None:
    made = job(folder, 'data.train=["train.txt", "test.txt"]')
    assert len(made.data) == 240
    assert made.data.where(239).rpartition(":")[0].endswith("test.txt")
    assert made.data.numbered.stories.told(200) == made.data.files[1].told(0)


def test_an_answer_that_is_not_known_is_wrong(folder: Path, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.txt"
    file.write_text("1 Anna went to the hall.\n2 Where is Anna?\tmoon\t1\n")
    assert evaluate_answering(str(run), [str(file)]).rows[str(file)]["error"] == 100.0
    lines = check_answering(folder / "config.toml", [f"data.test={file}"])
    assert any("1 answers of test are in no training story" in line for line in lines)


def test_checking_says_what_is_there_and_what_is_shared(folder: Path) -> None:
    lines = check_answering(folder / "config.toml", [])
    assert lines[0].startswith("train: 40 stories, 200 questions, SHA-256")
    assert lines[-1].startswith("model: 2 restarts of ")
    lines = check_answering(folder / "config.toml", ["data.dev=train.txt", "model.memory=3"])
    assert any(line.startswith("warning: 200 questions of dev are") for line in lines)
    assert any("more than 3 sentences before them" in line for line in lines)
    with pytest.raises(DataError, match="cannot be read"):
        check_answering(folder / "config.toml", ["data.train=none.txt"])


def test_what_new_writes_can_be_trained(tmp_path: Path) -> None:
    config, *files = new_answering(tmp_path / "demo")
    assert [file.name for file in files] == ["train.txt", "dev.txt", "test.txt"]
    assert not [line for line in check_answering(config, []) if line.startswith("warning")]
    with pytest.raises(UserError, match="exists already"):
        new_answering(tmp_path / "demo")
    assert task_kind("answering").new is new_answering
