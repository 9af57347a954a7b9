"""The page of a document: its data, its texts as texts, its script whole."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from regard.pictures import Map, Record, Text, Token, render_html
from regard.pictures.document_html import page_data
from regard.pictures.html import _parts
from regard.pictures.lettering import visible


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def test_the_page_carries_sentences_words_and_weights(letter):
    data = data_of(render_html(letter))
    assert data["direction"] == "ltr"
    assert data["sentences"][2] == {
        "first": 3,
        "words": [["", "The"], [" ", "cup"], [" ", "broke"], [" ", "!"]],
        "rest": "",
    }
    assert data["sentences"][1] == {"first": 3, "words": [], "rest": ""}
    (label,) = data["labels"]
    assert (label["text"], label["sentences"]) == ("quality", [0.1, 0.0, 0.9])
    assert label["words"][3:] == [0.05, 0.1, 0.8, 0.05]
    assert (label["strongest"], label["verdict"]) == ([2], "")


def test_each_label_has_its_weights(letter):
    written = Text("a, b", (Token("a", 0, 1), Token("b", 3, 4)))
    record = Record(
        "classification", letter.read, written, (Map("w", np.ones((2, 7))),), {},
        (Map("s", [[0.1, 0.0, 0.9], [1.0, 0.0, 0.0]]),),
    )  # fmt: skip
    labels = page_data(record)["labels"]
    assert [(one["text"], one["strongest"]) for one in labels] == [("a", [2]), ("b", [0])]
    nothing = Record(
        "classification", letter.read, Text("", ()), (Map("w", np.zeros((0, 7))),), {},
        (Map("s", np.zeros((0, 3))),),
    )  # fmt: skip
    (label,) = page_data(nothing)["labels"]
    assert (label["text"], label["strongest"]) == ("no label", [])


def test_s7_hostile_texts_add_no_markup(letter, document_of, hostile):
    plain = re.sub(r"\s*<script type=.*?</script>", "", render_html(letter), flags=re.DOTALL)
    tags = re.findall(r"<(\w+)", plain)
    for text in hostile:
        page = render_html(document_of([hostile], label=text))
        bare = re.sub(r"\s*<script type=.*?</script>", "", page, flags=re.DOTALL)
        assert re.findall(r"<(\w+)", bare) == tags
        shown = data_of(page)["sentences"][0]["words"]
        assert [word for _, word in shown] == [visible(t.strip() or t) for t in hostile]
        page.encode("utf-8")


def test_every_element_that_the_script_names_is_on_the_page():
    _, script, body = _parts("document")
    named = set(re.findall(r'\$\("([a-z-]+)"\)', script))
    there = set(re.findall(r'\bid="([a-z-]+)"', body))
    assert named <= there | {"data"}
    assert 'aria-live="polite"' in body


def test_the_script_is_whole(tmp_path):
    style, script, body = _parts("document")
    for opening, closing in ("()", "[]", "{}"):
        assert script.count(opening) == script.count(closing)
    assert style.count("{") == style.count("}")
    assert body.startswith("<body>")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node checks the script where it is there")
    (tmp_path / "page.js").write_text(script, encoding="utf-8")
    subprocess.run([node, "--check", tmp_path / "page.js"], check=True)


def test_a_document_of_a_thousand_sentences_is_below_a_megabyte(document_of):
    assert len(render_html(document_of([["word"] * 20] * 1_000))) < 1_000_000
