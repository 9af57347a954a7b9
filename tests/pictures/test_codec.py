import contextlib
import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileFormatError
from regard.pictures import Map, Record, Text, Token

anything = st.text(st.characters(), max_size=12)


@st.composite
def texts(draw):
    text = draw(anything)
    place = st.integers(0, len(text))
    tokens = [
        Token(draw(anything), *sorted((draw(place), draw(place))))
        for _ in range(draw(st.integers(0, 4)))
    ]
    return Text(text, tuple(tokens), draw(st.none() | anything))


@st.composite
def records(draw):
    read, written = draw(texts()), draw(texts())
    weight = st.floats(0, 2.0**100, width=32)
    rows = [[draw(weight) for _ in read.tokens] for _ in written.tokens]
    weights = np.array(rows, dtype=np.float32).reshape(len(written.tokens), len(read.tokens))
    values = st.none() | anything | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
    finite = values.filter(lambda value: value not in (float("inf"), float("-inf")))
    details = draw(st.dictionaries(st.text(max_size=4), finite, max_size=3))
    return Record(draw(anything), read, written, (Map("m", weights),), details)


@given(records())
def test_json_is_valid_utf8_and_comes_back(record):
    text = record.to_json()
    text.encode("utf-8")
    again = Record.from_json(text)
    np.testing.assert_allclose(again.weights(), record.weights(), rtol=1e-5)
    assert [t[1:] for t in again.read.tokens] == [t[1:] for t in record.read.tokens]
    assert again.to_json() == text


def test_half_a_surrogate_pair_is_replaced():
    record = Record(
        "t",
        Text("\ud83d\ude00", (Token("\ud83d", 0, 1), Token("\ude00", 1, 2))),
        Text("", ()),
        (Map("m", np.zeros((0, 2))),),
    )
    assert Record.from_json(record.to_json()).read.text == "\ufffd\ufffd"


def test_the_kind_of_what_was_read_is_named(chase):
    data = json.loads(chase.to_json())
    assert data["schema_version"] == 1
    assert data["read"]["type"] == data["written"]["type"] == "text"
    assert data["read"]["tokens"][1] == ["chases", 4, 10]
    assert data["maps"][0]["weights"][1] == [0.04, 0.931, 0.029]


def test_a_text_is_still_written_as_version_1_and_a_picture_as_2(chase, dog):
    assert json.loads(chase.to_json())["schema_version"] == 1
    data = json.loads(dog.to_json())
    assert data["schema_version"] == 2
    assert data["read"] | {"data": ""} == {
        "type": "picture",
        "name": "dog.jpg",
        "width": 144,
        "height": 96,
        "rows": 2,
        "columns": 3,
        "sentinel": True,
        "box": None,
        "media_type": "image/png",
        "data": "",
    }


def test_a_document_is_written_as_version_3_and_comes_back(letter):
    text = letter.to_json()
    data = json.loads(text)
    assert data["schema_version"] == 3
    assert data["read"]["type"] == "document"
    assert data["read"]["sentences"][1] == [10, 10, 3, 3]
    again = Record.from_json(text)
    assert again.read == letter.read
    np.testing.assert_allclose(again.sentence_weights(), letter.sentence_weights(), rtol=1e-5)
    assert again.to_json() == text


def test_version_3_holds_texts_and_pictures_too(chase, dog):
    for record in (chase, dog):
        data = json.loads(record.to_json()) | {"schema_version": 3, "sentence_maps": []}
        assert Record.from_json(json.dumps(data)).to_json() == record.to_json()


def test_a_picture_comes_back(dog):
    again = Record.from_json(dog.to_json())
    assert again.read == dog.read
    np.testing.assert_allclose(again.weights(), dog.weights(), rtol=1e-6)
    assert again.to_json() == dog.to_json()


def test_the_box_of_a_grid_comes_back(caption_of):
    record = caption_of(["dog"], box=(-12, 0.5, 100, 96))
    again = Record.from_json(record.to_json())
    assert again.read == record.read
    assert again.read.box == (-12.0, 0.5, 100.0, 96.0)


def test_version_2_holds_texts_too(chase):
    data = json.loads(chase.to_json()) | {"schema_version": 2}
    assert Record.from_json(json.dumps(data)).read == chase.read


def set_at(*path):
    """Return a change: put a value at a path."""
    *parents, last, value = path

    def change(data):
        for key in parents:
            data = data[key]
        data[last] = value

    return change


