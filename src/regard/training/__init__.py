"""Training: a loop that stops and goes on as if it had never stopped."""

from regard.training.job import Job, Loss
from regard.training.loop import Outcome, RunOptions, train
from regard.training.settings import TrainingSettings

__all__ = ["Job", "Loss", "Outcome", "RunOptions", "TrainingSettings", "train"]
