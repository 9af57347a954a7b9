"""The words of generated scenes: what stands in a picture, said in English or in Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.errors import UserError, did_you_mean

Box = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels; the right and the bottom edge lie just outside."""


class Colour(NamedTuple):
    """A colour that things have.

    Args:
        article: English `a` or `an` before it.
        chinese: Its Chinese.
        rgb: Red, green and blue, from 0 to 255.
    """

    article: str
    chinese: str
    rgb: tuple[int, int, int]


class Shape(NamedTuple):
    """A shape that things have.

    Args:
        plural: Its English plural.
        chinese: Its Chinese.
    """

    plural: str
    chinese: str


COLOURS = {
    "red": Colour("a", "红色", (214, 39, 40)),
    "orange": Colour("an", "橙色", (255, 127, 14)),
    "yellow": Colour("a", "黄色", (240, 205, 20)),
    "green": Colour("a", "绿色", (44, 150, 44)),
    "blue": Colour("a", "蓝色", (31, 95, 205)),
    "purple": Colour("a", "紫色", (125, 50, 170)),
    "pink": Colour("a", "粉色", (245, 130, 190)),
    "black": Colour("a", "黑色", (25, 25, 25)),
}
"""The colours, by their English names."""

SHAPES = {
    "circle": Shape("circles", "圆形"),
    "square": Shape("squares", "正方形"),
    "triangle": Shape("triangles", "三角形"),
    "star": Shape("stars", "星形"),
    "diamond": Shape("diamonds", "菱形"),
    "cross": Shape("crosses", "十字形"),
    "heart": Shape("hearts", "心形"),
}
"""The shapes, by their English names."""

LANGUAGES = ("en", "zh")

_COUNTS = {1: ("", "一"), 2: ("two", "两"), 3: ("three", "三")}


class Thing(NamedTuple):
    """A coloured shape in a scene.

    Args:
        colour: Its colour.
        shape: Its shape.
        box: Where it is.
    """

    colour: str
    shape: str
    box: Box

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle: across, down."""
        left, top, right, bottom = self.box
        return (left + right) / 2, (top + bottom) / 2


class WordRegion(NamedTuple):
    """A word of a caption that names something, and where that is.

    Args:
        text: The word.
        start: Its first character in the caption.
        end: One past its last.
        boxes: The box of each thing that it names.
    """

    text: str
    start: int
    end: int
    boxes: tuple[Box, ...]


class _Part(NamedTuple):
    """Some words of a caption; with boxes where they name things."""

    text: str
    boxes: tuple[Box, ...] = ()


def describe(things: Sequence[Thing], *, language: str = "en") -> tuple[str, list[WordRegion]]:
    """Say what stands in a scene, in the one way that its rule allows.

    Equal things are counted, the larger group first. Two different things are related: the left
    one first where they lie side by side (more across than down), else the upper one. Three
    different things are listed from left to right.

    Args:
        things: The things, in any order: from one to three.
        language: `en` or `zh`.

    Returns:
        The caption, and for each colour and each shape in it where that is.

    Raises:
        UserError: There are too few or too many things, or there is no such language.

    Example:
        >>> circle = Thing("red", "circle", (0, 0, 9, 9))
        >>> star = Thing("blue", "star", (40, 5, 50, 15))
        >>> describe([star, circle])[0]
        'a red circle left of a blue star'
        >>> describe([star, circle], language="zh")[0]
        '一个红色的圆形在一个蓝色的星形的左边'
    """
    if language not in LANGUAGES:
        advice = did_you_mean(language, LANGUAGES)
        raise UserError(f"language must be one of scenes; got {language!r}; {advice}.")
    if not 1 <= len(things) <= 3:
        raise UserError(f"things must be from 1 to 3; got {len(things)}. Leave some out.")
    groups = _groups(things)
    noun = _english if language == "en" else _chinese
    if len(groups) == 2 and len(things) == 2:
        groups, upright = _related(*groups)
        first, second = map(noun, groups)
        parts = _RELATE[language](first, second, upright)
    else:
        parts = _list([noun(group) for group in groups], language)
    return _assemble(parts, " " if language == "en" else "")


def _groups(things: Sequence[Thing]) -> list[list[Thing]]:
    """Put equal things together: the larger group first, then from left to right."""
    kinds: dict[tuple[str, str], list[Thing]] = {}
    for thing in sorted(things, key=lambda one: (*one.centre, one)):
        kinds.setdefault((thing.colour, thing.shape), []).append(thing)
    return sorted(kinds.values(), key=lambda group: -len(group))


def _related(left: list[Thing], right: list[Thing]) -> tuple[list[list[Thing]], bool]:
    """Put two things into the order of their relation, and say whether one is above the other."""
    across, down = (b - a for a, b in zip(left[0].centre, right[0].centre, strict=True))
    upright = abs(across) < abs(down)
    return ([right, left] if upright and down < 0 else [left, right]), upright


def _boxes(group: Sequence[Thing]) -> tuple[Box, ...]:
    return tuple(thing.box for thing in group)


def _english(group: Sequence[Thing]) -> list[_Part]:
    colour, shape, boxes = group[0].colour, group[0].shape, _boxes(group)
    if len(group) == 1:
        return [_Part(COLOURS[colour].article), _Part(colour, boxes), _Part(shape, boxes)]
    count = _COUNTS[len(group)][0]
    return [_Part(count), _Part(colour, boxes), _Part(SHAPES[shape].plural, boxes)]


def _chinese(group: Sequence[Thing]) -> list[_Part]:
    colour, shape, boxes = COLOURS[group[0].colour], SHAPES[group[0].shape], _boxes(group)
    count = _COUNTS[len(group)][1] + "个"
    return [_Part(count), _Part(colour.chinese, boxes), _Part("的"), _Part(shape.chinese, boxes)]


def _relate_english(first: list[_Part], second: list[_Part], upright: bool) -> list[_Part]:
    words = ["above"] if upright else ["left", "of"]
    return [*first, *map(_Part, words), *second]


def _relate_chinese(first: list[_Part], second: list[_Part], upright: bool) -> list[_Part]:
    return [*first, _Part("在"), *second, _Part("的上面" if upright else "的左边")]


_RELATE = {"en": _relate_english, "zh": _relate_chinese}


def _list(nouns: list[list[_Part]], language: str) -> list[_Part]:
    comma, conjunction = (
        (_Part(","), _Part("and")) if language == "en" else (_Part("、"), _Part("和"))
    )
    parts = [*nouns[0]]
    for number, noun in enumerate(nouns[1:], start=2):
        parts += [conjunction if number == len(nouns) else comma, *noun]
    return parts


def _assemble(parts: Iterable[_Part], space: str) -> tuple[str, list[WordRegion]]:
    text, regions = "", []
    for part in parts:
        if text and part.text != ",":
            text += space
        if part.boxes:
            regions.append(WordRegion(part.text, len(text), len(text) + len(part.text), part.boxes))
        text += part.text
    return text, regions
