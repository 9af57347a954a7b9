import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.pictures import Map, Record, Text, Token


def cut(text, *places):
    """Cut a text into the pieces between places."""
    tokens = [Token(text[a:b], a, b) for a, b in places]
    return Text(text, tuple(tokens))


def words_of(text):
    """Return the words that the pieces of a text are merged into."""
    weights = np.ones((1, len(text.tokens)))
    record = Record("t", text, cut("x", (0, 1)), (Map("m", weights),))
    return [token.text for token in record.merge_words().read.tokens]


def test_weights_are_summed_over_read_and_averaged_over_written_pieces():
    read = cut("unbelievable news", (0, 2), (2, 8), (8, 12), (13, 17))
    written = cut("gute Nachricht", (0, 4), (5, 9), (9, 14))
    weights = [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.0, 0.5], [0.25, 0.25, 0.25, 0.25]]
    merged = Record("t", read, written, (Map("m", weights),)).merge_words()
    assert merged.read.tokens == (Token("unbelievable", 0, 12), Token("news", 13, 17))
    assert merged.written.tokens == (Token("gute", 0, 4), Token("Nachricht", 5, 14))
    # The second row is the mean of (0.5, 0.5) and (0.75, 0.25).
    np.testing.assert_allclose(merged.weights(), [[0.6, 0.4], [0.625, 0.375]], rtol=1e-6)


def test_chinese_japanese_and_thai_segments_stay_apart():
    assert words_of(cut("汤姆追逐", (0, 2), (2, 4))) == ["汤姆", "追逐"]
    assert words_of(cut("ネコが", (0, 2), (2, 3))) == ["ネコ", "が"]
    assert words_of(cut("แมวไล่", (0, 3), (3, 6))) == ["แมว", "ไล่"]
    assert words_of(cut("2024年", (0, 2), (2, 4), (4, 5))) == ["2024", "年"]


def test_scripts_with_spaces_merge():
    assert words_of(cut("추격하다", (0, 2), (2, 4))) == ["추격하다"]
    assert words_of(cut("طارد", (0, 2), (2, 4))) == ["طارد"]
    assert words_of(cut("кошка", (0, 3), (3, 5))) == ["кошка"]


def test_punctuation_and_marks_stay_apart():
    text = Text("so.", (Token("s", 0, 1), Token("o", 1, 2), Token(".", 2, 3), Token("</s>", 3, 3)))
    assert words_of(text) == ["so", ".", "</s>"]
    assert words_of(cut("a-b", (0, 1), (1, 2), (2, 3))) == ["a", "-", "b"]


def test_a_space_at_the_edge_of_a_piece_parts_words():
    assert words_of(cut("a b", (0, 1), (1, 3))) == ["a", "b"]
    assert words_of(cut("a b", (0, 2), (2, 3))) == ["a", "b"]


def test_the_bytes_of_one_character_are_one_word():
    assert words_of(Text("猫", (Token("<0xE7>", 0, 1), Token("<0x8C>", 0, 1)))) == ["猫"]


def test_a_combining_mark_and_a_joined_emoji_stay_whole():
    assert words_of(cut("e\u0301", (0, 1), (1, 2))) == ["e\u0301"]
    assert words_of(cut("👨\u200d👩", (0, 1), (1, 2), (2, 3))) == ["👨\u200d👩"]


def test_a_lone_piece_shows_what_stands_in_the_text():
    assert words_of(Text("Tom", (Token("▁Tom", 0, 3),))) == ["Tom"]
    assert words_of(Text("a ", (Token("▁", 1, 2),))) == ["▁"]


spans = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=6)


@given(st.text(min_size=6, max_size=6), spans)
def test_merging_twice_is_merging_once_and_rows_still_sum_to_one(text, offsets):
    tokens = cut(text, *(sorted(pair) for pair in offsets))
    weights = np.full((len(offsets), len(offsets)), 1 / len(offsets))
    once = Record("t", tokens, tokens, (Map("m", weights),)).merge_words()
    twice = once.merge_words()
    assert [(t.start, t.end) for t in once.read.tokens] == [
        (t.start, t.end) for t in twice.read.tokens
    ]
    np.testing.assert_allclose(once.weights().sum(axis=1), 1, rtol=1e-5)


def test_the_cells_of_a_picture_stay_as_they_are(picture_of):
    written = cut("cats", (0, 3), (3, 4))
    weights = [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    record = Record("t", picture_of(1, 2, sentinel=True), written, (Map("m", weights),))
    merged = record.merge_words()
    assert merged.read is record.read
    np.testing.assert_allclose(merged.weights(), [[0.5, 0.25, 0.25]])
    assert [token.text for token in merged.merge_words().written.tokens] == ["cats"]
