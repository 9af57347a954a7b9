import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from regard.pictures.drawing import flow, label, shorten, text_element, width_of


@given(st.text(max_size=40), st.floats(3, 20))
def test_lines_hold_the_whole_text_and_keep_to_the_room(text, room):
    lines = flow(text, room)
    assert all(line.strip() == line != "" for line in lines)
    # What stays beside a letter, such as a mark or a full stop, may stand out a little.
    assert all(width_of(line, 1.0) <= room + 1.4 for line in lines)
    assert bool(lines) == bool(text.split())


def test_no_word_is_lost():
    words = [
        "a",
        "brown",
        "dog",
        "runs",
        "across",
        "the",
        "green",
        "grass",
        "towards",
        "a",
        "red",
        "ball",
    ]
    assert " ".join(flow(" ".join(words), 7.0)).split() == words
    chinese = "一只棕色的狗在草地上追红球。"
    assert "".join(flow(chinese, 5.0)) == chinese
    assert flow("x" * 30, 6.0) != ["x" * 30]
    assert "".join(flow("x" * 30, 6.0)) == "x" * 30


def test_a_full_stop_begins_no_line():
    for room in (3.0, 4.2, 5.2):
        assert not any(line.startswith("。") for line in flow("黑猫睡觉了。真的。", room))


def test_labels_are_short():
    assert label("agreement") == "agreement"
    assert label("x" * 60).endswith("…")
    assert shorten("汤姆追逐杰瑞", 3.0) == "汤姆…"


def test_a_text_runs_as_it_is_told():
    arabic = ET.fromstring(text_element("كلب", 'x="1"', anchor="end"))
    assert (arabic.get("direction"), arabic.get("text-anchor")) == ("rtl", "start")
    told = ET.fromstring(text_element("Tom", 'x="1"', anchor="start", reverse=True))
    assert (told.get("direction"), told.get("text-anchor")) == ("rtl", "end")
    plain = ET.fromstring(text_element("a<b", 'x="1"', anchor="start"))
    assert (plain.get("direction"), plain.text) == (None, "a<b")
