"""Generated pictures of coloured shapes, with captions and the true region of every word."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from regard.data.drawn import Drawn, picture_name, write_drawn
from regard.data.scene_words import COLOURS, SHAPES, Box, Thing, WordRegion, describe
from regard.data.splits import check_split, split_of_content
from regard.data.text import read_lines
from regard.errors import DataError, FileFormatError, UserError
from regard.saving.files import parse_json

CAPTIONS = "captions.jsonl"

_FINER = 4  # shapes are drawn so many times larger, then averaged, for smooth edges
_SMALLEST, _LARGEST = 32, 4096  # pixels of a side of a picture
_MOST_TRIES = 10_000
_Outline = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A drawn picture and its description.

    Args:
        image: The picture.
        caption: What stands in it.
        words: Each colour and each shape of the caption, and where that is.
        things: What was drawn.
    """

    image: Image.Image
    caption: str
    words: tuple[WordRegion, ...]
    things: tuple[Thing, ...]


@dataclass(frozen=True, slots=True)
class Scenes:
    """A generator of scenes.

    A scene is a function of seed, split and index alone. What is drawn where decides the split, so
    that no arrangement stands in two splits, whatever their seeds.

    Args:
        width: Width of the pictures in pixels.
        height: Their height.
        most_things: Most things in a picture, from 1 to 3.
        language: Language of the captions: `en` or `zh`; the pictures are the same.
        textured: Whether backgrounds are lightly textured, or plain.
        smallest: Side of the smallest thing, as a share of the picture's shorter side.
        largest: Side of the largest.

    Raises:
        UserError: A number is out of range.

    Example:
        >>> Scenes().scene(1, seed=1).caption
        'a black cross, a red circle and an orange square'
    """

    width: int = 96
    height: int = 96
    most_things: int = 3
    language: str = "en"
    textured: bool = True
    smallest: float = 0.18
    largest: float = 0.3

    def __post_init__(self) -> None:
        bounds = {
            "width": (self.width, _SMALLEST, _LARGEST),
            "height": (self.height, _SMALLEST, _LARGEST),
            "most_things": (self.most_things, 1, 3),
        }
        for name, (value, low, high) in bounds.items():
            if not low <= value <= high:
                raise UserError(f"{name} must be from {low} to {high}; got {value}. Change it.")
        if not 0.1 <= self.smallest <= self.largest <= 0.36:
            raise UserError(
                f"smallest and largest must lie from 0.1 to 0.36, in this order; got "
                f"{self.smallest} and {self.largest}. 0.18 and 0.3 are usual."
            )
        describe([Thing("red", "circle", (0, 0, 1, 1))], language=self.language)

    def scene(self, index: int, *, seed: int, split: str = "train") -> Scene:
        """Draw a scene.

        Args:
            index: Which one of the seed and the split.
            seed: Other seeds give other scenes.
            split: `train`, `dev` or `test`.

        Returns:
            The scene.

        Raises:
            UserError: There is no such split.
        """
        check_split(split)
        generator = random.Random(f"{seed}/{split}/{index}")  # noqa: S311 - no secret
        while split_of(things := self._arrange(generator)) != split:
            pass
        image = self.draw(things, generator)
        caption, words = describe(things, language=self.language)
        return Scene(image, caption, tuple(words), things)

    def sample(self, count: int, *, seed: int, split: str = "train") -> list[Scene]:
        """Draw the first scenes of a seed and a split.

        Args:
            count: How many.
            seed: Other seeds give other scenes.
            split: `train`, `dev` or `test`.

        Returns:
            The scenes.

        Raises:
            UserError: The count is negative, or there is no such split.
        """
        if count < 0:
            raise UserError(f"count must not be negative; got {count}. Use 0 or more.")
        return [self.scene(index, seed=seed, split=split) for index in range(count)]

    def arrange(
        self, kinds: Sequence[tuple[str, str]], generator: random.Random
    ) -> tuple[Thing, ...]:
        """Find room for things, apart from each other.

        Args:
            kinds: The colour and the shape of each, at most three.
            generator: Draws where they lie, and how large they are.

        Returns:
            The things.
        """
        for _ in range(_MOST_TRIES):
            things = tuple(Thing(*kind, self._box(generator)) for kind in kinds)
            if _is_clear(things, self.width):
                return things
        raise UserError(  # pragma: no cover - three things find room in every size allowed
            f"pictures must have room for {len(kinds)} things; {self.width} x {self.height} have "
            "none. Make them larger."
        )

    def draw(self, things: Sequence[Thing], generator: random.Random) -> Image.Image:
        """Draw things on a background.

        Args:
            things: The things.
            generator: Draws the background, and shades of the colours.

        Returns:
            The picture.
        """
        image = _background((self.width, self.height), generator, textured=self.textured)
        for thing in things:
            _draw(image, thing, generator)
        return image

    def _arrange(self, generator: random.Random) -> tuple[Thing, ...]:
        return self.arrange(_kinds(generator, generator.randint(1, self.most_things)), generator)

    def _box(self, generator: random.Random) -> Box:
        shorter = min(self.width, self.height)
        side = generator.randint(round(self.smallest * shorter), round(self.largest * shorter))
        left = generator.randint(1, self.width - side - 1)
        top = generator.randint(1, self.height - side - 1)
        return left, top, left + side, top + side


