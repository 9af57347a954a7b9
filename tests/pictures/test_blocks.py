import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures import terminal
from regard.pictures.colours import shade
from regard.pictures.lettering import cells

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def test_without_colour_a_table_names_the_strongest_cells(dog):
    assert terminal.render(dog, width=80, colour="none").split("\n") == [
        "captioning  dog.jpg",
        "",
        "a brown dog",
        "",
        "    a <- top left (1,1) 0.70  top (1,2) 0.10  top right (1,3) 0.10",
        "brown <- bottom (2,2) 0.60  bottom right (2,3) 0.30  top (1,2) 0.05",
        "  dog <- everywhere alike 0.05",
        "",
        "place (row,column) weight; grid of 2 x 3 cells",
        "",
    ]


def test_with_colour_there_is_a_block_for_each_word(dog):
    lines = ESCAPES.sub("", terminal.render(dog, width=80)).split("\n")
    assert lines[4].split() == ["a", "brown", "dog"]
    assert lines[5] == lines[6] == "▀▀▀▀▀▀              ▀▀▀▀▀▀              ▀▀▀▀▀▀"
    assert re.split(" {2,}", lines[7]) == [
        "top left 0.70",
        "bottom 0.60",
        "everywhere alike 0.05"[:17] + "…",
    ]
    assert re.split(" {2,}", lines[8]) == ["not looking 0", "not looking 0", "not looking 0.70"]


def test_the_blocks_show_the_true_grid(caption_of):
    weights = [[1.0, 0.0, 0.5, 0.0]]
    drawn = terminal.render(caption_of(["dog"], 2, 2, weights=weights), width=40)
    block = [line for line in drawn.split("\n") if "▀▀" in line]
    colours = [re.findall(r"38;2;([\d;]+);48;2;([\d;]+)m", line) for line in block]
    full, none, half = (";".join(map(str, shade(v, "dark"))) for v in (1, 0, 0.5))
    assert colours == [[(full, full), (none, none)], [(half, half), (none, none)]]


def test_a_wide_grid_takes_half_lines_and_an_odd_row_has_nothing_below(caption_of):
    drawn = terminal.render(caption_of(["dog"], 3, 12, weights=np.eye(1, 36)), width=40)
    block = [line for line in drawn.split("\n") if "▀" in line]
    assert len(block) == 2
    assert "48;2" in block[0]
    assert "48;2" not in block[1]
    assert ESCAPES.sub("", block[0]).strip() == "▀" * 12


def test_fixed_colours_serve_where_there_are_256(dog):
    drawn = terminal.render(dog, width=60, colour="256")
    assert "38;5;" in drawn
    assert "38;2;" not in drawn


@pytest.mark.parametrize("colour", ["truecolor", "256", "none"])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("width", [1, 20, 47, 120])
def test_nothing_is_wider_than_the_terminal(caption_of, mixed, colour, numbers, width):
    record = caption_of(mixed, 5, 9, sentinel=True)
    drawn = terminal.render(record, width=width, colour=colour, numbers=numbers)
    assert max(map(cells, ESCAPES.sub("", drawn).split("\n"))) <= max(width, 20)
    assert ("▀" in drawn) == (colour != "none" and not numbers)


def test_a_grid_wider_than_the_terminal_is_told_in_words(caption_of):
    record = caption_of(["dog"], 2, 30, weights=np.eye(1, 60))
    assert "dog <- top left (1,1) 1.00" in terminal.render(record, width=29, colour="truecolor")
    assert "▀" in terminal.render(record, width=30, colour="truecolor")


@pytest.mark.parametrize("colour", ["truecolor", "none"])
def test_identical_maps_are_said(caption_of, colour):
    row = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    drawn = terminal.render(caption_of(["a", "b"], weights=[row, row]), width=80, colour=colour)
    assert "The same for all 2 words: this does not say where each looked." in drawn
    assert len(re.findall("top left", drawn)) == 1


@pytest.mark.parametrize("colour", ["truecolor", "none"])
def test_maps_that_show_nothing_are_not_drawn(caption_of, colour):
    uniform = caption_of(["a", "b"], weights=np.full((2, 6), 1 / 6))
    empty = caption_of([])
    for record, sentence in ((uniform, "no word looked anywhere"), (empty, "Nothing was written.")):
        drawn = terminal.render(record, width=80, colour=colour)
        assert sentence in drawn
        assert not re.search("▀|<-|grid", drawn)


def test_a_long_caption_is_folded_and_kept(caption_of):
    words = [f"word{i}" for i in range(60)]
    drawn = terminal.render(caption_of(words), width=40, colour="none")
    head = drawn.split("<-")[0]
    assert all(word in head.split() for word in words)


@pytest.mark.parametrize("colour", ["truecolor", "none"])
def test_s7_escape_sequences_do_nothing(caption_of, hostile, colour):
    record = caption_of(hostile, name=hostile[-6])
    rest = ESCAPES.sub("", terminal.render(record, width=120, colour=colour))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066]", rest)
    rest.encode("utf-8")


@given(st.lists(st.text(st.characters(), max_size=8), max_size=4), st.integers(20, 90))
@settings(max_examples=50)
def test_no_text_breaks_a_line_or_the_width(caption_of, words, width):
    drawn = terminal.render(caption_of(words), width=width, colour="none")
    assert "\x1b" not in drawn
    assert max(map(cells, drawn.split("\n"))) <= width


def test_a_part_of_a_picture_is_said_to_be_one(caption_of):
    record = caption_of(["dog"], weights=np.eye(1, 6), box=(0, 0, 72, 96))
    drawn = terminal.render(record, width=100, colour="none")
    assert "grid of 2 x 3 cells, over the part of the picture that was read" in drawn


@pytest.mark.parametrize("colour", ["none", "256"])
def test_a_label_is_shown_with_its_probability(picture_of, labels_of, colour):
    record = labels_of(picture_of(1, 2), ["cat"], [[0.2, 0.8]], probability=0.5)
    drawn = ESCAPES.sub("", terminal.render(record, width=60, colour=colour))
    assert "cat (probability 0.50)" in drawn.split("\n")
    assert "right" in drawn
    assert ("the largest of the label" in drawn) == (colour != "none")
