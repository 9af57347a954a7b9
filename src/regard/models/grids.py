"""From pictures to the cells that attention reads."""

from __future__ import annotations

import abc
import itertools

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.errors import MechanismError, ShapeError
from regard.models.encoders import Encoded, Encoder
from regard.models.lite0 import Lite0, normalised


class Describer(nn.Module, abc.ABC):
    """A network that describes the cells of a picture.

    Attributes:
        dim: Size of the description of a cell.
    """

    dim: int

    @abc.abstractmethod
    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of cells a picture of that size has."""

    @abc.abstractmethod
    def forward(
        self, pixels: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch cells dim"]:
        """Describe every cell, row by row; pixels go from 0 to 255."""


class Lite0Describer(Describer):
    """EfficientNet-Lite0 as a describer: 1,280 features for every 32 x 32 pixels.

    Its normalisation layers always use the statistics that they were trained with.

    Args:
        network: The network, its weights loaded.
        fine: Whether the 112 features of stride 16 come too, those of a cell's four quarters
            beside each other: then a cell has `1280 + 4 · 112` features.
    """

    def __init__(self, network: Lite0, *, fine: bool = False) -> None:
        super().__init__()
        self.network, self.fine = network, fine
        self.dim = Lite0.DIM + (4 * Lite0.FINE_DIM if fine else 0)
        self.requires_grad_(False)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of cells a picture of that size has."""
        return -(-height // Lite0.STRIDE), -(-width // Lite0.STRIDE)

    @torch.no_grad()
    def forward(
        self, pixels: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch cells dim"]:
        """Describe every cell, row by row; pixels go from 0 to 255."""
        self.network.eval()
        if pixels.device.type == "cpu" and len(pixels) > 1:
            # One picture's feature maps fit a processor's cache, those of many do not.
            return torch.cat([self._described(one) for one in torch.split(pixels, 1)])
        return self._described(pixels)

    def _described(self, pixels: Tensor) -> Tensor:
        fine, coarse = self.network.scales(normalised(pixels))
        if self.fine:
            rows, columns = coarse.shape[-2:]
            beyond = (0, 2 * columns - fine.shape[-1], 0, 2 * rows - fine.shape[-2])
            quarters = nn.functional.pixel_unshuffle(nn.functional.pad(fine, beyond), 2)
            coarse = torch.cat([coarse, quarters], dim=1)
        return coarse.flatten(2).transpose(1, 2)


class SmallDescriber(Describer):
    """A small convolutional network, trained with the rest: for drawings and icons.

    Each layer halves the sides and describes what it sees by more features; a last one keeps both.
    Without neighbours in the last one a cell of 8 x 8 pixels sees 7 more to the left and above and
    none on the other sides; with one neighbour each way 15 and 8. The less a cell sees of others,
    the surer its weight speaks of its own place, and the less it knows.
    Every pixel comes with its place, so that a cell can tell where it lies. Features are
    normalised over the batch in training, so that a small thing on a wide ground counts as much
    as elsewhere; in evaluation by what was met on average, so that no picture bears on another.

    Args:
        dim: Size of the description of a cell.
        layers: How often the sides are halved: a cell has `2^layers` pixels on a side.
        channels: Features after the first layer; they double with each.
        neighbours: How many cells each way the last layer sees.

    Raises:
        MechanismError: A size is below 1, or `neighbours` below 0.

    References:
        Liu et al., An intriguing failing of convolutional neural networks and the CoordConv
        solution, 2018 (places); Ioffe and Szegedy, Batch normalization, 2015.
    """

    def __init__(
        self, dim: int = 128, *, layers: int = 3, channels: int = 32, neighbours: int = 1
    ) -> None:
        super().__init__()
        if neighbours < 0:
            raise MechanismError(f"neighbours must be at least 0; got {neighbours}. 1 is usual.")
        if min(dim, layers, channels) < 1:
            raise MechanismError(
                f"dim, layers and channels must be at least 1; got {dim}, {layers} and {channels}. "
                "128, 3 and 32 are usual."
            )
        self.dim, self.layers = dim, layers
        sizes = [5, *(min(channels * 2**place, dim) for place in range(layers)), dim]
        self.blocks = nn.Sequential(
            *(_block(*pair, stride=2) for pair in itertools.pairwise(sizes[:-1])),
            _block(sizes[-2], dim, stride=1, reach=neighbours),
        )

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of cells a picture of that size has."""
        for _ in range(self.layers):
            height, width = -(-height // 2), -(-width // 2)
        return height, width

    def forward(
        self, pixels: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch cells dim"]:
        """Describe every cell, row by row; pixels go from 0 to 255."""
        batch, _, height, width = pixels.shape
        across = torch.linspace(-1.0, 1.0, width, device=pixels.device).expand(height, width)
        down = (
            torch.linspace(-1.0, 1.0, height, device=pixels.device).unsqueeze(1).expand_as(across)
        )
        places = torch.stack([across, down]).expand(batch, -1, -1, -1)
        maps: Tensor = self.blocks(torch.cat([pixels / 127.5 - 1.0, places], dim=1))
        return maps.flatten(2).transpose(1, 2)


def _block(channels: int, out_channels: int, *, stride: int, reach: int = 1) -> nn.Module:
    width = 2 * reach + 1
    return nn.Sequential(
        nn.Conv2d(channels, out_channels, width, stride=stride, padding=reach, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


class PartsDescriber(Describer):
    """Cut the picture into parts and describe each by itself, as if it were a picture.

    No part sees beyond its edges, which a cell of a feature map does: what a part's weight says
    about the picture is exact, and what lies across an edge is seen in halves.

    Args:
        describer: What describes a part; the mean over its cells stands for the part.
        rows: Into how many rows of parts the picture is cut.
        columns: Into how many columns.

    Raises:
        MechanismError: There are no parts.
        ShapeError: The parts do not divide a picture, when it is called.
    """

    def __init__(self, describer: Describer, rows: int, columns: int) -> None:
        super().__init__()
        if min(rows, columns) < 1:
            raise MechanismError(
                f"rows and columns must be at least 1; got {rows} and {columns}. 4 and 4 are usual."
            )
        self.describer, self.rows, self.columns = describer, rows, columns
        self.dim = describer.dim

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Return how many rows and columns of parts there are: as many as were asked for."""
        return self.rows, self.columns

    def forward(
        self, pixels: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch cells dim"]:
        """Describe every part, row by row; pixels go from 0 to 255."""
        batch, _, height, width = pixels.shape
        if height % self.rows or width % self.columns:
            raise ShapeError(
                f"pixels must be divided by {self.rows} rows and {self.columns} columns; got "
                f"{height} x {width}. Resize the picture."
            )
        size = (height // self.rows, width // self.columns)
        parts = pixels.unfold(2, size[0], size[0]).unfold(3, size[1], size[1])
        parts = parts.permute(0, 2, 3, 1, 4, 5).reshape(-1, 3, *size)  # (batch · parts, 3, ...)
        described: Tensor = self.describer(parts).mean(dim=1)
        return described.view(batch, self.rows * self.columns, self.dim)


class GridEncoder(Encoder):
    """From descriptions of cells to items, projected and normalised.

    The final vector is the mean of the items, from which a decoder's first state is made.

    Args:
        feature_dim: Size of the description of a cell.
        out_dim: Size of the items.
        sentinel: Whether one more item stands behind the cells, a learned one that means "not
            looking at the picture": words that follow from the sentence can rest on it. Unlike
            the sentinel of Lu et al. it does not change with the decoder's state, only its
            weight does.
        dropout: Probability of dropping a feature of an item.

    References:
        Xu et al., Show, attend and tell, 2015; Lu et al., Knowing when to look, 2017.
    """

    ordered = True

    def __init__(
        self, feature_dim: int, out_dim: int, *, sentinel: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.projection = nn.Linear(feature_dim, out_dim)
        self.norm = nn.LayerNorm(out_dim)
        self.sentinel = nn.Parameter(torch.randn(out_dim)) if sentinel else None
        self.dropout = nn.Dropout(dropout)
        self.out_dim = self.final_dim = out_dim

    def forward(
        self, cells: Float[Tensor, "batch cells feature_dim"], mask: Bool[Tensor, "batch cells"]
    ) -> Encoded:
        """Encode the cells of a batch of pictures; the mask is True where a cell is real."""
        real = mask.unsqueeze(-1)
        items: Tensor = self.norm(self.projection(cells.masked_fill(~real, 0.0)))
        items = items.masked_fill(~real, 0.0)
        final = items.sum(dim=1) / real.sum(dim=1).clamp(min=1)
        items = self.dropout(items)
        if self.sentinel is not None:
            batch = items.shape[0]
            items = torch.cat([items, self.sentinel.expand(batch, 1, -1)], dim=1)
            mask = torch.cat([mask, mask.new_ones(batch, 1)], dim=1)
        return Encoded(items, mask, final)


class PictureEncoder(Encoder):
    """A describer and a grid encoder in one, so that the describer is trained too.

    Args:
        describer: From pixels to cells.
        grid: From cells to items.
    """

    ordered = True

    def __init__(self, describer: Describer, grid: GridEncoder) -> None:
        super().__init__()
        self.describer, self.grid = describer, grid
        self.out_dim, self.final_dim = grid.out_dim, grid.final_dim

    def forward(
        self, pixels: Float[Tensor, "batch 3 height width"], mask: Bool[Tensor, "batch cells"]
    ) -> Encoded:
        """Encode a batch of pictures; the mask is True where a cell is real."""
        encoded: Encoded = self.grid(self.describer(pixels), mask)
        return encoded
