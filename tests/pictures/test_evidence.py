"""What decided, of a document: the fewest sentences that hold most of the weight."""

import pytest

from regard.errors import UserError
from regard.pictures.evidence import are_even, sentences, strongest


def test_sentences_have_their_words_and_weights(letter) -> None:
    every = sentences(letter)
    assert [(one.index, one.text, round(one.weight, 5)) for one in every] == [
        (0, "It is hot", 0.1), (1, "", 0.0), (2, "The cup broke !", 0.9),
    ]  # fmt: skip
    word = every[2].words[2]
    assert (word.text, word.start, word.end, round(word.weight, 5)) == ("broke", 19, 24, 0.8)
    assert [word.text for word in every[2].strongest(2)] == ["broke", "cup"]
    assert every[1].strongest() == ()


def test_the_fewest_that_hold_the_share(document_of) -> None:
    weights = [0.05, 0.5, 0.3, 0.0, 0.15]
    every = sentences(document_of([["a"]] * 5, weights=weights, words=[[1.0]] * 5))
    assert [one.index for one in strongest(every)] == [1, 2, 4]
    assert [one.index for one in strongest(every, share=0.49)] == [1]
    assert [one.index for one in strongest(every, share=1.0, most=4)] == [1, 2, 4, 0]
    assert [one.index for one in strongest(every, most=2)] == [1, 2]
    assert strongest([]) == ()


@pytest.mark.parametrize(
    ("weights", "even"),
    [
        ([0.5, 0.5], True), ([0.52, 0.48], True), ([0.53, 0.47], False), ([1.0], False),
        ([0.0, 0.0], False), ([0.1] * 10, True), ([0.2, *[0.8 / 9] * 9], False),
    ],
)  # fmt: skip
def test_sentences_of_equal_weight_decide_nothing(document_of, weights, even) -> None:
    words = [[1.0]] * len(weights)
    every = sentences(document_of([["a"]] * len(weights), weights=weights, words=words))
    assert are_even(every) == even


def test_nothing_written_and_nothing_read(document_of) -> None:
    assert sentences(document_of([], weights=[], words=[])) == ()
    with pytest.raises(UserError, match="read must be a document here"):
        sentences(_picture_record())


def _picture_record():
    import numpy as np

    from regard.pictures import Map, Record, Text

    return Record("t", Text("", ()), Text("", ()), (Map("m", np.zeros((0, 0))),))
