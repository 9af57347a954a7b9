"""An attention gets those sizes that its parts take, and is checked against what is around it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from regard.attention import (
    SCORES,
    SELECTIONS,
    Additive,
    Attention,
    Dot,
    MultiHead,
    Softmax,
    Traits,
)
from regard.errors import MechanismError
from regard.models.convolutional import ConvolutionalDecoder
from regard.models.decoders import Decoder, RecurrentDecoder, TransformerDecoder
from regard.models.encoders import EmbeddingEncoder, RecurrentEncoder
from regard.models.mechanisms import build_mechanism, check_reads
from regard.models.seq2seq import Seq2Seq

SIZES = {"query_dim": 6, "key_dim": 6, "hidden_dim": 5}


class ByPlace(Softmax):
    """A selection that takes a size, and says that it goes by the places of keys."""

    traits = Traits(permutation_equivariant=False)

    def __init__(self, query_dim: int, window: int = 3) -> None:
        super().__init__()
        self.query_dim, self.window = query_dim, window


class Remembering(Softmax):
    """A selection that says that it depends on earlier steps."""

    traits = Traits(stateful=True)


class Limited(Dot):
    """A score that needs more than sizes."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit


@pytest.mark.parametrize("score", ["additive", "dot", "scaled_dot", "bilinear", "uniform"])
@pytest.mark.parametrize("heads", [None, 1, 3])
def test_every_score_gets_the_sizes_that_it_takes(score: str, heads: int | None) -> None:
    built = build_mechanism(score, "softmax", **SIZES, num_heads=heads, dropout=0.25)
    query, key = torch.randn(2, 4, 6), torch.randn(2, 3, 6)
    weights = built(query, key).weights
    assert weights.shape == ((2, 4, 3) if heads is None else (2, heads, 4, 3))
    assert built.dropout == 0.25
    part = built.score if heads is None or score in ("dot", "scaled_dot", "uniform") else None
    part = built.score.heads[0] if part is None else part
    assert part.query_dim == 6 // (heads or 1)
    if isinstance(part, Additive):
        assert part.hidden_dim == 5


@pytest.mark.parametrize("heads", [None, 2])
def test_a_selection_gets_the_sizes_that_it_takes(
    heads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SELECTIONS, "by_place", ByPlace)
    built = build_mechanism("dot", "by_place", **SIZES, num_heads=heads)
    assert (built.selection.query_dim, built.selection.window) == (6 // (heads or 1), 3)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("heads", [None, 2])
def test_every_selection_is_built_by_its_name(selection: str, heads: int | None) -> None:
    built = build_mechanism("additive", selection, **SIZES, num_heads=heads)
    assert isinstance(built.selection, SELECTIONS[selection]) or heads is not None


def test_what_needs_more_than_sizes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "limited", Limited)
    with pytest.raises(MechanismError, match="got 'limited', which needs limit"):
        build_mechanism("limited", "softmax", **SIZES)


@pytest.mark.parametrize(
    ("score", "selection", "message"),
    [
        ("addditive", "softmax", "score must be the name of a score; got 'addditive': did you"),
        ("dot", "sotfmax", "selection must be the name of a selection; got 'sotfmax': did you"),
    ],
)
def test_unknown_names_are_refused(score: str, selection: str, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        build_mechanism(score, selection, **SIZES)


@pytest.mark.parametrize("heads", [0, 4, 7])
def test_l8_heads_that_do_not_divide_are_refused(heads: int) -> None:
    with pytest.raises(MechanismError, match=f"num_heads must divide query_dim; got {heads} and 6"):
        build_mechanism("additive", "softmax", **SIZES, num_heads=heads)


def test_l5_what_does_not_fit_is_refused() -> None:
    check_reads(MultiHead(2, 6, key_dim=4), query_dim=6, memory_dim=4)
    check_reads(Attention("dot"), query_dim=6, memory_dim=6)
    for attention, message in (
        (Attention(Additive(5, 4, hidden_dim=3)), "query_dim must be 6, .*; got 5"),
        (Attention(Additive(6, 5, hidden_dim=3)), "key_dim must be 4, .*; got 5"),
        (Attention("dot"), "query_dim must equal key_dim for Attention.*; got 6 and 4"),
    ):
        with pytest.raises(MechanismError, match=message):
            check_reads(attention, query_dim=6, memory_dim=4)


def decoders(selection: str) -> list[Any]:
    """Return functions that build a decoder of every kind with this selection."""
    embedding = nn.Embedding(9, 6)

    def look() -> Any:
        return build_mechanism("dot", selection, **SIZES)

    return [
        lambda: RecurrentDecoder(embedding, (6, 6), hidden_dim=6, attention=look()),
        lambda: ConvolutionalDecoder(embedding, (6, 6), [None, look()], hidden_dim=4),
        lambda: TransformerDecoder(
            embedding, 6, num_heads=1, layers=1, hidden_dim=4, look=("dot", selection)
        ),
    ]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_a_look_by_places_over_a_set_is_refused(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SELECTIONS, "by_place", ByPlace)
    decoder: Decoder = decoders("by_place")[kind]()
    Seq2Seq(RecurrentEncoder(nn.Embedding(9, 6), 3), decoder)
    with pytest.raises(MechanismError, match=r"a position-dependent selection over a set.*ByPlace"):
        Seq2Seq(EmbeddingEncoder(nn.Embedding(9, 6)), decoder)
    Seq2Seq(EmbeddingEncoder(nn.Embedding(9, 6)), decoders("softmax")[kind]())


@pytest.mark.parametrize("kind", [1, 2])
def test_one_state_for_many_layers_is_refused(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SELECTIONS, "remembering", Remembering)
    with pytest.raises(MechanismError, match=r"earlier steps.*Remembering.*recurrent decoder"):
        decoders("remembering")[kind]()
    assert decoders("remembering")[0]().reader.stateful
