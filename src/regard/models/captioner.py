"""Captioners: a picture's cells in, a sentence out, with a look at the picture for every word."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from regard.config import Strict
from regard.errors import MechanismError
from regard.models.encoder_settings import Share, Size, token_embedding
from regard.models.grids import (
    Describer,
    GridEncoder,
    Lite0Describer,
    PartsDescriber,
    PictureEncoder,
    SmallDescriber,
)
from regard.models.lite0 import Lite0
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import (
    DecoderSettings,
    RecurrentDecoderSettings,
    ReinforceSettings,
    build_decoder,
    build_reinforce,
)

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
        parts: Set to cut the picture into parts that each go through the network.
    """

    height: Side = 224
    width: Side = 224
    network: Literal["lite0", "small"] = "lite0"
    fine: bool = False
    dim: Size = 128
    layers: Annotated[int, Field(ge=1, le=8)] = 3
    parts: PartsSettings | None = None


class CaptionerSettings(Strict):
    """A whole captioner: how pictures are described, items, decoder, dropout.

    The decoder of Show, Attend and Tell is `kind = "lstm"`, `order = "bahdanau"`, `gated = true`.

    Args:
        picture: How pictures are described.
        item_dim: Size of the items that the attention reads.
        sentinel: Whether an item that means "not looking" stands beside the cells.
        embedding_dim: Size of the embeddings of words.
        decoder: What writes.
        dropout: Share of features dropped in training.
        tied: Whether the output layer shares its matrix with the embeddings.
        reinforce: How a selection that draws is trained.
    """

    picture: PictureSettings = PictureSettings()
    item_dim: Size = 256
    sentinel: bool = False
    embedding_dim: Size = 256
    decoder: DecoderSettings = RecurrentDecoderSettings(kind="lstm", order="bahdanau", gated=True)
    dropout: Share = 0.3
    tied: bool = True
    reinforce: ReinforceSettings = ReinforceSettings()


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
        describer = SmallDescriber(settings.dim, layers=settings.layers)
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


def build_captioner(
    settings: CaptionerSettings, describer: Describer, *, words: int, padding: int
) -> Seq2Seq:
    """Build a captioner.

    One whose describer is trained reads pixels; one whose describer stays as it is reads its
    descriptions, which are computed once.

    Args:
        settings: What it is made of.
        describer: What describes pictures; part of the model only where it is trained.
        words: How many tokens it can write.
        padding: The token whose embedding stays zero.

    Returns:
        The model, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: Sizes do not go together.
    """
    grid = GridEncoder(
        describer.dim, settings.item_dim, sentinel=settings.sentinel, dropout=settings.dropout
    )
    trained = any(parameter.requires_grad for parameter in describer.parameters())
    encoder = PictureEncoder(describer, grid) if trained else grid
    embedding = token_embedding(words, settings.embedding_dim, padding)
    decoder = build_decoder(settings, embedding, encoder)
    return Seq2Seq(encoder, decoder, tied=settings.tied, reinforce=build_reinforce(settings))
