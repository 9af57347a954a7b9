"""Generated scenes: the same for the same seed, true to their captions, apart in their splits."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.captions import read_captions
from regard.data.checking import check_images, image_overlap
from regard.data.scene_words import COLOURS, SHAPES, Thing, describe
from regard.data.scenes import Scene, Scenes, read_regions, split_of, write_scenes
from regard.data.splits import SPLITS
from regard.errors import DataError, EnvironmentFault, UserError


def pixels(scene: Scene) -> np.ndarray[Any, Any]:
    return np.asarray(scene.image).astype(int)


def test_a_scene_is_a_function_of_seed_split_and_index() -> None:
    scenes = Scenes()
    first, again = scenes.sample(20, seed=3), scenes.sample(30, seed=3)
    for one, two in zip(first, again, strict=False):
        assert one.caption == two.caption
        assert one.image.tobytes() == two.image.tobytes()
    alone = scenes.scene(7, seed=3)
    assert alone.image.tobytes() == first[7].image.tobytes()
    others = (scenes.scene(7, seed=4), scenes.scene(7, seed=3, split="dev"))
    assert all(other.image.tobytes() != alone.image.tobytes() for other in others)


def test_both_languages_have_the_same_pictures() -> None:
    english, chinese = (Scenes(language=name).sample(20, seed=0) for name in ("en", "zh"))
    for one, two in zip(english, chinese, strict=True):
        assert one.image.tobytes() == two.image.tobytes()
        assert [word.boxes for word in one.words] == [word.boxes for word in two.words]
        assert (two.caption, list(two.words)) == describe(one.things, language="zh")


@pytest.mark.parametrize("size", [(96, 96), (160, 64), (40, 150), (32, 32)])
def test_words_are_true_of_their_regions(size: tuple[int, int]) -> None:
    for scene in Scenes(*size).sample(60, seed=1):
        assert scene.image.size == size
        image = pixels(scene)
        named = {(word.text, box) for word in scene.words for box in word.boxes}
        for thing in scene.things:
            left, top, right, bottom = thing.box
            assert 0 < left < right < size[0]
            assert 0 < top < bottom < size[1]
            near = np.abs(image - COLOURS[thing.colour].rgb).max(axis=2) <= 12
            assert near[top:bottom, left:right].mean() > 0.13  # a small star fills least
            assert (thing.colour, thing.box) in named
            for a, b, c, d in (one.box for one in scene.things):
                near[b:d, a:c] = False
            assert not near.any()  # the colour stands nowhere else


def test_shapes_fill_their_boxes_to_the_edges() -> None:
    for scene in Scenes(textured=False).sample(80, seed=5):
        image, ground = pixels(scene), pixels(scene)[0, 0]
        drawn = np.abs(image - ground).max(axis=2) > 30
        for left, top, right, bottom in (thing.box for thing in scene.things):
            inside = drawn[top:bottom, left:right]
            rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
            for found, length in ((rows, bottom - top), (columns, right - left)):
                assert found[0] <= 2
                assert found[-1] >= length - 3
            drawn[top:bottom, left:right] = False
        assert not drawn.any()


def test_all_of_the_grammar_occurs_and_order_can_be_seen() -> None:
    scenes = Scenes().sample(600, seed=2)
    captions = " ".join(scene.caption for scene in scenes)
    for word in (*COLOURS, *SHAPES, "left", "above", "two", "three", "and", ",", "crosses"):
        assert word in captions
    assert {len(scene.things) for scene in scenes} == {1, 2, 3}
    for scene in scenes:
        for one, two in itertools.combinations(scene.things, 2):
            across, down = (abs(a - b) for a, b in zip(one.centre, two.centre, strict=True))
            if len(scene.things) == 2:
                assert max(across, down) >= 1.4 * min(across, down)
            else:
                assert across >= 9.6


def test_fewer_things_and_plain_grounds() -> None:
    scenes = Scenes(most_things=1, textured=False).sample(20, seed=0)
    assert all(len(scene.things) == 1 for scene in scenes)
    assert all((pixels(s)[0] == pixels(s)[0, 0]).all() for s in scenes)
    kinds = {len(np.unique(pixels(s)[0], axis=0)) > 1 for s in Scenes().sample(20, seed=0)}
    assert kinds == {True, False}


def test_things_are_as_large_as_asked() -> None:
    for scene in Scenes(smallest=0.3, largest=0.36).sample(40, seed=3):
        sides = [thing.box[2] - thing.box[0] for thing in scene.things]
        assert all(29 <= side <= 35 for side in sides)


def test_d21_no_arrangement_stands_in_two_splits() -> None:
    found = {
        split: {
            frozenset(scene.things)
            for seed in (0, 1)
            for scene in Scenes(32, 32, most_things=1).sample(400, seed=seed, split=split)
        }
        for split in SPLITS
    }
    for one, two in itertools.combinations(SPLITS, 2):
        assert found[one].isdisjoint(found[two])
    for split, arrangements in found.items():
        assert {split_of(sorted(things, reverse=True)) for things in arrangements} == {split}


def test_d21_the_order_of_things_does_not_decide_the_split() -> None:
    one, two = Thing("red", "star", (0, 0, 9, 9)), Thing("blue", "star", (20, 0, 29, 9))
    assert split_of([one, two]) == split_of([two, one])


def test_scenes_are_written_as_a_persons_data(tmp_path: Path) -> None:
    counts = {"train": 12, "dev": 4, "test": 4}
    written = write_scenes(tmp_path / "data", counts, seed=1, scenes=Scenes(64, 48, language="zh"))
    assert written[0] == tmp_path / "data" / "captions.jsonl"
    assert len(written) == 21
    captioned = read_captions(tmp_path / "data")
    assert len(captioned) == 20
    report = check_images(captioned)
    assert (report.ok, report.bad, report.leaks, report.unnamed) == (True, (), (), 0)
    assert report.splits == counts
    assert image_overlap(captioned.split("train"), captioned.split("test")).images == 0
    regions = read_regions(tmp_path / "data" / "captions.jsonl")
    scene = Scenes(64, 48, language="zh").scene(3, seed=1, split="dev")
    place = captioned.names.index("images/dev-00003.png")
    assert captioned.captions[place] == (scene.caption,)
    assert regions["images/dev-00003.png"] == (scene.words,)
    again = write_scenes(tmp_path / "again", counts, seed=1, scenes=Scenes(64, 48, language="zh"))
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]


def test_c5_captions_that_exist_are_kept_unless_asked(tmp_path: Path) -> None:
    write_scenes(tmp_path, {"train": 1}, seed=1)
    before = (tmp_path / "captions.jsonl").read_bytes()
    with pytest.raises(UserError, match="exists already"):
        write_scenes(tmp_path, {"train": 1}, seed=2)
    assert (tmp_path / "captions.jsonl").read_bytes() == before
    write_scenes(tmp_path, {"train": 1}, seed=2, overwrite=True)
    assert (tmp_path / "captions.jsonl").read_bytes() != before


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("")
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        write_scenes(tmp_path, {"train": 1}, seed=1)
    assert not (tmp_path / "captions.jsonl").exists()


@pytest.mark.parametrize(
    "regions",
    [
        7,
        [[{"word": "red"}]],
        [[{"word": "red", "start": 0, "end": 3, "boxes": [[1, 2, 3]]}]],
        [7],
        [[{"word": "red", "start": "x", "end": 3, "boxes": []}]],
    ],
)
def test_d9_regions_that_are_none(regions: Any, tmp_path: Path) -> None:
    rows = ({"image": "a.png", "caption": "x"}, {"image": "b.png", "regions": regions})
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"x\.jsonl:2: regions must be lists"):
        read_regions(tmp_path / "x.jsonl")
    (tmp_path / "x.jsonl").write_text(json.dumps(rows[0]))
    assert read_regions(tmp_path / "x.jsonl") == {}


def test_numbers_that_mean_nothing() -> None:
    for options, message in (
        ({"width": 31}, "width must be from 32 to 4096; got 31"),
        ({"height": 5000}, "height must be from 32 to 4096; got 5000"),
        ({"most_things": 4}, "most_things must be from 1 to 3; got 4"),
        ({"smallest": 0.3, "largest": 0.2}, "smallest and largest must lie"),
        ({"largest": 0.5}, "smallest and largest must lie"),
        ({"language": "fr"}, "language must be"),
    ):
        with pytest.raises(UserError, match=message):
            Scenes(**options)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="split must be known; got 'trian'; did you mean 'train'"):
        Scenes().scene(0, seed=1, split="trian")
    with pytest.raises(UserError, match="count must not be negative; got -1"):
        Scenes().sample(-1, seed=1)
