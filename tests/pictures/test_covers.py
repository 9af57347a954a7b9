import numpy as np
import pytest

from regard.pictures import covers
from regard.pictures.gaze import gazes

WHOLE = covers.Area(0, 0, 90, 60)
MOVED = covers.Area(-10, 5, 120, 60)


@pytest.fixture
def gaze(caption_of):
    return gazes(caption_of(["dog"], weights=np.eye(6)[4])).words[0]


def test_the_cover_is_between_its_ends():
    for value in np.linspace(0, 1, 11):
        red, green, blue, opacity = covers.veil(value)
        assert covers.HAZE <= opacity <= 1
        assert all(0 <= part <= 255 for part in (red, green, blue))
    lights = [covers.veil(v)[3] for v in np.linspace(0, 1, 11)]
    assert lights == sorted(lights, reverse=True)


def test_an_area_says_where_it_is_only_where_it_must():
    assert WHOLE.attributes() == 'width="90" height="60"'
    assert MOVED.attributes() == 'x="-10" y="5" width="120" height="60"'


def test_borders_lie_between_cells(picture_of):
    assert covers.borders(picture_of(2, 3), WHOLE) == "M30 0v60M60 0v60M0 30h90"
    assert covers.borders(picture_of(2, 3), MOVED) == "M30 5v60M70 5v60M-10 35h120"
    assert covers.borders(picture_of(30, 30), WHOLE) == ""


def test_the_frame_is_around_the_strongest_cell(gaze, caption_of):
    dark, light = covers.frame(gaze, MOVED)
    assert 'x="31" y="36" width="38" height="28"' in light
    assert 'x="31" y="36"' in dark
    uniform = gazes(caption_of(["a", "b"], weights=[[1 / 6] * 6, np.eye(6)[0]])).words[0]
    assert not list(covers.frame(uniform, WHOLE))


def test_cells_and_cover_take_the_place_of_the_grid(gaze):
    first = next(iter(covers.cells(gaze, MOVED)))
    assert 'transform="matrix(40 0 0 30 -10 5)"' in first
    (image,) = covers.smooth(gaze, MOVED)
    assert MOVED.attributes() in image


def test_what_lies_outside_is_as_dark_as_no_weight():
    path = covers.outside(MOVED, (90.0, 60.0))
    assert 'd="M0 0h90v60h-90zM-10 5h120v60h-120z"' in path
    assert "#0a101a" in path
