import unicodedata
import xml.etree.ElementTree as ET
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.pictures import lettering


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tom", "Tom"),
        ("", "∅"),
        ("  ", "␣␣"),
        ("\u3000", "␣"),
        ("\n", "␊"),
        ("a\tb", "a␉b"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x9b", "⟨009B⟩"),
        ("\u202e", "⟨202E⟩"),
        ("\u200b", "⟨200B⟩"),
        ("\u200d", "⟨200D⟩"),
        ("\u2028", "⟨2028⟩"),
        ("\ud800", "\ufffd"),
        ("\ue000", "⟨E000⟩"),
        ("\uffff", "⟨FFFF⟩"),
        ("\u0301", "◌\u0301"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("می\u200cروم", "می\u200cروم"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text, shown):
    assert lettering.visible(text) == shown


@given(st.text(st.characters()))
def test_visible_text_is_safe_in_a_terminal_and_legal_in_xml(text):
    shown = lettering.visible(text)
    assert shown
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Co") for c in shown)
    assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLI", "PDI") for c in shown)
    assert ET.fromstring(f"<a>{escape(shown)}</a>").text == shown


@given(st.text(st.characters()), st.integers(1, 30), st.sampled_from(["left", "right", "centre"]))
def test_padded_text_has_exactly_the_width(text, width, align):
    assert lettering.cells(lettering.pad(lettering.visible(text), width, align=align)) == width


def test_a_very_long_token_is_cut():
    assert lettering.visible("a" * 10_000) == "a" * 200 + "…"


def test_only_right_to_left_text_is_isolated():
    assert lettering.isolate("Tom 汤姆") == "Tom 汤姆"
    assert lettering.isolate("טום") == "\u2068טום\u2069"


@pytest.mark.parametrize(
    ("text", "expected"), [("Tom", False), ("12 طارد", True), ("a שלום", False), ("123", False)]
)
def test_the_first_letter_sets_the_direction(text, expected):
    assert lettering.is_right_to_left(text) is expected
