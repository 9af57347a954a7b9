import numpy as np
import pytest

from regard.errors import UserError
from regard.pictures import Map, Record, Text, Token
from regard.pictures.gaze import gazes, number


def test_each_word_is_said_in_words(dog):
    looked = gazes(dog)
    assert [(word.word, word.said) for word in looked.words] == [
        ("a", "top left 0.70"),
        ("brown", "bottom 0.60"),
        ("dog", "everywhere alike 0.05"),
    ]
    assert [word.strongest for word in looked.words] == [0, 4, None]
    assert [round(word.aside, 2) for word in looked.words] == [0, 0, 0.7]
    assert (looked.verdict, looked.drawn) == ("", looked.words)


def test_not_looking_is_part_of_the_scale(dog):
    tops = [word.top for word in gazes(dog).words]
    assert tops == pytest.approx([0.7, 0.6, 0.7])


def test_pieces_are_averaged_and_marks_left_out(picture_of):
    tokens = (Token("do", 0, 2), Token("gs", 2, 4), Token("</s>", 4, 4))
    weights = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    record = Record("t", picture_of(1, 2), Text("dogs", tokens), (Map("m", weights),))
    (word,) = gazes(record).words
    assert word.word == "dogs"
    np.testing.assert_allclose(word.grid, [[0.75, 0.25]])


def test_one_map_or_the_mean_is_looked_at(picture_of):
    maps = (Map("head 1", [[1.0, 0.0]]), Map("head 2", [[0.2, 0.8]]))
    record = Record("t", picture_of(1, 2), Text("a", (Token("a", 0, 1),)), maps)
    assert gazes(record).words[0].said == "left 0.60"
    assert gazes(record, "head 2").words[0].said == "right 0.80"


def test_identical_maps_are_said_and_drawn_once(caption_of):
    row = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    looked = gazes(caption_of(["a"] * 4, weights=[row, row, row + 1e-3, row]))
    assert looked.verdict == "The same for all 4 words: this does not say where each looked."
    assert [word.word for word in looked.drawn] == ["all 4 words"]
    other = [0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
    assert not gazes(caption_of(["a"] * 4, weights=[row, row, other, row])).verdict
    assert not gazes(caption_of(["a"], weights=row)).verdict


def test_a_sentinel_alone_can_make_maps_differ(caption_of):
    weights = [[0.4, 0.2, 0.4], [0.2, 0.1, 0.7]]
    assert not gazes(caption_of(["a", "b"], 1, 2, weights=weights, sentinel=True)).verdict


@pytest.mark.parametrize(
    ("words", "shape", "value", "verdict"),
    [
        (["a", "b"], (2, 3), 1 / 6, "Every cell has the same weight: no word looked"),
        (["a", "b"], (1, 1), 1, "The grid has one cell: every word looked at the whole picture."),
        (["a", "b"], (2, 3), 0, "No word looked at the picture."),
        ([], (2, 3), 1, "Nothing was written."),
    ],
)
def test_maps_that_show_nothing_are_said_and_not_drawn(caption_of, words, shape, value, verdict):
    weights = np.full((len(words), shape[0] * shape[1]), value)
    looked = gazes(caption_of(words, *shape, weights=weights))
    assert looked.verdict.startswith(verdict)
    assert looked.drawn == ()


def test_a_word_that_looked_nowhere_is_said(caption_of):
    weights = [[0, 0, 1.0], [0.9, 0.1, 0], [0, 0, 0]]
    looked = gazes(caption_of(["a", "b", "c"], 1, 2, weights=weights, sentinel=True))
    assert [word.said for word in looked.words] == ["not looking", "left 0.90", "nowhere"]
    assert [word.top for word in looked.words] == pytest.approx([1, 0.9, 1])


def test_one_cell_beside_a_sentinel_is_a_choice(caption_of):
    weights = [[0.9, 0.1], [0.2, 0.8]]
    looked = gazes(caption_of(["a", "b"], 1, 1, weights=weights, sentinel=True))
    assert [word.said for word in looked.drawn] == ["centre 0.90", "centre 0.20"]


def test_a_text_is_refused(chase):
    with pytest.raises(UserError, match="read must be a picture here; got a text"):
        gazes(chase)


@pytest.mark.parametrize(
    ("weight", "text"),
    [(1, "1.00"), (0.005, "0.01"), (0.0049, "0.005"), (0.0001, "0.0001"), (3e-5, "<0.0001")],
)
def test_small_weights_are_not_shown_as_nothing(weight, text):
    assert number(weight) == text


def test_labels_are_said_with_their_probabilities(picture_of, labels_of):
    one = gazes(labels_of(picture_of(1, 2), ["red cat"], [[0.2, 0.8]], probability=0.9712))
    assert (one.unit, one.sentence) == ("label", "red cat (probability 0.97)")
    assert [word.said for word in one.drawn] == ["right 0.80"]
    sure = {"probability": 0.9, "probability of cat": 0.9, "probability of dog": 0.004}
    weights = [[0.2, 0.8], [0.9, 0.1]]
    both = gazes(labels_of(picture_of(1, 2), ["cat", "dog"], weights, **sure))
    assert both.sentence == "cat (probability 0.90), dog (probability 0.004)"
    assert gazes(labels_of(picture_of(1, 2), ["cat"], [[0.2, 0.8]])).sentence == "cat"


@pytest.mark.parametrize(
    ("labels", "shape", "weights", "verdict"),
    [
        ("a", (2, 2), [0.25] * 4, "Every cell has the same weight: none of them decided."),
        ("a", (1, 1), [1.0], "The grid has one cell: the whole picture decided."),
        ("a", (1, 2), [0.0, 0.0], "No cell of the picture has any weight."),
        ("ab", (1, 2), [0.9, 0.1], "The same for all 2 labels: the model looked once, and said "),
    ],
)
def test_labels_whose_maps_show_nothing_of_their_own(
    picture_of, labels_of, labels, shape, weights, verdict
):
    looked = gazes(labels_of(picture_of(*shape), [*labels], [weights] * len(labels)))
    assert looked.verdict.startswith(verdict)
    assert [word.word for word in looked.drawn] == (["all 2 labels"] if len(labels) > 1 else [])


def test_a_caption_is_of_words(dog):
    assert (gazes(dog).unit, gazes(dog).sentence) == ("word", dog.written.text)
