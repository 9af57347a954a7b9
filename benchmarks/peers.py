"""Attention layers of other libraries, as `check_attention` calls them.

Each is given what its own documentation asks for: the mask is turned into the layer's form and
polarity, and nothing else is done for it. Where a layer hands back no weights, they are read out
by giving it the identity as values.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

HEADS = 2


def _pairs(mask: Tensor, queries: int) -> Tensor:
    """Give a mask its axis of queries."""
    return mask.unsqueeze(1).expand(-1, queries, -1) if mask.dim() == 2 else mask


class TorchHeads(nn.Module):
    """`nn.MultiheadAttention`, its weights asked for or not."""

    def __init__(self, asked: bool) -> None:
        super().__init__()
        self.query_dim = self.key_dim = 8
        self.inner = nn.MultiheadAttention(8, HEADS, batch_first=True)
        self.asked = asked

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend."""
        value = key if value is None else value
        masks: dict[str, Tensor] = {}
        if mask is not None:
            hidden = ~mask if mask.dtype == torch.bool else mask
            if mask.dim() == 2:
                masks["key_padding_mask"] = hidden
            else:
                hidden = hidden.expand(query.shape[0], -1, -1)
                masks["attn_mask"] = hidden.repeat_interleave(HEADS, dim=0)
        context, weights = self.inner(query, key, value, average_attn_weights=False, **masks)
        if not self.asked:
            context, _ = self.inner(query, key, value, need_weights=False, **masks)
        return context, weights


def sdpa(
    query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`scaled_dot_product_attention`; its mask has the polarity of ours."""
    value = key if value is None else value
    if mask is not None and mask.dim() == 2:
        mask = mask.unsqueeze(1)
    attend = nn.functional.scaled_dot_product_attention
    identity = torch.eye(key.shape[1], dtype=key.dtype).expand(key.shape[0], -1, -1)
    return attend(query, key, value, mask), attend(query, key, identity, mask)


class Sparse(nn.Module):
    """The dot product under a mapping of the entmax package, masked as its users do."""

    def __init__(self, name: str, fill: str) -> None:
        super().__init__()
        self.name, self.fill = name, fill

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend."""
        import entmax

        value = key if value is None else value
        scores = query @ key.transpose(-1, -2)
        if mask is not None:
            lowest = -torch.inf if self.fill == "inf" else torch.finfo(scores.dtype).min
            scores = scores.masked_fill(~(mask.unsqueeze(1) if mask.dim() == 2 else mask), lowest)
        weights = getattr(entmax, self.name)(scores, dim=-1)
        return weights @ value, weights


class XTransformers(nn.Module):
    """The attention of x-transformers, as cross-attention."""

    def __init__(self) -> None:
        super().__init__()
        from x_transformers.x_transformers import Attention

        self.query_dim = self.key_dim = 8
        self.inner = Attention(8, heads=HEADS, dim_head=4, dim_context=8)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend."""
        masks: dict[str, Tensor] = {}
        if mask is not None and mask.dim() == 2:
            masks["context_mask"] = mask
        elif mask is not None:
            masks["attn_mask"] = mask.unsqueeze(1)
        context, seen = self.inner(query, context=key, return_intermediates=True, **masks)
        return context, seen.post_softmax_attn


class Keras(nn.Module):
    """A layer of Keras on its torch backend."""

    def __init__(self, name: str) -> None:
        super().__init__()
        os.environ["KERAS_BACKEND"] = "torch"
        import keras

        self.query_dim = self.key_dim = 8
        self.name = name
        made: dict[str, Callable[[], Any]] = {
            "Attention": keras.layers.Attention,
            "AdditiveAttention": keras.layers.AdditiveAttention,
            "MultiHeadAttention": lambda: keras.layers.MultiHeadAttention(HEADS, 4),
        }
        self.inner = made[name]()
        self(torch.zeros(1, 1, 8), torch.zeros(1, 2, 8))  # it makes its parameters when called

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend."""
        value = key if value is None else value
        if self.name == "MultiHeadAttention":
            mask = None if mask is None else _pairs(mask, query.shape[1])
            return self.inner(query, value, key, attention_mask=mask, return_attention_scores=True)
        if mask is not None and mask.dim() != 2:
            raise NotImplementedError("the layer takes no mask for each query")
        masks = None if mask is None else [None, mask]
        return self.inner([query, value, key], mask=masks, return_attention_scores=True)


class Peer(NamedTuple):
    """A layer, where it comes from, and the checks that ask for what it does not offer."""

    package: str
    make: Callable[[], Callable[..., Any]]
    left_out: tuple[str, ...] = ()


# A query without its axis is our convention, and no promise of theirs.
AXIS = ("single_queries_need_no_axis",)
# Keras fixes the type when a layer is built; the suite changes it afterwards.
FIXED = (
    *AXIS,
    "gradients_are_right",
    "float64_stays_float64",
    "half_precision_is_finite",
    "half_precision_agrees",
)
# Its values are its keys.
ONE = (*AXIS, "gradients_reach_the_inputs", "gradients_are_right")

PEERS: dict[str, Peer] = {
    "nn.MultiheadAttention, weights asked for": Peer("torch", lambda: TorchHeads(True), AXIS),
    "nn.MultiheadAttention, not asked for": Peer("torch", lambda: TorchHeads(False), AXIS),
    "scaled_dot_product_attention": Peer("torch", lambda: sdpa, AXIS),
    "Keras Attention": Peer("keras", lambda: Keras("Attention"), FIXED),
    "Keras AdditiveAttention": Peer("keras", lambda: Keras("AdditiveAttention"), FIXED),
    "Keras MultiHeadAttention": Peer("keras", lambda: Keras("MultiHeadAttention"), FIXED),
    "entmax sparsemax, mask -inf": Peer("entmax", lambda: Sparse("sparsemax", "inf"), AXIS),
    "entmax sparsemax, mask finfo.min": Peer("entmax", lambda: Sparse("sparsemax", "min"), AXIS),
    "entmax entmax15, mask -inf": Peer("entmax", lambda: Sparse("entmax15", "inf"), AXIS),
    "entmax entmax15, mask finfo.min": Peer("entmax", lambda: Sparse("entmax15", "min"), AXIS),
    "x-transformers Attention": Peer("x-transformers", XTransformers, ONE),
}


def version(package: str) -> str:
    """Return the version of a package."""
    return importlib.metadata.version(package)
