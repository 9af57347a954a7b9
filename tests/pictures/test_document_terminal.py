"""A document in a terminal: aligned, within the width, nothing left to colour alone."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures import render_terminal
from regard.pictures.lettering import cells

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def test_a_plain_picture_reads_like_this(letter):
    assert render_terminal(letter, width=60, colour="none").split("\n") == [
        "classification  quality  0.98",
        "",
        "█████▍ 0.90    The cup broke !",
        "               <- broke 0.80, cup 0.10",
        "",
        "The strongest 1 of 3 sentences; 2 left out, which hold 0.10",
        "of the weight.",
        "",
    ]


def test_words_are_shaded_by_their_weight(letter):
    drawn = render_terminal(letter, width=60)
    assert ESCAPES.sub("", drawn).split("\n")[2] == "█████▍ 0.90    The cup broke !"
    words = re.findall(r"48;2;\d+;(\d+);\d+m(\w+)\x1b", drawn)
    green = {word: int(value) for value, word in words}
    assert green["broke"] > green["cup"] > green["The"]
    assert "1 of its sentence" in drawn


@pytest.mark.parametrize("colour", ["truecolor", "256", "none"])
@pytest.mark.parametrize("width", [1, 20, 33, 80, 200])
def test_lines_fit_whatever_the_script(document_of, mixed, colour, width):
    record = document_of([mixed, mixed[::-1], ["word"] * 300], seed=2)
    drawn = ESCAPES.sub("", render_terminal(record, width=width, colour=colour))
    assert max(map(cells, drawn.split("\n"))) <= max(width, 20)


@given(st.lists(st.text(st.characters(), max_size=9), max_size=4), st.integers(20, 90))
@settings(max_examples=60)
def test_no_text_breaks_a_line_or_the_width(document_of, words, width):
    drawn = render_terminal(document_of([words, ["a"]]), width=width, colour="none")
    assert "\x1b" not in drawn
    assert "\r" not in drawn
    assert max(map(cells, drawn.split("\n"))) <= width


def test_escape_sequences_do_nothing(document_of, hostile):
    drawn = ESCAPES.sub("", render_terminal(document_of([hostile], label=hostile[0]), width=120))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066]", drawn)
    drawn.encode("utf-8")


def test_a_long_sentence_is_shown_around_its_strongest_word(document_of):
    weights = [0.0] * 1_000
    weights[700] = 1.0
    words = [f"word{i}" for i in range(1_000)]
    drawn = render_terminal(
        document_of([words], weights=[1.0], words=[weights]), width=80, colour="none"
    )
    assert len(drawn.split("\n")) < 20
    assert "word700" in drawn
    assert "lines before" in drawn
    assert re.search(r"… \d+ lines more", drawn)


def test_d22_a_document_of_five_thousand_sentences_stays_readable(document_of):
    drawn = render_terminal(document_of([["some", "words"]] * 5_000), width=80, colour="none")
    assert len(drawn.split("\n")) < 40
    assert "The strongest 5 of 5,000 sentences; 4,995 left out" in drawn


def test_nothing_read(document_of):
    drawn = render_terminal(document_of([], weights=[], words=[]), width=80, colour="none")
    assert drawn.endswith("\n\nNothing was read.\n")
