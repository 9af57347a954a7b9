"""What the pictures of a document show, and how sentences are cut into lines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.pictures import Document, Map, Passage, Record, Text, Token
from regard.pictures.evidence import sentences
from regard.pictures.passages import Piece, broken, excerpt, named_words, pieces, window


def test_an_excerpt_is_in_the_order_of_the_document(document_of) -> None:
    weights = [0.2, 0.05, 0.6, 0.02, 0.13]
    record = document_of([["a"]] * 5, weights=weights, words=[[1.0]] * 5)
    found = excerpt(record)
    assert [one.index for one in found.shown] == [0, 2, 4]
    assert found.heading == "classification  quality  0.98"
    assert found.remark == (
        "The strongest 3 of 5 sentences; 2 left out, which hold 0.07 of the weight."
    )
    assert (found.top, found.bar) == (1.0, 1.0)
    assert [one.index for one in excerpt(record, most=1).shown] == [2]


def test_what_is_not_there_is_said(document_of) -> None:
    assert excerpt(document_of([], weights=[], words=[])).remark == "Nothing was read."
    one = document_of([["a"]], weights=[1.0], words=[[1.0]])
    assert excerpt(one).remark == "All of the document: 1 sentence."
    nothing = document_of([["a"], ["b"]], weights=[0.0, 0.0], words=[[1.0], [1.0]])
    assert excerpt(nothing).remark == "None of 2 sentences has any weight."
    even = document_of([["a"]] * 4, weights=[0.25, 0.26, 0.24, 0.25], words=[[1.0]] * 4)
    said = "All of the document: 4 sentences. All sentences weigh about the same: none of them"
    assert excerpt(even).remark == f"{said} decided."
    unlabelled = Record(
        "classification", nothing.read, Text("", ()), (Map("w", np.zeros((0, 2))),), {},
        (Map("s", np.zeros((0, 2))),),
    )  # fmt: skip
    assert excerpt(unlabelled).heading == "classification  no label"


def one_sentence(text: str, tokens: list[tuple[str, int, int]]) -> Record:
    document = Document(
        text, tuple(Token(*t) for t in tokens), "en", (Passage(0, len(text), 0, len(tokens)),)
    )
    weights = np.full((1, len(tokens)), 1 / max(len(tokens), 1))
    return Record(
        "t", document, Text("x", (Token("x", 0, 1),)), (Map("w", weights),), {},
        (Map("s", [[1.0]]),),
    )  # fmt: skip


def test_pieces_are_the_words_and_what_stands_between() -> None:
    text = "«Oh  no», it--rains\nnow…"
    tokens = [("Oh", 1, 3), ("no", 5, 7), ("it", 10, 12), ("rains", 14, 19), ("now", 20, 23)]
    (sentence,) = sentences(one_sentence(text, tokens))
    share = sentence.words[0].weight
    assert pieces(sentence) == [
        Piece("«", None, False), Piece("Oh", share, False), Piece("no", share, True),
        Piece("»,", None, False), Piece("it", share, True), Piece("--", None, False),
        Piece("rains", share, False), Piece("now", share, True), Piece("…", None, False),
    ]  # fmt: skip


def test_a_long_word_is_cut_and_what_does_something_is_shown() -> None:
    (sentence,) = sentences(one_sentence("x" * 150 + "\x1b[31m", [("x" * 150, 0, 150)]))
    found = pieces(sentence)
    assert [len(piece.text) for piece in found[:3]] == [60, 60, 30]
    assert found[-1].text == "␛[31m"


@given(
    st.lists(st.tuples(st.text("ab", min_size=1, max_size=9), st.booleans())), st.integers(9, 30)
)
def test_lines_are_no_wider_than_the_room(words: list[tuple[str, bool]], room: int) -> None:
    line = [Piece(text, 0.1, spaced) for text, spaced in words]
    found = broken(line, room, len)
    assert [piece for part in found for piece in part] == line
    for part in found:
        width = sum(len(p.text) + (p.spaced and i > 0) for i, p in enumerate(part))
        assert width <= room


def test_the_window_is_around_the_strongest_line() -> None:
    lines = [[Piece(str(i), 0.9 if i == 7 else 0.1, True)] for i in range(10)]
    before, shown = window(lines, 3)
    assert before == 6
    assert [line[0].text for line in shown] == ["6", "7", "8"]
    assert window(lines[:3], 3) == (0, lines[:3])
    assert window(lines, 9)[0] == 1


def test_words_that_stand_out_are_named(letter) -> None:
    every = sentences(letter)
    assert named_words(every[0]) == "hot 0.60, It 0.20, is 0.20"
    assert named_words(every[2]) == "broke 0.80, cup 0.10"
    assert named_words(every[1]) == ""
