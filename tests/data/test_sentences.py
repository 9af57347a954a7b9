"""Sentences as spans of the text: English, Chinese, both, and whatever else comes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.normalisation import is_blank
from regard.data.sentences import SENTENCES, by_lines, by_marks, whole


def cut(text: str, rule: str = "marks") -> list[str]:
    return [text[start:end] for start, end in SENTENCES[rule](text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. J. R. Smith left Washington, D.C. last Jan. 5.", "He paid $3.50.", "Was it good?!"],
        ["Yes... no.", "Well... maybe not... who knows?", "See Fig. 3 and e.g. Table 2."],
        ['"Stop." she said.', '"Why?" he asked.', '"Go!"', "(He went.)", "The end"],
        ["It was bad.", "it was worse .", "and then , the end ."],
        ["Acme Inc. sells U.S. 5 kinds.", "In the U.K. they pay.", "Etc.", "Then it stops."],
        ["1. First.", "2. Second point.", "It is 3.", "Version 2.0.1 is out!", "No.", "Why not?"],
        ["I and I.", "Plan B. Smith knows.", "www.example.org/a.b?c=d is a page."],
    ],
)
def test_english(sentences: list[str]) -> None:
    assert cut(" ".join(sentences)) == sentences
    assert cut("  " + "\n".join(sentences) + "\n") == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["这家店很好！！", "我很喜欢。", "“真的吗？”", "他说。", "价格3.5元……", "不贵；", "服务好"],
        ["他说：“走吧。”，然后走了。", "《书》（很好。）", "你好.", "再见!", "真的?", "真的"],
        ["我看了iPhone 5.5寸。", "Not bad.", "很好。"],
    ],
)
def test_chinese(sentences: list[str]) -> None:
    joined = "".join(sentences)
    assert cut(joined.replace("Not", " Not")) == sentences


def test_empty_lines_and_line_breaks() -> None:
    assert cut("A title\n\nhard\nwrapped text. Next\r\n\r\nlast") == [
        "A title",
        "hard\nwrapped text.",
        "Next",
        "last",
    ]
    assert cut("第一行\n第二行\nthird\nfourth") == ["第一行", "第二行", "third\nfourth"]
    assert cut("Good.<br /><br />It was <b>bad</b><BR>now<p>so it. goes</p>x < br > y") == [
        "Good.",
        "It was <b>bad</b>",
        "now",
        "so it.",
        "goes",
        "x < br > y",
    ]
    assert cut(" one. two\n\n \n three ", "lines") == ["one. two", "three"]
    assert cut(" one. two\n\nthree ", "none") == ["one. two\n\nthree"]


@pytest.mark.parametrize("text", ["", " \n\t\n ", "\u200b\n\u200b"])
def test_nothing_has_no_sentence(text: str) -> None:
    assert list(by_marks(text)) == list(by_lines(text)) == list(whole(text)) == []


@given(st.text(st.sampled_from("aB1 .!?…。？\n\r\t\u200b\"”)」，:的'-\u0301")))
def test_spans_are_in_order_and_lose_nothing(text: str) -> None:
    for rule, splitter in SENTENCES.items():
        reached = 0
        for start, end in splitter(text):
            assert reached <= start < end <= len(text), rule
            assert is_blank(text[reached:start])
            assert text[start:end] == text[start:end].strip()
            reached = end
        assert is_blank(text[reached:])


@pytest.mark.parametrize(
    "text",
    [". " * 25_000, "." * 50_000, "\n" * 50_000, "a." * 25_000, "." + '"' * 50_000, "x" * 50_000,
     ("." + " " * 500) * 100, "1" * 50_000 + ". ", "。" * 50_000, "a\n" * 25_000,
     "<br " * 20_000, "<br>" * 20_000],
    ids=lambda text: repr(text[:3]),
)  # fmt: skip
def test_s11_long_runs_take_no_time(text: str) -> None:
    begun = time.process_time()
    list(by_marks(text))
    assert time.process_time() - begun < 2
