"""Generated English-Chinese sentence pairs whose word alignment is known.

A small language with what makes alignment worth looking at: time and place stand behind the
English verb and before the Chinese one, articles have no counterpart, 了 belongs to "-ed".
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

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
    Noun,
    Verb,
)
from regard.errors import UserError

Links = frozenset[tuple[int, int]]

_TENSES = {
    "activity": ("present", "bare", "past", "progressive", "future"),
    "instant": ("present", "bare", "past", "future"),
    "state": ("present", "bare"),
}
_MOST_MISSES = 5000  # so many draws in a row without a new sentence: the language is exhausted
_WITH_PLACE = ("present", "bare", "past")  # elsewhere 正在 and 将 would precede the place


class Example(NamedTuple):
    """A sentence pair with the alignment of its words.

    Args:
        source: The English sentence.
        target: The Chinese sentence, without spaces.
        source_words: Its words and its full stop, if it has one.
        target_words: Those of the Chinese sentence.
        sure: Pairs (source word, target word), from 0, that belong together.
        possible: Those, and the pairs that may be counted as belonging together.
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    sure: Links
    possible: Links


class _Part(NamedTuple):
    """Words that stay together in both languages, with their own alignment."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    sure: tuple[tuple[int, int], ...]
    perhaps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Grammar:
    """A generator of sentence pairs.

    Args:
        people: English and Chinese names.
        animals: Nouns that act and are acted on.
        verbs: What people (and, where marked, animals) do to each other.
        thing_verbs: What people do to things, and the things they do it to; may be empty.

    Example:
        >>> example = Grammar().sample(1, seed=5)[0]
        >>> len(example.source_words) >= 3
        True
    """

    people: Mapping[str, str] = field(default_factory=lambda: dict(PEOPLE))
    animals: Sequence[Noun] = ANIMALS
    verbs: Sequence[Verb] = PERSON_VERBS
    thing_verbs: Sequence[tuple[Verb, tuple[str, ...]]] = THING_VERBS

    def sample(self, count: int, *, seed: int, exclude: Set[str] = frozenset()) -> list[Example]:
        """Draw distinct sentence pairs.

        Args:
            count: How many.
            seed: The same seed gives the same pairs.
            exclude: English sentences never to produce, with or without their full stop.

        Returns:
            The pairs, in random order, from three words to about ten.

        Raises:
            UserError: There are not so many distinct sentences.
        """
        if count < 0:
            raise UserError(f"count must not be negative; got {count}. Use 0 or more.")
        generator = random.Random(seed)  # noqa: S311 - no secret
        unwanted = {sentence.removesuffix(".") for sentence in exclude}
        found: dict[str, Example] = {}
        misses = 0
        while len(found) < count:
            misses += 1
            if misses > _MOST_MISSES:
                raise UserError(
                    f"count must be at most about {len(found)}, as many distinct sentences as "
                    f"were found; got {count}. Draw fewer or exclude fewer."
                )
            example = self._draw(generator)
            if example.source not in found and example.source.removesuffix(".") not in unwanted:
                found[example.source] = example
                misses = 0
        return list(found.values())

    def transitive_grid(self) -> list[Example]:
        """Write every person with every verb and every other person.

        Returns:
            "Tom chases Jerry" and "Tom chase Jerry", as a learner writes it, of everyone; without
            a full stop. Made for holding out.
        """
        return [
            _assemble(parts, parts)
            for subject in self.people
            for verb in self.verbs
            for obj in self.people
            if subject != obj
            for tense in ("present", "bare")
            for parts in [[self._person(subject), _predicate(verb, tense), self._person(obj)]]
        ]

    def _draw(self, generator: random.Random) -> Example:
        if self.thing_verbs and generator.random() < 0.3:
            verb, names = generator.choice(self.thing_verbs)
            subject = self._person(generator.choice(list(self.people)))
            noun = generator.choice([thing for thing in THINGS if thing.english in names])
            obj = _noun(noun, definite=generator.random() < 0.5)
        else:
            verb = generator.choice(self.verbs)
            subject, obj = self._two(generator, creatures=verb.creatures)
        tense = generator.choice(_TENSES[verb.aspect])
        core = (subject, _predicate(verb, tense), obj)
        return _sentence(generator, core, tense=tense, steady=verb.aspect == "state")

    def _two(self, generator: random.Random, *, creatures: bool) -> tuple[_Part, _Part]:
        """Choose who does it and to whom; never the same."""
        while True:
            names = generator.sample(list(self.people), 2)
            nouns = generator.sample(self.animals, 2)
            parts = [self._person(name) for name in names]
            for place in (0, 1):
                if creatures and generator.random() < 0.4:
                    definite = place == 0 or generator.random() < 0.6
                    parts[place] = _noun(nouns[place], definite=definite)
            return parts[0], parts[1]

    def _person(self, name: str) -> _Part:
        return _Part((name,), (self.people[name],), ((0, 0),))


def _noun(noun: Noun, *, definite: bool) -> _Part:
    """Write "the cat", 猫, or "a cat", 一只猫, whose 一只 may belong to either word."""
    if definite:
        return _Part(("the", noun.english), (noun.chinese,), ((1, 0),))
    measured = ((0, 0), (1, 0))
    return _Part((noun.article, noun.english), (noun.one, noun.chinese), ((1, 1),), measured)


def _predicate(verb: Verb, tense: str) -> _Part:
    """Put a verb into a tense; 正在 may count as belonging to the verb too, and 了 does so."""
    place = 1 if tense in ("progressive", "future") else 0
    before, form, prefix, suffix = {
        "present": ((), verb.third, (), ()),
        "bare": ((), verb.base, (), ()),
        "past": ((), verb.past, (), ("了",)),
        "progressive": (("is",), verb.gerund, ("正在",), ()),
        "future": (("will",), verb.base, ("将",), ()),
    }[tense]
    sure = [(place, place), *([(0, 0)] if before else [])]
    perhaps = [(1, 0)] if tense == "progressive" else [(0, 1)] if suffix else []
    return _Part((*before, form), (*prefix, verb.chinese, *suffix), tuple(sure), tuple(perhaps))


def _sentence(
    generator: random.Random, core: tuple[_Part, _Part, _Part], *, tense: str, steady: bool
) -> Example:
    """Add time, place, adverb and full stop by chance, in the order of each language."""
    subject, predicate, obj = core
    time, adverb, place = [], [], []
    if TIMES[tense] and not steady and generator.random() < 0.4:
        time = [_whole(*generator.choice(TIMES[tense]))]
    elif tense == "present" and generator.random() < 0.3:
        adverb = [_whole(*(ADVERBS[0] if steady else generator.choice(ADVERBS)))]
    if tense in _WITH_PLACE and not steady and generator.random() < 0.35:
        place = [_place(generator.choice(PREPOSITIONS), generator.choice(PLACES))]
    stop = [_Part((".",), ("。",), ((0, 0),))] if generator.random() < 0.5 else []
    if time and generator.random() < 0.25:
        return _assemble(
            [*time, subject, predicate, obj, *place, *stop],
            [*time, subject, *place, predicate, obj, *stop],
        )
    return _assemble(
        [subject, *adverb, predicate, obj, *place, *time, *stop],
        [subject, *time, *adverb, *place, predicate, obj, *stop],
    )


def _whole(english: str, chinese: str) -> _Part:
    words = tuple(english.split())
    return _Part(words, (chinese,), tuple((i, 0) for i in range(len(words))))


def _place(preposition: tuple[str, str], place: tuple[str, str]) -> _Part:
    """Write "in the park", 在公园里: "in" has two counterparts, 在 for every preposition."""
    english = (preposition[0], "the", place[0])
    return _Part(english, ("在", place[1], preposition[1]), ((0, 2), (2, 1)), ((0, 0),))


def _assemble(english: Sequence[_Part], chinese: Sequence[_Part]) -> Example:
    starts = {id(part): start for part, start in _starts(chinese, 1)}
    sure: set[tuple[int, int]] = set()
    perhaps: set[tuple[int, int]] = set()
    for part, start in _starts(english, 0):
        target = starts[id(part)]
        sure.update((start + i, target + j) for i, j in part.sure)
        perhaps.update((start + i, target + j) for i, j in part.perhaps)
    source_words = [word for part in english for word in part.english]
    source_words[0] = source_words[0][0].upper() + source_words[0][1:]
    target_words = tuple(word for part in chinese for word in part.chinese)
    return Example(
        source=" ".join(source_words).replace(" .", "."),
        target="".join(target_words),
        source_words=tuple(source_words),
        target_words=target_words,
        sure=frozenset(sure),
        possible=frozenset(sure | perhaps),
    )


def _starts(parts: Sequence[_Part], language: int) -> Iterator[tuple[_Part, int]]:
    start = 0
    for part in parts:
        yield part, start
        start += len(part[language])
