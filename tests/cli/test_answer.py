"""`regard answer`: files, questions, a terminal, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.story_worlds import write_world
from regard.tasks.answering_training import train_answering
from regard.training import RunOptions

CONFIG = """
task = "answering"
restarts = 1
linear_epochs = 0
[data]
train = "train.txt"
[training]
epochs = 1
threads = 1
device = "cpu"
"""
STORY = "Anna went to the hall.\nAnna took the lamp.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has hardly learnt anything, and a story."""
    made = tmp_path_factory.mktemp("answer")
    write_world(made, {"train": 20, "test": 4}, seed=1)
    (made / "config.toml").write_text(CONFIG)
    train_answering(made / "config.toml", [], RunOptions(made / "run", quiet=True))
    (made / "story.txt").write_text(STORY)
    return made


def test_a_question_is_answered_and_the_story_shown(regard: Any, folder: Path) -> None:
    asked = ("answer", folder / "story.txt", "--model", folder / "run", "--question")
    result = regard(*asked, "Where is the lamp?")
    assert result.code == 0, result
    answer, chance = result.out.splitlines()[0].split("\t")
    assert 0 < float(chance) <= 1
    assert "hop 3" in result.out
    plain = regard(*asked, "Where is the lamp?", "--plain")
    assert plain.out == f"{answer}\t{chance}\n"
    several = regard(*asked, "Where is the lamp?", "--question", "Where is Anna?")
    assert len(several.out.splitlines()) == 2


def test_numbered_stories_and_standard_input(regard: Any, folder: Path) -> None:
    lines = b"1 Anna went to the hall.\n2 Where is Anna?\thall\t1\n3 Anna took the lamp.\n"
    model = ("--model", folder / "run", "--question", "Where is the lamp?", "--plain")
    given = regard("answer", "-", *model, stdin=lines)
    assert given.code == 0, given
    assert given.out == regard("answer", folder / "story.txt", *model).out


def test_json_and_pictures(regard: Any, folder: Path, tmp_path: Path) -> None:
    asked = ("answer", folder / "story.txt", "--model", folder / "run")
    result = regard(*asked, "--question", "Where is Anna?", "--json")
    table = json.loads(result.out)
    assert table["sentences"] == STORY.splitlines()
    assert len(table["weights"]) == 3
    assert len(table["record"]["maps"]) == 1
    picture = tmp_path / "look.svg"
    regard(*asked, "--question", "Where is Anna?", "--question", "Where?", "--picture", picture)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["look-1.svg", "look-2.svg"]


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_lines_go_on_with_the_story(regard: Any, folder: Path) -> None:
    asked = ("answer", folder / "story.txt", "--model", folder / "run", "--json")
    typed = Terminal(b"Where is Anna?\n\nAnna went to the attic.\nWhere is Anna?\n")
    result = regard(*asked, stdin=typed)
    assert result.code == 0, result
    first, second = map(json.loads, result.out.splitlines())
    assert first["sentences"] == STORY.splitlines()
    assert second["sentences"] == [*STORY.splitlines(), "Anna went to the attic."]
    assert result.err.startswith("2 sentences.")


def test_what_is_wrong_is_one_line(refused: Any, folder: Path, tmp_path: Path) -> None:
    model = ("--model", folder / "run")
    assert "needs --question" in refused("answer", folder / "story.txt", *model)
    question = ("--question", "Where?")
    assert "one story" in refused("answer", folder / "test.txt", *model, *question)
    assert "cannot be read" in refused("answer", tmp_path / "none.txt", *model, *question)
    line = refused("answer", folder / "story.txt", "--model", "en-zh", *question)
    assert "must be a model that answers" in line
    picture = ("--picture", tmp_path / "look.bmp")
    assert ".svg" in refused("answer", folder / "story.txt", *model, *question, *picture)
