"""The bundled models: what they write and where they look."""

from __future__ import annotations

import numpy as np
import pytest

import regard
from regard.data.framing import overlap_share
from regard.data.grammar import Example, Grammar
from regard.data.scenes import Scenes
from regard.tasks.captioning import Captioner
from regard.tasks.classification import DocumentClassifier
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


def test_scenes_are_described_and_every_thing_is_looked_at() -> None:
    captioner = regard.load("scenes", device="cpu")
    assert isinstance(captioner, Captioner)
    scenes = Scenes(most_things=2, smallest=0.25, largest=0.36).sample(60, seed=77, split="test")
    results = captioner([scene.image for scene in scenes])
    right = looked = named = 0
    for scene, result in zip(scenes, results, strict=True):
        right += result.text == scene.caption
        if result.text != scene.caption:
            continue
        edges = np.linspace(0, 96, 9)
        cells = np.array(
            [[x, y, x + 12, y + 12] for y in edges[:-1] for x in edges[:-1]], dtype=float
        )
        for word in scene.words:
            rows = [
                row
                for row, token in enumerate(result.record.written.tokens)
                if token.start < word.end and token.end > word.start
            ]
            best = int(result.record.maps[0].weights[rows].mean(axis=0).argmax())
            named += 1
            looked += any(overlap_share(cells, box)[best] > 0 for box in word.boxes)
    assert right >= 54  # the card says how many of a thousand are
    assert looked >= 0.9 * named


def test_topics_of_software_are_told_and_the_words_that_say_so() -> None:
    classifier = regard.load("topics", device="cpu")
    assert isinstance(classifier, DocumentClassifier)
    wanted = {
        "A card game with animated penguins. It needs no network.": ("games", "game"),
        "It was written in a week. It plays MIDI files through a synthesizer.": ("sound", "MIDI"),
        "A family of fonts. They have serifs.": ("fonts", "fonts"),
        "A small relational database server that speaks SQL.": ("databases", "database"),
        "This package has the documentation. It reads mail from an IMAP server.": ("mail", "mail"),
    }
    results = classifier(list(wanted))
    for result, (label, word) in zip(results, wanted.values(), strict=True):
        assert result.label == label
        sentence = max(result.evidence, key=lambda one: one.weight)
        assert word in [one.text for one in sentence.strongest(3)]


def test_every_card_says_what_the_model_is_not_for() -> None:
    scenes = (regard.tasks.bundled_models()["scenes"] / "card.md").read_text(encoding="utf-8")
    for word in ("generated", "Does not know", "Apache-2.0"):
        assert word in scenes
    topics = (regard.tasks.bundled_models()["topics"] / "card.md").read_text(encoding="utf-8")
    for word in ("Debian", "DFSG", "nothing but descriptions", "Apache-2.0", "macro-F1"):
        assert word in topics


def test_the_card_names_data_and_licence() -> None:
    card = (regard.tasks.bundled_models()["en-zh"] / "card.md").read_text(encoding="utf-8")
    for word in ("Tatoeba", "CC BY 2.0 FR", "generated", "BLEU"):
        assert word in card
