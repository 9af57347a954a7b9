import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import UserError
from regard.pictures import Map, Record, drawing, svg
from regard.pictures.lettering import visible

SPACE = "{http://www.w3.org/2000/svg}"
KNOWN = {"svg", "title", "desc", "rect", "pattern", "text", "linearGradient", "stop", "path", "g"}


def parsed(record, **options):
    return ET.fromstring(svg.render(record, **options))


def labels(root):
    return [element for element in root.iter(f"{SPACE}text") if element.get("fill") == drawing.TEXT]


def test_a_picture_says_what_it_shows(chase):
    root = parsed(chase)
    assert [label.text for label in labels(root)] == [
        "汤姆",
        "追逐",
        "杰瑞",
        "Tom",
        "chases",
        "Jerry",
    ]
    assert root.find(f"{SPACE}title").text == "translation: Tom chases Jerry → 汤姆追逐杰瑞"
    assert "追逐 looks most at chases (0.931)" in root.find(f"{SPACE}desc").text
    titles = [title.text for title in root.iter(f"{SPACE}title")]
    assert "chases → 追逐 0.931" in titles
    assert len(titles) == 1 + 9


def test_the_legend_has_numbers(record_of):
    root = parsed(record_of(["a"] * 50, ["b"]))
    numbers = [e.text for e in root.iter(f"{SPACE}text") if e.get("fill") == drawing.QUIET]
    assert numbers[0] == "0"
    assert 0.02 <= float(numbers[1]) <= 0.1


def test_it_needs_nothing_from_outside(record_of, mixed):
    drawn = svg.render(record_of(mixed, mixed))
    assert set(re.findall(r"https?://[^\"]*", drawn)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"(href|@import|<style|<script|url\((?!#))", drawn)


def test_hostile_texts_stay_text(record_of, hostile):
    root = parsed(record_of(hostile, hostile))
    assert {element.tag.removeprefix(SPACE) for element in root.iter()} <= KNOWN
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
    shown = [label.text for label in labels(root)]
    assert len(shown) == 2 * len(hostile)
    for label, text in zip(shown, hostile, strict=False):
        assert visible(text).startswith(label.removesuffix("…"))


@given(st.lists(st.text(st.characters(), max_size=10), min_size=1, max_size=3))
@settings(max_examples=60)
def test_any_text_gives_xml(record_of, words):
    svg.render(record_of(words, words)).encode("utf-8")
    parsed(record_of(words, words))


@pytest.mark.parametrize("sizes", [(1, 9), (9, 1), (3, 30), (30, 3), (0, 2), (2, 0)])
def test_everything_is_inside_the_picture(record_of, sizes):
    words = ["agreement", "汤姆追逐杰瑞", "a", "WWWWWW"] * 8
    root = parsed(record_of(words[: sizes[0]], words[: sizes[1]]))
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SPACE}rect"):
        if rect.get("width") != "100%" and rect.get("x"):
            assert float(rect.get("x")) + float(rect.get("width")) <= width
            assert float(rect.get("y")) + float(rect.get("height")) <= height
    for label in labels(root):
        size = float(root.get("font-size"))
        length = drawing.width_of(label.text, size)
        if turn := label.get("transform"):
            x, y = map(float, re.match(r"translate\((\S+) (\S+)\)", turn).groups())
            assert x + length * 0.71 <= width
            assert y - length * 0.71 >= 0
        elif label.get("text-anchor") == "end":
            assert float(label.get("x")) - length >= 0


def test_level_heads_do_not_touch(chase):
    heads = [e for e in labels(parsed(chase)) if e.get("text-anchor") == "middle"]
    assert len(heads) == 3
    gap = float(heads[1].get("x")) - float(heads[0].get("x"))
    assert gap > drawing.width_of("chases", 14)


def test_columns_run_from_the_right_where_the_text_does(record_of):
    root = parsed(record_of(["طارد", "القط"], ["cat"]))
    first, second = [e for e in labels(root) if e.get("text-anchor") == "middle"]
    assert float(first.get("x")) > float(second.get("x"))
    assert first.get("direction") == "rtl"


def test_invisible_cells_are_left_out(record_of):
    record = record_of(["a", "b"], ["c"])
    weights = [[0.999, 0.001]]
    root = parsed(Record("t", record.read, record.written, (Map("m", weights),)))
    assert len(list(root.iter(f"{SPACE}title"))) == 2


def test_numbers_on_cells_are_legible(chase):
    fills = dict.fromkeys(
        e.get("fill") for e in parsed(chase).iter(f"{SPACE}text") if e.get("font-size") == "11"
    )
    assert {"#000000", "#ffffff"} <= set(fills)


def test_512_tokens_stay_a_sane_file(record_of):
    words = [f"w{i}" for i in range(512)]
    drawn = svg.render(record_of(words, words))
    assert len(drawn) < 5_000_000
    narrow = np.eye(512) * 0.9 + np.eye(512, k=1) * 0.1
    record = record_of(words, words)
    sparse = Record("t", record.read, record.written, (Map("m", narrow),))
    assert len(svg.render(sparse)) < 150_000


def test_a_map_is_chosen_by_name(record_of):
    record = record_of(["a", "b"], ["c"], count=2)
    assert "(head 2)" in svg.render(record, name="head 2")
    with pytest.raises(UserError, match="did you mean 'head 1'"):
        svg.render(record, name="hed 1")
