"""The layer that is inserted: attention over what another layer says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.core import Attention
from regard.attention.multihead import MultiHead
from regard.attention.parts import Mechanism
from regard.attention.pooling import (
    AttentionPooling,
    FeedForwardAttention,
    MultiHeadPooling,
    Pooling,
    StepAttention,
)
from regard.attention.scores import Additive
from regard.errors import MechanismError, ShapeError, did_you_mean
from regard.inside.layouts import Layout, back, items_of

Role = Literal["pooling", "self", "context", "step"]


class Sizes(NamedTuple):
    """What a sample input says of the place where attention is inserted.

    Args:
        features: Size of an item.
        items: How many there were.
        context: Size of what the context's layer says, where there is one.
    """

    features: int
    items: int
    context: int | None


class Placement(NamedTuple):
    """How what is inserted stands in the model.

    Args:
        layout: Where the items are in what the layer says: "sequence" `(batch, items, features)`,
            "time_first", "channels_first" or "grid" `(batch, features, rows, columns)`; by default
            it follows from the layer and its number of axes.
        keep_axes: Whether one vector stays a sequence of one item, or a grid of one cell, so that
            what follows (the last step, a mean over the grid) reads it as it read the items.
        gated: Whether what self-attention adds begins at nothing and is let in by a learned
            number, so that the model says at first what it said before.
    """

    layout: Layout | None = None
    keep_axes: bool = True
    gated: bool = True


Chosen: TypeAlias = str | nn.Module | Callable[[Sizes], nn.Module]


def _self_attention(sizes: Sizes) -> nn.Module:
    heads = next(count for count in (4, 2, 1) if sizes.features % count == 0)
    return MultiHead(heads, sizes.features)


def _from_context(sizes: Sizes) -> nn.Module:
    context = cast(int, sizes.context)  # build has checked it
    score = Additive(context, sizes.features, hidden_dim=min(context, sizes.features))
    return Attention(score)


INSERTS: dict[str, Callable[[Sizes], nn.Module]] = {
    "attention_pooling": lambda sizes: AttentionPooling(sizes.features),
    "context": _from_context,
    "feed_forward": lambda sizes: FeedForwardAttention(sizes.features),
    "multihead": lambda sizes: MultiHeadPooling(
        sizes.features, next(count for count in (4, 2, 1) if sizes.features % count == 0)
    ),
    "self": _self_attention,
    "step": lambda sizes: StepAttention(sizes.items),
}


def build(chosen: Chosen, sizes: Sizes) -> nn.Module:
    """Build what is inserted, of the sizes at its place.

    Args:
        chosen: A name of `INSERTS`, an attention, or a function that makes one of the sizes.
        sizes: The sizes.

    Raises:
        MechanismError: The name is unknown, a context is missing, or it is no attention of regard.
    """
    if isinstance(chosen, str):
        if chosen not in INSERTS:
            known = did_you_mean(chosen, INSERTS)
            raise MechanismError(f"attention must be a known name; got {chosen!r}. {known}")
        if (chosen == "context") != (sizes.context is not None):
            raise MechanismError(
                f"attention must be 'context' where a context is named, and only there; got "
                f"{chosen!r}. Name both, or neither."
            )
        return INSERTS[chosen](sizes)
    module = chosen if isinstance(chosen, nn.Module) else chosen(sizes)
    if not isinstance(module, Pooling | MultiHeadPooling | StepAttention | Mechanism):
        raise MechanismError(
            f"attention must be a pooling, an Attention or a MultiHead; got "
            f"{type(module).__name__}. Build one of regard's."
        )
    return module


def role_of(module: nn.Module, *, context: bool) -> Role:
    """Say what an attention does at its place.

    Raises:
        MechanismError: It has no query, and a context is named.
    """
    if isinstance(module, Mechanism):
        return "context" if context else "self"
    if context:
        raise MechanismError(
            f"attention must have a query where a context is named; got {type(module).__name__}. "
            f"Use an Attention, or name no context."
        )
    return "step" if isinstance(module, StepAttention) and module.reduce is None else "pooling"


class Inserted(nn.Module):
    """Attention over the items that a layer says.

    A pooling makes one item of all, `z = Σ_j α_j h_j`; self-attention adds to each item what it
    reads from all, `h_i + g Σ_j α_ij h_j`, the gate `g` a learned number that begins at 0; steps
    are weighed by themselves, `α_jf h_jf`; with a context, its items ask and read.

    Args:
        attention: What attends.
        role: What it does.
        placement: How it stands in the model; its layout must be given.
    """

    def __init__(self, attention: nn.Module, role: Role, placement: Placement) -> None:
        super().__init__()
        if placement.layout is None:
            raise MechanismError("layout must be given; got None. Name one.")
        self.attention, self.role = attention, role
        self.layout: Layout = placement.layout
        self.keep_axes = placement.keep_axes
        gated = role == "self" and placement.gated
        self.gate = nn.Parameter(torch.zeros(())) if gated else None

    def forward(
        self,
        output: Tensor,
        *,
        lengths: Tensor | None = None,
        mask: Bool[Tensor, "batch items"] | None = None,
        context: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            output: What the layer says, in its layout.
            lengths: Items of each row, where it was a packed sequence.
            mask: True = counts.
            context: What the context's layer says, `(batch, features)` or with its items second.

        Returns:
            What is said in its place, and the lengths that it has now.

        Raises:
            ShapeError: The layer or the context says something of another shape.
        """
        items = items_of(output, self.layout)
        if mask is None and lengths is not None:
            mask = masks.lengths(lengths.to(items.device), items.shape[1])
        read = self._read(items, mask, context)
        if self.role in ("self", "step") or lengths is None:
            kept = lengths
        else:
            kept = torch.full_like(lengths, read.shape[1])
        if self.role == "pooling" and not self.keep_axes:
            return read.squeeze(1), kept
        return back(read, self.layout, output.shape), kept

    def _read(
        self,
        items: Float[Tensor, "batch items features"],
        mask: Tensor | None,
        context: Tensor | None,
    ) -> Float[Tensor, "batch read features"]:
        if self.role == "context":
            if context is None:
                raise ShapeError(
                    "context must be said before it is asked for; got nothing. Name a layer that "
                    "runs earlier in the same forward pass."
                )
            query = context.unsqueeze(1) if context.dim() == 2 else context
            answered: Tensor = self.attention(query, items, mask=mask).context
            return answered
        if self.role == "self":
            found: Tensor = self.attention(items, items, mask=mask).context
            return items + (found if self.gate is None else self.gate.to(found.dtype) * found)
        attended: Tensor = self.attention(items, mask=mask).context
        return attended.unsqueeze(1) if attended.dim() == 2 else attended
