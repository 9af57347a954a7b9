"""Settings of a training, whatever is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict

Count = Annotated[int, Field(ge=1, le=10**9)]


class TrainingSettings(Strict):
    """How to train.

    Args:
        epochs: Passes over the data.
        batch_tokens: Most tokens in a batch, padding included, on the longer side.
        batch_sentences: Most examples in a batch.
        optimizer: "adam", "adamw" (with `weight_decay`), or "sgd", plain gradient descent.
        learning_rate: The highest rate.
        schedule: After the warm-up: "constant", "linear" to zero at the last step, "cosine" to
            zero, "inverse_sqrt", or "halving" after each quarter of the steps.
        warmup_steps: Steps over which the rate rises from zero.
        beta1: Adam's decay rate of the mean.
        beta2: Adam's decay rate of the square.
        weight_decay: Decoupled weight decay, for "adamw".
        clip_norm: Largest norm of the gradient; 0 leaves it as it is.
        label_smoothing: Share of the probability spread over the vocabulary.
        precision: "float32", or "bfloat16" by autocast.
        seed: Of everything random.
        workers: Processes that load data; 0 loads in the training process.
        threads: Threads of a matrix product; 0 leaves PyTorch's choice.
        device: "cpu", "cuda", "cuda:1", "mps", or "auto".
        checkpoint_steps: Steps between checkpoints; one is always saved after an epoch.
        keep: Checkpoints kept beside the best one and those to be averaged.
        evaluate_epochs: Epochs between evaluations.
        patience: Evaluations without a better metric before training stops; 0 never stops.
        select: Which weights become the model: those of the "best" evaluation, the "last" ones,
            or the "average" of the last `average` epochs.
        average: How many epochs are averaged.
        max_nan: Steps in a row whose loss or gradient is not finite before training gives up.
    """

    epochs: Count = 10
    batch_tokens: Count = 2048
    batch_sentences: Count = 256
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0)] = 1e-3
    schedule: Literal["constant", "linear", "cosine", "inverse_sqrt", "halving"] = "linear"
    warmup_steps: Annotated[int, Field(ge=0, le=10**9)] = 0
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.98
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    clip_norm: Annotated[float, Field(ge=0.0, le=10**6)] = 1.0
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    precision: Literal["float32", "bfloat16"] = "float32"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    device: str = "auto"
    checkpoint_steps: Count = 500
    keep: Count = 2
    evaluate_epochs: Count = 1
    patience: Annotated[int, Field(ge=0, le=10**6)] = 0
    select: Literal["best", "last", "average"] = "best"
    average: Annotated[int, Field(ge=1, le=1000)] = 5
    max_nan: Count = 3
