"""The loop: batches, losses, steps; evaluations, checkpoints, stops."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch

from regard.errors import DivergedError, EnvironmentFault, Interrupted, UserError
from regard.saving import (
    check_writable,
    remove_leftovers,
    save_tensors,
    verify_folder,
    write_file,
    write_folder,
)
from regard.training.checkpoint import MODEL, Checkpoints, Progress, load_weights, versions
from regard.training.job import Job
from regard.training.lock import RunLock
from regard.training.log import Log
from regard.training.resume import MODEL_FOLDER, check_new, resume
from regard.training.schedule import factor
from regard.training.settings import TrainingSettings
from regard.training.signals import SignalWatch, StopRequested
from regard.training.steps import Stepper, is_out_of_memory

RUN = "run.json"
_MAX_FAILED_SAVES = 3
_GRACE = 0.5  # seconds; a signal to all processes may reach a worker before this one
_NOTHING = object()


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

    A new run draws from PyTorch's global random state as it is: seed it before the model is built,
    as `settings.seed` says, and the same call gives the same model.

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
        try:
            return _Run(job, settings, options, watch).go(notes)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise EnvironmentFault(
                "must suffice for the model, its evaluation and its checkpoints; it did not. "
                "Lower batch_tokens or the model's sizes.",
                where="memory",
            ) from error


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
        self.progress = Progress(identity=job.identity, log_bytes=0)
        self.failed_saves = 0

    def go(self, notes: Mapping[str, Any] | None) -> Outcome:
        if not self.total:
            raise UserError("training data must give at least one batch; got 0. Add examples.")
        notices = self._begin()
        if notes is not None:
            write_file(self.folder / RUN, json.dumps(notes, indent=1, sort_keys=True) + "\n")
        size, quiet = self.progress.log_bytes, self.options.quiet
        with Log(self.folder, size=size, quiet=quiet) as self.log:
            for notice in notices:
                self.log.say(notice)
            try:
                self._epochs()
            except StopRequested:
                self._save_and_stop()
            try:
                return self._finish()
            except StopRequested:  # every epoch is saved, and the weights are now the chosen ones
                raise self._interrupted() from None

    def _begin(self) -> list[str]:
        folder, options = self.folder, self.options
        remove_leftovers(folder)
        remove_leftovers(self.checkpoints.folder)
        if not options.resume:
            check_new(folder)
        check_writable(self.checkpoints.folder)
        if not options.resume:
            return []
        resumed = resume(
            folder,
            self.job,
            self.stepper.optimizer,
            settings=self.settings,
            allowed=options.allow_change,
        )
        if resumed is None:
            return ["no checkpoint to go on from: the run begins at step 0"]
        self.progress = resumed.progress
        return resumed.notices

    def _epochs(self) -> None:
        progress, settings = self.progress, self.settings
        while progress.epoch < settings.epochs and not progress.finished:
            self._epoch(progress.epoch)
            best = progress.best, progress.best_step
            last = progress.epoch + 1 == settings.epochs
            if last or (progress.epoch + 1) % settings.evaluate_epochs == 0:
                self._evaluate()
            progress.epoch += 1
            progress.position = 0
            progress.epoch_ends.append(progress.step)
            progress.finished = 0 < settings.patience <= progress.waiting
            if not self._save() and not self.checkpoints.path(progress.step).exists():
                self._forget(best)
            self.watch.poll()

    def _forget(self, best: tuple[float | None, int]) -> None:
        """Leave out weights that could not be saved: they cannot become the model."""
        progress = self.progress
        progress.epoch_ends.pop()
        if progress.best_step == progress.step:
            progress.best, progress.best_step = best

    def _epoch(self, epoch: int) -> None:
        progress, steps = self.progress, self.job.steps(epoch)
        if progress.position >= steps:
            return
        self.job.model.train()
        with contextlib.closing(self.job.batches(epoch, progress.position)) as batches:
            for batch in self._awaited(batches):
                self._step(batch)
                progress.position += 1
                self.log.show(epoch, progress.position, steps, self._mean("loss"))
                if progress.position == steps:
                    self._log_training()  # before a checkpoint at this step, which holds it then
                if progress.step % self.settings.checkpoint_steps == 0:
                    self._save()
                self.watch.poll()

    def _awaited(self, batches: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """Wait for batches so that a signal ends the waiting; the place in the data is kept."""
        while True:
            try:
                with self.watch.waiting():
                    batch = next(batches, _NOTHING)
            except EnvironmentFault:
                with self.watch.waiting():
                    time.sleep(_GRACE)
                raise
            self.watch.leave_children_alone()
            if batch is _NOTHING:
                return
            yield batch

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
        progress.split += made.split
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
        self.log.say(
            f"step {progress.step}: loss or gradient is not finite; not applied. The batch holds "
            f"{examples}."
        )
        if progress.not_finite >= self.settings.max_nan:
            raise DivergedError(
                f"loss and gradients must be finite; {progress.not_finite} steps in a row were "
                f"not. Lower learning_rate; the last batch held {examples}.",
                where=f"step {progress.step}",
            )

    def _evaluate(self) -> None:
        progress = self.progress
        self._require_finite()
        metrics = self._measured()
        value = self._compared(metrics)
        if math.isfinite(value) and (progress.best is None or value > progress.best):
            progress.best, progress.best_step, progress.waiting = value, progress.step, 0
        else:
            progress.waiting += 1
        mark = "  (best so far)" if progress.best_step == progress.step else ""
        self.log.write("evaluation", step=progress.step, epoch=progress.epoch + 1, **metrics)
        self.log.say(f"epoch {progress.epoch + 1}  step {progress.step}  {_shown(metrics)}{mark}")

    def _compared(self, metrics: dict[str, float]) -> float:
        """Return the metric so that higher is better and NaN is the worst."""
        name = self.job.metric
        if name not in metrics:
            raise UserError(f"metric must be one of {', '.join(sorted(metrics))}; got {name!r}.")
        value = metrics[name] if self.job.higher_is_better else -metrics[name]
        return -math.inf if math.isnan(value) else value

    def _measured(self) -> dict[str, float]:
        """Evaluate without touching the random state of the training."""
        self.job.model.eval()
        devices = range(torch.cuda.device_count())
        with torch.random.fork_rng(devices), torch.no_grad():
            return self.job.evaluate(self.watch.poll)

    def _require_finite(self) -> None:
        for name, parameter in self.job.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise DivergedError(
                    f"weights must be finite; {name} is not. Lower learning_rate; checkpoints "
                    "of earlier steps are as they were.",
                    where=f"step {self.progress.step}",
                )

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
            split=progress.split,
            **means,
        )
        progress.sums = {}

    def _save(self) -> bool:
        """Save a checkpoint; a full disk does not end the training at once."""
        self._require_finite()
        self.progress.log_bytes = self.log.size
        try:
            self.checkpoints.save(self.job, self.stepper.optimizer, self.progress)
        except EnvironmentFault as fault:
            self.failed_saves += 1
            self.log.say(f"checkpoint not saved, the training goes on: {fault}")
            if self.failed_saves >= _MAX_FAILED_SAVES:
                raise EnvironmentFault(
                    f"{fault.message} {self.failed_saves} checkpoints in a row could not be "
                    "saved. Make room, then go on with --resume.",
                    where=fault.where,
                ) from fault
            return False
        self.failed_saves = 0
        own = self.settings
        self.checkpoints.rotate(keep=own.keep, select=own.select, average=own.average)
        return True

    def _save_and_stop(self) -> NoReturn:
        if not self._save():
            raise EnvironmentFault(
                f"stopped at step {self.progress.step}, which could not be saved. Make room, then "
                "go on with --resume.",
                where=str(self.checkpoints.folder),
            )
        raise self._interrupted()

    def _interrupted(self) -> Interrupted:
        steps = self.checkpoints.steps()
        saved = f"step {steps[-1]} is saved" if steps else "nothing is saved"
        return Interrupted(
            f"stopped by a signal; {saved}. Go on with --resume.",
            signal_number=self.watch.exit_signal,
        )

    def _finish(self) -> Outcome:
        progress = self.progress
        self._choose_weights()
        self._require_finite()
        metrics = self._measured()
        target = self.folder / MODEL_FOLDER
        write_folder(target, self._fill_model, versions=versions(), overwrite=True)
        self.log.write("finished", step=progress.step, **metrics)
        return Outcome(target, progress.step, metrics)

    def _choose_weights(self) -> None:
        progress, select = self.progress, self.settings.select
        chosen = progress.needs(select=select, average=self.settings.average)
        if select == "average" and chosen:
            self.job.model.load_state_dict(self.checkpoints.averaged(sorted(chosen)))
        elif select == "best" and chosen:
            folder = self.checkpoints.path(progress.best_step)
            verify_folder(folder)
            load_weights(self.job.model, folder / MODEL)
        elif select != "last":
            self.log.say("no evaluation was finite or saved; the last weights become the model.")

    def _fill_model(self, folder: Path) -> None:
        self.job.write(folder)
        save_tensors(folder / MODEL, self.job.model.state_dict())


def _shown(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {number:.4g}" for name, number in metrics.items())