def split_of(things: Sequence[Thing]) -> str:
    """Say to which split an arrangement of things belongs.

    Args:
        things: The things, in any order.

    Returns:
        The split.
    """
    return split_of_content(repr(sorted(map(tuple, things))))


def write_scenes(
    folder: Path,
    counts: Mapping[str, int],
    *,
    seed: int,
    scenes: Scenes | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write scenes as a person's data would be: PNG files and `captions.jsonl`.

    Each line of that has, beside image, split and captions, `regions`: for each caption the words
    that name something, with their places in it and their boxes. `read_regions` reads them.

    Args:
        folder: Where to write; made where it does not exist.
        counts: How many scenes of each split.
        seed: Other seeds give other scenes.
        scenes: What to draw; by default `Scenes()`.
        overwrite: Whether captions that exist may be replaced.

    Returns:
        The captions' file, then the pictures.

    Raises:
        UserError: The captions exist already, or there is no such split.
        EnvironmentFault: Something cannot be written.
    """
    made = scenes or Scenes()

    def drawn() -> Iterator[Drawn]:
        for split, count in counts.items():
            for index, scene in enumerate(made.sample(count, seed=seed, split=split)):
                yield Drawn(picture_name(split, index), scene.image, _row(split, scene))

    return write_drawn(Path(folder) / CAPTIONS, drawn(), overwrite=overwrite)


def read_regions(path: str | Path) -> dict[str, tuple[tuple[WordRegion, ...], ...]]:
    """Read the true regions that `write_scenes` wrote.

    Args:
        path: The captions' file.

    Returns:
        For each image that has them, for each of its captions, the words and their boxes.

    Raises:
        DataError: The file or a line of it is wrong.
    """
    regions = {}
    for number, text in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = parse_json(text.encode(), where)
            if "regions" in row:
                regions[str(row["image"])] = tuple(
                    tuple(map(_word, words)) for words in row["regions"]
                )
        except (FileFormatError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                'regions must be lists of {"word", "start", "end", "boxes"}, one list for each '
                "caption. Write them anew.",
                where=where,
            ) from error
    return regions


def _word(entry: Any) -> WordRegion:
    boxes = []
    for box in entry["boxes"]:
        left, top, right, bottom = map(int, box)
        boxes.append((left, top, right, bottom))
    return WordRegion(str(entry["word"]), int(entry["start"]), int(entry["end"]), tuple(boxes))


def _row(split: str, scene: Scene) -> dict[str, Any]:
    regions = [
        {"word": word.text, "start": word.start, "end": word.end, "boxes": word.boxes}
        for word in scene.words
    ]
    return {"split": split, "captions": [scene.caption], "regions": [regions]}


def _kinds(generator: random.Random, count: int) -> list[tuple[str, str]]:
    """Choose colours and shapes; in about a third of the pictures some are equal."""
    every = list(itertools.product(COLOURS, SHAPES))
    kinds = generator.sample(every, count)
    chance = generator.random()
    if count > 1 and chance < 0.2:
        return [kinds[0]] * count
    if count == 3 and chance < 0.4:
        return [kinds[0], kinds[0], kinds[1]]
    return kinds


def _is_clear(things: Sequence[Thing], width: int) -> bool:
    """Whether things lie apart, and their order can be seen."""
    pairs = list(itertools.combinations(things, 2))
    if any(_touch(a.box, b.box) for a, b in pairs):
        return False
    gaps = [tuple(abs(p - q) for p, q in zip(a.centre, b.centre, strict=True)) for a, b in pairs]
    if len(things) == 2:
        return max(gaps[0]) >= 1.4 * min(gaps[0])
    return all(gap[0] >= 0.1 * width for gap in gaps)


def _touch(one: Box, other: Box) -> bool:
    apart = (
        max(one[0], other[0]) - min(one[2], other[2]),
        max(one[1], other[1]) - min(one[3], other[3]),
    )
    return max(apart) < 2


def _background(size: tuple[int, int], generator: random.Random, *, textured: bool) -> Image.Image:
    base = np.array([generator.randint(222, 250) for _ in range(3)], dtype=np.float64)
    canvas = np.broadcast_to(base, (size[1], size[0], 3))
    kind = generator.choice(("plain", "grain", "slope")) if textured else "plain"
    if kind == "grain":
        noise = np.random.default_rng(generator.getrandbits(64))
        canvas = canvas + noise.integers(-8, 9, (size[1], size[0], 1))
    elif kind == "slope":
        angle = generator.uniform(0, 2 * math.pi)
        across = np.linspace(-1, 1, size[0])[None, :, None] * math.cos(angle)
        down = np.linspace(-1, 1, size[1])[:, None, None] * math.sin(angle)
        canvas = canvas + 12 * (across + down)
    return Image.fromarray(canvas.round().clip(0, 255).astype(np.uint8))


def _draw(image: Image.Image, thing: Thing, generator: random.Random) -> None:
    left, top, right, bottom = thing.box
    width, height = right - left, bottom - top
    large = Image.new("L", (width * _FINER, height * _FINER))
    outline = [(x * (large.width - 1), y * (large.height - 1)) for x, y in _OUTLINES[thing.shape]]
    ImageDraw.Draw(large).polygon(outline, fill=255)
    colour = tuple(
        min(255, max(0, value + generator.randint(-10, 10))) for value in COLOURS[thing.colour].rgb
    )
    image.paste(colour, thing.box, large.reduce(_FINER))


def _round(count: int, radii: tuple[float, ...]) -> _Outline:
    """Points around a centre, beginning at the top, at radii that take turns."""
    turns = [2 * math.pi * i / count for i in range(count)]
    return [
        (radii[i % len(radii)] * math.sin(t), -radii[i % len(radii)] * math.cos(t))
        for i, t in enumerate(turns)
    ]


def _heart() -> _Outline:
    turns = [2 * math.pi * i / 64 for i in range(64)]
    return [
        (
            16 * math.sin(t) ** 3,
            -13 * math.cos(t) + 5 * math.cos(2 * t) + 2 * math.cos(3 * t) + math.cos(4 * t),
        )
        for t in turns
    ]


def _fitted(outline: _Outline) -> _Outline:
    """Stretch an outline over the square from 0 to 1."""
    xs, ys = zip(*outline, strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return [((x - min(xs)) / wide, (y - min(ys)) / high) for x, y in outline]


_THIRDS = (
    (1, 0),
    (2, 0),
    (2, 1),
    (3, 1),
    (3, 2),
    (2, 2),
    (2, 3),
    (1, 3),
    (1, 2),
    (0, 2),
    (0, 1),
    (1, 1),
)
_OUTLINES = {
    "circle": _fitted(_round(64, (1.0,))),
    "square": [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)],
    "triangle": [(0.5, 0.0), (1.0, 1.0), (0.0, 1.0)],
    "star": _fitted(_round(10, (1.0, 0.4))),
    "diamond": [(0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)],
    "cross": _fitted([(float(x), float(y)) for x, y in _THIRDS]),
    "heart": _fitted(_heart()),
}
