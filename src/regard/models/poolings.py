"""From the items of a sequence to one vector: attentions, their mean, their maximum, the last."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.pooling import (
    AttentionPooling,
    FeedForwardAttention,
    MultiHeadPooling,
    StepAttention,
)
from regard.errors import MechanismError, ShapeError, did_you_mean


class Pooled(NamedTuple):
    """One vector for each row, and how much each item had to do with it.

    Args:
        context: The vector; zero for a row without items.
        weights: The share of each item, which sum to one; zero where the mask hides it. Where there
            are heads, they come second.
    """

    context: Float[Tensor, "batch dim"]
    weights: Float[Tensor, "batch *heads items"]


class WeightedPool(nn.Module):
    """Pool by attention: the weighted sum of the items, or of heads over them.

    Args:
        attention: The attention.
    """

    def __init__(
        self, attention: AttentionPooling | FeedForwardAttention | MultiHeadPooling
    ) -> None:
        super().__init__()
        self.attention = attention

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "batch items"]
    ) -> Pooled:
        """Pool the items that the mask shows."""
        attended = self.attention(items, mask=mask)
        return Pooled(attended.context, attended.weights)


class MeanPool(nn.Module):
    """The mean of the items: all have the same weight."""

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "batch items"]
    ) -> Pooled:
        """Pool the items that the mask shows."""
        weights = mask.to(_at_least_single(items)) / mask.sum(dim=1, keepdim=True).clamp(min=1)
        real = items.masked_fill(~mask.unsqueeze(-1), 0.0)
        context = (real * weights.unsqueeze(-1)).sum(dim=1)
        return Pooled(context.to(items.dtype), weights)


class MaxPool(nn.Module):
    """The largest value of each feature; an item's weight is its share of the features.

    Here a weight is how many features an item gave: the context is not the weighted sum of the
    items, and no gradient flows through a weight.
    """

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "batch items"]
    ) -> Pooled:
        """Pool the items that the mask shows."""
        hidden = ~mask.unsqueeze(-1)
        empty = ~mask.any(dim=1)
        if not items.shape[1]:
            return Pooled(items.sum(dim=1), items.new_zeros(mask.shape))
        largest, places = items.masked_fill(hidden, float("-inf")).max(dim=1)  # (batch, dim)
        context = largest.masked_fill(empty.unsqueeze(-1), 0.0)
        given = nn.functional.one_hot(places, items.shape[1]).sum(dim=1)  # (batch, items)
        shares = given.to(_at_least_single(items)) / items.shape[-1]
        weights = shares.masked_fill(~mask, 0.0)
        return Pooled(context, weights)


def _at_least_single(items: Tensor) -> torch.dtype:
    return torch.promote_types(items.dtype, torch.float32)


class LastPool(nn.Module):
    """The last item alone: of a recurrent encoder in one direction, its state after all steps."""

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "batch items"]
    ) -> Pooled:
        """Pool the items that the mask shows."""
        behind = mask.flip(1).cumsum(dim=1).flip(1)  # how many follow, itself included
        last = mask & (behind == 1)
        real = items.masked_fill(~last.unsqueeze(-1), 0.0)
        return Pooled(real.sum(dim=1), last.to(_at_least_single(items)))


class StepPool(nn.Module):
    """Pool by attention over steps that have a fixed place: see `StepAttention`.

    All features share one distribution, so that a step has one weight.

    Args:
        steps: How many steps there are at most; shorter sequences are padded under the mask.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.attention = StepAttention(steps, shared=True, reduce="sum")

    def forward(
        self, items: Float[Tensor, "batch items dim"], mask: Bool[Tensor, "batch items"]
    ) -> Pooled:
        """Pool the items that the mask shows.

        Raises:
            ShapeError: There are more steps than it was built for.
        """
        count, steps = items.shape[1], self.attention.steps
        if count > steps:
            raise ShapeError(
                f"items must be at most the steps of the pooling, {steps}; got {count}. Cut the "
                "sequences, or build it for more steps."
            )
        missing = steps - count
        padded = nn.functional.pad(items, (0, 0, 0, missing))
        shown = nn.functional.pad(mask, (0, missing), value=False)
        attended = self.attention(padded, mask=shown)
        return Pooled(attended.context, attended.weights[:, :count])


POOLS = ("attention", "feed_forward", "step", "multihead", "mean", "max", "last")
"""The poolings by name."""


def build_pool(
    name: str,
    dim: int,
    *,
    hidden_dim: int | None = None,
    gated: bool = False,
    selection: str = "softmax",
    num_heads: int = 4,
    steps: int | None = None,
) -> nn.Module:
    """Build a pooling by its name.

    Args:
        name: One of `POOLS`.
        dim: Size of the items.
        hidden_dim: Size of the layer inside the attention; by default that of the items.
        gated: Whether that layer has a gate.
        selection: How the scores of an attention become weights; that of "step" is a softmax.
        num_heads: How many heads "multihead" has.
        steps: How many steps "step" is built for.

    Returns:
        The pooling, which takes items and their mask, and gives a `Pooled`.

    Raises:
        MechanismError: The name is unknown, a size is below 1, or heads do not divide it.
    """
    plain: dict[str, type[nn.Module]] = {"mean": MeanPool, "max": MaxPool, "last": LastPool}
    if name in plain:
        return plain[name]()
    if name == "attention":
        return WeightedPool(
            AttentionPooling(dim, hidden_dim=hidden_dim, gated=gated, selection=selection)
        )
    if name == "feed_forward":
        return WeightedPool(FeedForwardAttention(dim, selection=selection))
    if name == "multihead":
        return WeightedPool(MultiHeadPooling(dim, num_heads, selection=selection))
    if name == "step":
        return StepPool(_checked_steps(steps))
    raise MechanismError(f"pooling must be known; got {name!r}; {did_you_mean(name, POOLS)}.")


def _checked_steps(steps: int | None) -> int:
    if steps is None:
        raise MechanismError(
            'steps must be given for the pooling "step", whose steps have a fixed place; got None. '
            "Give the length of the longest sequence."
        )
    return steps
