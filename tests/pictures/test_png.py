import io
import sys
import types
import warnings

import numpy as np
import pytest
from PIL import Image

from regard.errors import EnvironmentFault, MissingExtraError, UserError
from regard.pictures import png, strip


def without_fonts(resvg):
    """Return resvg as it is on a system that has no fonts."""

    def svg_to_bytes(**options):
        return resvg.svg_to_bytes(**options, skip_system_fonts=True)

    return types.SimpleNamespace(svg_to_bytes=svg_to_bytes)


def test_c6_a_missing_extra_says_how_to_get_it(chase, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[png\]'") as caught:
        chase.save(tmp_path / "r.png")
    assert isinstance(caught.value, EnvironmentFault)
    assert caught.value.exit_code == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("zoom", [0, -1, 9, float("nan")])
def test_the_zoom_has_a_range(chase, zoom):
    with pytest.raises(UserError, match="zoom must be above 0 and at most 8; got"):
        png.render(chase, zoom=zoom)


def test_right_to_left_text_is_restated_for_resvg():
    drawn = '<text x="9" text-anchor="start" direction="rtl" fill="#000">كلب</text>'
    told = png._TEXTS.sub(png._restated, drawn)
    assert 'text-anchor="end"' in told
    assert "direction" not in told
    assert "'Noto Sans Arabic'" in told
    assert ">\u2067كلب\u2069<" in told
    latin = '<text x="9" text-anchor="start" fill="#000">dog</text>'
    assert png._TEXTS.sub(png._restated, latin) == latin
    assert "CJK SC" in png._TEXTS.sub(png._restated, latin.replace("dog", "狗"))


@pytest.fixture
def resvg():
    """Skip where the extra is not installed; letters that this system lacks are no matter here."""
    module = pytest.importorskip("resvg_py")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*letters are missing from the PNG")
        yield module


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.float64)


def test_a_strip_is_painted_and_its_size_follows_the_zoom(resvg, caption_of, tmp_path):
    record = caption_of(["a", "dog"], weights=np.eye(2, 6))
    one, two = (pixels(png.render(record, zoom=zoom)) for zoom in (1.0, 2.0))
    assert two.shape[:2] == (2 * one.shape[0], 2 * one.shape[1])
    record.save(tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_the_cell_that_was_looked_at_is_brighter(resvg, caption_of):
    record = caption_of(["dog", "cat"], weights=np.eye(6)[[0, 5]])
    for style in ("smooth", "grid"):
        drawn = strip.render(record, style=style)
        image = pixels(png.paint(drawn, zoom=1.0, resvg=resvg)).mean(axis=2)
        left, top, step = strip._MARGIN, strip._MARGIN, strip._SIDE + strip._GAP
        cell = strip._SIDE / 3
        for panel, bright in ((1, (0, 0)), (2, (1, 2))):
            means = {}
            for row in range(2):
                for column in range(3):
                    x = int(left + panel * step + (column + 0.5) * cell)
                    y = int(top + (row + 0.5) * cell)
                    means[row, column] = image[y - 9 : y + 9, x - 9 : x + 9].mean()
            assert max(means, key=means.get) == bright
            assert means[bright] > 1.5 * sorted(means.values())[-2]


def test_a_matrix_is_painted_too(resvg, chase):
    assert pixels(png.render(chase)).std() > 10


def test_a_huge_picture_is_painted_smaller(resvg, record_of):
    words = [f"w{i}" for i in range(200)]
    image = pixels(png.render(record_of(words, words), zoom=8.0))
    assert image.shape[0] * image.shape[1] <= 16_100_000


def test_letters_that_no_font_has_are_named(caption_of):
    resvg = without_fonts(pytest.importorskip("resvg_py"))
    drawn = strip.render(caption_of(["一只", "狗"], weights=np.eye(2, 6)))
    with pytest.warns(
        UserWarning, match=r"letters are missing from the PNG: no font .*Noto Sans CJK"
    ):
        data = png.paint(drawn, zoom=1.0, resvg=resvg)
    assert data.startswith(b"\x89PNG")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        png.paint(strip.render(caption_of(["dog"])), zoom=1.0, resvg=resvg)
    assert "CJK" not in str(caught[0].message)


def test_letters_that_a_font_has_are_not_named(resvg):
    drawn = '<svg><text x="1">Dog dog 12</text></svg>'
    if list(png._missing_letters(drawn, resvg)):
        pytest.skip("this system has no font at all")
    odd = '<svg><text x="1">dog \U00011f04</text></svg>'
    assert set(png._missing_letters(odd, resvg)) <= {"\U00011f04"}
