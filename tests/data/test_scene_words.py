"""What stands in a scene is said in one way, and every word knows its region."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.scene_words import COLOURS, LANGUAGES, SHAPES, Box, Thing, describe
from regard.errors import UserError


def at(left: int, top: int, size: int = 10) -> Box:
    return (left, top, left + size, top + size)


CIRCLE = Thing("red", "circle", at(0, 0))
STAR = Thing("orange", "star", at(40, 5))
BELOW = Thing("blue", "heart", at(5, 60))


@pytest.mark.parametrize(
    ("things", "english", "chinese"),
    [
        ([CIRCLE], "a red circle", "一个红色的圆形"),
        ([STAR], "an orange star", "一个橙色的星形"),
        (
            [CIRCLE, STAR],
            "a red circle left of an orange star",
            "一个红色的圆形在一个橙色的星形的左边",
        ),
        (
            [CIRCLE, BELOW],
            "a red circle above a blue heart",
            "一个红色的圆形在一个蓝色的心形的上面",
        ),
        (
            [STAR, Thing("red", "cross", at(35, 70))],  # the lower one is further left
            "an orange star above a red cross",
            "一个橙色的星形在一个红色的十字形的上面",
        ),
        (
            [CIRCLE, BELOW, STAR],
            "a red circle, a blue heart and an orange star",
            "一个红色的圆形、一个蓝色的心形和一个橙色的星形",
        ),
        (
            [Thing("green", "cross", at(x, x)) for x in (0, 20)],
            "two green crosses",
            "两个绿色的十字形",
        ),
        (
            [Thing("pink", "square", at(x, 50 - x)) for x in (0, 20, 40)],
            "three pink squares",
            "三个粉色的正方形",
        ),
        (
            [CIRCLE, STAR, Thing("orange", "star", at(20, 80))],
            "two orange stars and a red circle",
            "两个橙色的星形和一个红色的圆形",
        ),
    ],
)
def test_captions(things: list[Thing], english: str, chinese: str) -> None:
    for order in itertools.permutations(things):
        assert describe(order)[0] == english
        assert describe(order, language="zh")[0] == chinese


def test_the_regions_of_words() -> None:
    caption, words = describe([STAR, CIRCLE])
    assert [(word.text, word.boxes) for word in words] == [
        ("red", (CIRCLE.box,)),
        ("circle", (CIRCLE.box,)),
        ("orange", (STAR.box,)),
        ("star", (STAR.box,)),
    ]
    assert [caption[word.start : word.end] for word in words] == [word.text for word in words]
    _, words = describe([Thing("pink", "square", at(x, x)) for x in (20, 0)], language="zh")
    assert [(word.text, word.boxes) for word in words] == [
        ("粉色", (at(0, 0), at(20, 20))),
        ("正方形", (at(0, 0), at(20, 20))),
    ]


PLACES = st.tuples(st.integers(0, 80), st.integers(0, 80))
THINGS = st.builds(
    lambda colour, shape, place: Thing(colour, shape, at(*place)),
    st.sampled_from(sorted(COLOURS)),
    st.sampled_from(sorted(SHAPES)),
    PLACES,
)


@given(things=st.lists(THINGS, min_size=1, max_size=3), language=st.sampled_from(LANGUAGES))
def test_any_things_are_all_named_and_in_any_order_alike(
    things: list[Thing], language: str
) -> None:
    caption, words = describe(things, language=language)
    assert describe(things[::-1], language=language) == (caption, words)
    assert all(caption[word.start : word.end] == word.text for word in words)
    assert sorted({box for word in words for box in word.boxes}) == sorted({t.box for t in things})
    assert len(words) == 2 * len({(thing.colour, thing.shape) for thing in things})
    assert "  " not in caption
    assert caption == caption.strip()


def test_what_cannot_be_said() -> None:
    with pytest.raises(UserError, match=r"language must be one of scenes; got 'fr'"):
        describe([CIRCLE], language="fr")
    for things in ([], [CIRCLE] * 4):
        with pytest.raises(UserError, match=f"things must be from 1 to 3; got {len(things)}"):
            describe(things)
