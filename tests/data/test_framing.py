"""Sizes: what of the picture is seen, and where its cells lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard.data.framing import FILL, best_grid, centre_crop, cut, letterbox, overlap_share
from regard.errors import UserError

SIDES = st.integers(1, 90)


def ramp(width: int, height: int) -> Image.Image:
    """Red grows to the right, green downwards."""
    values = np.zeros((height, width, 3), dtype=np.uint8)
    values[..., 0] = np.linspace(0, 255, width).astype(np.uint8)
    values[..., 1] = np.linspace(0, 255, height).astype(np.uint8)[:, None]
    return Image.fromarray(values)


def test_the_middle_is_cut_out_as_the_usual_preprocessing_does() -> None:
    image = ramp(300, 200)
    framed = centre_crop(image, height=224, width=224, share=224 / 256)
    assert framed.image.size == (224, 224)
    assert framed.box == pytest.approx((62.5, 12.5, 237.5, 187.5))
    two_steps = image.resize((384, 256), Image.Resampling.BICUBIC).crop((80, 16, 304, 240))
    difference = np.abs(np.asarray(framed.image).astype(int) - np.asarray(two_steps))
    assert difference.max() <= 2
    assert (framed.covered(7, 7) == 1).all()


def test_a_crop_may_be_oblong() -> None:
    framed = centre_crop(ramp(100, 100), height=20, width=40)
    assert framed.image.size == (40, 20)
    assert framed.box == (0, 25, 100, 75)


def test_a_letterbox_shows_the_whole_picture_and_knows_the_rest() -> None:
    framed = letterbox(ramp(200, 100), rows=4, columns=4, cell=25)
    pixels = np.asarray(framed.image)
    assert pixels.shape == (100, 100, 3)
    assert (pixels[:25] == FILL).all()
    assert (pixels[75:] == FILL).all()
    assert pixels[50, 2, 0] < 12
    assert pixels[50, 97, 0] > 243
    assert framed.box == (0, -50, 200, 150)
    assert framed.covered(4, 4).reshape(4, 4)[:, 0].tolist() == [0, 1, 1, 0]
    assert framed.covered(2, 1).tolist() == [0.5, 0.5]
    assert framed.cells(2, 2).tolist() == [
        [0, -50, 100, 50],
        [100, -50, 200, 50],
        [0, 50, 100, 150],
        [100, 50, 200, 150],
    ]


@given(width=SIDES, height=SIDES, rows=st.integers(1, 9), columns=st.integers(1, 9))
def test_any_picture_fits_any_grid(width: int, height: int, rows: int, columns: int) -> None:
    image = ramp(width, height)
    for framed in (
        letterbox(image, rows=rows, columns=columns, cell=8),
        centre_crop(image, height=rows * 8, width=columns * 8, share=0.9),
    ):
        assert framed.image.size == (columns * 8, rows * 8)
        left, top, right, bottom = framed.box
        cells = framed.cells(rows, columns)
        assert cells[0, :2].tolist() == [left, top]
        assert cells[-1, 2:].tolist() == [right, bottom]
        assert framed.covered(rows, columns).max() > 0
    boxed = letterbox(image, rows=rows, columns=columns, cell=8).box
    assert boxed[0] <= 0 <= width <= boxed[2] + 1e-9
    assert boxed[1] <= 0 <= height <= boxed[3] + 1e-9


def test_a_line_of_pixels_stays_bounded() -> None:
    line = Image.new("RGB", (30_000, 1), (9, 9, 9))
    assert centre_crop(line, height=224, width=224).image.size == (224, 224)
    assert letterbox(line, rows=7, columns=7, cell=32).image.size == (224, 224)
    assert [part.size for part in cut(line, rows=2, columns=2)] == [(15_000, 1)] * 4


@pytest.mark.parametrize(
    ("size", "cells", "grid"),
    [
        ((100, 100), 49, (7, 7)),
        ((300, 200), 49, (6, 8)),
        ((200, 300), 49, (8, 6)),
        ((1000, 1), 10, (1, 10)),
        ((100, 100), 8, (2, 2)),
        ((5, 3), 1, (1, 1)),
    ],
)
def test_the_grid_follows_the_picture(
    size: tuple[int, int], cells: int, grid: tuple[int, int]
) -> None:
    assert best_grid(*size, most_cells=cells) == grid


def test_parts_are_equal_and_show_everything() -> None:
    image = ramp(90, 60)
    parts = cut(image, rows=2, columns=3)
    assert [part.size for part in parts] == [(30, 30)] * 6
    rows = [np.hstack([np.asarray(part) for part in parts[i : i + 3]]) for i in (0, 3)]
    assert (np.vstack(rows) == np.asarray(image)).all()
    assert [part.size for part in cut(ramp(100, 61), rows=3, columns=7)] == [(15, 21)] * 21
    assert cut(image, rows=1, columns=2, size=(64, 48))[1].size == (48, 64)


def test_shares_of_boxes() -> None:
    boxes = np.array([[0.0, 0, 10, 10], [20, 0, 30, 10], [4, 4, 6, 6]])
    assert overlap_share(boxes, (5, 0, 25, 10)).tolist() == [0.5, 0.5, 0.5]
    assert overlap_share(boxes, (40, 40, 50, 50)).tolist() == [0, 0, 0]


def test_numbers_that_mean_nothing_are_refused() -> None:
    image = ramp(8, 8)
    for call, message in (
        (lambda: centre_crop(image, height=0, width=4), "height must be at least 1; got 0"),
        (lambda: centre_crop(image, height=4, width=4, share=1.5), "share must be"),
        (lambda: centre_crop(image, height=4, width=4, share=0.0), "share must be"),
        (lambda: letterbox(image, rows=2, columns=0, cell=8), "columns must be"),
        (lambda: best_grid(4, 4, most_cells=0), "most_cells must be"),
        (lambda: cut(image, rows=0, columns=2), "rows must be"),
        (lambda: cut(image, rows=1, columns=2, size=(0, 3)), "height must be"),
    ):
        with pytest.raises(UserError, match=message):
            call()
