import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures import Map, Record, Text, Token, html
from regard.pictures.lettering import visible


class Outline(HTMLParser):
    """Collect the tags, attributes and raw texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.names, self.raw, self.kind = [], set(), {}, ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.kind = tag + ("-data" if ("id", "data") in attrs else "")

    def handle_data(self, data):
        if self.kind in ("script", "style", "script-data", "title"):
            self.raw[self.kind] = self.raw.get(self.kind, "") + data
        self.kind = "" if self.kind == "title" else self.kind

    def handle_endtag(self, tag):
        self.kind = ""


@pytest.fixture(params=["chase", "dog", "letter"])
def either(request):
    """A record of a text, one of a picture, and one of a document."""
    return request.getfixturevalue(request.param)


def data_of(page):
    return json.loads(Outline(page).raw["script-data"])


def test_hostile_texts_add_no_markup(chase, record_of, hostile):
    expected = Outline(html.render(chase))
    record = record_of(hostile, hostile)
    maps = tuple(Map(text, record.weights()) for text in hostile)
    details = dict.fromkeys(hostile, hostile[0])
    for task in hostile:
        text = Text(record.read.text, record.read.tokens, task)
        page = html.render(Record(task, text, text, maps[:1], details))
        outline = Outline(page)
        assert outline.tags == expected.tags
        assert outline.names == expected.names
        assert outline.raw["script"] == expected.raw["script"]
        assert not re.search("[<>&\u2028\u2029]", outline.raw["script-data"])
        page.encode("utf-8")
    shown = data_of(html.render(Record("t", record.read, record.written, maps)))["views"][-1]
    assert [token["text"] for token in shown["read"]["tokens"]] == [visible(t) for t in hostile]
    assert [m["name"] for m in shown["maps"]] == [visible(text) for text in hostile]


@given(st.lists(st.text(st.characters(), max_size=8), min_size=1, max_size=3))
@settings(max_examples=40)
def test_any_text_gives_a_page_with_its_data(record_of, words):
    page = html.render(record_of(words, words))
    page.encode("utf-8")
    assert data_of(page)["views"]


def test_the_policy_lets_in_this_style_and_script_only(either):
    page = html.render(either)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    raw = Outline(page).raw
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(raw[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_nothing_is_fetched_and_text_is_only_put_in_as_text(either):
    page = html.render(either)
    assert not re.search(r"https?:|//\w+\.|@import|url\(|src=(?!\")", page)
    script = Outline(page).raw["script"]
    forbidden = "innerHTML|outerHTML|insertAdjacent|document.write|eval|Function\\(|fetch|import"
    assert not re.search(forbidden, script)
    assert "textContent" in script


def test_style_and_script_are_small(either):
    raw = Outline(html.render(either)).raw
    assert len(raw["style"]) + len(raw["script"]) < 60_000


def test_every_element_that_the_script_names_is_on_the_page(chase, dog):
    common = {"written", "status", "map", "threshold", "help"}
    matrix = {"read", "matrix", "row-band"}
    picture = {"photo", "veil", "opacity", "style", "panels", "verdict", "play"}
    for record, expected in ((chase, matrix), (dog, picture)):
        page = html.render(record)
        named = set(re.findall(r'\$\("([a-z-]+)"\)', Outline(page).raw["script"]))
        there = set(re.findall(r'\bid="([a-z-]+)"', page))
        assert named <= there
        assert common | expected <= there
        assert 'aria-live="polite"' in page


# A picture that was read


def test_a_page_of_a_picture_carries_it_and_its_cells(dog):
    data = data_of(html.render(dog))
    picture = data["picture"]
    assert (picture["rows"], picture["columns"], picture["sentinel"]) == (2, 3, True)
    assert base64.b64decode(picture["source"].removeprefix("data:image/png;base64,")) == (
        dog.read.data
    )
    assert (picture["area"], picture["whole"]) == ([0, 0, 1, 1], True)
    view = data["views"][0]
    tokens = view["read"]["tokens"]
    assert tokens[4] == {"text": "row 2, column 2", "place": "bottom"}
    assert tokens[6] == {"text": "not looking", "place": ""}
    assert view["maps"][0]["weights"][1] == [0.0, 0.05, 0.05, 0.0, 0.6, 0.3, 0.0]
    assert view["verdicts"] == {"mean": "", "0": ""}


def test_a_page_of_a_text_has_no_picture_and_the_other_way_round(chase, dog):
    matrix, picture = html.render(chase), html.render(dog)
    assert 'id="matrix"' in matrix
    assert "picture" not in data_of(matrix)
    assert not re.search('id="(photo|panels|opacity)"', matrix)
    assert not re.search('id="(matrix|scroll|read)"', picture)
    for page in (matrix, picture):
        assert not re.search(r"<!-- |/\* view", page)


def test_s7_hostile_texts_add_no_markup_to_a_picture(dog, caption_of, hostile):
    expected = Outline(html.render(dog))
    for name in hostile:
        page = html.render(caption_of(hostile, name=name))
        outline = Outline(page)
        assert outline.tags == expected.tags
        assert outline.names == expected.names
        assert outline.raw["script"] == expected.raw["script"]
        assert not re.search("[<>&\u2028\u2029]", outline.raw["script-data"])
        assert data_of(page)["picture"]["name"] == (name and visible(name))


@pytest.mark.parametrize("kind", ["matrix", "picture"])
def test_the_script_is_whole(kind):
    style, script, body = html._parts(kind)
    for opening, closing in ("()", "[]", "{}"):
        assert script.count(opening) == script.count(closing)
    assert style.count("{") == style.count("}")
    # What the page calls, each view has.
    for name in ("draw", "mark", "listenView"):
        assert len(re.findall(rf"function {name}\(", script)) == 1
    for name in ("invitation", "room"):
        assert len(re.findall(rf"const {name} = ", script)) == 1
    assert body.startswith("<body>")


def test_what_all_maps_have_in_common_is_said_for_each(picture_of):
    text = Text("a b", (Token("a", 0, 1), Token("b", 2, 3)))
    maps = (Map("same", [[0.9, 0.1]] * 2), Map("apart", [[0.9, 0.1], [0.1, 0.9]]))
    record = Record("t", picture_of(1, 2), text, maps)
    verdicts = data_of(html.render(record))["views"][0]["verdicts"]
    assert verdicts["0"].startswith("The same for all 2 words")
    assert verdicts["1"] == verdicts["mean"] == ""


def test_a_caption_without_words_has_a_page(caption_of):
    view = data_of(html.render(caption_of([])))["views"][0]
    assert view["verdicts"]["mean"] == "Nothing was written."


def test_a_page_of_a_photo_is_below_a_megabyte(caption_of):
    record = caption_of([f"word{i}" for i in range(25)], 14, 14)
    assert len(html.render(record).encode()) < 150_000


def test_gaps_and_marks_come_from_the_text():
    text = Text(
        "a  b.", (Token("a", 0, 1), Token("b", 3, 4), Token(".", 4, 5), Token("</s>", 5, 5))
    )
    record = Record("t", text, text, (Map("m", np.eye(4)),))
    tokens = data_of(html.render(record))["views"][0]["read"]["tokens"]
    assert [(t["gap"], t["text"], t["mark"]) for t in tokens] == [
        ("", "a", False),
        (" ", "b", False),
        ("", ".", False),
        (" ", "</s>", True),
    ]


def test_words_and_pieces_are_both_there_only_when_they_differ(chase):
    assert len(data_of(html.render(chase))["views"]) == 1
    pieces = Text("cats", (Token("cat", 0, 3), Token("s", 3, 4)))
    record = Record("t", pieces, pieces, (Map("m", [[0.5, 0.5], [0.25, 0.75]]),))
    words, parts = data_of(html.render(record))["views"]
    assert words["maps"][0]["weights"] == [[1.0]]
    assert parts["maps"][0]["weights"] == [[0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(("word", "direction"), [("Tom", "ltr"), ("طارد", "rtl")])
def test_the_direction_is_that_of_the_text(record_of, word, direction):
    view = data_of(html.render(record_of([word], ["a"])))["views"][0]
    assert view["read"]["direction"] == direction


def test_details_are_shown(chase):
    details = data_of(html.render(chase))["details"]
    assert details == {"score": "-0.25", "model": "en-zh", "beam": "4", "note": "None"}


def test_a_forty_by_forty_page_is_below_a_megabyte(record_of):
    words = [f"word{i}" for i in range(40)]
    assert len(html.render(record_of(words, words)).encode()) < 100_000


def test_a_frame_holds_the_whole_page(chase):
    shown = html.frame(chase, height=500)
    holder = Outline(shown)
    assert holder.tags == ["iframe"]
    assert 'height="500"' in shown


def test_a_page_of_labels_speaks_of_labels(picture_of, labels_of, dog):
    page = html.render(labels_of(picture_of(1, 2), ["cat"], [[0.2, 0.8]], probability=0.5))
    assert "the largest of the label" in page
    assert "labels that looked at a cell" in page
    assert '"unit":"label"' in page
    assert "the largest of the word" in html.render(dog)
    assert '"unit":"word"' in html.render(dog)


# Many maps


def pieces(record_of, words, count, heads):
    """A record of words that each are of two pieces."""
    record = record_of(words * count, words * count, count=heads)
    tokens, start = [], 0
    for word in words * count:
        tokens += [Token(word[:2], start, start + 2), Token(word[2:], start + 2, start + len(word))]
        start += len(word) + 1
    text = Text(record.read.text, tuple(tokens))
    generator = np.random.default_rng(0)
    size = len(tokens)
    names = [f"layer 1, head {k + 1}" for k in range(heads)]
    return Record("t", text, text, tuple(Map(n, generator.random((size, size))) for n in names))


def test_maps_are_listed_by_layer(record_of):
    record = pieces(record_of, ["word"], 2, 3)
    data = data_of(html.render(record))
    assert data["rows"] == [{"name": "layer 1", "maps": [0, 1, 2]}]
    assert "packed" not in data
    assert 'id="multiples"' in html.render(record)


def test_many_weights_are_packed_once_and_words_are_merged_on_the_page(record_of):
    record = pieces(record_of, ["word", "things"], 30, 6)
    page = html.render(record)
    data = data_of(page)
    assert data["packed"]["shape"] == [6, 120, 120]
    words, own = data["views"]
    assert words["groups"]["read"] == list(range(0, 120, 2))
    assert len(words["read"]["tokens"]) == 60
    assert all("weights" not in one for view in (words, own) for one in view["maps"])
    assert len(page) < 6 * 120 * 120 * 2.7 + 40_000  # 14 bits, in base64
