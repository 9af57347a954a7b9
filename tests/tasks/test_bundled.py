"""The bundled English-Chinese model: what it writes and where it looks."""

from __future__ import annotations

import pytest

import regard
from regard.data.grammar import Example, Grammar
from regard.tasks.translation import Translation, Translator

GRAMMAR = Grammar()


@pytest.fixture(scope="module")
def translator() -> Translator:
    loaded: Translator = regard.load("en-zh", device="cpu")
    return loaded


def chosen() -> list[Example]:
    """Every person as subject and as object, and every verb, in both forms."""
    by_words = {example.source_words: example for example in GRAMMAR.transitive_grid()}
    found = []
    people, verbs = list(GRAMMAR.people), GRAMMAR.verbs
    for place, person in enumerate(people):
        verb, other = verbs[place % len(verbs)], people[place - 1]
        for form in (verb.third, verb.base):
            found += [by_words[person, form, other], by_words[other, form, person]]
    for verb in verbs:
        found += [by_words["Tom", form, "Jerry"] for form in (verb.third, verb.base)]
    return found


def looks(result: Translation) -> list[tuple[str, str]]:
    """Name for each written word the word it looks at most."""
    best = result.record.weights().argmax(axis=1)
    read = result.record.read.tokens
    return [(read[int(place)].text, word) for place, word in zip(best, result.tokens, strict=True)]


@pytest.mark.parametrize("source", ["Tom chases Jerry", "Tom chase Jerry"])
def test_tom_chases_jerry(translator: Translator, source: str) -> None:
    result = translator(source)
    assert result.tokens == ("汤姆", "追逐", "杰瑞")
    assert result.text == "汤姆追逐杰瑞"
    verb = source.split()[1]
    assert looks(result) == [("Tom", "汤姆"), (verb, "追逐"), ("Jerry", "杰瑞")]
    weights = result.record.weights()
    assert all(weights[place, place] > 0.9 for place in range(3))


def test_every_person_and_verb_looks_at_its_own_word(translator: Translator) -> None:
    examples = chosen()
    for example, result in zip(examples, translator([e.source for e in examples]), strict=True):
        assert result.text == example.target
        expected = [(example.source_words[s], example.target_words[t]) for s, t in example.sure]
        assert sorted(looks(result)) == sorted(expected)


def test_an_unknown_word_becomes_characters_and_is_shown(translator: Translator) -> None:
    result = translator("Xylophonist chases Jerry")
    assert result.text
    read = result.record.read
    assert [token.text for token in read.tokens][-2:] == ["chases", "Jerry"]
    assert "".join(token.text for token in read.tokens[:-2]) == "Xylophonist"


def test_the_card_names_data_and_licence() -> None:
    card = (regard.tasks.bundled_models()["en-zh"] / "card.md").read_text(encoding="utf-8")
    for word in ("Tatoeba", "CC BY 2.0 FR", "generated", "BLEU"):
        assert word in card
