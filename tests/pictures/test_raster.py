import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from regard.pictures import raster

PALETTE = np.array([(0, 0, 0, 255), (255, 0, 0, 128), (0, 255, 0, 0)], dtype=np.uint8)


def saved(form, size=(30, 20), **options):
    stream = io.BytesIO()
    Image.new("RGB", size, "teal").save(stream, form, **options)
    return stream.getvalue()


def with_chunk(png, kind):
    body = b"\x00" * 4
    chunk = struct.pack(">I", 4) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return png[:33] + chunk + png[33:]


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 5}])
def test_the_size_of_a_jpeg_is_read(options):
    assert raster.read_size(saved("JPEG", **options), "image/jpeg") == (30, 20)


def test_the_size_of_a_png_is_read():
    assert raster.read_size(saved("PNG"), "image/png") == (30, 20)


def test_metadata_and_animations_are_refused():
    exif = Image.Exif()
    exif[0x0112] = 6
    with pytest.raises(ValueError, match="Exif"):
        raster.read_size(saved("JPEG", exif=exif), "image/jpeg")
    for kind in (b"eXIf", b"acTL"):
        with pytest.raises(ValueError, match="Exif metadata or an animation"):
            raster.read_size(with_chunk(saved("PNG"), kind), "image/png")


def test_exif_after_the_frame_is_seen_too():
    data, exif = saved("JPEG"), Image.Exif()
    exif[0x0112] = 6
    block = exif.tobytes()
    scan = data.index(b"\xff\xda")
    late = b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block
    with pytest.raises(ValueError, match="Exif"):
        raster.read_size(data[:scan] + late + data[scan:], "image/jpeg")


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_the_other_format_and_a_cut_file_are_refused(form):
    data, named = saved(form), f"image/{form.lower()}"
    other = {"JPEG": "image/png", "PNG": "image/jpeg"}[form]
    with pytest.raises(ValueError, match="does not begin as"):
        raster.read_size(data, other)
    for length in (0, 1, 8, 20, 40):
        with pytest.raises(ValueError, match="it "):
            raster.read_size(data[:length], named)


def test_what_follows_a_png_is_refused():
    with pytest.raises(ValueError, match="more follows"):
        raster.read_size(saved("PNG") + b"<script>", "image/png")


def test_a_size_of_zero_is_refused():
    data = bytearray(saved("PNG"))
    data[16:20] = bytes(4)
    with pytest.raises(ValueError, match="no pixels"):
        raster.read_size(bytes(data), "image/png")


@given(st.binary(max_size=80), st.sampled_from(["image/jpeg", "image/png"]))
def test_any_bytes_are_measured_or_refused(tail, media_type):
    start = b"\xff\xd8\xff" if media_type == "image/jpeg" else saved("PNG")[:16]
    try:
        size = raster.read_size(start + tail, media_type)
    except ValueError:
        return
    assert min(size) > 0


def test_a_written_png_is_read_by_pillow():
    levels = np.random.default_rng(0).integers(0, 3, (9, 13)).astype(np.uint8)
    data = raster.write_png(levels, PALETTE)
    assert raster.read_size(data, "image/png") == (13, 9)
    image = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
    np.testing.assert_array_equal(image, PALETTE[levels])


def test_upsampling_stays_within_the_grid_and_keeps_the_centres():
    grid = np.random.default_rng(1).random((5, 9)).astype(np.float32)
    fine = raster.upsample(grid, 7)
    assert fine.shape == (35, 63)
    assert fine.min() >= grid.min()
    assert fine.max() <= grid.max()
    np.testing.assert_allclose(fine[3::7, 3::7], grid, rtol=1e-6)
    # Beyond the outer centres nothing is made up.
    np.testing.assert_array_equal(fine[:4, 3], np.full(4, fine[3, 3]))


def test_upsampling_is_linear_in_both_directions():
    fine = raster.upsample(np.array([[0.0, 1.0], [2.0, 3.0]], dtype=np.float32), 4)
    row, column = 1.5 - 0.625 - 0.5, 0.625 - 0.5  # pixel (3, 2) lies at (0.375, 0.125) of a cell
    assert fine[3, 2] == pytest.approx(2 * row + column)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1)])
def test_one_row_or_column_is_no_fault(shape):
    grid = np.ones(shape, dtype=np.float32)
    np.testing.assert_array_equal(raster.upsample(grid, 3), np.ones((3 * shape[0], 3 * shape[1])))
