"""Generated documents whose label hangs on one sentence, and in it on words that are known."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.planted_words import PLANTED, Plants
from regard.data.sentences import Span
from regard.data.splits import check_split, split_of_content
from regard.data.text import read_lines
from regard.errors import DataError, FileFormatError, UserError, did_you_mean
from regard.saving import make_room, write_file
from regard.saving.files import parse_json

OTHER = "other"
"""The label of documents in which nothing decides: none of the others is what is left over."""

_MOST_SENTENCES = 10_000


class Evidence(NamedTuple):
    """What decides a document's label.

    Args:
        sentence: Where the deciding sentence lies in the text.
        words: Where its deciding words lie in the text.
    """

    sentence: Span
    words: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class PlantedDocument:
    """A document with what decides it.

    Args:
        text: The text.
        label: Its label.
        sentences: Where its sentences lie in the text.
        place: Which of them decides, from 0; None where none does.
        evidence: Where that sentence and its deciding words lie.
    """

    text: str
    label: str
    sentences: tuple[Span, ...]
    place: int | None
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class Planted:
    """A generator of letters to a shop, of which one sentence says what they are about.

    All sentences are made alike, and the words that decide stand in no other: the others say
    something else of the same things. In some letters nothing decides, and their label is `OTHER`;
    else one of the labels could be told by the absence of the rest. A document is a function of
    seed, split and index alone, and what it says decides its split, so that none stands in two,
    whatever their seeds.

    Args:
        language: `en` or `zh`.
        shortest: Fewest sentences of a document.
        longest: Most sentences.

    Raises:
        UserError: There is no such language, or a number is out of range.

    Example:
        >>> document = Planted().document(0, seed=1)
        >>> start, end = document.evidence.words[0]
        >>> document.label, document.text[start:end]
        ('praise', 'wonderful')
    """

    language: str = "en"
    shortest: int = 4
    longest: int = 12

    def __post_init__(self) -> None:
        if self.language not in PLANTED:
            raise UserError(
                f"language must be known; got {self.language!r}; "
                f"{did_you_mean(self.language, PLANTED)}."
            )
        if not 1 <= self.shortest <= self.longest <= _MOST_SENTENCES:
            raise UserError(
                f"shortest and longest must be from 1 to {_MOST_SENTENCES}, in this order; got "
                f"{self.shortest} and {self.longest}. Change them."
            )

    def document(self, index: int, *, seed: int, split: str = "train") -> PlantedDocument:
        """Write a document.

        Args:
            index: Which one of the seed and the split.
            seed: Other seeds give other documents.
            split: `train`, `dev` or `test`.

        Returns:
            The document.

        Raises:
            UserError: There is no such split.
        """
        check_split(split)
        generator = random.Random(f"{seed}/{split}/{index}")  # noqa: S311 - no secret
        while split_of_content((document := self._write(generator)).text) != split:
            pass
        return document

    def sample(self, count: int, *, seed: int, split: str = "train") -> list[PlantedDocument]:
        """Write the first documents of a seed and a split.

        Args:
            count: How many.
            seed: Other seeds give other documents.
            split: `train`, `dev` or `test`.

        Returns:
            The documents.

        Raises:
            UserError: The count is negative, or there is no such split.
        """
        if count < 0:
            raise UserError(f"count must not be negative; got {count}. Use 0 or more.")
        return [self.document(index, seed=seed, split=split) for index in range(count)]

    def _write(self, generator: random.Random) -> PlantedDocument:
        plants = PLANTED[self.language]
        label = generator.choice([*plants.phrases, OTHER])
        phrase = None if label == OTHER else generator.choice(plants.phrases[label])
        count = generator.randint(self.shortest, self.longest)
        place = None if phrase is None else generator.randrange(count)
        text, evidence = "", None
        spans: list[Span] = []
        for number in range(count):
            start = len(text) + len(plants.space) * bool(text)
            said = phrase if number == place else None
            sentence, words = _sentence(plants, generator, said)
            text = text.ljust(start) + sentence
            spans.append((start, len(text)))
            if number == place:
                evidence = Evidence(spans[-1], tuple((start + a, start + b) for a, b in words))
        return PlantedDocument(text, label, tuple(spans), place, evidence)


def _sentence(
    plants: Plants, generator: random.Random, phrase: str | None
) -> tuple[str, tuple[Span, ...]]:
    """Write a sentence that says the phrase, or something that decides nothing."""
    if phrase is None and generator.random() < 0.4:
        return _filled(generator.choice(plants.asides), plants, generator), ()
    said = phrase or _filled(generator.choice(plants.neutral), plants, generator)
    frame = _filled(generator.choice(plants.frames), plants, generator)
    start = frame.index("{said}")
    sentence = frame.replace("{said}", said)
    if phrase is None:
        return sentence, ()
    spans, place = [], start
    for word in phrase.split(" "):
        spans.append((place, place + len(word)))
        place += len(word) + 1
    return sentence, tuple(spans)


def _filled(frame: str, plants: Plants, generator: random.Random) -> str:
    for name, words in plants.words.items():
        while "{" + name + "}" in frame:
            frame = frame.replace("{" + name + "}", generator.choice(words), 1)
    return frame


def write_planted(
    folder: Path,
    counts: Mapping[str, int],
    *,
    seed: int,
    planted: Planted | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write documents as a person's data would be: a JSONL file for each split.

    Each line has, beside text and label, `evidence`: where the deciding sentence and its deciding
    words lie. `read_evidence` reads it.

    Args:
        folder: Where to write; made where it does not exist.
        counts: How many documents of each split.
        seed: Other seeds give other documents.
        planted: What to write; by default `Planted()`.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The files.

    Raises:
        UserError: A file exists already, or there is no such split.
        EnvironmentFault: Something cannot be written.
    """
    made = planted or Planted()
    files = {Path(folder) / f"{split}.jsonl": split for split in counts}
    make_room(files, overwrite=overwrite)
    for path, split in files.items():
        documents = made.sample(counts[split], seed=seed, split=split)
        write_file(path, "".join(map(_line, documents)), overwrite=overwrite)
    return list(files)


def read_evidence(path: str | Path) -> list[Evidence | None]:
    """Read what `write_planted` wrote of the evidence.

    Args:
        path: A JSONL file of documents.

    Returns:
        For each line where the deciding sentence and its deciding words lie; None where nothing
        decides.

    Raises:
        DataError: The file or a line of it is wrong.
    """
    found: list[Evidence | None] = []
    for number, text in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            row = parse_json(text.encode(), where)["evidence"]
            found.append(None if row is None else _evidence(row))
        except (FileFormatError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                'evidence must be null, or {"sentence": [start, end], "words": [[start, end], '
                "...]}. Write it anew.",
                where=where,
            ) from error
    return found


def _evidence(row: Any) -> Evidence:
    (first, last), words = row["sentence"], row["words"]
    return Evidence((int(first), int(last)), tuple((int(a), int(b)) for a, b in words))


def _line(document: PlantedDocument) -> str:
    evidence = None if document.evidence is None else document.evidence._asdict()
    row = {"text": document.text, "label": document.label, "evidence": evidence}
    return json.dumps(row, ensure_ascii=False) + "\n"
