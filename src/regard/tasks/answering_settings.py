"""Settings of an answering config, and of a model that answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict
from regard.models.memory_network import MemoryNetworkSettings
from regard.training.settings import Count, TrainingSettings

Files = str | Annotated[list[str], Field(min_length=1, max_length=10_000)]
Words = list[Annotated[str, Field(min_length=1, max_length=1000)]]


def names(files: Files) -> list[str]:
    """Return files as a list, also where there is but one."""
    return [files] if isinstance(files, str) else list(files)


class AnsweringDataSettings(Strict):
    """Where the stories are.

    Args:
        train: A file in the format of the bAbI tasks, or a list of them.
        dev: The same, to watch the training; left out, the training stories serve.
        test: The same, for `regard evaluate`.
        encoding: How the files are encoded.
        language: Language tag of the stories.
        kind: How a sentence is cut: "words", "chinese" or "characters".
    """

    train: Files
    dev: Files | None = None
    test: Files | None = None
    encoding: str = "utf-8-sig"
    language: str | None = None
    kind: Literal["words", "chinese", "characters"] = "words"


class AnsweringTrainingSettings(TrainingSettings):
    """How to train a memory network: as its authors did.

    Their rate of 0.01 and their bound of 40 on the gradient are those of a sum over 32 questions,
    and so 32 times and a 32nd of them are those of a mean.
    """

    epochs: Count = 100
    batch_sentences: Count = 32
    optimizer: Literal["adam", "adamw", "sgd"] = "sgd"
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0)] = 0.32
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt", "halving"] = "halving"
    clip_norm: Annotated[float, Field(ge=0.0, le=10**6)] = 0.0
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    evaluate_epochs: Count = 10
    select: Literal["best", "last", "average"] = "last"


class AnsweringSettings(Strict):
    """An answering config.

    Args:
        task: "answering".
        metric: By which evaluations are compared: "error", in percent.
        restarts: How many models are trained together, drawn apart; the one of the least error on
            the training questions answers.
        linear_epochs: Epochs, the first ones, without the softmax over the memory, at half the
            learning rate.
        clip: Largest norm of the gradient, of each restart and each parameter by itself; 0 leaves
            it as it is.
        data: The stories.
        model: What the model is made of.
        training: How it is trained.
    """

    task: Literal["answering"]
    metric: Literal["error"] = "error"
    restarts: Annotated[int, Field(ge=1, le=1000)] = 10
    linear_epochs: Annotated[int, Field(ge=0, le=10**6)] = 20
    clip: Annotated[float, Field(ge=0.0, le=10**6)] = 1.25
    data: AnsweringDataSettings
    model: MemoryNetworkSettings = MemoryNetworkSettings()
    training: AnsweringTrainingSettings = AnsweringTrainingSettings()


class AnswererSettings(Strict):
    """What a model's `config.json` holds.

    Args:
        task: "answering".
        language: Language tag of the stories.
        kind: How a sentence is cut.
        words: The words that it knows.
        answers: The answers that it chooses from.
        restarts: How many models lie in the file, of which one answers.
        model: What each is made of.
    """

    task: Literal["answering"]
    language: str | None
    kind: Literal["words", "chinese", "characters"]
    words: Annotated[Words, Field(max_length=1_000_000)]
    answers: Annotated[Words, Field(min_length=1, max_length=1_000_000)]
    restarts: Annotated[int, Field(ge=1, le=1000)]
    model: MemoryNetworkSettings
