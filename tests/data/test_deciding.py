"""Drawn scenes whose label hangs on one thing."""

import collections
from pathlib import Path

import numpy as np
import pytest

from regard.data.checking import check_images, shared_images
from regard.data.deciding import DECIDING, DecidingScenes, read_deciding, write_deciding
from regard.data.labelled_images import read_labelled_images
from regard.data.planted import OTHER
from regard.data.scene_words import COLOURS
from regard.data.scenes import Scenes
from regard.errors import DataError, UserError


def test_one_thing_decides_or_none() -> None:
    labels: collections.Counter[str] = collections.Counter()
    colours = collections.defaultdict(set)
    for scene in DecidingScenes().sample(300, seed=1):
        found = [thing for thing in scene.things if thing.shape in DECIDING]
        assert found == ([] if scene.deciding is None else [scene.deciding])
        assert scene.label == (scene.deciding.shape if scene.deciding else OTHER)
        assert 2 <= len(scene.things) <= 3
        labels[scene.label] += 1
        if scene.deciding:
            colours[scene.label].add(scene.deciding.colour)
    assert {*labels} == {*DECIDING, OTHER}
    assert min(labels.values()) > 50
    assert all(len(found) == len(COLOURS) for found in colours.values())  # they tell nothing


def test_a_scene_is_a_function_of_seed_split_and_index() -> None:
    made = DecidingScenes(Scenes(width=64, height=48, most_things=2))
    one, again = (made.scene(3, seed=2, split="dev") for _ in range(2))
    assert (one.things, one.label) == (again.things, again.label)
    assert np.array_equal(one.image, again.image)
    assert one.image.size == (64, 48)
    assert made.scene(3, seed=2).things != one.things
    with pytest.raises(UserError, match="split must be known; got 'dve'"):
        made.scene(0, seed=1, split="dve")
    with pytest.raises(UserError, match=r"most_things must be at least 2, .* got 1"):
        DecidingScenes(Scenes(most_things=1))


def test_they_are_written_as_a_person_s_data_would_be(tmp_path: Path) -> None:
    counts = {"train": 12, "dev": 5}
    file, *pictures = write_deciding(tmp_path, counts, seed=1)
    images = read_labelled_images(tmp_path)
    assert len(images) == len(pictures) == 17
    report = check_images(images)
    assert (report.ok, report.leaks, report.unnamed, report.splits) == (True, (), 0, counts)
    assert shared_images(images.split("train"), images.split("dev")) == 0
    boxes = read_deciding(file)
    assert tuple(boxes) == images.names
    made = DecidingScenes().scene(2, seed=1, split="dev")
    assert images.labels[images.names.index("images/dev-00002.png")] == (made.label,)
    assert boxes["images/dev-00002.png"] == (made.deciding.box if made.deciding else None)
    assert all(
        (box is None) == (label == OTHER)
        for box, (label,) in zip(boxes.values(), images.labels, strict=True)
    )
    with pytest.raises(UserError, match="exists already"):
        write_deciding(tmp_path, counts, seed=1)


def test_evidence_that_is_wrong_is_named(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    for row in ('{"image": "a"}', '{"image": "a", "evidence": [1, 2]}', "{"):
        file.write_text('{"image": "b", "evidence": null}\n' + row)
        with pytest.raises(DataError, match=r"labels\.jsonl:2: evidence must be null, or"):
            read_deciding(file)
