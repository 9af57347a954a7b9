"""D10, D11, S11: one declared normalisation that keeps the place of every character."""

import itertools
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.normalisation import FORMS, normalise
from regard.errors import UserError

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
TRICKY = st.text(
    st.sampled_from(
        "aZ \t\n\r\0<▁_é漢\u0301\u0323\u200b\u200d\u200e\ufeff\u2028\u0085\u3000\ud800👨"
        "\u1100\u1161\u11a8\u09c7\u09be\ufb01\ufdfa\uff21\u00b4\u0130\u03a3"
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("cafe\u0301", "nfc", "café"),
        ("cafe\u0301", "none", "cafe\u0301"),
        ("\uff34\uff4f\uff4d", "nfkc", "Tom"),
        ("\uff34\uff4f\uff4d", "nfc", "\uff34\uff4f\uff4d"),
        ("a\u200bb\ufeffc\u2060d\u202ee\u2069", "nfc", "abcde"),
        ("a\r\nb\x00c\u2028d\u0085e\x0bf\u3000g\u00a0h", "nfc", "a b c d e f g h"),
        ("\u1112\u1161\u11ab", "nfc", "한"),
        ("می\u200cخواهم 👨\u200d👩\u200d👧", "nfc", "می\u200cخواهم 👨\u200d👩\u200d👧"),
        ("a▁b", "nfc", "a_b"),
        ("a\ud800b", "nfc", "a\ufffdb"),
        ("  \t \n", "nfc", ""),
        ("", "nfkc", ""),
        ("\ue000", "nfc", "\ue000"),
    ],
)
def test_d10_d11_cases_by_hand(text: str, form: str, expected: str) -> None:
    assert normalise(text, form=form).text == expected


def test_d10_offsets_lead_to_the_original() -> None:
    text = "\ufeff e\u0301a \r\n \ufb01x\u200b."
    result = normalise(text, form="nfkc")
    assert result.text == "éa fix."
    assert list(result.spans([(i, i + 1) for i in range(7)])) == [
        (2, 4), (4, 5), (5, 9), (9, 10), (9, 10), (10, 11), (12, 13),
    ]  # fmt: skip


def test_clean_text_is_returned_as_it_is() -> None:
    assert normalise("Tom chases Jerry.").starts is None


def test_lowercase_keeps_the_form() -> None:
    assert normalise("STRAẞE İ", lowercase=True).text == "straße i\u0307"
    assert normalise("ℋ", form="nfkc", lowercase=True).text == "h"


@pytest.mark.parametrize("form", FORMS)
@given(text=ANY_TEXT | TRICKY, lowercase=st.booleans())
def test_offsets_are_monotone_and_within_bounds(form: str, text: str, lowercase: bool) -> None:
    result = normalise(text, form=form, lowercase=lowercase)
    spans = result.spans([(i, i + 1) for i in range(len(result.text))])
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(spans))
    assert "  " not in result.text
    assert result.text == result.text.strip()
    assert not set("▁\r\n\t\0\ufeff\u200b") & set(result.text)


@given(text=ANY_TEXT | TRICKY)
def test_d10_letter_by_letter_equals_the_whole(text: str) -> None:
    for form, name in (("nfc", "NFC"), ("nfkc", "NFKC")):
        once = normalise(text, form=form).text
        raw = normalise(text, form="none").text
        if name == "NFC":
            assert once == unicodedata.normalize("NFC", raw)
        assert unicodedata.is_normalized(name, once)


@settings(max_examples=30)
@given(text=st.text(max_size=40))
def test_plain_characters_keep_their_own_place(text: str) -> None:
    result = normalise(text, form="none")
    for place, character in enumerate(result.text):
        ((start, end),) = result.spans([(place, place + 1)])
        assert character in (" ", "_", "\ufffd") or text[start:end] == character


def test_s11_marks_in_any_order_are_linear() -> None:
    start = time.process_time()
    normalise("e" + "\u0301\u0323" * 25_000, form="nfkc")
    assert time.process_time() - start < 1


def test_unknown_form_and_bytes_are_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'nfkc'"):
        normalise("a", form="nfkcc")
    with pytest.raises(Exception, match=r"bytes|b'a'"):  # ours, or the type checker's
        normalise(b"a")  # type: ignore[arg-type]
