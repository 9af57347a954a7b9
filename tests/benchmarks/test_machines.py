"""Trainings of machines go on from where they were as if they had never stopped."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[2]


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("machines", ROOT / "benchmarks" / "machines.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machines = _loaded()


def test_a_training_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "EVERY", 2)
    monkeypatch.setattr(machines, "TRIED", 2)
    monkeypatch.setitem(machines.SIZES, "copy", (1, 2))
    monkeypatch.setitem(machines.FAR, "copy", (2, 3))
    whole = machines.Training("copy", "ntm", 1, tmp_path / "whole")
    whole.run(4)
    machines.Training("copy", "ntm", 1, tmp_path / "cut").run(2)
    again = machines.Training("copy", "ntm", 1, tmp_path / "cut")
    assert again.known["sequences"] == 2
    again.run(4)
    assert again.known["errors"] == whole.known["errors"]
    assert again.known["far"] == whole.known["far"]
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor)


def test_convergence_is_the_first_of_a_steady_row() -> None:
    errors = [9.0, 0.0, 0.04, 0.06, 0.01, 0.02, 0.0, 5.0]
    assert machines.converged(errors) == 2_500
    assert machines.converged(errors[:6]) is None
    assert machines.converged([]) is None


@pytest.mark.parametrize("machine", machines.MACHINES)
@pytest.mark.parametrize("task", ["repeat_copy", "associative_recall"])
def test_every_machine_takes_every_task(machine: str, task: str) -> None:
    algorithm = machines.ALGORITHMS[task]()
    problem = algorithm.draw(2, sizes=(2, 2), seed=1)
    outputs, _ = machines.built(machine, algorithm)(problem.inputs, lengths=problem.lengths)
    assert outputs.shape == problem.targets.shape
