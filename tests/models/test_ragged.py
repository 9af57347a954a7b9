"""Groups of different size: in buckets, and as one padded batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ShapeError
from regard.models.encoder_settings import RecurrentEncoderSettings, build_encoder, token_embedding
from regard.models.poolings import build_pool
from regard.models.ragged import Level, buckets

CPU = torch.device("cpu")


@given(st.lists(st.integers(0, 40), max_size=60))
def test_every_item_is_in_one_bucket_and_little_is_padding(sizes: list[int]) -> None:
    found = buckets(torch.tensor(sizes, dtype=torch.int64), device=CPU)
    groups = [g for bucket in found for g in bucket.groups.tolist()]
    assert sorted(groups) == [i for i, size in enumerate(sizes) if size]
    starts = torch.tensor([0, *sizes]).cumsum(0)
    for rows, places, mask in found:
        for group, own, real in zip(rows.tolist(), places, mask, strict=True):
            first = int(starts[group])
            assert own[real].tolist() == list(range(first, first + sizes[group]))
            assert not own[~real].any()
        assert mask.sum() >= 0.75 * mask.numel() or len(rows) == 1


def test_a_long_group_does_not_pad_the_short_ones() -> None:
    sizes = torch.tensor([5_000, *[10] * 5_000])
    cells = sum(bucket.mask.numel() for bucket in buckets(sizes, device=CPU))
    assert cells == sizes.sum()


@pytest.fixture
def level() -> Level:
    torch.manual_seed(0)
    encoder = build_encoder(
        RecurrentEncoderSettings(hidden_dim=4), token_embedding(20, 6, 0), dropout=0.0
    )
    return Level(encoder, build_pool("attention", 3), projection=3).eval()


def test_the_result_is_that_of_one_padded_batch(level: Level) -> None:
    sizes = [3, 0, 11, 1, 30, 2]
    tokens = torch.randint(1, 20, (sum(sizes),))
    vectors, weights = level(tokens, torch.tensor(sizes))
    padded = torch.zeros(6, 30, dtype=torch.int64)
    mask = torch.arange(30) < torch.tensor(sizes).unsqueeze(1)
    padded[mask] = tokens
    states = level.projection(level.encoder(padded, mask).memory)
    expected = level.pooling(states, mask)
    torch.testing.assert_close(vectors, expected.context)
    torch.testing.assert_close(weights, expected.weights[mask])
    assert not vectors[1].any()


@pytest.mark.parametrize("sizes", [[], [0, 0]])
def test_l2_nothing_at_all(level: Level, sizes: list[int]) -> None:
    none = torch.zeros(0, dtype=torch.int64)
    vectors, weights = level(none, torch.tensor(sizes, dtype=torch.int64))
    assert vectors.shape == (len(sizes), 3)
    assert not vectors.any()
    assert weights.shape == (0,)


@pytest.mark.parametrize("sizes", [[2], [4], [4, -1]])
def test_sizes_that_do_not_add_up(level: Level, sizes: list[int]) -> None:
    with pytest.raises(ShapeError, match="add up to the items; got a sum of"):
        level(torch.ones(3, dtype=torch.int64), torch.tensor(sizes))
