import dataclasses
import io

import numpy as np
import pytest
from PIL import Image

from regard.errors import UserError
from regard.pictures import Picture
from regard.pictures.picture import LARGEST_COPY


def opened(picture):
    return Image.open(io.BytesIO(picture.data))


def photo(size, mode="RGB"):
    noise = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3)).astype(np.uint8)
    return Image.fromarray(noise).convert(mode)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width must be 1 to 10000000; got 0"),
        ({"rows": 2.0}, "rows must be 1 to 10000000; got 2.0"),
        ({"columns": True}, "columns must be 1 to 10000000; got True"),
        ({"rows": 101, "columns": 100}, r"rows \* columns must be at most 10000; got 10100"),
        ({"media_type": "image/svg+xml"}, "media_type must be one of image/jpeg, image/png; got"),
        ({"media_type": "image/jpeg"}, "data must be a plain image/jpeg; it does not begin as"),
        ({"data": b""}, "data must be a plain image/png; it does not begin as a PNG"),
        ({"data": "text"}, "data must be at most 2097152 bytes; got str"),
        ({"data": bytes(LARGEST_COPY + 1)}, "at most 2097152 bytes; got 2097153"),
        ({"width": 48}, "must have the shape of the picture, 48 by 96; got 36 by 24"),
    ],
)
def test_what_a_picture_must_be(picture_of, changes, message):
    with pytest.raises(UserError, match=message):
        dataclasses.replace(picture_of(2, 3), **changes)


def test_a_copy_may_not_be_huge():
    stream = io.BytesIO()
    Image.new("L", (2049, 10)).save(stream, "PNG")
    with pytest.raises(UserError, match="at most 2048 pixels a side; got 2049 by 10"):
        Picture(2049, 10, 1, 1, stream.getvalue(), "image/png")


def test_cells_have_names_and_places(picture_of):
    picture = picture_of(7, 7, sentinel=True)
    assert picture.cells == 50
    assert picture.cell(8) == "row 2, column 2"
    places = {0: "top left", 3: "top", 24: "centre", 27: "right", 45: "bottom", 49: "not looking"}
    assert {index: picture.place(index) for index in places} == places
    assert picture.cell(49) == "not looking"


@pytest.mark.parametrize(
    ("shape", "places"),
    [
        ((1, 1), ["centre"]),
        ((1, 3), ["left", "centre", "right"]),
        ((2, 1), ["top", "bottom"]),
        ((1, 2), ["left", "right"]),
    ],
)
def test_places_of_small_grids(picture_of, shape, places):
    picture = picture_of(*shape)
    assert [picture.place(i) for i in range(picture.cells)] == places


def test_weights_become_a_grid_without_the_sentinel(picture_of):
    picture = picture_of(2, 3, sentinel=True)
    np.testing.assert_array_equal(picture.grid(np.arange(7.0)), [[0, 1, 2], [3, 4, 5]])


def test_a_photo_becomes_a_small_jpeg():
    picture = Picture.from_image(photo((1000, 600)), rows=7, columns=9, name="a.jpg")
    assert (picture.width, picture.height, picture.cells) == (1000, 600, 63)
    assert picture.media_type == "image/jpeg"
    assert opened(picture).size == (640, 384)


def test_a_drawing_is_kept_exactly_and_never_enlarged():
    image = Image.new("RGB", (50, 40), "white")
    image.paste("red", (5, 5, 20, 20))
    picture = Picture.from_image(image, rows=2, columns=2, sentinel=True)
    assert (picture.media_type, picture.sentinel) == ("image/png", True)
    np.testing.assert_array_equal(np.asarray(opened(picture).convert("RGB")), np.asarray(image))


def test_the_picture_is_turned_upright_and_its_metadata_left_behind():
    image, exif = photo((80, 40)), Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    image.save(stream, "JPEG", exif=exif, icc_profile=b"secret", comment=b"secret")
    picture = Picture.from_image(Image.open(stream), rows=4, columns=2)
    assert (picture.width, picture.height) == (40, 80)
    assert opened(picture).size == (40, 80)
    assert b"secret" not in picture.data


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV"])
def test_every_ordinary_mode_is_shown(mode):
    image = photo((20, 10), "RGB").convert(mode)
    assert opened(Picture.from_image(image, rows=1, columns=2)).size == (20, 10)


def test_transparency_stands_on_white():
    clear = Image.new("RGBA", (8, 8), (255, 0, 0, 0))
    marked = Image.new("P", (8, 8), 0)
    marked.putpalette([10, 20, 30])
    marked.info["transparency"] = 0
    for image in (clear, marked):
        picture = opened(Picture.from_image(image, rows=1, columns=1)).convert("RGB")
        assert picture.getpixel((3, 3)) == (255, 255, 255)


def test_sixteen_bits_are_scaled_and_not_clipped():
    values = np.array([[0, 257 * 100], [257 * 200, 65535]], dtype=np.uint16)
    picture = Picture.from_image(Image.fromarray(values), rows=1, columns=1)
    grey = np.asarray(opened(picture).convert("L"))
    np.testing.assert_array_equal(grey, [[0, 100], [200, 255]])


def test_a_mode_without_a_range_is_refused():
    with pytest.raises(UserError, match="8 or 16 bits a channel; got mode 'F'"):
        Picture.from_image(Image.new("F", (4, 4)), rows=1, columns=1)


@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000), (2500, 7)])
def test_extreme_shapes_are_no_fault(size):
    picture = Picture.from_image(Image.new("RGB", size), rows=1, columns=1)
    assert (picture.width, picture.height) == size
    assert max(opened(picture).size) <= 640


@pytest.mark.parametrize("longest", [0, 2049])
def test_the_size_of_the_copy_is_bounded(longest):
    with pytest.raises(UserError, match=f"longest must be 1 to 2048; got {longest}"):
        Picture.from_image(Image.new("RGB", (4, 4)), rows=1, columns=1, longest=longest)


def test_the_bytes_are_not_printed(picture_of):
    assert "PNG" not in repr(picture_of(1, 1))


def test_the_grid_may_cover_a_part_or_more_than_the_picture(picture_of):
    whole = picture_of(2, 3)
    assert whole.area == (0, 0, 1, 1)
    crop = dataclasses.replace(whole, box=(72, 0, 144, 96))
    assert crop.area == (0.5, 0, 0.5, 1)
    assert [crop.place(i) for i in range(3)] == ["top", "top right", "top right"]
    beyond = dataclasses.replace(whole, box=[0, -96, 144, 192])
    assert beyond.area == (0, -1, 1, 3)
    assert beyond.box == (0.0, -96.0, 144.0, 192.0)
    assert [beyond.place(i) for i in (0, 3)] == ["top left", "bottom left"]


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 0, 96),
        (9, 0, 3, 96),
        (200, 0, 300, 96),
        (0, -50, 144, 0),
        (0, 0, float("nan"), 9),
        (float("-inf"), 0, 144, 96),
        (0, 0, float("inf"), 96),
        (0, 0, 1e9, 96),
    ],
)
def test_a_box_lies_over_the_picture(picture_of, box):
    with pytest.raises(UserError, match=r"box must be left < right.* of 144 by 96 pixels; got \("):
        picture_of(2, 3, box=box)


@pytest.mark.parametrize("box", [(1, 2, 3), "abcd", 5, (1, 2, 3, None)])
def test_a_box_is_four_numbers(picture_of, box):
    with pytest.raises(UserError, match="box must be 4 numbers"):
        picture_of(2, 3, box=box)
