"""Attention where a layer must return a single tensor: in `nn.Sequential`, in Keras."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.parts import Attended


class ContextOnly(nn.Module):
    """An attention or a pooling that returns its context alone.

    A pooling takes the items, self-attention is made by `itself=True`: then the items ask, and
    are what is asked. Weights are still there to be recorded, as they are of any attention.

    Args:
        attention: An attention or a pooling.
        itself: Whether what comes in is both the query and the items.

    Example:
        >>> import torch
        >>> from regard.attention.pooling import AttentionPooling
        >>> model = nn.Sequential(nn.Linear(4, 8), ContextOnly(AttentionPooling(8)))
        >>> model(torch.ones(2, 5, 4)).shape
        torch.Size([2, 8])
    """

    def __init__(self, attention: nn.Module, *, itself: bool = False) -> None:
        super().__init__()
        self.attention, self.itself = attention, itself

    def forward(
        self, items: Float[Tensor, "batch *items dim"], *more: Any, mask: Any = None
    ) -> Tensor:
        """Attend, and return the context.

        Args:
            items: The items; for an attention that is not of the items themselves, the query.
            more: What else the attention is called with, such as keys and values.
            mask: True = counts.
        """
        given = (items, items) if self.itself else (items, *more)
        attended: Attended = self.attention(*given, mask=mask)
        return attended.context
