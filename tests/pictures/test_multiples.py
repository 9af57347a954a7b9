import base64
import re
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from regard.errors import UserError
from regard.pictures import Map, Record, multiples, svg
from regard.pictures.raster import read_size

SPACE = "{http://www.w3.org/2000/svg}"


def recording(record, heads=3):
    generator = np.random.default_rng(1)
    maps = [
        Map(f"layer {layer}, head {head}", generator.random(record.weights().shape))
        for layer in (1, 2)
        for head in range(1, heads + 1)
    ]
    return Record("attention", record.read, record.written, tuple(maps))


def pixels(image):
    data = base64.b64decode(image.get("href").removeprefix("data:image/png;base64,"))
    width, height = read_size(data, "image/png")
    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    lines = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + size]), np.uint8)
    return np.cumsum(lines.reshape(height, width + 1)[:, 1:], axis=0, dtype=np.uint8)


def test_a_row_for_each_layer_a_column_for_each_head(chase):
    root = ET.fromstring(multiples.render(recording(chase)))
    images = list(root.iter(f"{SPACE}image"))
    assert len(images) == 6
    places = [(float(one.get("x")), float(one.get("y"))) for one in images]
    assert len({x for x, _ in places}) == 3
    assert len({y for _, y in places}) == 2
    assert [text.text for text in root.iter(f"{SPACE}text")] == [
        "1",
        "2",
        "3",
        "layer 1",
        "layer 2",
    ]
    titles = [title.text for title in root.iter(f"{SPACE}title")]
    assert titles[0].startswith("attention, 6 maps: Tom chases Jerry")
    assert titles[4].startswith("layer 2, head 1: up to 0.")


def test_a_panel_is_its_weights_up_to_the_largest(chase):
    record = recording(chase)
    image = list(ET.fromstring(multiples.render(record)).iter(f"{SPACE}image"))[4]
    weights = record.maps[4].weights
    assert np.array_equal(pixels(image), np.rint(weights * (255 / weights.max())))


def test_columns_run_from_the_right_where_the_text_does(record_of):
    record = record_of(["שלום", "עולם", "טוב"], ["a", "b"], count=2)
    image = next(ET.fromstring(multiples.render(record)).iter(f"{SPACE}image"))
    weights = record.maps[0].weights[:, ::-1]
    assert np.array_equal(pixels(image), np.rint(weights * (255 / weights.max())))


def test_long_texts_share_cells_and_keep_the_largest():
    weights = np.zeros((200, 3), np.float32)
    weights[150, 2] = 0.7
    small = multiples.shrunk(weights, 64)
    assert small.shape == (64, 3)
    assert small.max() == np.float32(0.7)
    assert small.argmax() == 48 * 3 + 2
    assert np.array_equal(multiples.shrunk(weights, 500), weights)


def test_a_recording_is_saved_as_panels_and_one_head_large(chase, tmp_path):
    record = recording(chase)
    record.save(tmp_path / "all.svg")
    assert (tmp_path / "all.svg").read_text("utf-8").count("<image") == 6
    one = svg.render(record, name="layer 2, head 1")
    assert "<image" not in one
    assert "layer 2, head 1" in one
    assert "<image" not in svg.render(chase)


def test_hostile_names_stay_text(chase, hostile):
    maps = tuple(Map(text, chase.weights()) for text in hostile)
    drawn = multiples.render(Record(hostile[0], chase.read, chase.written, maps))
    root = ET.fromstring(drawn)
    assert {element.tag.removeprefix(SPACE) for element in root.iter()} == {
        "svg", "title", "rect", "image",
    }  # fmt: skip
    assert set(re.findall(r"https?://[^\"]*", drawn)) == {"http://www.w3.org/2000/svg"}


def test_nothing_read_and_nothing_written(record_of):
    record = record_of([], [], count=2)
    assert multiples.render(record).count("<image") == 2


def test_a_picture_has_no_panels(dog):
    with pytest.raises(UserError, match="must be a text"):
        multiples.render(dog)
