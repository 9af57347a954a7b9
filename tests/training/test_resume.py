"""Beginning, going on and falling back (rows T6, T9, T10, K1, K3 and K5)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import EnvironmentFault, FileFormatError, ResumeError, UserError
from regard.saving import load_tensors, verify_folder
from regard.training import RunOptions, TrainingSettings, train
from regard.training.checkpoint import Checkpoints


@pytest.fixture
def run(tmp_path: Path, tiny: Any, go: Any, cut: Any) -> Path:
    """A run that stopped at step 15, with checkpoints of steps 12 and 15."""
    job = tiny()
    job.at_loss[15] = cut.stop
    with pytest.raises(cut.ends):
        go(tmp_path / "run", job)
    return tmp_path / "run"


def _truncate(path: Path, size: int) -> str:
    before = path.stat().st_size
    os.truncate(path, size)
    return f"{path.name} is {size:,} of {before:,} bytes"


def test_k1_a_truncated_checkpoint_falls_back_and_says_so(
    run: Path, tmp_path: Path, tiny: Any, go: Any, result: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    go(tmp_path / "whole", tiny())
    what = _truncate(run / "checkpoints/step-000000015/model.safetensors", 1096)
    own = {"epochs": 4, "checkpoint_steps": 4, "learning_rate": 0.01, "warmup_steps": 5}
    train(tiny(), TrainingSettings(**own, threads=1), RunOptions(run, resume=True))
    said = " ".join(capsys.readouterr().err.split())
    assert f"checkpoint step 15: {what}" in said
    assert "It is now damaged-step-000000015; the run goes on from step 12." in said
    assert result(run) == result(tmp_path / "whole")
    assert (run / "checkpoints/damaged-step-000000015").is_dir()


def test_k1_falling_back_with_one_kept_checkpoint_never_removes_the_newest(
    tmp_path: Path, tiny: Any, go: Any, cut: Any
) -> None:
    job = tiny()
    job.at_loss[15] = cut.stop
    with pytest.raises(cut.ends):
        go(tmp_path / "run", job, keep=1)
    checkpoints = Checkpoints(tmp_path / "run")
    _truncate(checkpoints.path(15) / "model.safetensors", 5)
    job = tiny()
    job.at_loss[2] = cut.stop
    with pytest.raises(cut.ends):
        go(tmp_path / "run", job, keep=1, resume=True)
    assert checkpoints.steps()[-1] == 14
    verify_folder(checkpoints.path(14))


def test_k1_none_whole_is_an_error_of_one_line(run: Path, tiny: Any, go: Any) -> None:
    for step in Checkpoints(run).steps():
        what = _truncate(Checkpoints(run).path(step) / "model.safetensors", 0)
    with pytest.raises(ResumeError, match=f"checkpoint step 15: {what}") as caught:
        go(run, tiny(), resume=True)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert len(Checkpoints(run).steps()) == 2


def test_a_damaged_best_checkpoint_is_refused_at_the_start(run: Path, tiny: Any, go: Any) -> None:
    path = run / "checkpoints/step-000000012/model.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ResumeError, match="checkpoint step 12 must be whole, as its weights may"):
        go(run, tiny(), resume=True)
    job = tiny()
    job.identity = {**job.identity}
    assert go(run, job, resume=True, select="last").steps == 24


def test_k5_leftovers_are_ignored_and_removed(run: Path, tiny: Any, go: Any) -> None:
    shutil.copytree(
        run / "checkpoints/step-000000015", run / "checkpoints/.step-000000016.0123abcd.tmp"
    )
    (run / ".model.0123abcd.tmp").mkdir()
    (run / ".run.json.0123abcd.tmp").write_text("half")
    (run / ".mine.tmp").write_text("kept: not a name of ours")
    go(run, tiny(), resume=True)
    assert [path.name for path in run.rglob(".*")] == [".mine.tmp"]


def test_t6_a_change_is_shown_and_may_be_allowed(run: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.identity = {"data": {"train": "abd", "seed": 1}, "torch": "2", "new": [1, 2]}
    with pytest.raises(ResumeError) as caught:
        go(run, job, resume=True)
    message = str(caught.value)
    assert "data.train was 'abc', is 'abd'; new was None, is [1, 2]; torch was '1'" in message
    flags = "--allow-change data.train --allow-change new --allow-change torch."
    assert message.endswith(f"add {flags}")
    with pytest.raises(ResumeError, match="torch was '1', is '2'"):
        go(run, job, resume=True, allow=("data", "new"))
    assert go(run, job, resume=True, allow=("data", "new", "torch")).steps == 24


def test_t6_a_changed_model_is_named_by_its_setting(run: Path, tiny: Any, go: Any) -> None:
    job = tiny()
    job.model.encoder.extra = torch.nn.Linear(2, 2)
    with pytest.raises(FileFormatError, match=r"extra\.bias is in one of them only, and 1 more"):
        go(run, job, resume=True)
    job.identity = {**job.identity, "model": {"extra": True}}
    with pytest.raises(ResumeError, match=r"model\.extra was None, is True"):
        go(run, job, resume=True)


def test_t6_what_json_does_not_tell_apart_is_no_change(
    tmp_path: Path, tiny: Any, go: Any, cut: Any
) -> None:
    job = tiny()
    job.identity = {"files": ("a", "b")}
    job.at_loss[3] = cut.stop
    with pytest.raises(cut.ends):
        go(tmp_path / "run", job)
    job = tiny()
    job.identity = {"files": ("a", "b")}
    assert go(tmp_path / "run", job, resume=True).steps == 24


@pytest.mark.parametrize("name", ["log.jsonl", "notes.txt", "model"])
def test_t10_a_folder_that_is_not_empty_needs_resume(
    tmp_path: Path, tiny: Any, go: Any, name: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(UserError, match=f"it holds {name}. Add --resume") as caught:
        go(tmp_path / "run", tiny())
    assert caught.value.exit_code == 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == [name]


def test_t10_a_run_is_not_begun_over(run: Path, tiny: Any, go: Any) -> None:
    before = (run / "log.jsonl").read_bytes()
    with pytest.raises(UserError, match=r"it holds one of 15 steps\. Add --resume"):
        go(run, tiny())
    assert (run / "log.jsonl").read_bytes() == before


def test_t10_a_finished_model_without_checkpoints_is_not_overwritten(
    run: Path, tiny: Any, go: Any
) -> None:
    go(run, tiny(), resume=True)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(ResumeError, match="it holds a finished model only"):
        go(run, tiny(), resume=True)


def test_notes_are_not_changed_by_a_refused_run(run: Path, tiny: Any, settings: Any) -> None:
    (run / "run.json").write_text("{}")
    with pytest.raises(UserError):
        train(tiny(), settings(), RunOptions(run, quiet=True), notes={"other": 1})
    assert (run / "run.json").read_text() == "{}"


def test_resuming_a_finished_run_gives_the_model_again(
    tmp_path: Path, tiny: Any, go: Any, result: Any
) -> None:
    go(tmp_path / "run", tiny())
    before = result(tmp_path / "run")
    go(tmp_path / "run", tiny(), resume=True)
    assert result(tmp_path / "run") == before


def test_t9_a_folder_that_cannot_be_written_to_is_refused_at_the_start(
    tmp_path: Path, tiny: Any, go: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    job = tiny()
    with pytest.raises(EnvironmentFault, match="must be writable; got: Not a directory") as caught:
        go(tmp_path / "file/run", job)
    assert caught.value.exit_code == 3

    def refuse(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(EnvironmentFault, match="must be writable; got: Operation not supported"):
        go(tmp_path / "run", job)
    assert job.losses == 0


def test_k3_a_disk_that_is_full_for_a_while_costs_checkpoints_only(
    tmp_path: Path, tiny: Any, go: Any, result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best evaluation could not be saved, so an older one that was is used."""
    real = Checkpoints.save

    def save(self: Checkpoints, job: Any, optimizer: Any, progress: Any) -> None:
        if progress.step in (8, 12):
            raise EnvironmentFault("cannot be written: No space left on device.", where="disk")
        real(self, job, optimizer, progress)

    monkeypatch.setattr(Checkpoints, "save", save)
    job = tiny()
    values = iter([5.0, 1.0, 4.0, 6.0, 4.0])
    job.at_evaluation.update({n: lambda: next(values) for n in range(1, 6)})
    go(tmp_path / "run", job, checkpoint_steps=8)
    best = load_tensors(tmp_path / "run/checkpoints/step-000000018/model.safetensors")
    model = load_tensors(tmp_path / "run/model/model.safetensors")
    assert all(torch.equal(best[name], model[name]) for name in best)


def test_k3_three_failures_in_a_row_end_the_run(
    tmp_path: Path, tiny: Any, go: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*_: Any) -> None:
        raise EnvironmentFault("cannot be written: No space left on device.", where="disk")

    monkeypatch.setattr(Checkpoints, "save", save)
    job = tiny()
    with pytest.raises(EnvironmentFault, match="3 checkpoints in a row could not be") as caught:
        go(tmp_path / "run", job, checkpoint_steps=4)
    assert caught.value.exit_code == 3
    assert job.losses == 8


def test_k3_a_stop_that_cannot_be_saved_does_not_say_saved(
    tmp_path: Path, tiny: Any, go: Any, cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*_: Any) -> None:
        raise EnvironmentFault("cannot be written: No space left on device.", where="disk")

    monkeypatch.setattr(Checkpoints, "save", save)
    job = tiny()
    job.at_loss[2] = cut.stop
    with pytest.raises(EnvironmentFault, match="stopped at step 2, which could not be saved"):
        go(tmp_path / "run", job)
