"""Training goes on as if it had never stopped, whatever stopped it (rows T4, T5 and K13)."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.errors import DivergedError, Interrupted, UserError
from regard.saving import load_tensors
from regard.training.checkpoint import Checkpoints, read_progress
from regard.training.steps import Stepper

# PyTorch warns where a machine has fewer cores than there are workers.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
WAYS = {
    "best": {},
    "average": {"select": "average", "average": 3},
    "patience": {"patience": 2, "epochs": 8, "learning_rate": 0.5},
    "bfloat16": {"precision": "bfloat16", "optimizer": "adamw", "weight_decay": 0.1},
    "few checkpoints": {"checkpoint_steps": 1000, "schedule": "cosine", "keep": 1},
}
# Steps 1 to 6 are epoch 1, 7 to 12 epoch 2, and so on.
CUTS = {"epoch 1": 2, "middle of epoch 2": 9, "middle of epoch 3": 15, "end of epoch 2": 12}


@pytest.fixture(scope="session")
def uninterrupted() -> dict[str, Any]:
    return {}


@pytest.fixture
def lab(
    uninterrupted: dict[str, Any], tmp_path: Path, tiny: Any, go: Any, cut: Any, result: Any
) -> Any:
    """A folder to train in, and what the training gives that nothing stops."""

    def expected(way: str) -> Any:
        if way not in uninterrupted:
            go(tmp_path / "uninterrupted", tiny(), **WAYS[way])
            uninterrupted[way] = result(tmp_path / "uninterrupted")
        return uninterrupted[way]

    def stopped(job: Any, **own: Any) -> None:
        with pytest.raises(cut.ends):
            go(tmp_path / "run", job, **own)

    def resumed(*, workers: int = 0, **own: Any) -> Any:
        torch.manual_seed(99)  # another process has another random state
        go(tmp_path / "run", tiny(workers=workers), resume=True, **own)
        return result(tmp_path / "run")

    return SimpleNamespace(
        job=tiny, go=go, cut=cut, stopped=stopped, resumed=resumed, expected=expected
    )


@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.parametrize(
    ("way", "place"),
    [("best", place) for place in CUTS]
    + [(way, "middle of epoch 3") for way in WAYS if way != "best"],
)
def test_t4_t5_resume_equals_never_having_stopped(lab: Any, how: str, way: str, place: str) -> None:
    job = lab.job()
    job.at_loss[CUTS[place]] = getattr(lab.cut, how)
    lab.stopped(job, **WAYS[way])
    assert lab.resumed(**WAYS[way]) == lab.expected(way)


@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.parametrize("place", ["middle of epoch 2", "end of epoch 2"])
def test_t4_resume_with_workers(lab: Any, how: str, place: str) -> None:
    job = lab.job(workers=2)
    job.at_loss[CUTS[place]] = getattr(lab.cut, how)
    lab.stopped(job)
    assert lab.resumed(workers=2) == lab.expected("best")


@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.parametrize("evaluation", [1, 2, 4, 5])
def test_t5_stopped_while_evaluating(lab: Any, how: str, evaluation: int) -> None:
    """The fifth evaluation is that of the chosen weights, which must not be saved as a state."""
    job = lab.job()
    job.at_evaluation[evaluation] = getattr(lab.cut, how)
    lab.stopped(job, **WAYS["average"])
    assert lab.resumed(**WAYS["average"]) == lab.expected("average")


def test_t5_many_stops(lab: Any, tmp_path: Path, result: Any) -> None:
    for number in range(30):
        job, how = lab.job(), lab.cut.crash if number % 5 == 4 else lab.cut.stop
        where = job.at_evaluation if number % 2 else job.at_loss
        where[2 - number % 2] = how
        try:
            lab.go(tmp_path / "run", job, resume=True)
        except lab.cut.ends:
            continue
        break
    assert number > 6
    assert result(tmp_path / "run") == lab.expected("best")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 143)]
)
def test_t5_a_stop_names_what_is_saved_and_gives_the_exit_code(
    tmp_path: Path, tiny: Any, go: Any, number: int, code: int
) -> None:
    before = signal.getsignal(number)
    job = tiny()
    job.at_loss[3] = lambda: signal.raise_signal(number)
    with pytest.raises(Interrupted, match=r"step 3 is saved\. Go on with --resume") as caught:
        go(tmp_path / "run", job)
    assert caught.value.exit_code == code
    assert signal.getsignal(number) is before


def test_t1_a_loss_that_is_not_finite_is_not_applied_but_named(
    tmp_path: Path, tiny: Any, go: Any, result: Any
) -> None:
    job = tiny()
    job.at_loss[3] = lambda: float("nan")
    go(tmp_path / "run", job, epochs=1)
    _, lines = result(tmp_path / "run")
    (line,) = [line for line in lines if line["event"] == "not_finite"]
    assert line["step"] == 3
    assert line["loss"] == "nan"
    assert f"pairs.tsv:{job.seen[2][0] + 1}" in line["examples"]
    assert [line["rejected"] for line in lines if line["event"] == "training"] == [1]


def test_t1_a_step_that_is_not_finite_leaves_weights_and_optimizer(
    tmp_path: Path, tiny: Any, settings: Any
) -> None:
    job = tiny()
    stepper = Stepper(job, settings())
    batches = list(job.batches(0, 0))
    stepper.step(batches[0], 0.01)
    before = {name: tensor.clone() for name, tensor in job.model.state_dict().items()}
    moments = [s["exp_avg"].clone() for s in stepper.optimizer.state.values()]
    job.at_loss[2] = lambda: float("inf")
    made = stepper.step(batches[1], 0.01)
    assert made is not None
    assert not made.finite
    assert all(torch.equal(before[n], t) for n, t in job.model.state_dict().items())
    after = [s["exp_avg"] for s in stepper.optimizer.state.values()]
    assert all(torch.equal(a, b) for a, b in zip(moments, after, strict=True))


def test_t1_diverged_after_some_in_a_row(tmp_path: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.at_loss.update({n: lambda: float("nan") for n in (6, 8, 9, 10)})
    with pytest.raises(DivergedError, match=r"step 10: loss .* 3 steps in a row .*pairs.tsv:") as e:
        go(tmp_path / "run", job)
    assert e.value.exit_code == 4
    # The checkpoints of before are whole, and the run goes on from them.
    outcome = go(tmp_path / "run", tiny(), resume=True)
    assert outcome.steps == 24


def test_t1_weights_that_are_not_finite_are_never_saved_nor_best(
    tmp_path: Path, tiny: Any, go: Any
) -> None:
    job = tiny()

    def spoil() -> None:
        with torch.no_grad():  # a row that no batch reads: the loss stays finite
            job.model.encoder.embedding.weight[3, 0] = float("inf")

    job.at_loss[10] = spoil
    with pytest.raises(DivergedError, match=r"weights must be finite; .*weight is not"):
        go(tmp_path / "run", job)
    assert Checkpoints(tmp_path / "run").steps() == [6, 8]
    assert go(tmp_path / "run", tiny(), resume=True).steps == 24


def test_t2_a_batch_with_nothing_to_learn_is_skipped_and_counted(
    tmp_path: Path, tiny: Any, go: Any, result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tiny.size
    # The evaluation's batch is that of the first eight.
    monkeypatch.setattr(tiny, "size", lambda self, batch: 0 if 9 in batch[0] else real(self, batch))
    job = tiny()
    go(tmp_path / "run", job, epochs=2)
    assert job.losses == 10
    training = [line for line in result(tmp_path / "run")[1] if line["event"] == "training"]
    assert [line["skipped"] for line in training] == [1, 2]


def test_t11_nan_is_the_worst_metric(tmp_path: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.at_evaluation.update({1: lambda: 5.0, 2: lambda: float("nan"), 3: lambda: 4.0})
    job.at_evaluation[4] = lambda: float("-inf")  # "better" than anything, and nonsense
    go(tmp_path / "run", job)
    progress = read_progress(Checkpoints(tmp_path / "run").path(24))
    assert (progress.best, progress.best_step, progress.waiting) == (-4.0, 18, 1)


def test_t11_a_metric_that_is_never_a_number_ends_with_the_last_weights(
    tmp_path: Path, tiny: Any, go: Any
) -> None:
    job = tiny()
    job.at_evaluation.update({n: lambda: float("nan") for n in range(1, 9)})
    assert go(tmp_path / "run", job, patience=3).steps == 18
    last = load_tensors(tmp_path / "run/checkpoints/step-000000018/model.safetensors")
    model = load_tensors(tmp_path / "run/model/model.safetensors")
    assert all(torch.equal(last[name], model[name]) for name in last)


def test_t11_patience_without_improvement(tmp_path: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.at_evaluation.update({n: lambda: 1.0 for n in range(1, 99)})
    assert go(tmp_path / "run", job, patience=2, epochs=50).steps == 18


def test_t11_no_batches_and_no_such_metric_are_refused(tmp_path: Path, tiny: Any, go: Any) -> None:
    empty = tiny()
    empty.data = []
    with pytest.raises(UserError, match="at least one batch; got 0"):
        go(tmp_path / "one", empty)
    with pytest.raises(UserError, match="metric must be one of loss; got 'bleu'"):
        go(tmp_path / "two", tiny(metric="bleu"))


def test_k13_what_a_kept_checkpoint_needs_is_kept(tmp_path: Path, tiny: Any, go: Any) -> None:
    """Falling back to the last but one must find its best, though the last has a better one."""
    job = tiny()
    values = iter([5.0, 6.0, 7.0, 4.0, 4.0])
    job.at_evaluation.update({n: lambda: next(values) for n in range(1, 6)})
    go(tmp_path / "run", job)
    assert Checkpoints(tmp_path / "run").steps() == [6, 20, 24]
