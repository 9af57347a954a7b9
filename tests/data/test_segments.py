"""D13: text is cut by a declared segmenter, and the segments cover all of it."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import segments
from regard.data.normalisation import normalise
from regard.data.segments import SEGMENTERS
from regard.errors import MissingExtraError


def cut(kind: str, text: str) -> list[str]:
    return [text[start:end] for start, end, _ in SEGMENTERS[kind](text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tom doesn't run.", ["Tom", "doesn't", "run", "."]),
        ("It’s 1,234.5!", ["It’s", "1,234.5", "!"]),
        ("'quoted'", ["'", "quoted", "'"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया", "।"]),
        ("👨\u200d👩\u200d👧👍🏽🇨🇳", ["👨\u200d👩\u200d👧", "👍🏽", "🇨🇳"]),
        ("<eos>", ["<", "eos", ">"]),
        ("مرحبا، عالم", ["مرحبا", "،", "عالم"]),
        ("a\u200c", ["a\u200c"]),
    ],
)
def test_d13_words(text: str, expected: list[str]) -> None:
    assert cut("words", text) == expected


def test_d13_chinese_words() -> None:
    pytest.importorskip("rjieba")
    assert cut("chinese", "汤姆追逐杰瑞。 你好") == ["汤姆", "追逐", "杰瑞", "。", "你好"]


def test_spaces_are_seen() -> None:
    assert [spaced for *_, spaced in SEGMENTERS["words"]("a (b")] == [True, True, False]
    assert [spaced for *_, spaced in SEGMENTERS["characters"]("a b")] == [False, True]


@pytest.mark.parametrize("kind", SEGMENTERS)
@given(text=st.text(max_size=50))
def test_d13_segments_cover_the_text(kind: str, text: str) -> None:
    if kind == "chinese":
        pytest.importorskip("rjieba")
    clean = normalise(text).text
    assert "".join(cut(kind, clean)) == clean.replace(" ", "")


def test_a_cut_that_loses_text_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_jieba", lambda: lambda run: [run[:1]])
    assert cut("chinese", "汤姆") == ["汤", "姆"]


def test_missing_rjieba_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    segments._jieba.cache_clear()
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[translate\]'") as caught:
        cut("chinese", "汤姆")
    assert caught.value.exit_code == 3
    segments._jieba.cache_clear()
