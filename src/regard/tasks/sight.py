"""What the tasks that read pictures share: opening them, cells, what is kept of them on disk."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from regard.data.checking import Listed, check_images, leave_out_bad
from regard.data.features import FeatureCache
from regard.data.images import image_as_seen, open_image
from regard.data.listed import Images
from regard.errors import UserError
from regard.models.describers import PictureSettings
from regard.models.grids import Describer
from regard.tasks.networks import network_identity
from regard.tasks.runs import is_same

Shown: TypeAlias = str | Path | Image.Image


class Seen(NamedTuple):
    """A picture as it is shown and named."""

    image: Image.Image
    name: str


def see(shown: Shown) -> Seen:
    """Open a picture as a person sees it.

    Args:
        shown: A file, or a PIL image.

    Returns:
        The picture, and the name of its file.

    Raises:
        UserError: It is neither, or no picture.
    """
    if isinstance(shown, Image.Image):
        return Seen(image_as_seen(shown), "")
    if not isinstance(shown, (str, Path)):
        raise UserError(
            f"image must be a file or a PIL image; got {type(shown).__name__}. Give its path."
        )
    return Seen(open_image(shown), Path(shown).name)


class Sight(abc.ABC):
    """A model that reads pictures cell by cell.

    Attributes:
        describer: What describes the cells of a picture.
    """

    describer: Describer

    @property
    @abc.abstractmethod
    def device(self) -> torch.device:
        """Where the model lives."""

    @property
    @abc.abstractmethod
    def picture(self) -> PictureSettings:
        """How pictures are described."""

    @property
    @abc.abstractmethod
    def sees_pixels(self) -> bool:
        """Whether the model itself reads pixels, its describer being trained with it."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the cells of every picture."""
        return self.describer.grid(self.picture.height, self.picture.width)

    def pixels(self, images: Sequence[Image.Image]) -> Tensor:
        """Resize pictures to the model's size, `(batch, 3, height, width)`, from 0 to 255.

        The whole picture is seen, so that the cells divide it evenly; its proportions may change.
        """
        own = self.picture
        size = (own.width, own.height)
        arrays = [np.asarray(one.resize(size, Image.Resampling.BICUBIC)) for one in images]
        stacked = np.stack(arrays) if arrays else np.zeros((0, own.height, own.width, 3), np.uint8)
        return torch.from_numpy(stacked).permute(0, 3, 1, 2).float()

    @torch.no_grad()
    def sources(self, images: Sequence[Image.Image]) -> Tensor:
        """Return what the model reads of pictures: pixels, or the descriptions of their cells."""
        pixels = self.pixels(images).to(self.device)
        described: Tensor = pixels if self.sees_pixels else self.describer(pixels)
        return described

    def on_device(self, source: Tensor) -> Tensor:
        """Bring what is read to the model, and descriptions kept in half precision to its own."""
        return source.to(self.device, non_blocking=True).float()


def kept_sources(sight: Sight, images: Images, cache: Path) -> Callable[[int], Tensor]:
    """Make what a model reads of pictures, their pixels or their descriptions, only once.

    Args:
        sight: The model.
        images: The pictures.
        cache: Where it is kept.

    Returns:
        What reads a picture, by its place; widened where it is used, a batch at once.
    """
    own, pixels = sight.picture, sight.sees_pixels
    size = f"{own.width}x{own.height}"
    kept = FeatureCache(
        cache,
        identity="pixels" if pixels else network_identity(sight.describer),
        preprocessing=size if pixels else f"{size} {own.parts!r}",
        dtype="uint8" if pixels else "float16",
    )

    def compute(paths: Sequence[Path]) -> list[NDArray[Any]]:
        described = sight.sources([open_image(path) for path in paths])
        return list(described.cpu().numpy())

    features = kept.features(images.paths, compute, digests=images.digests)

    def read(index: int) -> Tensor:
        return torch.from_numpy(features[index])

    return read


def without_bad(images: Listed, max_bad: float) -> Listed:
    """Open every picture, and leave out the few that cannot be opened.

    Args:
        images: The pictures.
        max_bad: Share of bad ones that is put up with.

    Returns:
        The others.

    Raises:
        DataError: More are bad.
    """
    return leave_out_bad(images, check_images(images, max_bad=max_bad))


def root_of_images(
    file: Path, images: str | None, known: Sequence[str | None], *, root: Path
) -> str | None:
    """Say which folder the names in a file start from, when a model is scored on it.

    Args:
        file: The file that a person named.
        images: The folder that a run's pictures lie in; None for that of the file.
        known: The files of the run.
        root: The folder that names of the run start from.

    Returns:
        The run's folder where it is a file of the run; else None: pictures lie beside it.
    """
    if images is None or not any(is_same(file, root / one) for one in known if one):
        return None
    return str((root / images).resolve())
