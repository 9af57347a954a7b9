"""Groups of different size: padded a bucket at a time, so that padding costs next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from regard.errors import ShapeError
from regard.models.encoders import Encoder
from regard.models.poolings import Pooled

_FULL = 0.75  # share of a bucket's cells that is no padding, at least
_MOST_CELLS = 1 << 17  # of a bucket with more than one group


class Bucket(NamedTuple):
    """Groups of similar size.

    Args:
        groups: Which groups these are.
        places: Where the items of each lie in the list of all items; 0 where there is padding.
        mask: True where there is an item.
    """

    groups: Int[Tensor, " rows"]
    places: Int[Tensor, "rows longest"]
    mask: Bool[Tensor, "rows longest"]


def buckets(sizes: Int[Tensor, " groups"], *, device: torch.device | str = "cpu") -> list[Bucket]:
    """Put groups of similar size together; those without items are in no bucket.

    Args:
        sizes: How many items each group has. They follow each other in one list of items.
        device: Where the buckets shall be.

    Returns:
        Buckets of which at least three quarters are no padding.

    Example:
        >>> [b.groups.tolist() for b in buckets(torch.tensor([2, 0, 9, 3]))]
        [[2], [3, 0]]
    """
    counts: list[int] = sizes.tolist()
    starts = (sizes.cumsum(0) - sizes).to(device)
    rows = _rows(counts)
    found = []
    for row in rows:
        groups = torch.tensor(row, device=device)
        steps = torch.arange(counts[row[0]], device=device)
        mask = steps < sizes.to(device)[groups].unsqueeze(1)  # (rows, longest)
        places = (starts[groups].unsqueeze(1) + steps).masked_fill(~mask, 0)
        found.append(Bucket(groups, places, mask))
    return found


def _rows(counts: Sequence[int]) -> list[list[int]]:
    """Fill buckets from the largest group on; the first of each is its longest."""
    order = sorted((i for i, count in enumerate(counts) if count), key=lambda i: -counts[i])
    rows: list[list[int]] = []
    longest = real = 0
    for index in order:
        cells = longest * (len(rows[-1]) + 1) if rows else 0
        if rows and cells <= _MOST_CELLS and real + counts[index] >= _FULL * cells:
            rows[-1].append(index)
            real += counts[index]
        else:
            rows.append([index])
            longest = real = counts[index]
    return rows


class Level(nn.Module):
    """Encode the items of each group, and pool them into one vector: words into a sentence.

    Groups that differ in size are padded a bucket at a time, so that time and memory follow the
    number of items. The result is that of one padded batch, up to rounding.

    Args:
        encoder: What reads a group's items in order.
        pooling: What makes one vector of what the encoder made: see `regard.models.poolings`.
        projection: Size of a dense layer between the two; None leaves it out.
    """

    def __init__(
        self, encoder: Encoder, pooling: nn.Module, *, projection: int | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.pooling = encoder, pooling
        self.projection = None if projection is None else nn.Linear(encoder.out_dim, projection)
        self.out_dim = encoder.out_dim if projection is None else projection

    def forward(
        self, items: Shaped[Tensor, "items ..."], sizes: Int[Tensor, " groups"]
    ) -> tuple[Float[Tensor, "groups dim"], Float[Tensor, " items"]]:
        """Encode and pool every group.

        Args:
            items: Tokens or vectors, the groups one after the other.
            sizes: How many items each group has, best on the CPU.

        Returns:
            A vector for each group, zero where it has no items; a weight for each item.

        Raises:
            ShapeError: The sizes do not add up to the items.
        """
        _check_sizes(items, sizes)
        vectors, weights, groups, places = [], [], [], []
        for bucket in buckets(sizes, device=items.device):
            pooled = self._pool(items, bucket)
            vectors.append(pooled.context)
            weights.append(pooled.weights[bucket.mask])
            groups.append(bucket.groups)
            places.append(bucket.places[bucket.mask])
        dtype = next(self.parameters()).dtype if not vectors else vectors[0].dtype
        whole = torch.zeros(len(sizes), self.out_dim, dtype=dtype, device=items.device)
        flat = torch.zeros(len(items), device=items.device)
        if not vectors:
            return whole, flat
        flat = flat.to(weights[0].dtype)
        return (
            whole.index_copy(0, torch.cat(groups), torch.cat(vectors)),
            flat.index_copy(0, torch.cat(places), torch.cat(weights)),
        )

    def _pool(self, items: Tensor, bucket: Bucket) -> Pooled:
        padding = ~bucket.mask
        gathered = items[bucket.places]  # (rows, longest, ...)
        for _ in range(gathered.dim() - padding.dim()):
            padding = padding.unsqueeze(-1)
        gathered = gathered.masked_fill(padding, 0)
        states = self.encoder(gathered, bucket.mask).memory
        states = states if self.projection is None else self.projection(states)
        pooled: Pooled = self.pooling(states, bucket.mask)
        return pooled


def _check_sizes(items: Tensor, sizes: Tensor) -> None:
    total = int(sizes.sum())
    if sizes.dim() != 1 or total != len(items) or bool((sizes < 0).any()):
        raise ShapeError(
            f"sizes must be 0 or more, and add up to the items; got a sum of {total} "
            f"for {len(items)} items. Count the items of each group."
        )
