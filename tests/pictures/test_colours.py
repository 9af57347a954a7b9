import itertools

import numpy as np
import pytest

from regard.pictures import colours

STEPS = np.linspace(0, 1, 256)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_legible_on_every_colour(theme):
    for step in STEPS:
        cell = colours.shade(step, theme)
        assert colours.contrast(cell, colours.ink(cell)) >= 4.5
    for index in range(16, 256):
        cell = colours.from_256(index)
        assert colours.contrast(cell, colours.ink(cell)) >= 4.5


@pytest.mark.parametrize(("theme", "sign"), [("light", -1), ("dark", 1)])
def test_lightness_only_ever_moves_one_way(theme, sign):
    lights = [colours.luminance(colours.shade(step, theme)) for step in STEPS]
    assert all(sign * (b - a) > -1e-3 for a, b in itertools.pairwise(lights))
    stops = [colours.luminance(colours.from_hex(stop)) for stop in colours.STOPS[theme]]
    assert all(sign * (b - a) > 0 for a, b in itertools.pairwise(stops))
    fixed = [colours.luminance(colours.from_256(index)) for index in colours.STOPS_256[theme]]
    assert all(sign * (b - a) > 0 for a, b in itertools.pairwise(fixed))


def test_stops_are_evenly_spaced_in_lightness():
    for stops in colours.STOPS.values():
        cube_roots = [colours.luminance(colours.from_hex(stop)) ** (1 / 3) for stop in stops]
        steps = np.abs(np.diff(cube_roots))
        assert steps.max() < 1.6 * steps.min()


def test_shade_clips_and_meets_its_ends():
    assert colours.shade(-1) == colours.shade(0) == colours.from_hex(colours.STOPS["light"][0])
    assert colours.shade(2) == colours.shade(1) == colours.from_hex(colours.STOPS["light"][-1])


def test_contrast_by_hand():
    assert colours.contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert colours.contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


def test_hex_round_trip():
    assert colours.to_hex(colours.from_hex("#0c5fb6")) == "#0c5fb6"


@pytest.mark.parametrize(
    ("index", "rgb"), [(16, (0, 0, 0)), (231, (255,) * 3), (21, (0, 0, 255)), (244, (128,) * 3)]
)
def test_the_256_colours(index, rgb):
    assert colours.from_256(index) == rgb


@pytest.mark.parametrize(
    ("largest", "top"),
    [(0, 1), (1, 1), (0.5, 1), (0.49, 0.5), (0.15, 0.2), (0.002, 0.002), (1.5, 2), (7, 10)],
)
def test_the_scale_ends_at_a_round_number(largest, top):
    assert colours.scale_top(np.array([[0, largest]], dtype=np.float64)) == pytest.approx(top)


def test_the_scale_of_nothing_is_one():
    assert colours.scale_top(np.zeros((0, 3))) == 1


def test_paint():
    assert colours.paint("x", 0, depth="none", theme="light") == "x"
    few = colours.paint("x", 0, depth="256", theme="light")
    assert few == "\x1b[38;5;16;48;5;231mx\x1b[0m"
    full = colours.paint("x", 2, depth="truecolor", theme="light")
    assert full == "\x1b[38;2;255;255;255;48;2;17;53;97mx\x1b[0m"


def test_paint_pair():
    both = colours.paint_pair((1.0, 0.0), 2, "truecolor", "light")
    assert both == "\x1b[38;2;17;53;97;48;2;241;246;253m▀▀\x1b[0m"
    alone = colours.paint_pair((2.0, None), 1, "256", "dark")
    assert alone == "\x1b[38;5;189m▀\x1b[0m"
