"""Captioners: a picture's cells in, a sentence out, with a look at the picture for every word."""

from __future__ import annotations

from regard.config import Strict
from regard.models.describers import PictureSettings, is_trained
from regard.models.encoder_settings import Share, Size, token_embedding
from regard.models.grids import Describer, GridEncoder, PictureEncoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import (
    DecoderSettings,
    RecurrentDecoderSettings,
    ReinforceSettings,
    build_decoder,
    build_reinforce,
)


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
    encoder = PictureEncoder(describer, grid) if is_trained(describer) else grid
    embedding = token_embedding(words, settings.embedding_dim, padding)
    decoder = build_decoder(settings, embedding, encoder)
    return Seq2Seq(encoder, decoder, tied=settings.tied, reinforce=build_reinforce(settings))
