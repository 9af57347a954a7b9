"""D15-D18: pictures as people have them, all made here."""

import io
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from regard.data.images import FORMATS, check_image_size, decode_image, open_image
from regard.errors import DataError, UserError

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def decode(data: bytes) -> Image.Image:
    return decode_image(data, where="a.jpg")


def outcome(data: bytes) -> Image.Image | str:
    try:
        return decode(data)
    except DataError as error:
        return str(error)


def near(pixel: Any, wanted: tuple[int, int, int], *, by: int = 3) -> bool:
    return max(abs(a - b) for a, b in zip(pixel, wanted, strict=True)) <= by


def quarters() -> Image.Image:
    """Red, green over blue, white; wider than high."""
    image = Image.new("RGB", (48, 32), WHITE)
    image.paste(RED, (0, 0, 24, 16))
    image.paste(GREEN, (24, 0, 48, 16))
    image.paste(BLUE, (0, 16, 24, 32))
    return image


def corners(image: Image.Image) -> list[Any]:
    right, bottom = image.width - 3, image.height - 3
    return [image.getpixel(place) for place in ((2, 2), (right, 2), (2, bottom), (right, bottom))]


def png(width: int, height: int, rows: bytes, *, depth: int = 8, kind: int = 2) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_whatever_its_ending(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "picture.txt"
    file.write_bytes(encoded(quarters(), kind))
    for path in (file, str(file)):
        image = open_image(path)
        assert (type(image), image.mode, image.size) == (Image.Image, "RGB", (48, 32))
        for pixel, wanted in zip(corners(image), (RED, GREEN, BLUE, WHITE), strict=True):
            assert near(pixel, wanted, by=60 if kind in ("JPEG", "WEBP") else 0)


# D15


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must be a picture; it is empty"),
        (b"<!DOCTYPE html><title>404", r"got a file that begins with b'<!DOCTYPE ht'\. Save it"),
        (b"\xff\xd8\xff\xe0", "whole picture|must be a picture"),
        (b"\x00" * 100, "must be a picture"),
        (b"GIF89a", "must be a"),
        (b"two\nlines\n", r"b'two\\nlines\\n'"),
    ],
)
def test_d15_no_picture(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        open_image(tmp_path / "a.jpg")
    assert str(caught.value).startswith(f"{tmp_path / 'a.jpg'}: ")
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.exit_code == 2


def test_d15_no_file(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.png", "No such file"), (tmp_path, "it is a folder")):
        with pytest.raises(DataError, match=message):
            open_image(path)


def noise(mode: str = "RGB") -> Image.Image:
    generator = np.random.default_rng(0)
    shape = (40, 60, len(mode)) if len(mode) > 1 else (40, 60)
    return Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8))


