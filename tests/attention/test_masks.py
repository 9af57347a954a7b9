from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import masks
from regard.errors import MaskError

TRUE = torch.bool


def test_lengths_allow_what_is_real():
    mask = masks.lengths(torch.tensor([2, 0, 3]))
    assert mask.int().tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert masks.lengths(torch.tensor([1]), 4).shape == (1, 4)
    assert masks.lengths(torch.tensor([], dtype=torch.long)).shape == (0, 0)


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (torch.tensor([3, 5]), r"0\.\.4; got \[3, 5\]"),
        (torch.tensor([-1]), r"0\.\.4; got \[-1\]"),
        (torch.tensor([True]), "whole numbers"),
        (torch.tensor([1.0]), r"got torch.float32 \(1,\)"),
        (torch.tensor([[1]]), r"\(1, 1\)"),
    ],
)
def test_lengths_that_are_none_are_refused(counts, words):
    with pytest.raises(MaskError, match=words):
        masks.lengths(counts, 4)


def test_causal_masks_end_where_the_keys_end():
    assert masks.causal(3).int().tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]
    assert masks.causal(1, 3).int().tolist() == [[[1, 1, 1]]]
    assert masks.causal(2, 4).int().tolist() == [[[1, 1, 1, 0], [1, 1, 1, 1]]]


@settings(deadline=None, max_examples=40)
@given(
    queries=st.integers(1, 5),
    more=st.integers(0, 4),
    before=st.integers(0, 4),
    after=st.integers(0, 4),
)
def test_windows_are_those_of_two_loops(queries, more, before, after):
    keys = queries + more
    found = masks.window(queries, keys, before=before, after=after)[0]
    for query in range(queries):
        place = query + more
        for key in range(keys):
            assert bool(found[query, key]) == (place - before <= key <= place + after)


def test_a_reach_below_zero_is_refused():
    with pytest.raises(MaskError, match="got -1 and 0"):
        masks.window(3, before=-1)


def test_the_other_polarity_is_turned():
    padding = torch.tensor([[False, True]])
    assert masks.from_key_padding_mask(padding).tolist() == [[True, False]]


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize("mask", [torch.zeros(2, 3), torch.zeros(3, dtype=TRUE)])
def test_what_is_no_key_padding_mask_is_refused(mask):
    with pytest.raises(MaskError, match="bool tensor"):
        masks.from_key_padding_mask(mask)


def test_a_checked_mask_gets_its_axes():
    two = torch.ones(2, 5, dtype=TRUE)
    three = torch.ones(1, 3, 5, dtype=TRUE)
    four = torch.ones(2, 1, 3, 5, dtype=TRUE)
    assert masks.checked(two, batch=2, keys=5, queries=3).shape == (2, 1, 5)
    assert masks.checked(two, batch=2, keys=5, queries=3, heads=4).shape == (2, 1, 1, 5)
    assert masks.checked(three, batch=2, keys=5, queries=3).shape == (1, 3, 5)
    assert masks.checked(three, batch=2, keys=5, queries=3, heads=4).shape == (1, 1, 3, 5)
    assert masks.checked(four, batch=2, keys=5, queries=3, heads=4).shape == (2, 1, 3, 5)
    assert masks.checked(two, batch=2, keys=5).shape == (2, 1, 5)


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32])
def test_masks_of_numbers_are_refused_with_advice(dtype):
    with pytest.raises(MaskError, match=f"must be bool; got {dtype}.*'may attend'.*mask != 0"):
        masks.checked(torch.ones(2, 5, dtype=dtype), batch=2, keys=5, queries=3)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((5, 2), "transposed"),
        ((2, 5, 3), "transposed"),
        ((3, 5), r"unsqueeze\(0\)"),
        ((2, 4), ""),
        ((2, 1, 5), ""),
        ((5,), ""),
        ((1, 5), ""),
        ((2, 4, 3, 5), ""),
        ((), ""),
    ],
)
def test_wrong_shapes_are_refused_with_both_shapes(shape, hint):
    mask = torch.ones(shape, dtype=TRUE)
    with pytest.raises(MaskError, match=hint or None) as caught:
        masks.checked(mask, batch=2, keys=5, queries=3)
    assert f"got {tuple(shape)}" in str(caught.value)
    assert "(batch=2, keys=5) or (batch=2, queries=3, keys=5)" in str(caught.value)


def test_heads_are_named_where_there_are_some():
    with pytest.raises(MaskError, match=r"heads=4.*got \(2, 3, 3, 5\)"):
        masks.checked(torch.ones(2, 3, 3, 5, dtype=TRUE), batch=2, keys=5, queries=3, heads=4)


def test_a_mask_for_all_queries_alike_has_two_axes():
    with pytest.raises(MaskError) as caught:
        masks.checked(torch.ones(2, 1, 5, dtype=TRUE), batch=2, keys=5)
    assert "queries" not in str(caught.value)
