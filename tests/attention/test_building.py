from __future__ import annotations

import pytest
import torch

from regard.attention import (
    SCORES,
    SELECTIONS,
    Additive,
    Attention,
    Dot,
    Function,
    LocalPredictive,
    Softmax,
)
from regard.attention.building import build_parts, checked_dropout
from regard.errors import MaskError, MechanismError

NO_SIZES: dict[str, int | None] = {"query_dim": None, "key_dim": None, "hidden_dim": None}


def test_parts_are_found_by_name_or_taken_as_they_are():
    score, selection = Dot(), Softmax(0.5)
    assert build_parts(score, selection, NO_SIZES) == (score, selection)
    sizes = {"query_dim": 4, "key_dim": 3, "hidden_dim": 5}
    built, chosen = build_parts("additive", "local_predictive", sizes)
    assert isinstance(built, Additive)
    assert (built.query_dim, built.key_dim, built.hidden_dim) == (4, 3, 5)
    assert isinstance(chosen, LocalPredictive)
    assert chosen.query_dim == 4
    function, _ = build_parts(torch.matmul, "softmax", {**NO_SIZES, "key_dim": 3})
    assert isinstance(function, Function)
    assert function.key_dim == 3


def test_mistyped_names_get_a_suggestion():
    with pytest.raises(MechanismError, match=r"got 'aditive': did you mean 'additive'\?"):
        Attention("aditive")
    with pytest.raises(MechanismError, match=r"got 'softmx': did you mean 'softmax'\?"):
        Attention("dot", "softmx")
    with pytest.raises(MechanismError, match="use one of: additive, bilinear"):
        Attention("zzz")


@pytest.mark.usefixtures("without_shapes")
def test_a_class_instead_of_a_part_is_told():
    with pytest.raises(MechanismError, match=r"score must be a Score or the name.*got <class"):
        Attention(Dot)
    with pytest.raises(MechanismError, match=r"selection must be a Selection or.*got <class"):
        Attention("dot", Softmax)


def test_missing_and_surplus_sizes_are_listed():
    with pytest.raises(MechanismError) as caught:
        Attention("additive", query_dim=4)
    assert str(caught.value) == (
        "sizes must be those of 'additive': query_dim, key_dim, hidden_dim; got query_dim=4. "
        "Missing: key_dim, hidden_dim; too many: none."
    )
    with pytest.raises(MechanismError, match="Missing: none; too many: hidden_dim"):
        Attention("dot", hidden_dim=5)
    with pytest.raises(
        MechanismError, match="must be left out where the score is built; got key_dim=3"
    ):
        Attention(Dot(), key_dim=3)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 2.0, float("nan")])
def test_dropouts_that_are_none_are_refused(dropout):
    with pytest.raises(MechanismError, match=rf"dropout must lie in \[0, 1\); got {dropout}"):
        Attention("dot", dropout=dropout)
    assert checked_dropout(0.0) == 0.0


def test_the_registries_name_classes():
    for registry in (SCORES, SELECTIONS):
        assert all(isinstance(part, type) for part in registry.values())


@pytest.mark.usefixtures("without_shapes")
def test_masks_of_numbers_reach_no_arithmetic():
    attention = Attention("dot")
    key = torch.ones(2, 3, 4)
    for mask in (torch.ones(2, 3), torch.ones(2, 3, dtype=torch.long)):
        with pytest.raises(MaskError, match=f"must be bool; got {mask.dtype}"):
            attention(torch.ones(2, 4), key, mask=mask)
