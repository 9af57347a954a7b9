"""The tables are complete and without slips."""

from regard.data.grammar_words import (
    ADVERBS,
    ANIMALS,
    PEOPLE,
    PERSON_VERBS,
    PLACES,
    PREPOSITIONS,
    THING_VERBS,
    THINGS,
    TIMES,
)

VERBS = [*PERSON_VERBS, *(verb for verb, _ in THING_VERBS)]


def test_sizes_and_no_word_twice() -> None:
    assert len(PEOPLE) >= 12
    assert len(ANIMALS) >= 8
    assert len(THINGS) >= 8
    assert len(PERSON_VERBS) >= 14
    for table in (PEOPLE.values(), [n.chinese for n in ANIMALS], [v.base for v in PERSON_VERBS]):
        assert len(set(table)) == len(list(table))


def test_articles_and_measure_words() -> None:
    for noun in (*ANIMALS, *THINGS):
        assert (noun.article == "an") == (noun.english[0] in "aeiou")
        assert noun.one.startswith("一")
        assert len(noun.one) == 2


def test_regular_forms() -> None:
    for verb in VERBS:
        word, *particle = verb.base.split()
        stem = word.removesuffix("y") + "ie" if word == "carry" else word
        ending = "es" if stem.endswith(("ss", "ch", "sh")) else "s"
        assert verb.third.split() == [stem + ending, *particle]
        assert verb.gerund.split()[0].endswith("ing")
        assert verb.past.split()[1:] == particle
        assert verb.aspect in ("activity", "instant", "state")


def test_things_exist() -> None:
    known = {thing.english for thing in THINGS}
    assert {name for _, names in THING_VERBS for name in names} == known


def test_every_word_stands_once() -> None:
    for table in (PLACES, PREPOSITIONS):
        assert len({english for english, _ in table}) == len(table)
        assert len({chinese for _, chinese in table}) == len(table)


def test_only_chinese_characters() -> None:
    texts = [
        *PEOPLE.values(),
        *(v.chinese for v in VERBS),
        *(c for _, c in (*ADVERBS, *PLACES, *PREPOSITIONS)),
    ]
    texts += [n.chinese for n in (*ANIMALS, *THINGS)] + [c for t in TIMES.values() for _, c in t]
    assert all("\u4e00" <= character <= "\u9fff" for character in "".join(texts))
