"""One perceptual colour map of a single hue, and text that stays legible on it.

The stops are evenly spaced in lightness, so that equal steps of weight look equal, and a print
in grey keeps their order. On a light background a heavier weight is darker; on a dark one it
is lighter.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Rgb: TypeAlias = tuple[int, int, int]
Theme: TypeAlias = Literal["light", "dark"]
Depth: TypeAlias = Literal["truecolor", "256", "none"]

STOPS: dict[Theme, tuple[str, ...]] = {
    "light": (
        "#f1f6fd",
        "#c9dffb",
        "#9bc5fa",
        "#6ca9f6",
        "#4790e8",
        "#2d77cd",
        "#135eb0",
        "#0c498c",
        "#113561",
    ),
    "dark": (
        "#172331",
        "#14375c",
        "#124d87",
        "#1d65b4",
        "#3a80d5",
        "#5c9dec",
        "#86b9f7",
        "#b2d3fa",
        "#e2eefd",
    ),
}

# The same map in the fixed colours of a terminal, where the nearest ones would change the hue.
STOPS_256: dict[Theme, tuple[int, ...]] = {
    "light": (231, 189, 153, 111, 68, 26, 25, 18, 17),
    "dark": (233, 17, 18, 25, 26, 68, 111, 153, 189),
}

_LEVELS = (0, 95, 135, 175, 215, 255)


def shade(value: float, theme: Theme = "light") -> Rgb:
    """Return the colour of a weight.

    Args:
        value: The weight as a part of the strongest, 0 to 1; beyond that it is clipped.
        theme: The background that the colours stand on.

    Returns:
        Red, green and blue, 0 to 255.

    Example:
        >>> shade(0.0), shade(1.0)
        ((241, 246, 253), (17, 53, 97))
    """
    stops = STOPS[theme]
    place = min(max(value, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(place), len(stops) - 2)
    low, high = from_hex(stops[index]), from_hex(stops[index + 1])
    part = place - index
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(low, high, strict=True))
    return red, green, blue


def scale_top(weights: NDArray[np.float32]) -> float:
    """Return the weight that is drawn in the strongest colour.

    It is 1 where any weight reaches a half, so that pictures can be compared. Where all are
    small, as in a long text, it is the next of 1, 2 and 5 times a power of ten above them.

    Args:
        weights: All the weights of a picture.

    Returns:
        A number above 0, for the legend.

    Example:
        >>> import numpy as np
        >>> scale_top(np.array([[0.9]])), scale_top(np.array([[0.03]]))
        (1.0, 0.05)
    """
    largest = float(weights.max()) if weights.size else 0.0
    if largest == 0 or 0.5 <= largest <= 1:
        return 1.0
    power = math.floor(math.log10(largest))
    for factor in (1, 2, 5):
        candidate = float(f"{factor}e{power}")
        if largest <= candidate:
            return candidate
    return float(f"1e{power + 1}")


def from_hex(text: str) -> Rgb:
    """Read a colour such as "#0c5fb6".

    Args:
        text: A sign and six hexadecimal digits.

    Returns:
        Red, green and blue.
    """
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def to_hex(colour: Rgb) -> str:
    """Write a colour as "#0c5fb6".

    Args:
        colour: Red, green and blue, 0 to 255.

    Returns:
        A sign and six hexadecimal digits.
    """
    return "#{:02x}{:02x}{:02x}".format(*colour)


def luminance(colour: Rgb) -> float:
    """Return the relative luminance of WCAG 2.

    Args:
        colour: Red, green and blue, 0 to 255.

    Returns:
        0 for black to 1 for white.
    """
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: Rgb, second: Rgb) -> float:
    """Return the contrast ratio of WCAG 2.

    Args:
        first: A colour.
        second: Another.

    Returns:
        1 to 21; text needs 4.5.
    """
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def ink(background: Rgb) -> Rgb:
    """Return black or white, whichever reads better; the contrast is never below 4.5.

    Args:
        background: The colour that text stands on.

    Returns:
        The colour of the text.
    """
    black, white = (0, 0, 0), (255, 255, 255)
    return black if contrast(black, background) >= contrast(white, background) else white


def from_256(index: int) -> Rgb:
    """Return a fixed colour of a terminal.

    Args:
        index: 16 to 255: a cube of colours, then greys.

    Returns:
        Red, green and blue.
    """
    if index >= 232:
        grey = 8 + 10 * (index - 232)
        return grey, grey, grey
    index -= 16
    return _LEVELS[index // 36], _LEVELS[index // 6 % 6], _LEVELS[index % 6]


def paint(text: str, value: float, *, depth: Depth, theme: Theme) -> str:
    """Write text on the colour of a weight, in a terminal.

    Args:
        text: Text without control characters.
        value: The weight as a part of the strongest, 0 to 1; beyond that it is clipped.
        depth: How many colours the terminal has.
        theme: The background that the colours stand on.

    Returns:
        The text between escape sequences, or alone where there is no colour.
    """
    if depth == "none":
        return text
    if depth == "256":
        stops = STOPS_256[theme]
        index = stops[round(min(max(value, 0.0), 1.0) * (len(stops) - 1))]
        letter = 16 if ink(from_256(index)) == (0, 0, 0) else 231
        return f"\x1b[38;5;{letter};48;5;{index}m{text}\x1b[0m"
    colour = shade(value, theme)
    return f"\x1b[38;2;{_triple(ink(colour))};48;2;{_triple(colour)}m{text}\x1b[0m"


def paint_pair(halves: tuple[float, float | None], columns: int, depth: Depth, theme: Theme) -> str:
    """Draw two weights one above the other in one line of a terminal that has colours.

    Args:
        halves: The upper and the lower weight as parts of the strongest; the lower may lack.
        columns: How wide they are drawn.
        depth: How many colours the terminal has: "truecolor" or "256".
        theme: The background that the colours stand on.

    Returns:
        Half blocks between escape sequences.
    """
    upper, lower = (None if half is None else _code(half, depth, theme) for half in halves)
    behind = "" if lower is None else f";48;{lower}"
    return f"\x1b[38;{upper}{behind}m{'▀' * columns}\x1b[0m"


def _code(value: float, depth: Depth, theme: Theme) -> str:
    if depth == "truecolor":
        return f"2;{_triple(shade(value, theme))}"
    stops = STOPS_256[theme]
    return f"5;{stops[round(min(max(value, 0.0), 1.0) * (len(stops) - 1))]}"


def _triple(colour: Rgb) -> str:
    return ";".join(map(str, colour))
