"""How pictures are described: the settings, and what is built of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict
from regard.errors import MechanismError
from regard.models.encoder_settings import Size
from regard.models.grids import Describer, Lite0Describer, PartsDescriber, SmallDescriber
from regard.models.lite0 import Lite0

Side = Annotated[int, Field(ge=16, le=2048)]


class PartsSettings(Strict):
    """Into how many rows and columns a picture is cut, each part described by itself."""

    rows: Annotated[int, Field(ge=1, le=64)] = 4
    columns: Annotated[int, Field(ge=1, le=64)] = 4


class PictureSettings(Strict):
    """How pictures are described: their size, the network, whole or in parts.

    Args:
        height: Pixels that a picture is resized to.
        width: Pixels that a picture is resized to.
        network: "lite0" is EfficientNet-Lite0 with weights from ImageNet, which stay as they are;
            "small" is a small network trained with the rest.
        fine: Whether "lite0" also tells its finer features.
        dim: Size of the description of a cell by "small".
        layers: How often "small" halves the sides.
        neighbours: How many cells each way the last layer of "small" sees: with 0 a cell sees
            little more than its own pixels, and its weight says more surely where a thing is.
        parts: Set to cut the picture into parts that each go through the network.
    """

    height: Side = 224
    width: Side = 224
    network: Literal["lite0", "small"] = "lite0"
    fine: bool = False
    dim: Size = 128
    layers: Annotated[int, Field(ge=1, le=8)] = 3
    neighbours: Annotated[int, Field(ge=0, le=8)] = 1
    parts: PartsSettings | None = None


def build_describer(settings: PictureSettings) -> Describer:
    """Build what describes pictures, its weights not yet loaded where they are published ones.

    Args:
        settings: The network, and whether pictures are cut into parts.

    Returns:
        The describer.

    Raises:
        MechanismError: A picture would be a single cell.
    """
    describer: Describer
    if settings.network == "lite0":
        describer = Lite0Describer(Lite0(), fine=settings.fine)
    else:
        describer = SmallDescriber(
            settings.dim, layers=settings.layers, neighbours=settings.neighbours
        )
    if settings.parts is not None:
        parts = settings.parts
        if settings.height % parts.rows or settings.width % parts.columns:
            raise MechanismError(
                f"height and width must be divided by the rows and columns of parts; got "
                f"{settings.height} x {settings.width} and {parts.rows} x {parts.columns}. Change "
                "model.picture.height or width, or the parts."
            )
        describer = PartsDescriber(describer, parts.rows, parts.columns)
    rows, columns = describer.grid(settings.height, settings.width)
    if rows * columns < 2:
        raise MechanismError(
            f"a picture must have at least two cells to choose from; got {rows} x {columns}. Make "
            "height and width larger, or use fewer layers or more parts."
        )
    return describer


def is_trained(describer: Describer) -> bool:
    """Say whether a describer is trained with the rest, or stays as it is."""
    return any(parameter.requires_grad for parameter in describer.parameters())
