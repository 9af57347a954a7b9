"""Checkpoints: weights of any precision, averages, rotation, hostile files (rows K1, K8-K13)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.errors import FileFormatError
from regard.saving import load_tensors, save_tensors, verify_folder
from regard.training.checkpoint import Checkpoints, Progress, load_weights, read_progress
from regard.training.steps import Stepper


@pytest.fixture
def saved(tmp_path: Path, tiny: Any, settings: Any) -> Any:
    """Save checkpoints of given steps, whose first weight is the step."""
    job, checkpoints = tiny(), Checkpoints(tmp_path)
    stepper = Stepper(job, settings())

    def save(step: int, **progress: Any) -> Checkpoints:
        with torch.no_grad():
            for parameter in job.model.parameters():
                parameter.fill_(step)
        checkpoints.save(job, stepper.optimizer, Progress(step=step, **progress))
        return checkpoints

    return save


def test_averages_are_taken_in_double_precision(saved: Any) -> None:
    for step in (1, 2, 6):
        checkpoints = saved(step)
    mean = checkpoints.averaged([1, 2, 6])
    assert all(tensor.dtype == torch.float32 for tensor in mean.values())
    assert all(bool((tensor == 3.0).all()) for tensor in mean.values())


def test_a_damaged_checkpoint_is_not_averaged(saved: Any) -> None:
    for step in (1, 2):
        checkpoints = saved(step)
    path = checkpoints.path(1) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(FileFormatError, match=r"model\.safetensors is damaged"):
        checkpoints.averaged([1, 2])


@pytest.mark.parametrize(
    ("select", "left"),
    [("best", [2, 3, 5, 6]), ("last", [2, 3, 5, 6]), ("average", [1, 2, 3, 5, 6])],
)
def test_k13_rotation_keeps_the_best_and_those_to_be_averaged(
    saved: Any, select: str, left: list[int]
) -> None:
    for step in range(1, 7):
        # The fifth believes that the second is best, the sixth the third.
        best = 2 if step < 6 else 3
        checkpoints = saved(step, best=1.0, best_step=best, epoch_ends=[1, 3, 5][: step // 2])
    checkpoints.rotate(keep=2, select=select, average=3)
    assert checkpoints.steps() == left


def test_k13_the_newest_may_be_the_best_and_keep_one(saved: Any) -> None:
    for step in range(1, 4):
        checkpoints = saved(step, best=1.0, best_step=step)
    checkpoints.rotate(keep=1, select="best", average=1)
    assert checkpoints.steps() == [3]


def test_k13_a_reader_while_rotating_sees_whole_checkpoints_only(saved: Any) -> None:
    checkpoints = saved(1)
    done, wrong, read = threading.Event(), [], [0]

    def reader() -> None:
        while not done.is_set():
            step, faults = checkpoints.newest()
            if step is None or faults:
                continue  # removed while it was verified: said so, not loaded
            try:
                tensors = load_tensors(checkpoints.path(step) / "model.safetensors")
            except FileFormatError:
                continue
            read[0] += 1
            wrong.extend(n for n, t in tensors.items() if not bool((t == step).all()))

    thread = threading.Thread(target=reader)
    thread.start()
    for step in range(2, 40):
        saved(step)
        checkpoints.rotate(keep=1, select="last", average=1)
    done.set()
    thread.join()
    assert not wrong
    assert read[0] > 0


def test_saving_a_step_again_replaces_it(saved: Any) -> None:
    saved(3, epoch=0)
    checkpoints = saved(3, epoch=1)
    verify_folder(checkpoints.path(3))
    assert read_progress(checkpoints.path(3)).epoch == 1
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-000000003"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_k10_any_precision_is_loaded_into_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2)
    stored = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    save_tensors(tmp_path / "m.safetensors", stored)
    other = nn.Linear(3, 2)
    load_weights(other, tmp_path / "m.safetensors")
    for name, tensor in other.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, stored[name].float())


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": torch.zeros(2, 3)}, "bias is in one of them only"),
        (
            {"weight": torch.zeros(3, 2), "bias": torch.zeros(3)},
            r"is real \[3(, 2)?\], not real \[2(, 3)?\], and 1 more differ",
        ),
        (
            {"weight": torch.zeros(2, 3, dtype=torch.int64), "bias": torch.zeros(2)},
            r"weight is int64 \[2, 3\], not real",
        ),
    ],
)
def test_weights_of_another_model(
    tmp_path: Path, tensors: dict[str, torch.Tensor], message: str
) -> None:
    save_tensors(tmp_path / "m.safetensors", tensors)
    with pytest.raises(FileFormatError, match=message):
        load_weights(nn.Linear(3, 2), tmp_path / "m.safetensors")


def test_k12_a_tied_model_comes_back_tied(tmp_path: Path) -> None:
    def make() -> nn.Sequential:
        model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
        model[1].weight = model[0].weight
        return model

    first, second = make(), make()
    save_tensors(tmp_path / "m.safetensors", first.state_dict())
    load_weights(second, tmp_path / "m.safetensors")
    assert torch.equal(first[0].weight, second[0].weight)
    assert second[0].weight is second[1].weight


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"step": "3"},
        {"step": 3.5},
        {"unknown": 1},
        {"identity": []},
        {"epoch_ends": [1, "2"]},
        {"sums": {"loss": None}},
    ],
)
def test_k8_a_hostile_training_json(tmp_path: Path, content: Any) -> None:
    (tmp_path / "training.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="is not of this version"):
        read_progress(tmp_path)


def test_progress_survives(saved: Any) -> None:
    progress = {"best": -0.1 + 0.2, "sums": {"loss": 1 / 3}, "identity": {"a": [1, {"b": None}]}}
    checkpoints = saved(7, **progress)
    read = read_progress(checkpoints.path(7))
    assert read == Progress(step=7, **progress)
