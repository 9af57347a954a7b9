import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import UserError
from regard.pictures import terminal
from regard.pictures.lettering import cells

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
DEPTHS = ["truecolor", "256", "none"]


class Tty(io.StringIO):
    def isatty(self):
        return not super().isatty()  # which refuses when it is closed


def plain_lines(drawn):
    """Return the lines without colour."""
    return ESCAPES.sub("", drawn).split("\n")


def blocks_of(drawn):
    """Return the lists of lines between empty lines."""
    return [block.split("\n") for block in ESCAPES.sub("", drawn).split("\n\n")]


def test_a_plain_picture_reads_like_this(chase):
    assert terminal.render(chase, width=80, colour="none").split("\n") == [
        "translation  en -> zh",
        "",
        "       Tom    chases  Jerry  ",
        "汤姆  ██*███                   Tom 0.95",
        "追逐          ██*███           chases 0.93",
        "杰瑞          ░░░░░░  ██*███   Jerry 0.93",
        "",
        "0 ░▒▓█ 1  * most",
        "",
    ]


def test_numbers_stand_in_the_cells(chase):
    drawn = terminal.render(chase, width=80, colour="none", numbers=True)
    assert "0.95*    0.03    0.02" in drawn
    coloured = terminal.render(chase, width=80, numbers=True)
    assert "0.95    0.03    0.02" in ESCAPES.sub("", coloured)


def test_heavier_is_lighter_on_dark_and_darker_on_light(chase):
    assert "48;2;226;238;253" not in terminal.render(chase, width=80, theme="light")[:400]
    for theme in ("dark", "light"):
        assert terminal.render(chase, width=80, theme=theme).count("\x1b[0m") == 9 + 10


@pytest.mark.parametrize("colour", DEPTHS)
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("width", [1, 20, 33, 80, 200])
def test_rows_align_and_fit_whatever_the_script(record_of, mixed, colour, numbers, width):
    drawn = terminal.render(
        record_of(mixed, mixed[::-1]), width=width, colour=colour, numbers=numbers
    )
    lines = plain_lines(drawn)
    assert max(map(cells, lines)) <= max(width, 20)
    heads = 0
    for block in blocks_of(drawn):
        if "<-" in block[0] or len(block) != len(mixed) + 1:
            continue
        heads += 1
        grid = {cells(line.rstrip()) if " <- " in line else cells(line) for line in block}
        assert len(grid) == 1 or width == 200  # there the sources stand beside
    assert heads or len(lines) == len(mixed) + 4


@given(st.lists(st.text(st.characters(), max_size=8), min_size=1, max_size=4), st.integers(20, 90))
@settings(max_examples=60)
def test_no_text_breaks_a_line_or_the_width(record_of, words, width):
    drawn = terminal.render(record_of(words, words), width=width, colour="none")
    assert "\x1b" not in drawn
    assert "\r" not in drawn
    assert max(map(cells, drawn.split("\n"))) <= width


@pytest.mark.parametrize("colour", DEPTHS)
def test_escape_sequences_in_tokens_do_nothing(record_of, hostile, colour):
    drawn = terminal.render(record_of(hostile, hostile), width=120, colour=colour)
    rest = ESCAPES.sub("", drawn)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066]", rest)
    rest.encode("utf-8")


def test_the_escapes_of_a_token_that_looks_like_colour_are_inert(record_of):
    drawn = terminal.render(record_of(["\x1b[31mred"], ["a"]), width=80, colour="none")
    assert "␛[31mred" in drawn
    assert "\x1b" not in drawn


def test_right_to_left_tokens_are_isolated(record_of):
    drawn = terminal.render(record_of(["طارد", "القط"], ["cat"]), width=80, colour="none")
    assert drawn.count("\u2068") == drawn.count("\u2069") == 3


def test_many_columns_go_into_blocks_and_the_sources_below(record_of):
    words = [f"word{i}" for i in range(15)]
    drawn = terminal.render(record_of(words, ["a", "b"]), width=80, colour="none")
    assert len([line for line in drawn.split("\n") if "word" in line and "<-" not in line]) == 2
    assert len(re.findall(r"^[ab] <- word\d+ 0\.\d\d$", drawn, re.MULTILINE)) == 2


def test_a_text_too_long_for_a_matrix_is_told_in_words(record_of):
    words = [f"w{i}" for i in range(300)]
    drawn = terminal.render(record_of(words, words), width=80, colour="none")
    assert len(drawn.split("\n")) == 304
    assert re.search(r"^  w7 <- w\d+ 0\.\d\d  w\d+ 0\.\d\d  w\d+ 0\.\d\d$", drawn, re.MULTILINE)


def test_a_map_is_chosen_by_name(record_of):
    record = record_of(["a", "b"], ["c"], count=2)
    assert "mean of 2 maps" in terminal.render(record, width=80, colour="none")
    assert "head 2" in terminal.render(record, width=80, colour="none", name="head 2")
    with pytest.raises(UserError, match="did you mean 'head 1'"):
        terminal.render(record, name="hed 1")


def test_the_width_is_asked_of_the_terminal(record_of, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    drawn = terminal.render(record_of(["word"] * 9, ["a"]), colour="none")
    assert max(map(cells, drawn.split("\n"))) <= 30


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "xterm-direct"}, "truecolor"),
        ({"WT_SESSION": "1"}, "truecolor"),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, "none"),
        ({}, "none"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm", "NO_COLOR": ""}, "256"),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "3"}, "none"),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, "none"),
    ],
)
def test_colour_on_a_terminal(environ, expected):
    assert terminal.detect_colour(Tty(), environ) == expected


def test_colour_elsewhere():
    assert terminal.detect_colour(io.StringIO(), {"TERM": "xterm"}) == "none"
    assert terminal.detect_colour(None, {"TERM": "xterm"}) == "none"
    assert terminal.detect_colour(io.StringIO(), {"FORCE_COLOR": "3"}) == "truecolor"
    assert terminal.detect_colour(io.StringIO(), {"FORCE_COLOR": "1"}) == "256"
    closed = Tty()
    closed.close()
    assert terminal.detect_colour(closed, {"TERM": "xterm"}) == "none"
