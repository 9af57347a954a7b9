"""Texts as sentences of words whose offsets are those of the person's text (D10, D22)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.documents import encode_document
from regard.data.tokens import Tokenizer
from regard.errors import UserError

ENGLISH = Tokenizer.train(
    ["The cafe\u0301 isn't bad. It rains; we stay.", "Don't go!"] * 2, kind="words", lowercase=True
)


def words_of(text: str, **settings: object) -> list[list[str]]:
    document = encode_document(ENGLISH, text, **settings)
    assert document.text == text
    return [[text[a:b] for a, b in sentence.offsets] for sentence in document.sentences]


def test_d10_offsets_are_those_of_the_original() -> None:
    text = "\ufeff The  cafe\u0301\u200b isn't BAD.\r\n\r\n“Don't go!”  Zebra"
    assert words_of(text) == [
        ["The", "cafe\u0301", "isn't", "BAD", "."],
        ["“", "Don't", "go", "!", "”"],
        ["Zebra"],
    ]


def test_a_word_is_one_token_known_or_not() -> None:
    document = encode_document(ENGLISH, "The zebra isn't (bad).")
    (sentence,) = document.sentences
    known = [identity != Tokenizer.UNK for identity in sentence.ids]
    assert known == [True, False, True, False, True, False, True]
    assert ENGLISH.pieces([sentence.ids[4]]) == ["bad"]  # learnt behind a space


def test_chinese_words_and_subwords() -> None:
    pytest.importorskip("rjieba")
    text = "我喜欢北京。天气很好！"
    chinese = Tokenizer.train([text], kind="chinese")
    document = encode_document(chinese, text)
    cut = [[text[a:b] for a, b in sentence.offsets] for sentence in document.sentences]
    assert cut == [["我", "喜欢", "北京", "。"], ["天气", "很", "好", "！"]]
    subwords = Tokenizer.train([text], kind="bpe", size=40)
    assert "".join(text[a:b] for s in encode_document(subwords, text).sentences
                   for a, b in s.offsets) == text  # fmt: skip


def test_d22_caps_are_counted() -> None:
    text = "It rains. " * 5_100
    document = encode_document(ENGLISH, text)
    assert (len(document.sentences), document.left_out, document.shortened) == (5_000, 100, 0)
    assert document.words == 15_000
    document = encode_document(ENGLISH, "It rains. It rains now, really.", max_words=3)
    assert [len(s.ids) for s in document.sentences] == [3, 3]
    assert (document.left_out, document.shortened) == (0, 1)
    document = encode_document(ENGLISH, "go" * 1_000_000, max_words=2)
    assert (document.words, document.shortened) == (1, 1)


def test_d22_nothing_to_read() -> None:
    assert encode_document(ENGLISH, " \n\u200b ").sentences == ()
    document = encode_document(ENGLISH, "go\n\n  !", spans=[(0, 2), (3, 3), (4, 7)])
    assert [len(s.ids) for s in document.sentences] == [1, 0, 1]
    assert document.sentences[2].offsets == ((6, 7),)


def test_what_is_out_of_range_is_refused() -> None:
    with pytest.raises(UserError, match=r"sentences must be known; got 'mark'; .*marks"):
        encode_document(ENGLISH, "a", rule="mark")
    with pytest.raises(UserError, match="max_words must be at least 1; got 0"):
        encode_document(ENGLISH, "a", max_words=0)
    with pytest.raises(UserError, match="text must be a string, or a list of strings; got bytes"):
        encode_document(ENGLISH, b"a")


@given(st.text(max_size=60))
def test_any_text_is_cut_and_offsets_stay_inside(text: str) -> None:
    document = encode_document(ENGLISH, text, max_sentences=3, max_words=4)
    for sentence in document.sentences:
        assert 0 <= sentence.start < sentence.end <= len(text)
        assert len(sentence.ids) == len(sentence.offsets) <= 4
        for start, end in sentence.offsets:
            assert sentence.start <= start < end <= sentence.end