WRONG = {
    "unknown version": (set_at("schema_version", 5), "schema_version must be from 1 to 4; got 5"),
    "version as text": (
        set_at("schema_version", "1"),
        "schema_version must be from 1 to 4; got '1'",
    ),
    "version as truth": (
        set_at("schema_version", True),
        "schema_version must be from 1 to 4; got True",
    ),
    "no version": (
        lambda d: d.pop("schema_version"),
        "schema_version must be from 1 to 4; got None",
    ),
    "missing key": (lambda d: d.pop("maps"), "record must have the key 'maps'"),
    "extra key": (set_at("detials", {}), "did you mean 'details'?"),
    "task": (set_at("task", 3), "task must be str; got 3"),
    "text as list": (set_at("read", []), "read must be an object; got a list"),
    "kind of text": (set_at("read", "type", "image"), "read.type must be 'text'; got 'image'"),
    "language": (set_at("read", "language", 1), "read.language must be str; got 1"),
    "tokens": (set_at("read", "tokens", "Tom"), "read.tokens must be a list; got 'Tom'"),
    "short token": (set_at("read", "tokens", 0, ["Tom"]), "read.tokens[0] must hold 3 values"),
    "start": (set_at("read", "tokens", 0, 1, 0.0), "read.tokens[0] must be int; got 0.0"),
    "end": (set_at("read", "tokens", 0, 2, 99), "read.tokens[0] must have 0 <= start <= end"),
    "maps": (set_at("maps", {}), "maps must be a list; got a dict"),
    "no maps": (set_at("maps", []), "maps must hold at least 1 map"),
    "map name": (set_at("maps", 0, "name", None), "maps[0].name must be str; got None"),
    "rows": (set_at("maps", 0, "weights", []), "maps[0].weights must have 3 rows"),
    "columns": (set_at("maps", 0, "weights", 1, [1]), "maps[0].weights[1] must have 3 weights"),
    "row": (set_at("maps", 0, "weights", 1, None), "maps[0].weights[1] must be a list; got None"),
    "text weight": (set_at("maps", 0, "weights", 1, 0, "1"), "must hold numbers; got '1'"),
    "truth weight": (set_at("maps", 0, "weights", 1, 0, True), "must hold numbers; got True"),
    "list weight": (set_at("maps", 0, "weights", 1, 0, [1]), "must hold numbers; got a list"),
    "negative": (set_at("maps", 0, "weights", 1, 0, -1), "must be 0 or more; got -1"),
    "huge": (set_at("maps", 0, "weights", 1, 0, 1e300), "must be finite"),
    "huge integer": (set_at("maps", 0, "weights", 1, 0, 10**400), "must hold numbers"),
    "details": (set_at("details", []), "details must be an object"),
    "deep detail": (set_at("details", "x", [[]]), "details['x'] must be text, a number or None"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_file_is_refused_in_one_line(chase, fault):
    change, expected = WRONG[fault]
    data = copy.deepcopy(json.loads(chase.to_json()))
    change(data)
    with pytest.raises(FileFormatError) as caught:
        Record.from_json(json.dumps(data))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


WRONG_PICTURE = {
    "version": (set_at("schema_version", 1), "read must have the key 'text'"),
    "other kind": (set_at("read", "type", "video"), "read must have the key 'text'"),
    "missing": (lambda d: d["read"].pop("rows"), "read must have the key 'rows'"),
    "extra": (set_at("read", "url", "http://x"), "read must have no key besides its 10; got 'url'"),
    "name": (set_at("read", "name", None), "read.name must be str; got None"),
    "width": (set_at("read", "width", 1.5), "read.width must be int; got 1.5"),
    "truth": (set_at("read", "rows", True), "read.rows must be int; got True"),
    "negative": (set_at("read", "columns", -3), "read.columns must be 1 to 10000000; got -3"),
    "huge number": (set_at("read", "height", 10**40), "read.height must be 1 to 10000000; got"),
    "many cells": (set_at("read", "rows", 9999), "read.rows * columns must be at most 10000"),
    "sentinel": (set_at("read", "sentinel", 1), "read.sentinel must be bool; got 1"),
    "box": (set_at("read", "box", "all"), "read.box must be a list; got 'all'"),
    "short box": (set_at("read", "box", [0, 0, 9]), "read.box must hold 4 numbers"),
    "text in a box": (set_at("read", "box", [0, 0, 9, "9"]), "read.box must hold numbers; got '9'"),
    "turned box": (set_at("read", "box", [9, 0, 0, 9]), "read.box must be left < right"),
    "no sentinel": (set_at("read", "sentinel", False), "maps[0].weights[0] must have 6 weights"),
    "media type": (set_at("read", "media_type", "image/svg+xml"), "read.media_type must be one of"),
    "injection": (set_at("read", "media_type", 'image/png" onload="'), "must be one of image/jpeg"),
    "wrong type": (set_at("read", "media_type", "image/jpeg"), "it does not begin as a JPEG"),
    "no base64": (set_at("read", "data", "a b"), "read.data must be base64; got 'a b'"),
    "not ASCII": (set_at("read", "data", "ä" * 8), "read.data must be base64"),
    "too large": (set_at("read", "data", "A" * 3_000_000), "must be at most 2097152 bytes"),
    "empty": (set_at("read", "data", ""), "it does not begin as a PNG"),
    "list of bytes": (set_at("read", "data", [1, 2]), "read.data must be str; got a list"),
    "shape": (set_at("read", "width", 14), "must have the shape of the picture, 14 by 96"),
    "written": (lambda d: d.update(written=d["read"]), "written must have the key 'text'"),
}


@pytest.mark.parametrize("fault", WRONG_PICTURE)
def test_a_wrong_picture_is_refused_in_one_line(dog, fault):
    change, expected = WRONG_PICTURE[fault]
    data = json.loads(dog.to_json())
    change(data)
    with pytest.raises(FileFormatError) as caught:
        Record.from_json(json.dumps(data))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


WRONG_DOCUMENT = {
    "an older version": (set_at("schema_version", 2), "must have no key besides its 6"),
    "no maps": (set_at("sentence_maps", []), "sentence_maps must hold at least 1 map; got 0"),
    "no list": (set_at("sentence_maps", 3), "sentence_maps must be a list; got 3"),
    "as a text": (lambda d: d["read"].update(type="text"), "no key besides its 4; got 'sentences'"),
    "no sentences": (lambda d: d["read"].pop("sentences"), "must have the key 'sentences'"),
    "no passage": (lambda d: d["read"]["sentences"].pop(), "sentences must hold all 7 tokens"),
    "three": (lambda d: d["read"]["sentences"][0].pop(), "must hold 4 numbers (start, end, first"),
    "a text in it": (
        lambda d: d["read"]["sentences"].__setitem__(0, [0, 9, 0, "3"]),
        "must be int",
    ),
    "crossed": (lambda d: d["read"]["sentences"].reverse(), "must follow the one before"),
    "a row": (lambda d: d["sentence_maps"][0]["weights"].append([1, 0, 0]), "have 1 rows"),
    "a column": (lambda d: d["sentence_maps"][0]["weights"][0].pop(), "have 3 weights"),
}


@pytest.mark.parametrize("fault", WRONG_DOCUMENT)
def test_a_wrong_document_is_refused_in_one_line(letter, fault):
    change, expected = WRONG_DOCUMENT[fault]
    data = copy.deepcopy(json.loads(letter.to_json()))
    change(data)
    with pytest.raises(FileFormatError) as caught:
        Record.from_json(json.dumps(data))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "3",
        '"text"',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000,
        "1" * 5000,
        '{"schema_version": NaN}',
        '{"schema_version": -Infinity}',
        '{"schema_version": 1, "schema_version": 1}',
        '{"schema_version": 1, "\\ud800": 1}',
        "\x00",
        "\ufeff{}",
    ],
)
def test_what_is_no_record_is_refused_in_one_line(text):
    with pytest.raises(FileFormatError) as caught:
        Record.from_json(text)
    message = str(caught.value)
    message.encode("utf-8")
    assert "\n" not in message
    assert len(message) < 200


@given(st.text(max_size=40))
def test_any_text_is_refused_and_nothing_else_is_raised(text):
    with pytest.raises(FileFormatError):
        Record.from_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.sampled_from(["task", "read", "written", "maps", "details"]), json_values)
def test_any_value_in_a_field_is_read_or_refused(key, value):
    one = {"type": "text", "text": "a", "language": None, "tokens": [["a", 0, 1]]}
    data = {
        "schema_version": 1,
        "task": "t",
        "read": one,
        "written": one,
        "maps": [{"name": "m", "weights": [[1]]}],
        "details": {},
        key: value,
    }
    with contextlib.suppress(FileFormatError):
        Record.from_json(json.dumps(data)).to_json()


@given(
    st.sampled_from(
        ["name", "width", "height", "rows", "columns", "sentinel", "box", "media_type", "data"]
    ),
    json_values,
)
def test_any_value_in_a_field_of_a_picture_is_read_or_refused(dog, key, value):
    data = json.loads(dog.to_json())
    data["read"][key] = value
    with contextlib.suppress(FileFormatError):
        Record.from_json(json.dumps(data)).to_json()
