import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.errors import UserError
from regard.pictures import Map, Picture, Record, Text, Token, covers, drawing, strip, svg
from regard.pictures.lettering import visible

SPACE = "{http://www.w3.org/2000/svg}"
KNOWN = {
    *("svg", "title", "desc", "defs", "symbol", "image", "g", "path", "rect", "use", "text"),
    *("linearGradient", "stop"),
}
WORDS = ["a", "brown", "dog", "runs", "across", "the", "grass"]


def parsed(record, **options):
    return ET.fromstring(strip.render(record, **options))


def panels(root):
    return [g for g in root.iter(f"{SPACE}g") if (g.get("transform") or "").startswith("translate")]


def texts(root, fill=None):
    found = root.iter(f"{SPACE}text")
    return [element for element in found if fill is None or element.get("fill") == fill]


def said(root):
    return " ".join(element.text for element in texts(root))


def place_of(panel):
    return tuple(map(float, re.findall(r"[\d.]+", panel.get("transform"))))


def veil_of(panel):
    """Return the cover of a panel as red, green, blue and opacity."""
    image = next(e for e in panel.iter(f"{SPACE}image"))
    data = image.get("href").removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))


def test_the_picture_stands_alone_first_and_then_once_for_each_word(caption_of):
    root = parsed(caption_of(WORDS))
    drawn = panels(root)
    assert len(drawn) == 1 + len(WORDS)
    titles = [panel.find(f"{SPACE}title").text for panel in drawn]
    assert titles[0] == "dog.jpg"
    assert [title.split(":")[0] for title in titles[1:]] == WORDS
    assert [e.text for e in texts(root, drawing.TEXT)] == [*WORDS, " ".join(WORDS)]
    assert not list(drawn[0].iter(f"{SPACE}image"))


def test_the_picture_is_embedded_once(caption_of):
    record = caption_of(WORDS)
    drawn = strip.render(record)
    assert drawn.count(base64.b64encode(record.read.data).decode()) == 1
    root = ET.fromstring(drawn)
    symbol = next(root.iter(f"{SPACE}symbol"))
    uses = [use.get("href") for use in root.iter(f"{SPACE}use")]
    assert uses.count(f"#{symbol.get('id')}") == 1 + len(WORDS)


def test_names_of_shared_elements_differ_between_pictures(caption_of):
    first, second = (parsed(caption_of(WORDS, 2, columns)) for columns in (3, 4))
    ids = [{e.get("id") for e in root.iter() if e.get("id")} for root in (first, second)]
    assert len(ids[0]) == 3
    assert not ids[0] & ids[1]
    assert {use.get("href")[1:] for use in first.iter(f"{SPACE}use")} <= ids[0]


def test_it_says_what_it_shows(dog):
    root = parsed(dog)
    assert root.find(f"{SPACE}title").text == "captioning: dog.jpg → a brown dog"
    described = root.find(f"{SPACE}desc").text
    assert "Smoothed from a grid of 2 × 3 cells: it shows no more than these." in described
    assert "brown: bottom 0.60, not looking 0" in described
    assert {"top left 0.70", "everywhere alike 0.05", "not looking 0.70"} <= {
        element.text for element in texts(root)
    }
    assert root.get("role") == "img"


