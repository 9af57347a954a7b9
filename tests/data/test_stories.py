"""Stories in the format of the bAbI tasks: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.stories import read_stories, read_story, story_of
from regard.errors import DataError

TEXT = (
    "1 Mary moved to the bathroom.\n2 John went to the hall.\n3 Where is Mary? \tbathroom\t1\n"
    "4 Mary took milk.\n5 What has Mary?\tmilk,apple\t4 1\n1 Tom sat.\n2 Who sat?\tTom\n"
)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "story.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_numbers_that_begin_again_begin_a_story(tmp_path: Path) -> None:
    found = read_stories(written(tmp_path, TEXT))
    assert [len(story) for story in found.stories] == [3, 1]
    first, second, third = found.questions
    assert (first.text, first.answer, first.supporting) == ("Where is Mary?", "bathroom", (0,))
    assert (second.answer, second.supporting, second.known) == ("milk,apple", (2, 0), 3)
    assert (third.story, third.supporting, third.line) == (1, (), 7)
    assert found.told(0) == ("Mary moved to the bathroom.", "John went to the hall.")
    assert found.where(1).endswith("story.txt:5")
    assert len(found) == 3


def test_the_hash_is_of_what_is_said(tmp_path: Path) -> None:
    plain = read_stories(written(tmp_path, TEXT)).sha256
    marked = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    assert read_stories(written(tmp_path, marked)).sha256 == plain
    assert read_stories(written(tmp_path, TEXT.replace("4 1", "4"))).sha256 != plain


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ("1 A sat.\n3 B sat.\n", 2, "number must be 2, or 1"),
        ("2 A sat.\n", 1, "number must be 1"),
        ("A sat.\n", 1, "must be a number, a space"),
        ("1 \n", 1, "must be a number, a space"),
        ("1 Who?\tA\n", 1, "must have a story before it"),
        ("1 A sat.\n2 Who?\tA\t2\n", 2, "got '2'"),
        ("1 A sat.\n2 Who?\tA\t0\n", 2, "supporting fact must be"),
        ("1 A sat.\n2 Who?\tA\t-1\n", 2, "supporting fact must be"),
        ("1 A sat.\n2 Who?\tA\tone\n", 2, "got 'one'"),
        ("1 A sat.\n2 Who?\tA\t1\n3 Who?\tA\t2\n", 3, "got '2'"),
        ("1 A sat.\n2 Who?\t\t1\n", 2, "text, answer and supporting"),
        ("1 A sat.\n2 Who?\tA\t1\t1\n", 2, "text, answer and supporting"),
    ],
)
def test_d23_a_wrong_line_is_named(tmp_path: Path, text: str, line: int, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read_stories(written(tmp_path, text))
    assert caught.value.where == f"{tmp_path / 'story.txt'}:{line}"


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold a question"):
        read_stories(written(tmp_path, "1 A sat.\n"))
    with pytest.raises(DataError, match="must hold a question"):
        read_stories(written(tmp_path, ""))


def test_a_story_to_ask_about_is_plain_or_numbered(tmp_path: Path) -> None:
    told = ("A sat.", "B ran.")
    assert read_story(written(tmp_path, "A sat.\n\nB ran.\n")) == told
    assert read_story(written(tmp_path, "1 A sat.\n2 Who?\tA\t1\n3 B ran.\n")) == told
    assert read_story(written(tmp_path, "")) == ()
    assert story_of(["3 men sat.", "B ran."], where="here") == ("3 men sat.", "B ran.")
    with pytest.raises(DataError, match="must hold one story"):
        read_story(written(tmp_path, TEXT))
