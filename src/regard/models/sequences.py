"""Sequences of vectors of numbers read by attention: from time series to labels or values."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Strict
from regard.errors import ShapeError, UserError
from regard.models.encoder_settings import (
    EmbeddingEncoderSettings,
    EncoderSettings,
    RecurrentEncoderSettings,
    Share,
    Size,
    TransformerEncoderSettings,
    build_encoder,
)
from regard.models.encoders import Encoder, Vectors
from regard.models.poolings import Pooled, build_pool

MAX_STEPS = 100_000
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS)]

_SMALLEST, _LARGEST = 1e-30, 1e30  # spreads whose inverse 32 bits can hold


class SequenceModelSettings(Strict):
    """A whole model of sequences of numbers.

    Args:
        input_dim: Size of the linear layer that every step goes through first.
        encoder: What reads the steps in order; "embedding" takes them as they are, as a set.
        pooling: How the steps become one vector: see `regard.models.poolings`.
        attention_dim: Size of the layer inside "attention"; by default that of the states.
        gated: Whether that layer has a gate.
        selection: How the scores of an attention become weights; "sparsemax" and "entmax" leave
            most steps at zero.
        num_heads: How many heads "multihead" has.
        steps: The length of the longest sequence, for "step", whose steps have a fixed place.
        missing: Whether a missing value (NaN) is an "error", or stands for the "mean" of its
            feature; then every feature has another beside it that says whether it was there.
        dropout: Share of inputs and features dropped in training.
    """

    input_dim: Size = 64
    encoder: EncoderSettings = RecurrentEncoderSettings(hidden_dim=64)
    pooling: Literal[
        "attention", "feed_forward", "step", "multihead", "mean", "max", "last"
    ] = "attention"  # fmt: skip
    attention_dim: Size | None = None
    gated: bool = False
    selection: Literal["softmax", "sparsemax", "entmax"] = "softmax"
    num_heads: Size = 4
    steps: Steps | None = None
    missing: Literal["error", "mean"] = "error"
    dropout: Share = 0.1

    @model_validator(mode="after")
    def _heads_divide(self) -> SequenceModelSettings:
        pooled = (self.num_heads, self.out_dim) if self.pooling == "multihead" else (1, 1)
        read = (getattr(self.encoder, "num_heads", 1), self.input_dim)
        for heads, dim in (pooled, read):
            if dim % heads:
                raise ValueError(
                    f"num_heads must divide the size of what the heads read; got {heads} and "
                    f"{dim}. Change one"
                )
        return self

    @model_validator(mode="after")
    def _steps_given(self) -> SequenceModelSettings:
        if self.pooling == "step" and self.steps is None:
            raise ValueError(
                'steps must be given for pooling = "step", whose steps have a fixed place; it is '
                "missing. Give the length of the longest sequence"
            )
        return self

    @model_validator(mode="after")
    def _last_has_seen_all(self) -> SequenceModelSettings:
        if self.pooling == "last" and getattr(self.encoder, "bidirectional", False):
            raise ValueError(
                'encoder.bidirectional must be false for pooling = "last": read backwards, the '
                "last step has seen no other; got true. Set it to false"
            )
        return self

    @property
    def out_dim(self) -> int:
        """Size of a step as the encoder gives it."""
        part = self.encoder
        if isinstance(part, EmbeddingEncoderSettings | TransformerEncoderSettings):
            return self.input_dim
        twice = isinstance(part, RecurrentEncoderSettings) and part.bidirectional
        return part.hidden_dim * (2 if twice else 1)


class Standardisation(nn.Module):
    """Bring each feature to mean 0 and spread 1: `(x - mean) / sd`, of the data it was set by.

    The mean is kept in two parts, as a single one of 32 bits would lose what large numbers such as
    seconds since 1970 differ in. A feature that was constant says nothing, and becomes 0 whatever
    it is later.

    Args:
        features: How many features.
    """

    mean: Tensor
    rest: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("rest", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    @torch.no_grad()
    def fit(self, values: Float[Tensor, "rows features"]) -> None:
        """Take mean and spread from data.

        Args:
            values: All steps of all sequences; NaN is left out.

        Raises:
            UserError: A value is infinite, or far too large or too small.
        """
        values = values.double()
        there = ~values.isnan()
        count = there.sum(dim=0).clamp(min=1)
        mean = values.nansum(dim=0) / count
        centred = (values - mean).masked_fill(~there, 0.0)
        spread = (centred.square().sum(dim=0) / count).sqrt()
        # What rounding alone makes of equal numbers is no spread.
        constant = spread <= 1e-13 * mean.abs()
        wrong = ~(constant | ((spread > _SMALLEST) & (spread < _LARGEST)))
        if bool(wrong.any()):
            place = int(wrong.nonzero()[0])
            raise UserError(
                f"values must be finite, and differ by {_SMALLEST:g} to {_LARGEST:g}; those of "
                f"feature {place} differ by {float(spread[place]):g}. Scale them."
            )
        scale = spread.masked_fill(constant, 1.0).reciprocal().masked_fill(constant, 0.0)
        self.mean.copy_(mean)
        self.rest.copy_(mean - self.mean.double())
        self.scale.copy_(scale)

    def forward(self, values: Float[Tensor, "*lead features"]) -> Float[Tensor, "*lead features"]:
        """Standardise values, best given in 64 bits."""
        return (values - self.mean - self.rest) * self.scale

    def back(self, values: Float[Tensor, "*lead features"]) -> Float[Tensor, "*lead features"]:
        """Undo it: from standardised numbers to those of the data."""
        spread = self.scale.masked_fill(self.scale == 0, float("inf")).reciprocal()
        return values * spread + self.rest + self.mean


class SequenceReading(NamedTuple):
    """What a model makes of sequences.

    Args:
        outputs: A score for each label, or a standardised value for each target.
        weights: The weight of each step, which sum to one; heads come second where there are some.
    """

    outputs: Float[Tensor, "batch outputs"]
    weights: Float[Tensor, "batch *heads steps"]


class SequenceModel(nn.Module):
    """Vectors of numbers in order, read and weighed: `y = V Σ_t α_t encoder(W x)_t + b`.

    Every step is standardised, goes through a linear layer and the encoder; a pooling makes one
    vector of all steps, whose weights say which counted; a linear layer makes scores of labels or
    values of it. What the mask hides may hold anything. A sequence without steps is a vector of
    zeros.

    Args:
        features: How many numbers a step has.
        encoder: What reads the steps in order, after the linear layer.
        pooling: What makes one vector of them.
        outputs: How many labels or values there are.
        missing: Whether NaN stands for a mean, and is told by a feature beside.
        dropout: Probability of dropping a feature of a sequence.

    Attributes:
        inputs: The standardisation of the features.
        targets: That of the values, where values are foretold; else it changes nothing.
    """

    def __init__(
        self,
        features: int,
        encoder: Encoder,
        pooling: nn.Module,
        *,
        input_dim: int,
        outputs: int,
        missing: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.features, self.missing = features, missing
        self.inputs, self.targets = Standardisation(features), Standardisation(outputs)
        self.projection = nn.Linear(features * (2 if missing else 1), input_dim)
        self.encoder, self.pooling = encoder, pooling
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(encoder.out_dim, outputs)

    def forward(
        self, values: Float[Tensor, "batch steps features"], mask: Bool[Tensor, "batch steps"]
    ) -> SequenceReading:
        """Read sequences.

        Args:
            values: The sequences, padded; in 64 bits where numbers are large.
            mask: True for the steps of each, which come first.

        Returns:
            Scores or standardised values, and the weights of the steps.

        Raises:
            ShapeError: There is another number of features, or the pooling has fewer steps.
        """
        _check_values(values, mask, self.features)
        hidden = ~mask.unsqueeze(-1)
        clean = self.inputs(values.masked_fill(hidden, 0.0)).to(self.projection.weight.dtype)
        if self.missing:
            gone = clean.isnan()
            clean = torch.cat([clean.masked_fill(gone, 0.0), gone.to(clean.dtype)], dim=-1)
        states = self.encoder(self.projection(clean), mask).memory
        pooled: Pooled = self.pooling(states, mask)
        outputs: Tensor = self.output(self.dropout(pooled.context))
        return SequenceReading(outputs, pooled.weights)


def _check_values(values: Tensor, mask: Tensor, features: int) -> None:
    if values.dim() != 3 or values.shape[-1] != features or mask.shape != values.shape[:2]:
        raise ShapeError(
            f"values must have shape (batch, steps, features={features}), and the mask the first "
            f"two of it; got {tuple(values.shape)} and {tuple(mask.shape)}. Check the features."
        )


def build_sequence_model(
    settings: SequenceModelSettings, *, features: int, outputs: int
) -> SequenceModel:
    """Build a model of sequences.

    Args:
        settings: What it is made of.
        features: How many numbers a step has.
        outputs: How many labels or values there are.

    Returns:
        The model, its parameters drawn from PyTorch's global generator; it standardises nothing
        before `inputs.fit`, and `targets.fit` where it foretells values.

    Raises:
        MechanismError: Sizes do not go together.
    """
    dim = settings.input_dim
    places = settings.encoder.kind in ("convolution", "transformer")
    own = Vectors(dim, scale=dim**-0.5 if places else 1.0)
    encoder = build_encoder(settings.encoder, own, dropout=settings.dropout)
    pooling = build_pool(
        settings.pooling,
        encoder.out_dim,
        hidden_dim=settings.attention_dim,
        gated=settings.gated,
        selection=settings.selection,
        num_heads=settings.num_heads,
        steps=settings.steps,
    )
    return SequenceModel(
        features,
        encoder,
        pooling,
        input_dim=dim,
        outputs=outputs,
        missing=settings.missing == "mean",
        dropout=settings.dropout,
    )
