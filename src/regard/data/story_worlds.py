"""Generated stories of people, places and things, whose supporting facts are known."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regard.data.splits import check_split, split_of_content
from regard.errors import UserError
from regard.saving import make_room, write_file

PEOPLE = ("Anna", "Ben", "Clara", "David")
PLACES = ("kitchen", "garden", "office", "cellar", "attic", "hall")
THINGS = ("lamp", "book", "apple")
_MOVES = ("went to", "walked to", "moved to", "came to")
_TAKES = ("took", "picked up")
_DROPS = ("dropped", "put down")
_SENTENCES = 10
_EVERY = 2  # sentences between two questions
_TRIES = 1000


@dataclass
class _World:
    """Where everybody and everything is, and the lines that said so."""

    people: dict[str, tuple[str, int]] = field(default_factory=dict)
    holders: dict[str, tuple[str, int]] = field(default_factory=dict)
    things: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)

    def event(self, line: int, chance: random.Random) -> str:
        """Let something happen."""
        person = chance.choice(PEOPLE)
        place, _ = self.people.get(person, ("", 0))
        held = [thing for thing, (holder, _) in self.holders.items() if holder == person]
        near = [thing for thing in THINGS if self._within_reach(thing, place)]
        if held and chance.random() < 0.3:
            return self._drop(person, chance.choice(held), line, chance)
        if near and chance.random() < 0.5:
            thing = chance.choice(near)
            self.holders[thing] = (person, line)
            self.things.pop(thing, None)
            return f"{person} {chance.choice(_TAKES)} the {thing}."
        place = chance.choice([one for one in PLACES if one != place])
        self.people[person] = (place, line)
        return f"{person} {chance.choice(_MOVES)} the {place}."

    def _within_reach(self, thing: str, place: str) -> bool:
        if not place or thing in self.holders:
            return False
        return thing not in self.things or self.things[thing][0] == place

    def _drop(self, person: str, thing: str, line: int, chance: random.Random) -> str:
        place, moved = self.people[person]
        del self.holders[thing]
        self.things[thing] = (place, (moved, line))
        return f"{person} {chance.choice(_DROPS)} the {thing}."

    def question(self, chance: random.Random) -> tuple[str, str, tuple[int, ...]]:
        """Ask for something that is known: question, answer, the lines that it follows from."""
        known = [*self.people, *self.holders, *self.things]
        asked = chance.choice(known)
        if asked in self.people:
            place, line = self.people[asked]
            return f"Where is {asked}?", place, (line,)
        if asked in self.holders:
            holder, taken = self.holders[asked]
            place, moved = self.people[holder]
            return f"Where is the {asked}?", place, (taken, moved)
        place, lines = self.things[asked]
        return f"Where is the {asked}?", place, lines


def world_story(index: int, *, seed: int, split: str = "train") -> str:
    """Write a story and the questions about it, in the format of the bAbI tasks.

    A story is a function of seed, split and index alone, and how it begins decides its split, so
    that no question is asked after the same sentences in two of them.

    Args:
        index: Which story.
        seed: Other seeds give other stories.
        split: "train", "dev" or "test".

    Returns:
        The lines of the story: numbered sentences, and questions with answer and supporting facts.

    Raises:
        UserError: There is no such split.

    Example:
        >>> print(world_story(0, seed=1).splitlines()[0])
        1 Anna went to the cellar.
    """
    check_split(split)
    for attempt in range(_TRIES):
        text = _story(random.Random(f"{seed}/{split}/{index}/{attempt}"))  # noqa: S311
        if split_of_content(_beginning(text)) == split:
            return text
    raise UserError(f"index must give a story of the split; got {index}. Use another seed.")


def _beginning(text: str) -> str:
    """What is told before the first question."""
    return "\n".join(text.split("\n")[:_EVERY])


def _story(chance: random.Random) -> str:
    return "".join(line + "\n" for line in _lines(chance))


def _lines(chance: random.Random) -> Iterator[str]:
    world, number = _World(), 0
    for told in range(1, _SENTENCES + 1):
        number += 1
        yield f"{number} {world.event(number, chance)}"
        if told % _EVERY == 0:
            number += 1
            question, answer, facts = world.question(chance)
            yield f"{number} {question}\t{answer}\t{' '.join(map(str, sorted(facts)))}"


def write_world(
    folder: Path, counts: Mapping[str, int], *, seed: int, overwrite: bool = False
) -> list[Path]:
    """Write generated stories as a person's data would be: a file for each split.

    Args:
        folder: Where to write; made where it does not exist.
        counts: How many stories of each split.
        seed: Other seeds give other stories.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The files.

    Raises:
        UserError: A file exists already, or there is no such split.
        EnvironmentFault: Something cannot be written.
    """
    files = {Path(folder) / f"{split}.txt": split for split in counts}
    make_room(files, overwrite=overwrite)
    for path, split in files.items():
        texts = (world_story(index, seed=seed, split=split) for index in range(counts[split]))
        write_file(path, "".join(texts), overwrite=overwrite)
    return list(files)
