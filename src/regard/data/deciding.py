"""Generated pictures whose label hangs on one thing in them, and where that is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from regard.data.drawn import Drawn, picture_name, write_drawn
from regard.data.planted import OTHER
from regard.data.scene_words import COLOURS, SHAPES, Box, Thing
from regard.data.scenes import Scenes, split_of
from regard.data.splits import check_split
from regard.data.text import read_lines
from regard.errors import DataError, FileFormatError, UserError
from regard.saving.files import parse_json

DECIDING = ("cross", "heart", "star")
"""The shapes that decide a label; others stand in pictures of any label."""

LIST = "labels.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class DecidedScene:
    """A drawn picture and its label.

    Args:
        image: The picture.
        label: Its label: the shape that decides, or `OTHER`.
        things: What was drawn.
        deciding: Which of these decides; None where none does.
    """

    image: Image.Image
    label: str
    things: tuple[Thing, ...]
    deciding: Thing | None


@dataclass(frozen=True, slots=True)
class DecidingScenes:
    """A generator of scenes in which one thing, or nothing, decides.

    A picture has two things or more. At most one of them has a deciding shape, which is its label;
    the shapes of the others stand in pictures of every label, and colours tell nothing. In a
    quarter of the pictures nothing decides, and their label is `OTHER`; else one of the labels
    could be told by the absence of the rest. A scene is a function of seed, split and index alone,
    and what is drawn where decides its split, so that none stands in two, whatever their seeds.

    Args:
        scenes: How scenes are drawn; their `most_things` counts, their language does not.

    Raises:
        UserError: There is room for one thing alone.

    Example:
        >>> scene = DecidingScenes().scene(0, seed=1)
        >>> scene.label, scene.deciding.shape, len(scene.things)
        ('heart', 'heart', 2)
    """

    scenes: Scenes = field(default_factory=lambda: Scenes(smallest=0.25, largest=0.36))

    def __post_init__(self) -> None:
        if self.scenes.most_things < 2:
            raise UserError(
                f"most_things must be at least 2, for one to decide among others; got "
                f"{self.scenes.most_things}. Use 3."
            )

    def scene(self, index: int, *, seed: int, split: str = "train") -> DecidedScene:
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
        generator = random.Random(f"deciding/{seed}/{split}/{index}")  # noqa: S311 - no secret
        while split_of(things := self._arranged(generator)) != split:
            pass
        image = self.scenes.draw(things, generator)
        deciding = next((thing for thing in things if thing.shape in DECIDING), None)
        return DecidedScene(image, deciding.shape if deciding else OTHER, things, deciding)

    def sample(self, count: int, *, seed: int, split: str = "train") -> Iterator[DecidedScene]:
        """Draw the first scenes of a seed and a split, one after the other.

        Args:
            count: How many.
            seed: Other seeds give other scenes.
            split: `train`, `dev` or `test`.

        Yields:
            The scenes.
        """
        for index in range(count):
            yield self.scene(index, seed=seed, split=split)

    def _arranged(self, generator: random.Random) -> tuple[Thing, ...]:
        label = generator.choice([*DECIDING, OTHER])
        others = [shape for shape in SHAPES if shape not in DECIDING]
        count = generator.randint(2, self.scenes.most_things)
        shapes = [generator.choice(others) for _ in range(count)]
        if label != OTHER:
            shapes[generator.randrange(count)] = label
        kinds = [(generator.choice([*COLOURS]), shape) for shape in shapes]
        return self.scenes.arrange(kinds, generator)


def write_deciding(
    folder: Path,
    counts: Mapping[str, int],
    *,
    seed: int,
    deciding: DecidingScenes | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write scenes as a person's data would be: PNG files and `labels.jsonl`.

    Each line of that has, beside image, split and label, `evidence`: the box of the thing that
    decides, or null. `read_deciding` reads it.

    Args:
        folder: Where to write; made where it does not exist.
        counts: How many scenes of each split.
        seed: Other seeds give other scenes.
        deciding: What to draw; by default `DecidingScenes()`.
        overwrite: Whether labels that exist may be replaced.

    Returns:
        The labels' file, then the pictures.

    Raises:
        UserError: The labels exist already, or there is no such split.
        EnvironmentFault: Something cannot be written.
    """
    made = deciding or DecidingScenes()

    def drawn() -> Iterator[Drawn]:
        for split, count in counts.items():
            for index, scene in enumerate(made.sample(count, seed=seed, split=split)):
                box = None if scene.deciding is None else scene.deciding.box
                row = {"split": split, "label": scene.label, "evidence": box}
                yield Drawn(picture_name(split, index), scene.image, row)

    return write_drawn(Path(folder) / LIST, drawn(), overwrite=overwrite)


def read_deciding(path: str | Path) -> dict[str, Box | None]:
    """Read what `write_deciding` wrote of the evidence.

    Args:
        path: The labels' file.

    Returns:
        For each image the box of the thing that decides; None where none does.

    Raises:
        DataError: The file or a line of it is wrong.
    """
    found: dict[str, Box | None] = {}
    for number, text in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = parse_json(text.encode(), where)
            found[str(row["image"])] = None if row["evidence"] is None else _box(row["evidence"])
        except (FileFormatError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                "evidence must be null, or [left, top, right, bottom]. Write it anew.", where=where
            ) from error
    return found


def _box(row: Any) -> Box:
    left, top, right, bottom = map(int, row)
    return left, top, right, bottom
