"""One step: memory that does not suffice, clipping (row T3; T1 and T2 are in test_loop)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import EnvironmentFault
from regard.training.steps import Stepper

MESSAGES = [
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
]


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", MESSAGES)
def test_t3_a_batch_too_large_is_halved_once_and_counted(
    tmp_path: Path, tiny: Any, go: Any, result: Any, error: BaseException
) -> None:
    job = tiny()
    job.at_loss[2] = lambda: _raise(error)
    go(tmp_path / "run", job, epochs=1)
    assert sorted(job.seen[2] + job.seen[3]) == sorted(job.seen[1])
    training = [line for line in result(tmp_path / "run")[1] if line["event"] == "training"]
    assert training[0]["split"] == 1


def test_t3_halves_give_the_gradient_of_the_whole(tiny: Any, settings: Any) -> None:
    gradients = []
    for error in (None, MESSAGES[1]):
        job = tiny()
        job.model.eval()  # no dropout: it would be drawn anew
        if error is not None:
            job.at_loss[1] = lambda: _raise(MESSAGES[1])
        stepper = Stepper(job, settings(clip_norm=0.0))
        made = stepper.step(next(job.batches(0, 0)), 0.0)
        assert made is not None
        assert made.split == (error is not None)
        gradients.append([p.grad.clone() for p in job.model.parameters() if p.grad is not None])
    for whole, halves in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, halves)


def test_t3_half_a_batch_too_large_ends_the_run_naming_it(
    tmp_path: Path, tiny: Any, go: Any
) -> None:
    job = tiny()
    job.at_loss.update({n: lambda: _raise(MemoryError()) for n in (2, 3)})
    with pytest.raises(EnvironmentFault) as caught:
        go(tmp_path / "run", job)
    assert caught.value.exit_code == 3
    assert "memory: a batch must fit into memory; this did not: 2 pairs of at most" in str(
        caught.value
    )
    assert f"pairs.tsv:{job.seen[1][0] + 1}" in str(caught.value)
    assert str(caught.value).endswith("Lower batch_tokens.")


def test_t3_one_sentence_too_large_cannot_be_halved(tiny: Any, settings: Any) -> None:
    job = tiny()
    job.at_loss[1] = lambda: _raise(MemoryError())
    batch = tuple(part[:1] for part in next(job.batches(0, 0)))
    with pytest.raises(EnvironmentFault, match="1 pairs of at most"):
        Stepper(job, settings()).step(batch, 0.1)


def test_t3_memory_for_an_evaluation(tmp_path: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.at_evaluation[1] = lambda: _raise(MESSAGES[1])
    with pytest.raises(EnvironmentFault, match="must suffice for the model, its evaluation"):
        go(tmp_path / "run", job)


def test_other_errors_are_not_taken_for_memory(tmp_path: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.at_loss[1] = lambda: _raise(RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        go(tmp_path / "run", job)


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_gradients_are_clipped_by_their_norm(tiny: Any, settings: Any, limit: float) -> None:
    job = tiny()
    job.at_loss[1] = lambda: 100.0
    Stepper(job, settings(clip_norm=limit)).step(next(job.batches(0, 0)), 0.0)
    norm = torch.stack([p.grad.norm() for p in job.model.parameters() if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(limit, rel=1e-3) if limit else float(norm) > 10
