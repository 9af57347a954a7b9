"""Classifiers of pictures: the cells of a picture in, labels out, and how much each cell counts."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.config import Strict
from regard.errors import ShapeError
from regard.models.describers import PictureSettings, is_trained
from regard.models.encoder_settings import Share, Size
from regard.models.grids import Describer, GridEncoder
from regard.models.poolings import build_pool


class PictureModelSettings(Strict):
    """A whole classifier of pictures: how they are described, pooling, dropout.

    Args:
        picture: How pictures are described.
        projection: Size of a dense layer over the descriptions of the cells, normalised, before
            they are pooled.
        pooling: "attention" of a learned vector, "feed_forward" by one number a cell, "multihead"
            by a learned query in several heads, or "mean" or "max" of the cells.
        num_heads: How many heads "multihead" has; they divide the size of a cell.
        attention_dim: Size of the layer inside the attention; by default that of the cells.
        gated: Whether that layer has a gate.
        selection: How the attention's scores become weights; "sparsemax" and "entmax" leave
            most of them at zero.
        dropout: Share of features dropped in training.
    """

    picture: PictureSettings = PictureSettings()
    projection: Size | None = None
    pooling: Literal["attention", "feed_forward", "multihead", "mean", "max"] = "attention"
    num_heads: Size = 4
    attention_dim: Size | None = None
    gated: bool = False
    selection: Literal["softmax", "sparsemax", "entmax"] = "softmax"
    dropout: Share = 0.3


class PictureReading(NamedTuple):
    """What a model makes of pictures.

    Args:
        logits: A score for each label.
        weights: The weight of each cell, row by row; those of a picture sum to one. Where the
            pooling has heads, they come second.
    """

    logits: Float[Tensor, "batch labels"]
    weights: Float[Tensor, "batch *heads cells"]


class PictureModel(nn.Module):
    """Attention over the cells of a picture: `z = Σ_j α_j h_j`, `logits = W z + b`.

    The `h_j` describe the cells, projected or not, and the weights are those of the pooling. A
    picture is a bag of cells here: where a cell lies counts only as far as its description tells.

    Args:
        describer: From pixels to cells, trained with the rest; None where the model reads
            descriptions that are computed once.
        grid: From the description of a cell to what is pooled; None pools descriptions.
        pool: What makes one vector of the cells: see `regard.models.poolings`.
        dim: Size of that vector.
        labels: How many labels there are.
        dropout: Probability of dropping a feature of that vector.

    References:
        Ilse, Tomczak and Welling, Attention-based deep multiple instance learning, 2018.
    """

    def __init__(
        self,
        describer: Describer | None,
        grid: GridEncoder | None,
        pool: nn.Module,
        *,
        dim: int,
        labels: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.describer, self.grid, self.pool = describer, grid, pool
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(dim, labels)

    def forward(self, source: Float[Tensor, "batch ..."]) -> PictureReading:
        """Read pictures.

        Args:
            source: Pixels `(batch, 3, height, width)` from 0 to 255, where the describer is
                trained; else the descriptions of the cells, `(batch, cells, dim)`.

        Returns:
            A score for each label, and the weights of the cells.

        Raises:
            ShapeError: The axes are others.
        """
        axes = 3 if self.describer is None else 4
        if source.dim() != axes:
            kind = "(batch, cells, dim)" if axes == 3 else "(batch, 3, height, width)"
            raise ShapeError(
                f"source must have shape {kind}; got {tuple(source.shape)}. Describe pictures "
                "first exactly where the describer is not trained."
            )
        cells: Tensor = source if self.describer is None else self.describer(source)
        mask = torch.ones(cells.shape[:2], dtype=torch.bool, device=cells.device)
        items = cells if self.grid is None else self.grid(cells, mask).memory
        pooled = self.pool(items, mask)
        return PictureReading(self.output(self.dropout(pooled.context)), pooled.weights)


def build_picture_model(
    settings: PictureModelSettings, describer: Describer, *, labels: int
) -> PictureModel:
    """Build a classifier of pictures.

    One whose describer is trained reads pixels; one whose describer stays as it is reads its
    descriptions, which are computed once.

    Args:
        settings: What it is made of.
        describer: What describes pictures; part of the model only where it is trained.
        labels: How many labels there are.

    Returns:
        The model, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: A size is below 1.
    """
    dim, grid = describer.dim, None
    if settings.projection is not None:
        grid = GridEncoder(dim, settings.projection, dropout=settings.dropout)
        dim = settings.projection
    pool = build_pool(
        settings.pooling,
        dim,
        hidden_dim=settings.attention_dim,
        gated=settings.gated,
        selection=settings.selection,
        num_heads=settings.num_heads,
    )
    own = describer if is_trained(describer) else None
    return PictureModel(own, grid, pool, dim=dim, labels=labels, dropout=settings.dropout)
