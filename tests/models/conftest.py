"""Small models of every kind, at sizes that are easy to mix up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import Seq2SeqSettings, build_seq2seq

SOURCES, TARGETS = 11, 9


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


@pytest.fixture
def build() -> Callable[..., Seq2Seq]:
    """Build a model of 11 source and 9 target tokens from the settings of its parts."""

    def make(encoder: dict[str, Any], decoder: dict[str, Any], **own: Any) -> Seq2Seq:
        table = {"embedding_dim": 5, "dropout": 0.0, "encoder": encoder, "decoder": decoder, **own}
        settings = Seq2SeqSettings.model_validate(table)
        return build_seq2seq(settings, source_size=SOURCES, target_size=TARGETS, padding=0)

    return make


@pytest.fixture
def tokens() -> Callable[..., torch.Tensor]:
    """Draw a batch of sequences of these lengths, padded with 0."""

    def make(*lengths: int, size: int = SOURCES) -> torch.Tensor:
        batch = torch.randint(4, size, (len(lengths), max(lengths, default=0)))
        for row, length in enumerate(lengths):
            batch[row, length:] = 0
        return batch

    return make