@pytest.mark.parametrize("kind", FORMATS)
def test_d15_truncated_anywhere_is_refused_and_never_half_a_picture(kind: str) -> None:
    data = encoded(noise(), kind)
    whole = np.asarray(decode(data))
    for length in [*range(1, 60), *range(60, len(data), len(data) // 40), len(data) - 40]:
        found = outcome(data[:length])
        if isinstance(found, str):
            assert len(found.splitlines()) == 1
        else:  # only what lies behind the last pixel may be missing
            assert length > 0.99 * len(data)
            assert (np.asarray(found) == whole).all()


@pytest.mark.parametrize("kind", FORMATS)
@settings(deadline=None, max_examples=60)
@given(place=st.floats(0, 0.999), value=st.integers(0, 255))
def test_d15_any_changed_byte_gives_a_picture_or_one_line(
    kind: str, place: float, value: int
) -> None:
    data = bytearray(encoded(quarters(), kind))
    data[int(place * len(data))] = value
    found = outcome(bytes(data))
    if isinstance(found, str):
        assert len(found.splitlines()) == 1
        assert len(found) < 500
    else:
        assert found.mode == "RGB"


@given(
    data=st.binary(max_size=200),
    start=st.sampled_from(
        [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"\xff\xd8\xff", b"RIFF\x10\0\0\0WEBPVP8 "]
    ),
)
def test_d15_any_bytes_behind_a_right_beginning(data: bytes, start: bytes) -> None:
    found = outcome(start + data)
    assert not isinstance(found, str) or len(found.splitlines()) == 1


# D16


def test_d16_bombs_are_refused_by_their_header() -> None:
    bomb = png(12_000, 12_000, b"\0" * (12_000 * 36_001 // 1000))
    assert len(bomb) < 20_000
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        with pytest.raises(DataError, match=r"12000 x 12000 = 144,000,000\. Make it smaller"):
            decode(bomb)
        with pytest.raises(DataError, match=r"at most 40,000,000 pixels; got 10,000,000,000\."):
            decode(png(100_000, 100_000, b""))
        with pytest.raises(DataError, match="sides of at most 30,000 pixels; got 100000 x 1"):
            decode(png(100_000, 1, b"\0" * 300_001))
        with pytest.raises(DataError, match="sides of at most 30,000 pixels; got 1 x 100000"):
            decode(png(1, 100_000, b"\0" * 400_000))
    assert not leaked


def test_d16_the_limit_can_be_lowered() -> None:
    data = encoded(quarters())
    assert decode_image(data, where="a", most_pixels=48 * 32).size == (48, 32)
    with pytest.raises(DataError, match=r"at most 1,535 pixels; got 48 x 32 = 1,536\."):
        decode_image(data, where="a", most_pixels=48 * 32 - 1)
    with pytest.raises(UserError, match="most_pixels must be at least 1; got 0"):
        decode_image(data, where="a", most_pixels=0)
    check_image_size(30_000, 1_333, where="a")


def test_d16_a_text_chunk_that_unpacks_to_gigabytes() -> None:
    def chunk(name: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)

    data = encoded(quarters())
    packed = zlib.compress(b"\0" * 80_000_000, 9)
    bomb = data[:33] + chunk(b"zTXt", b"Comment\0\0" + packed) + data[33:]
    with pytest.raises(DataError, match="whole picture"):
        decode(bomb)


# D17


@pytest.mark.parametrize(
    ("orientation", "wanted"),
    [
        (1, (RED, GREEN, BLUE, WHITE)),
        (2, (GREEN, RED, WHITE, BLUE)),
        (3, (WHITE, BLUE, GREEN, RED)),
        (4, (BLUE, WHITE, RED, GREEN)),
        (5, (RED, BLUE, GREEN, WHITE)),
        (6, (BLUE, RED, WHITE, GREEN)),
        (7, (WHITE, GREEN, BLUE, RED)),
        (8, (GREEN, WHITE, RED, BLUE)),
        (0, (RED, GREEN, BLUE, WHITE)),
        (9, (RED, GREEN, BLUE, WHITE)),
    ],
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_d17_orientation_is_done_once(kind: str, orientation: int, wanted: Any) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = decode(encoded(quarters(), kind, exif=exif))
    assert image.size == ((32, 48) if orientation in (5, 6, 7, 8) else (48, 32))
    again = decode(encoded(image))  # saved and opened once more, it stays as it is
    for pixels in (corners(image), corners(again)):
        assert all(near(p, w, by=60) for p, w in zip(pixels, wanted, strict=True))


def test_d17_broken_metadata_does_not_hide_a_sound_picture() -> None:
    for exif in (
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff",
        b"Exif\0\0garbage",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
    ):
        image = decode(encoded(quarters(), "JPEG", exif=exif))
        assert near(image.getpixel((2, 2)), RED, by=60)


def palette(transparency: Any) -> Image.Image:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([*RED, *BLUE])
    image.paste(1, (2, 0, 4, 4))
    image.info["transparency"] = transparency
    return image


@pytest.mark.parametrize(
    ("make", "left", "right"),
    [
        (lambda: palette(1), RED, WHITE),
        (lambda: palette(b"\xff\x80"), RED, (127, 127, 255)),
        (lambda: palette(b"\x00\xff"), WHITE, BLUE),
    ],
)
def test_d17_palettes_with_alpha_lie_on_white(
    make: Callable[[], Image.Image], left: Any, right: Any
) -> None:
    for kind in ("PNG", "GIF") if make().info["transparency"] == 1 else ("PNG",):
        image = decode(encoded(make(), kind))
        assert near(image.getpixel((0, 0)), left)
        assert near(image.getpixel((3, 0)), right)


@pytest.mark.parametrize(
    ("mode", "colour", "wanted"),
    [
        ("RGBA", (255, 0, 0, 0), WHITE),
        ("RGBA", (0, 0, 0, 128), (127, 127, 127)),
        ("RGBA", (255, 0, 0, 255), RED),
        ("LA", (0, 0), WHITE),
        ("LA", (100, 255), (100, 100, 100)),
        ("L", 100, (100, 100, 100)),
        ("1", 1, WHITE),
        ("RGB", BLUE, BLUE),
    ],
)
def test_d17_alpha_lies_on_white(mode: str, colour: Any, wanted: Any) -> None:
    image = decode(encoded(Image.new(mode, (4, 4), colour)))
    assert image.mode == "RGB"
    assert near(image.getpixel((1, 1)), wanted)


def test_d17_a_transparent_colour_lies_on_white() -> None:
    image = Image.new("RGB", (4, 4), RED)
    image.paste(BLUE, (2, 0, 4, 4))
    found = decode(encoded(image, transparency=BLUE))
    assert (found.getpixel((0, 0)), found.getpixel((3, 3))) == (RED, WHITE)
    grey = Image.new("L", (4, 4), 7)
    grey.paste(90, (2, 0, 4, 4))
    found = decode(encoded(grey, transparency=7))
    assert (found.getpixel((0, 0)), found.getpixel((3, 3))) == (WHITE, (90, 90, 90))


def test_d17_sixteen_bits_are_scaled_not_clipped() -> None:
    values = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    image = decode(encoded(Image.fromarray(values)))
    wanted = np.round(values / 257).astype(np.uint8)
    assert (np.asarray(image) == wanted[..., None]).all()
    keyed = decode(encoded(Image.fromarray(values), transparency=int(values[3, 3])))
    assert keyed.getpixel((3, 3)) == WHITE
    assert keyed.getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize(("kind", "channels"), [(2, 3), (6, 4), (4, 2)])
def test_d17_sixteen_bits_of_colour_and_alpha(kind: int, channels: int) -> None:
    high = {2: (0x40, 0x80, 0xC0), 6: (0x40, 0x80, 0xC0, 0xFF), 4: (0x40, 0xFF)}[kind]
    row = b"\0" + b"".join(bytes([value, value]) for value in high) * 4
    image = decode(png(4, 4, row * 4, depth=16, kind=kind))
    wanted = (0x40, 0x80, 0xC0) if channels > 2 else (0x40,) * 3
    assert near(image.getpixel((2, 2)), wanted, by=1)


def test_d17_cmyk_becomes_rgb() -> None:
    for colour, wanted in (((0, 255, 255, 0), RED), ((0, 0, 0, 255), (0, 0, 0)), ((0,) * 4, WHITE)):
        image = decode(encoded(Image.new("CMYK", (16, 16), colour), "JPEG"))
        assert near(image.getpixel((8, 8)), wanted, by=8)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_d17_the_first_frame_of_an_animation(kind: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, GREEN, BLUE)]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    image = decode(data)
    assert near(image.getpixel((8, 8)), RED)
    assert not hasattr(image, "n_frames")


def test_d17_a_colour_profile_is_ignored_and_not_passed_on() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    image = decode(encoded(quarters(), icc_profile=profile))
    assert image.getpixel((2, 2)) == RED
    assert image.info == {}


# D18


@pytest.mark.parametrize("kind", ["TIFF", "PPM", "TGA", "PDF", "EPS", "ICO", "JPEG2000", "PCX"])
def test_d18_other_formats_are_refused(kind: str) -> None:
    with pytest.raises(DataError, match=r"must be a picture \(JPEG, PNG, WEBP, GIF, BMP"):
        decode(encoded(quarters(), kind))


@pytest.mark.parametrize(
    "data", [b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"8BPS\0\1", b"SIMPLE  ="]
)
def test_d18_vector_and_layered_formats_are_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="must be a picture"):
        decode(data)