def test_the_smooth_cover_is_clear_where_the_word_looked(caption_of):
    weights = np.zeros(45)
    weights[2 * 9 + 7] = 1.0
    root = parsed(caption_of(["dog"], 5, 9, weights=weights))
    cover = veil_of(panels(root)[1])
    factor = cover.shape[1] // 9
    assert cover.shape == (5 * factor, 9 * factor, 4)
    centre = cover[2 * factor + factor // 2, 7 * factor + factor // 2]
    assert centre[3] == pytest.approx(255 * covers.HAZE, abs=6)
    assert centre[:3].min() > 220
    assert tuple(cover[0, 0]) == (*covers.DIM, 255)
    # Halfway to the next centre it is halfway dimmed: linear, and nothing sharper.
    border = cover[2 * factor + factor // 2, 8 * factor]
    assert centre[3] < border[3] < 255


def test_the_grid_style_draws_every_cell_at_its_place(caption_of):
    weights = [0.0, 0.2, 0.4, 0.4, 0.0, 0.0]
    root = parsed(caption_of(["dog"], weights=weights), style="grid")
    assert "Cells of a grid of 2 × 3." in said(root)
    assert "moothed" not in ET.tostring(root, encoding="unicode")
    cells = next(g for g in root.iter(f"{SPACE}g") if "matrix" in (g.get("transform") or ""))
    where = {
        place: float(path.get("fill-opacity"))
        for path in cells
        for place in re.findall(r"M(\d \d)", path.get("d"))
    }
    assert set(where) == {f"{column} {row}" for row in range(2) for column in range(3)}
    assert where["0 0"] == where["1 1"] == 1
    assert where["2 0"] == where["0 1"] == covers.HAZE
    assert 0.6 < where["1 0"] < 0.7
    width, _, _, height, x, y = map(float, re.findall(r"[\d.]+", cells.get("transform")))
    assert (3 * width, 2 * height) == pytest.approx((172, 172 * 2 / 3), rel=1e-3)
    assert (x, y) == (0, 0)


def test_thin_lines_show_the_borders_of_the_cells(caption_of):
    root = parsed(caption_of(["dog"], 5, 9))
    lines = next(g for g in root.iter(f"{SPACE}g") if (g.get("id") or "").startswith("lines"))
    assert lines[0].get("d").count("M") == 8 + 4
    fine = parsed(caption_of(["dog"], 60, 60, weights=np.eye(1, 3600)))
    hidden = next(g for g in fine.iter(f"{SPACE}g") if (g.get("id") or "").startswith("lines"))
    assert hidden[0].get("d") == ""


def test_the_strongest_cell_is_framed_inside_the_panel(dog):
    first, second, third = panels(parsed(dog))[1:]
    frames = [r for r in second.iter(f"{SPACE}rect") if r.get("stroke") == "#fff"]
    assert len(frames) == 1
    x, y = float(frames[0].get("x")), float(frames[0].get("y"))
    across, down = 172 / 3, 172 / 3
    assert across < x < 2 * across
    assert down < y < 2 * down
    assert [r for r in first.iter(f"{SPACE}rect") if r.get("stroke") == "#fff"]
    assert not [r for r in third.iter(f"{SPACE}rect") if r.get("stroke") == "#fff"]  # uniform


def test_the_opacity_is_that_of_the_cover(caption_of):
    for style in ("smooth", "grid"):
        root = parsed(caption_of(["dog"], weights=np.eye(1, 6)), style=style, opacity=0.4)
        assert [e.get("opacity") for e in root.iter() if e.get("opacity")] == ["0.4"]


@pytest.mark.parametrize("style", ["smooth", "grid"])
def test_the_grid_of_a_crop_lies_where_it_was_read(caption_of, style):
    # The right half of 144 by 96 pixels: in a panel of 172 by 114.67.
    root = parsed(caption_of(["dog"], weights=np.eye(1, 6), box=(72, 0, 144, 96)), style=style)
    panel = panels(root)[1]
    assert panel.find(f"{SPACE}title").text == "dog: top 1.00"
    (frame,) = (r for r in panel.iter(f"{SPACE}rect") if r.get("stroke") == "#fff")
    assert float(frame.get("x")) == pytest.approx(86 + 1)
    assert float(frame.get("width")) == pytest.approx(86 / 3 - 2, abs=0.01)
    clip = next(root.iter(f"{SPACE}clipPath"))
    clipped = panel.find(f"{SPACE}g")
    assert clipped.get("clip-path") == f"url(#{clip.get('id')})"
    dark = next(p for p in panel.iter(f"{SPACE}path") if p.get("fill-rule"))
    assert dark.get("d") == "M0 0h172v114.67h-172zM86 0h86v114.67h-86z"
    assert "What lies outside the grid was not read." in said(root)


def test_a_whole_picture_needs_no_clipping(dog):
    assert "clip" not in strip.render(dog)
    assert "outside the grid" not in strip.render(dog)


@pytest.mark.parametrize("style", ["smooth", "grid"])
def test_identical_maps_are_said_and_drawn_once(caption_of, style):
    row = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    root = parsed(caption_of(WORDS, weights=[row] * 7), style=style)
    assert len(panels(root)) == 2
    assert "The same for all 7 words: this does not say where each looked." in said(root)
    assert "all 7 words" in [element.text for element in texts(root)]
    assert " ".join(WORDS) in said(root)


@pytest.mark.parametrize(
    ("words", "shape", "sentence"),
    [
        (WORDS, (2, 3), "Every cell has the same weight: no word looked anywhere in particular."),
        (WORDS, (1, 1), "The grid has one cell: every word looked at the whole picture."),
        ([], (2, 3), "Nothing was written."),
    ],
)
def test_maps_that_show_nothing_are_said_beside_the_picture_alone(
    caption_of, words, shape, sentence
):
    weights = np.full((len(words), shape[0] * shape[1]), 1 / (shape[0] * shape[1]))
    root = parsed(caption_of(words, *shape, weights=weights))
    assert len(panels(root)) == 1
    assert sentence in said(root)
    assert "largest" not in said(root)  # no scale without a map


@pytest.mark.parametrize("count", [1, 2, 5, 12, 25])
def test_panels_wrap_and_everything_is_inside(caption_of, count):
    words = (["agreement", "汤姆追逐杰瑞", "a", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "طارد"] * 5)[
        :count
    ]
    root = parsed(caption_of(words, 5, 9, sentinel=True))
    width, height = float(root.get("width")), float(root.get("height"))
    places = [place_of(panel) for panel in panels(root)]
    assert len(set(places)) == count + 1
    assert all(0 <= x <= width - 172 and 0 <= y <= height - 172 * 5 / 9 for x, y in places)
    for text in texts(root):
        x, size = float(text.get("x")), float(text.get("font-size") or 15)
        long = drawing.width_of(text.text, size)
        part = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor") or "start"]
        if text.get("direction") == "rtl":
            part = 1 - part
        assert x - part * long >= 0
        assert x + (1 - part) * long <= width
        assert float(text.get("y")) <= height


def test_words_of_a_right_to_left_caption_run_from_the_right(caption_of):
    root = parsed(caption_of(["كلب", "يركض", "هنا"]))
    xs = [place_of(panel)[0] for panel in panels(root)]
    assert xs == sorted(xs, reverse=True)
    sentence = texts(root, drawing.TEXT)[-1]
    assert (sentence.get("direction"), sentence.get("text-anchor")) == ("rtl", "start")
    assert float(sentence.get("x")) == float(root.get("width")) - strip._MARGIN


@pytest.mark.parametrize(("shape", "size"), [((1, 40), (4000, 10)), ((40, 1), (10, 4000))])
def test_a_picture_like_a_hair_is_still_seen(shape, size):
    picture = Picture.from_image(Image.new("RGB", size, "red"), rows=shape[0], columns=shape[1])
    text = Text("dog", (Token("dog", 0, 3),))
    root = parsed(Record("t", picture, text, (Map("m", np.eye(1, 40)),)))
    symbol = next(root.iter(f"{SPACE}symbol"))
    assert min(map(float, symbol.get("viewBox").split()[2:])) >= 12


def test_a_very_long_caption_says_what_is_left_out(caption_of):
    words = [f"w{i}" for i in range(150)]
    root = parsed(caption_of(words))
    assert len(panels(root)) == 1 + 120
    assert "30 more words are not drawn." in said(root)
    assert "w149" in said(root)


def test_a_strip_of_a_usual_caption_is_a_small_file(caption_of):
    record = caption_of([f"word{i}" for i in range(25)], 14, 14)
    for style in ("smooth", "grid"):
        assert len(strip.render(record, style=style)) < 150_000


def test_it_needs_nothing_from_outside(caption_of, mixed):
    drawn = strip.render(caption_of(mixed))
    assert set(re.findall(r"https?://[^\"]*", drawn)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r'href="(?!#|data:image/(png|jpeg);base64,)', drawn)
    assert not re.search(r"(@import|<style|<script|url\((?!#))", drawn)


def test_s7_hostile_texts_stay_text(caption_of, hostile):
    for name in hostile:
        root = parsed(caption_of(hostile, name=name))
        assert {element.tag.removeprefix(SPACE) for element in root.iter()} <= KNOWN
        keys = {key for element in root.iter() for key in element.attrib}
        assert not [key for key in keys if key.startswith("on") or key == "style"]
        titles = [panel.find(f"{SPACE}title").text for panel in panels(root)]
        assert titles[0] == visible(name)
        assert "alert" not in "".join(v for e in root.iter() for v in e.attrib.values())


@given(st.lists(st.text(st.characters(), max_size=10), max_size=3), st.text(max_size=5))
@settings(max_examples=50)
def test_any_text_gives_xml(caption_of, words, name):
    drawn = strip.render(caption_of(words, name=name))
    ET.fromstring(drawn.encode("utf-8"))


def test_the_map_is_named(picture_of):
    maps = (Map("head 1", [[0.2, 0.8]]), Map("head 2", [[0.9, 0.1]]))
    record = Record("t", picture_of(1, 2), Text("a", (Token("a", 0, 1),)), maps)
    assert "(head 2)" in strip.render(record, name="head 2")
    assert "left 0.90" in strip.render(record, name="head 2")
    assert svg.render(record, name="head 2") == strip.render(record, name="head 2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"style": "blurred"}, "style must be 'smooth' or 'grid'; got 'blurred'"),
        ({"opacity": 1.2}, r"opacity must be 0 to 1; got 1\.2"),
        ({"opacity": float("nan")}, "opacity must be 0 to 1; got nan"),
        ({"name": "haed"}, "name must be one of 1 maps; got 'haed'"),
    ],
)
def test_wrong_arguments_are_refused(dog, options, message):
    with pytest.raises(UserError, match=message):
        strip.render(dog, **options)


def test_a_text_has_no_strip(chase):
    with pytest.raises(UserError, match="read must be a picture here; got a text"):
        strip.render(chase)


def test_a_label_has_a_panel_and_its_probability(picture_of, labels_of):
    weights = [[0.1, 0.1, 0.5, 0.1, 0.1, 0.1]]
    root = parsed(labels_of(picture_of(2, 3), ["red cat"], weights, probability=0.9712))
    assert len(panels(root)) == 2
    assert {"red cat", "top right 0.50", "red cat (probability 0.97)"} <= {
        element.text for element in texts(root)
    }
    legend = said(root)
    assert "as a part of the largest of its label" in legend
    assert "the largest of the label" in legend
    assert "word" not in legend
    title = root.find(f"{SPACE}title").text
    assert title == "image classification: dog.jpg → red cat (probability 0.97)"
