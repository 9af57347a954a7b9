"""Read stories with questions about them, as the bAbI tasks have them; never guess."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from regard.data.normalisation import is_blank
from regard.data.text import read_lines
from regard.errors import DataError

_NUMBERED = re.compile(r"([0-9]{1,9})[ \t](.*)", re.DOTALL)


class Question(NamedTuple):
    """A question about a story.

    Args:
        story: Which story of the file.
        known: How many of its sentences were told before.
        text: The question.
        answer: Its answer; one of several words has commas between them.
        supporting: Which sentences of the story the answer follows from, from 0.
        line: Its line in the file, from 1.
    """

    story: int
    known: int
    text: str
    answer: str
    supporting: tuple[int, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Stories:
    """Stories, and the questions about them.

    Args:
        stories: The sentences of each story, without its questions.
        questions: The questions, in the order of the file.
        file: The file that they were read from.
        sha256: Hash of sentences and questions; the same for other line ends or a byte order mark.
    """

    stories: tuple[tuple[str, ...], ...]
    questions: tuple[Question, ...]
    file: str
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for story in self.stories:
            digest.update(json.dumps(story).encode() + b"\n")
        for one in self.questions:
            digest.update(json.dumps(one[:-1]).encode() + b"\n")
        object.__setattr__(self, "sha256", digest.hexdigest())

    def __len__(self) -> int:
        return len(self.questions)

    def where(self, index: int) -> str:
        """Name the place of a question.

        Args:
            index: Which question.

        Returns:
            `file:line`.
        """
        return f"{self.file}:{self.questions[index].line}"

    def told(self, index: int) -> tuple[str, ...]:
        """Return the sentences that were told before a question.

        Args:
            index: Which question.

        Returns:
            The sentences, the oldest first.
        """
        question = self.questions[index]
        return self.stories[question.story][: question.known]


class _Line(NamedTuple):
    """A line of a file: its place, its number in the story, and what it says."""

    where: str
    place: int
    number: int
    text: str


class _Story:
    """A story that is being read."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.numbers: dict[int, int] = {}  # from the number of a line to a sentence
        self.last = 0

    def tell(self, line: _Line) -> None:
        self.numbers[line.number] = len(self.sentences)
        self.sentences.append(line.text.strip())

    def supporting(self, given: str, line: _Line) -> tuple[int, ...]:
        found = []
        for part in given.split():
            if not (part.isascii() and part.isdecimal() and int(part[:10]) in self.numbers):
                raise DataError(
                    "supporting fact must be the number of a sentence before the question; got "
                    f"{part[:40]!r}. Its story tells sentences {_range(self.numbers)}.",
                    where=line.where,
                )
            found.append(self.numbers[int(part[:10])])
        return tuple(dict.fromkeys(found))


def _range(numbers: dict[int, int]) -> str:
    return f"{min(numbers)} to {max(numbers)}, questions left out"


def read_stories(path: str | Path, *, encoding: str = "utf-8-sig") -> Stories:
    r"""Read stories and questions in the format of the bAbI tasks.

    A line is `NUMBER sentence`, or `NUMBER question<TAB>answer<TAB>numbers of supporting facts`;
    the facts may be left out. Numbers count the lines of a story, and a new story begins at 1.

    Args:
        path: The file.
        encoding: How it is encoded.

    Returns:
        The stories and their questions.

    Raises:
        DataError: The file or a line of it is wrong; the line is named.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "story.txt"
        >>> _ = path.write_text("1 Mary is in the garden.\n2 Where is Mary?\tgarden\t1\n")
        >>> read_stories(path).questions[0].answer
        'garden'

    References:
        Weston et al., Towards AI-complete question answering, 2015.
    """
    stories: list[_Story] = []
    questions: list[Question] = []
    for line in _numbered(Path(path), read_lines(path, encoding=encoding)):
        _follow(stories, line)
        if "\t" in line.text:
            questions.append(_question(stories, line))
        else:
            stories[-1].tell(line)
    if not questions:
        raise DataError(
            "file must hold a question, with its answer behind a tab; got 0. Check the path.",
            where=str(path),
        )
    told = tuple(tuple(story.sentences) for story in stories)
    return Stories(told, tuple(questions), str(path))


def _numbered(file: Path, lines: Sequence[str]) -> Iterator[_Line]:
    for place, line in enumerate(lines, start=1):
        if is_blank(line):
            continue
        where = f"{file}:{place}"
        found = _NUMBERED.fullmatch(line)
        if found is None or is_blank(found[2]):
            raise DataError(
                f"line must be a number, a space and a sentence; got {line[:60]!r}. Number the "
                "lines of each story from 1.",
                where=where,
            )
        yield _Line(where, place, int(found[1]), found[2])


def _follow(stories: list[_Story], line: _Line) -> None:
    """Begin a story where the numbers begin again; else they must go on by one."""
    expected = stories[-1].last + 1 if stories else 1
    if line.number == 1:
        stories.append(_Story())
    elif line.number != expected:
        raise DataError(
            f"number must be {expected}, or 1 for a new story; got {line.number}. Is a line "
            "missing?",
            where=line.where,
        )
    stories[-1].last = line.number


def _question(stories: Sequence[_Story], line: _Line) -> Question:
    story = stories[-1]
    text, answer, *facts = line.text.split("\t")
    if is_blank(text) or is_blank(answer) or len(facts) > 1:
        raise DataError(
            "question must be text, answer and supporting facts with a tab between; got "
            f"{line.text[:60]!r}. Look for a missing or an extra tab.",
            where=line.where,
        )
    if not story.sentences:
        raise DataError(
            "question must have a story before it; got 0 sentences. Tell the story first.",
            where=line.where,
        )
    supporting = story.supporting(facts[0] if facts else "", line)
    known = len(story.sentences)
    return Question(len(stories) - 1, known, text.strip(), answer.strip(), supporting, line.place)


def read_story(path: str | Path, *, encoding: str = "utf-8-sig") -> tuple[str, ...]:
    """Read one story to ask about: a sentence a line, numbered as bAbI has them or not.

    Args:
        path: The file.
        encoding: How it is encoded.

    Returns:
        The sentences; questions with answers are left out.

    Raises:
        DataError: The file is wrong, or holds several stories.
    """
    lines = [line for line in read_lines(path, encoding=encoding) if not is_blank(line)]
    return story_of(lines, where=str(path))


def story_of(lines: Sequence[str], *, where: str) -> tuple[str, ...]:
    """Take the sentences of one story from lines, as `read_story` does.

    Args:
        lines: The lines.
        where: The place that errors name.

    Returns:
        The sentences.

    Raises:
        DataError: There are several stories.
    """
    matches = [_NUMBERED.fullmatch(line) for line in lines]
    if not (lines and all(matches) and matches[0] is not None and matches[0][1] == "1"):
        return tuple(line.strip() for line in lines)
    stories: list[_Story] = []
    for line in _numbered(Path(where), lines):
        _follow(stories, line)
        if "\t" not in line.text:
            stories[-1].tell(line)
    if len(stories) > 1:
        raise DataError(
            f"file must hold one story to be asked about; got {len(stories)}. Keep one of them.",
            where=where,
        )
    return tuple(stories[0].sentences)
