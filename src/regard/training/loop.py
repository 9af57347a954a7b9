"""The loop: batches, losses, steps; evaluations, checkpoints, stops."""

from __future__ import annotations

import contextlib
import json
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.errors import (
    DivergedError,
    EnvironmentFault,
    Interrupted,
    ResumeError,
    UserError,
)
from regard.saving import save_tensors, write_file, write_folder
from regard.training.checkpoint import MODEL, Checkpoints, Progress, load_weights, versions
from regard.training.identity import compare
from regard.training.job import Job
from regard.training.lock import RunLock
from regard.training.log import Log
from regard.training.schedule import factor
from regard.training.settings import TrainingSettings
from regard.training.signals import SignalWatch, StopRequested
from regard.training.steps import Stepper

RUN = "run.json"
_MAX_FAILED_SAVES = 3


class Outcome(NamedTuple):
    """How a training ended.

    Args:
        folder: Where the model lies.
        steps: Steps made.
        metrics: The metrics of the weights that became the model.
    """

    folder: Path
    steps: int
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where to train, and whether to go on.

    Args:
        folder: The run's folder; the model ends up in its `model`.
        resume: Whether to go on from the newest checkpoint in the folder.
        allow_change: Fields of the job's identity that may differ from those of the checkpoint.
        quiet: Whether to show nothing.
    """

    folder: Path
    resume: bool = False
    allow_change: tuple[str, ...] = ()
    quiet: bool = False


def train(
    job: Job,
    settings: TrainingSettings,
    options: RunOptions,
    *,
    notes: Mapping[str, Any] | None = None,
) -> Outcome:
    """Train a model, stop when asked to, and go on as if nothing had happened.

    Args:
        job: What is trained, and on what.
        settings: How.
        options: Where, and whether to go on.
        notes: Written to the folder's `run.json`, for those who evaluate the run later.

    Returns:
        How it ended.

    Raises:
        UserError: The folder holds a run and `resume` is not asked for.
        ResumeError: The run cannot go on with what has changed.
        EnvironmentFault: The disk is full, the folder is held by another process.
        DivergedError: Loss or gradient were not finite too often in a row.
        Interrupted: A signal came; a checkpoint was saved.
    """
    with RunLock(options.folder), SignalWatch() as watch:
        if notes is not None:
            write_file(options.folder / RUN, json.dumps(notes, indent=1, sort_keys=True) + "\n")
        return _Run(job, settings, options, watch).go()


class _Run:
    """One training: what it holds while it runs."""

    def __init__(
        self, job: Job, settings: TrainingSettings, options: RunOptions, watch: SignalWatch
    ) -> None:
        self.job, self.settings, self.options, self.watch = job, settings, options, watch
        self.folder = Path(options.folder)
        self.checkpoints = Checkpoints(self.folder)
        self.stepper = Stepper(job, settings)
        self.total = sum(job.steps(epoch) for epoch in range(settings.epochs))
        self.progress = Progress(identity=job.identity)
        self.failed_saves = 0

    def go(self) -> Outcome:
        faults = self._restore()
        with Log(self.folder, step=self.progress.step, quiet=self.options.quiet) as self.log:
            for fault in faults:
                self.log.say(f"{fault} An earlier checkpoint is used.")
            try:
                self._epochs()
            except StopRequested:
                raise self._interrupted() from None
            return self._finish()

    def _restore(self) -> list[str]:
        existing = self.checkpoints.steps()
        if not self.options.resume:
            if existing:
                raise UserError(
                    f"holds a run of {existing[-1]} steps. Add --resume, or choose another folder.",
                    where=str(self.folder),
                )
            return []
        step, faults = self.checkpoints.newest()
        if step is None:
            if faults:
                raise ResumeError(f"no checkpoint is whole; {faults[0]}", where=str(self.folder))
            return []
        self.progress = self.checkpoints.restore(step, self.job, self.stepper.optimizer)
        compare(self.progress.identity, self.job.identity, allowed=self.options.allow_change)
        self.progress.identity = self.job.identity
        return faults

    def _epochs(self) -> None:
        progress, settings = self.progress, self.settings
        while progress.epoch < settings.epochs and not progress.finished:
            self._epoch(progress.epoch)
            last = progress.epoch + 1 == settings.epochs
            if last or (progress.epoch + 1) % settings.evaluate_epochs == 0:
                self._evaluate()
            progress.epoch += 1
            progress.position = 0
            progress.epoch_ends.append(progress.step)
            progress.finished = 0 < settings.patience <= progress.waiting
            self._save()
            self.watch.poll()

    def _epoch(self, epoch: int) -> None:
        progress, steps = self.progress, self.job.steps(epoch)
        if progress.position >= steps:
            return
        self.job.model.train()
        with contextlib.closing(self.job.batches(epoch, progress.position)) as batches:
            for batch in batches:
                self._step(batch)
                progress.position += 1
                self.log.show(epoch, progress.position, steps, self._mean("loss"))
                if progress.step % self.settings.checkpoint_steps == 0:
                    self._save()
                self.watch.poll()
        self._log_training()

    def _step(self, batch: Any) -> None:
        progress = self.progress
        rate = self.settings.learning_rate * factor(
            progress.step,
            schedule=self.settings.schedule,
            warmup=self.settings.warmup_steps,
            total=self.total,
        )
        made = self.stepper.step(batch, rate)
        progress.step += 1
        if made is None:
            progress.skipped += 1
            return
        if not made.finite:
            self._not_finite(batch, made.sums)
            return
        progress.not_finite = 0
        for name, value in made.sums.items():
            progress.sums[name] = progress.sums.get(name, 0.0) + value

    def _not_finite(self, batch: Any, sums: dict[str, float]) -> None:
        progress = self.progress
        progress.not_finite += 1
        progress.rejected += 1
        examples = self.job.describe(batch)
        self.log.write("not_finite", step=progress.step, loss=sums.get("loss"), examples=examples)
        self.log.say(f"step {progress.step}: loss or gradient is not finite; not applied.")
        if progress.not_finite >= self.settings.max_nan:
            raise DivergedError(
                f"loss and gradients must be finite; {progress.not_finite} steps in a row were "
                f"not. Lower learning_rate; the last batch held {examples}.",
                where=f"step {progress.step}",
            )

    def _evaluate(self) -> None:
        progress = self.progress
        metrics = self._measured()
        metric = metrics[self.job.metric]
        value = (
            -math.inf if math.isnan(metric) else metric * (1 if self.job.higher_is_better else -1)
        )
        if math.isfinite(value) and (progress.best is None or value > progress.best):
            progress.best, progress.best_step, progress.waiting = value, progress.step, 0
        else:
            progress.waiting += 1
        shown = "  ".join(f"{name} {number:.4g}" for name, number in metrics.items())
        mark = "  (best so far)" if progress.best_step == progress.step else ""
        self.log.write("evaluation", step=progress.step, epoch=progress.epoch + 1, **metrics)
        self.log.say(f"epoch {progress.epoch + 1}  step {progress.step}  {shown}{mark}")

    def _measured(self) -> dict[str, float]:
        """Evaluate without touching the random state of the training."""
        state = torch.get_rng_state()
        self.job.model.eval()
        try:
            with torch.no_grad():
                return self.job.evaluate(self.watch.poll)
        finally:
            torch.set_rng_state(state)

    def _mean(self, name: str) -> float | None:
        count = self.progress.sums.get("count", 0.0)
        return self.progress.sums.get(name, 0.0) / count if count else None

    def _log_training(self) -> None:
        progress = self.progress
        means = {name: self._mean(name) for name in progress.sums if name != "count"}
        self.log.write(
            "training",
            step=progress.step,
            epoch=progress.epoch + 1,
            skipped=progress.skipped,
            rejected=progress.rejected,
            **means,
        )
        progress.sums = {}

    def _save(self) -> None:
        """Save a checkpoint; a full disk does not end the training at once."""
        try:
            self.checkpoints.save(self.job, self.stepper.optimizer, self.progress)
        except EnvironmentFault as fault:
            self.failed_saves += 1
            self.log.say(f"checkpoint not saved: {fault}")
            if self.failed_saves >= _MAX_FAILED_SAVES:
                raise
            return
        self.failed_saves = 0
        self.checkpoints.rotate(self._protected(), self.settings.keep)

    def _protected(self) -> set[int]:
        steps = {self.progress.best_step}
        if self.settings.select == "average":
            steps.update(self.progress.epoch_ends[-self.settings.average :])
        return steps

    def _interrupted(self) -> Interrupted:
        self._save()
        number = signal.SIGTERM if self.watch.received == signal.SIGUSR1 else self.watch.received
        return Interrupted(
            f"stopped at step {self.progress.step}, saved. Go on with --resume.",
            signal_number=int(number or signal.SIGTERM),
        )

    def _finish(self) -> Outcome:
        progress, model = self.progress, self.job.model
        if self.settings.select == "average":
            steps = progress.epoch_ends[-self.settings.average :]
            model.load_state_dict(self.checkpoints.averaged(steps))
        elif self.settings.select == "best" and progress.best is not None:
            load_weights(model, self.checkpoints.path(progress.best_step) / MODEL)
        metrics = self._measured()
        target = self.folder / "model"
        write_folder(target, self._fill_model, versions=versions(), overwrite=True)
        self.log.write("finished", step=progress.step, **metrics)
        return Outcome(target, progress.step, metrics)

    def _fill_model(self, folder: Path) -> None:
        self.job.write(folder)
        save_tensors(folder / MODEL, self.job.model.state_dict())
