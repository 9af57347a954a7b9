"""A document as vector graphics: whole, inert, and with what is left out said."""

import re
import xml.etree.ElementTree as ET

import pytest

from regard.pictures import render_svg
from regard.pictures.lettering import visible

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts_of(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{NAMESPACE}text")]


def test_words_and_weights_are_there(letter):
    drawn = render_svg(letter)
    texts = texts_of(drawn)
    assert texts[:2] == ["classification quality 0.98", "0.90"]
    assert texts[2:6] == ["The", "cup", "broke", "!"]
    assert "broke 0.80, cup 0.10" in texts
    assert "The strongest 1 of 3 sentences; 2 left out, which hold 0.10 of the weight." in texts
    root = ET.fromstring(drawn)
    titles = [element.text for element in root.iter(f"{NAMESPACE}title")]
    assert titles[1:] == ["The 0.05", "cup 0.10", "broke 0.80", "! 0.05"]
    fills = re.findall(r'fill="(#\w+)"><title>', drawn)
    assert len(set(fills)) == 3  # The and ! are alike
    assert "0.90: The cup broke ! (broke 0.80, cup 0.10)." in root.find(f"{NAMESPACE}desc").text


def test_everything_stays_on_the_page(document_of, mixed):
    drawn = render_svg(document_of([mixed * 20, mixed, ["x" * 500]], seed=3))
    root = ET.fromstring(drawn)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    for element in root.iter(f"{NAMESPACE}rect"):
        if element.get("x"):
            assert float(element.get("x")) >= 0
            assert float(element.get("x")) + float(element.get("width")) <= width
            assert float(element.get("y")) + float(element.get("height")) <= height
    for element in root.iter(f"{NAMESPACE}text"):
        assert 0 < float(element.get("y")) < height


def test_s7_hostile_texts_stay_text(document_of, hostile):
    drawn = render_svg(document_of([hostile], label=hostile[1], words=[[1 / 22] * 22]))
    root = ET.fromstring(drawn)
    kinds = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
    assert kinds <= {"svg", "title", "desc", "rect", "text", "linearGradient", "stop"}
    assert visible(hostile[1]) in texts_of(drawn)[0]
    drawn.encode("utf-8")


def test_a_document_of_five_thousand_sentences_is_a_small_picture(document_of):
    drawn = render_svg(document_of([["some", "words"]] * 5_000))
    assert len(drawn) < 40_000


def test_a_long_sentence_is_cut_around_its_strongest_word(document_of):
    weights = [0.0] * 2_000
    weights[1_500] = 1.0
    words = [f"word{i}" for i in range(2_000)]
    texts = texts_of(render_svg(document_of([words], weights=[1.0], words=[weights])))
    assert "word1500" in texts
    assert [text for text in texts if text.startswith("… lines before: ")]
    assert [text for text in texts if text.startswith("… more lines: ")]


def test_words_of_a_right_to_left_text_run_from_the_right(document_of):
    record = document_of([["شكرا", "لكم"]], weights=[1.0], words=[[0.5, 0.5]])
    drawn = render_svg(record)
    places = re.findall(r'<rect x="([\d.]+)"[^>]*><title>', drawn)
    assert float(places[0]) > float(places[1])


def test_nothing_read(document_of):
    texts = texts_of(render_svg(document_of([], weights=[], words=[])))
    assert texts == ["classification quality 0.98", "Nothing was read."]


def test_a_png_of_a_document(letter, tmp_path):
    pytest.importorskip("resvg_py")
    letter.save(tmp_path / "look.png")
    assert (tmp_path / "look.png").read_bytes().startswith(b"\x89PNG")
