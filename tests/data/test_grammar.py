"""D13 and the promise of the generated language: its alignments are right."""

import pytest

from regard.data.grammar import Example, Grammar
from regard.data.tokens import Tokenizer
from regard.errors import UserError


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return Grammar().sample(4000, seed=1)


@pytest.fixture(scope="module")
def grid() -> list[Example]:
    return Grammar().transitive_grid()


def test_the_sentence_that_all_this_is_about(grid: list[Example]) -> None:
    by_source = {example.source: example for example in grid}
    for source in ("Tom chases Jerry", "Tom chase Jerry"):
        example = by_source[source]
        assert example.target == "汤姆追逐杰瑞"
        assert example.target_words == ("汤姆", "追逐", "杰瑞")
        assert example.sure == example.possible == {(0, 0), (1, 1), (2, 2)}


def test_the_grid_is_whole(grid: list[Example]) -> None:
    grammar = Grammar()
    people, verbs = len(grammar.people), len(grammar.verbs)
    assert len(grid) == len({e.source for e in grid}) == people * (people - 1) * verbs * 2


def find(examples: list[Example], **parts: str) -> Example:
    return next(e for e in examples if all(word in f" {e.source} " for word in parts.values()))


def test_time_and_place_reorder() -> None:
    example = find(Grammar().sample(16_000, seed=2), a=" in the park ", b=" yesterday.", c="ed ")
    words = [w.lower() for w in example.source_words]
    source = {word: place for place, word in enumerate(words)}
    target = {word: place for place, word in enumerate(example.target_words)}
    for english, chinese in (
        ("yesterday", "昨天"), ("in", "里"), ("park", "公园"), (".", "。"),
    ):  # fmt: skip
        assert (source[english], target[chinese]) in example.sure
    assert (source["in"], target["在"]) in example.possible - example.sure
    verb = next(place for word, place in source.items() if word.endswith("ed"))
    assert (verb, target["了"]) in example.possible - example.sure
    assert target["昨天"] < target["在"] < target["里"] < target["了"]


def test_every_alignment_is_sound(examples: list[Example]) -> None:
    for example in examples:
        assert example.sure <= example.possible
        assert all(0 <= i < len(example.source_words) for i, _ in example.possible)
        assert all(0 <= j < len(example.target_words) for _, j in example.possible)
        aligned = {i for i, _ in example.possible}
        free = {w.lower() for i, w in enumerate(example.source_words) if i not in aligned}
        assert free <= {"the"}  # only articles have no counterpart
        assert {j for _, j in example.possible} == set(range(len(example.target_words)))


def test_same_word_same_translation(examples: list[Example]) -> None:
    names = Grammar().people
    for example in examples:
        for i, j in example.sure:
            word = example.source_words[i]
            if word in names:
                assert example.target_words[j] == names[word]


def test_sample_is_deterministic_distinct_and_mixed(examples: list[Example]) -> None:
    assert Grammar().sample(50, seed=1) == examples[:50]
    assert Grammar().sample(50, seed=2) != examples[:50]
    assert len({e.source for e in examples}) == len(examples)
    lengths = [len(e.source_words) for e in examples]
    assert {3, 4, 5, 6, 7, 8, 9} <= set(lengths)
    assert all(e.source[0].isupper() and e.source_words[0][0].isupper() for e in examples)
    stops = sum(e.source.endswith(".") for e in examples) / len(examples)
    assert 0.4 < stops < 0.6


def test_excluded_sentences_never_come(grid: list[Example]) -> None:
    held_out = {example.source for example in grid if "chase" in example.source}
    drawn = Grammar().sample(5000, seed=3, exclude=held_out)
    assert not held_out & {example.source.removesuffix(".") for example in drawn}


def test_too_many_are_refused() -> None:
    small = Grammar(
        people={"Tom": "汤姆", "Jerry": "杰瑞"}, verbs=Grammar().verbs[-1:], thing_verbs=()
    )
    with pytest.raises(UserError, match=r"count must be at most about \d+"):
        small.sample(1000, seed=0, exclude={"Tom remembers Jerry"})
    with pytest.raises(UserError, match="got -1"):
        small.sample(-1, seed=0)


def test_words_are_those_of_the_tokenizer(examples: list[Example]) -> None:
    tokenizer = Tokenizer.train((e.source for e in examples), kind="words")
    for example in examples[:500]:
        assert tokenizer.encode(example.source).tokens == example.source_words


def test_d13_jieba_cuts_the_same_words(examples: list[Example], grid: list[Example]) -> None:
    rjieba = pytest.importorskip("rjieba")
    assert all(tuple(rjieba.cut(e.target)) == e.target_words for e in grid)
    same = sum(tuple(rjieba.cut(e.target)) == e.target_words for e in examples)
    assert same / len(examples) > 0.998  # measured: 1.0
