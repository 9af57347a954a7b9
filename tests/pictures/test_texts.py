"""Documents: sentences that follow each other and hold every token once."""

import numpy as np
import pytest

from regard.errors import ShapeError, UserError
from regard.pictures import Document, Map, Passage, Record, Text, Token

TOKENS = (Token("It", 0, 2), Token("rains", 3, 8), Token("Still", 10, 15))
SENTENCES = (Passage(0, 9, 0, 2), Passage(10, 16, 2, 3))
TEXT = "It rains. Still."
ONE = (Map("words", np.ones((1, 3))),)
WRITTEN = Text("wet", (Token("wet", 0, 3),))


def test_sentences_know_their_text() -> None:
    document = Document(TEXT, TOKENS, "en", [tuple(one) for one in SENTENCES])
    assert document.sentences == SENTENCES
    assert [document.sentence_text(i) for i in (0, 1)] == ["It rains.", "Still."]
    assert isinstance(document, Text)
    assert Document("", (), None, ()).sentences == ()


@pytest.mark.parametrize(
    "sentences",
    [
        (Passage(0, 9, 0, 2), Passage(8, 16, 2, 3)),  # characters stand in two
        (Passage(0, 9, 0, 1), Passage(10, 16, 2, 3)),  # a token in none
        (Passage(0, 9, 0, 3), Passage(10, 16, 3, 3)),  # a token outside its own
        (Passage(0, 9, 0, 2), Passage(10, 17, 2, 3)),  # beyond the text
        (Passage(0, 9, 0, 2), Passage(16, 10, 2, 3)),
        (Passage(0, 9, 0, 2), Passage(10, 16, 2, 4)),
        (Passage(-1, 9, 0, 2), Passage(10, 16, 2, 3)),
    ],
)
def test_sentences_that_do_not_fit(sentences: tuple[Passage, ...]) -> None:
    with pytest.raises(UserError, match=r"sentences\[[01]\] must follow the one before"):
        Document(TEXT, TOKENS, "en", sentences)


def test_tokens_that_are_in_no_sentence() -> None:
    with pytest.raises(UserError, match="sentences must hold all 3 tokens; got 2"):
        Document(TEXT, TOKENS, "en", SENTENCES[:1])
    with pytest.raises(UserError, match=r"tokens\[0\] must have 0 <= start"):
        Document("", TOKENS, "en", SENTENCES)


def test_a_record_has_maps_at_both_levels() -> None:
    document = Document(TEXT, TOKENS, "en", SENTENCES)
    over = (Map("sentences", [[0.25, 0.75]]),)
    record = Record("classification", document, WRITTEN, ONE, {}, over)
    assert record.sentence_weights().tolist() == [[0.25, 0.75]]
    assert record.document() is document
    with pytest.raises(UserError, match="sentence_maps must hold at least 1 map"):
        Record("classification", document, WRITTEN, ONE)
    with pytest.raises(ShapeError, match=r"must have shape \(1, 2\)"):
        Record("classification", document, WRITTEN, ONE, {}, ONE)
    plain = Text(TEXT, TOKENS)
    with pytest.raises(UserError, match=r"sentence_maps must be empty .* got 1"):
        Record("classification", plain, WRITTEN, ONE, {}, over)
    with pytest.raises(UserError, match="read must be a document here; got a text"):
        Record("classification", plain, WRITTEN, ONE).sentence_weights()


def test_pieces_are_merged_within_their_sentences() -> None:
    tokens = [Token("sun", 0, 3), Token("ny", 3, 5), Token("days", 6, 10)]
    document = Document("sunnydays", [tokens[0], tokens[1], Token("days", 5, 9)], "en", [
        Passage(0, 5, 0, 2), Passage(5, 5, 2, 2), Passage(5, 9, 2, 3),
    ])  # fmt: skip
    over = (Map("sentences", [[0.5, 0.0, 0.5]]),)
    maps = (Map("words", [[0.4, 0.6, 1.0]]),)
    merged = Record("classification", document, WRITTEN, maps, {}, over).merge_words()
    assert [token.text for token in merged.read.tokens] == ["sunny", "days"]
    assert merged.read.sentences == (
        Passage(0, 5, 0, 1), Passage(5, 5, 1, 1), Passage(5, 9, 1, 2),
    )  # fmt: skip
    np.testing.assert_allclose(merged.weights(), [[1.0, 1.0]])
    several = Text("wetter", (Token("wet", 0, 3), Token("ter", 3, 6)))
    twice = Record(
        "classification", document, several, (Map("w", np.ones((2, 3))),), {},
        (Map("s", [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]),),
    )  # fmt: skip
    assert twice.merge_words().sentence_weights().tolist() == [[0.25, 0.25, 0.5]]
    assert merged.sentence_weights().tolist() == [[0.5, 0.0, 0.5]]
