"""From the items of a sequence to one vector: attention, their mean, their maximum."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.pooling import AttentionPooling
from regard.errors import MechanismError, did_you_mean


class Pooled(NamedTuple):
    """One vector for each row, and how much each item had to do with it.

    Args:
        context: The vector; zero for a row without items.
        weights: The share of each item, which sum to one; zero where the mask hides it.
    """

    context: Float[Tensor, "batch dim"]
    weights: Float[Tensor, "batch items"]


class WeightedPool(nn.Module):
    """Pool by attention: the context is the weighted sum of the items.

    Args:
        attention: The attention.
    """

    def __init__(self, attention: AttentionPooling) -> None:
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
        weights = mask / mask.sum(dim=1, keepdim=True).clamp(min=1)
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
        weights = (given / items.shape[-1]).masked_fill(~mask, 0.0)
        return Pooled(context, weights)


POOLS = ("attention", "mean", "max")
"""The poolings by name."""


def build_pool(
    name: str,
    dim: int,
    *,
    hidden_dim: int | None = None,
    gated: bool = False,
    selection: str = "softmax",
) -> nn.Module:
    """Build a pooling by its name.

    Args:
        name: One of `POOLS`.
        dim: Size of the items.
        hidden_dim: Size of the layer inside the attention; by default that of the items.
        gated: Whether that layer has a gate.
        selection: How the scores of the attention become weights.

    Returns:
        The pooling, which takes items and their mask, and gives a `Pooled`.

    Raises:
        MechanismError: The name is unknown, or a size is below 1.
    """
    if name == "attention":
        return WeightedPool(
            AttentionPooling(dim, hidden_dim=hidden_dim, gated=gated, selection=selection)
        )
    if name not in POOLS:
        raise MechanismError(f"pooling must be known; got {name!r}; {did_you_mean(name, POOLS)}.")
    return MeanPool() if name == "mean" else MaxPool()
