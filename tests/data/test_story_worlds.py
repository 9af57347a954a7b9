"""Generated stories: answers follow from the supporting facts, splits share nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.stories import read_stories
from regard.data.story_worlds import world_story, write_world
from regard.errors import UserError


def test_answers_follow_from_the_supporting_facts(tmp_path: Path) -> None:
    (file,) = write_world(tmp_path / "world", {"train": 60}, seed=2)
    stories = read_stories(file)
    assert len(stories.stories) == 60
    assert len(stories) == 300
    two = 0
    for index, question in enumerate(stories.questions):
        told = stories.told(index)
        facts = [told[place] for place in sorted(question.supporting)]
        assert any(question.answer in fact for fact in facts)  # a move to the place
        asked = question.text.removesuffix("?").split()[-1]
        assert any(asked in fact for fact in facts)
        if len(facts) == 2:
            two += 1
            assert {fact.split()[0] for fact in facts} == {facts[0].split()[0]}  # one person
        else:
            later = told[question.supporting[0] + 1 :]
            moves = ("went", "walked", "moved", "came")
            assert not any(line.split()[0] == asked and line.split()[1] in moves for line in later)
    assert two > 50


def beginnings(split: str) -> set[tuple[str, ...]]:
    """All that is told before the first question: what begins one split begins no other."""
    made = (world_story(index, seed=seed, split=split) for index in range(40) for seed in (1, 2))
    return {tuple(story.splitlines()[:2]) for story in made}


def test_a_story_is_a_function_of_seed_and_place_and_stands_in_one_split(tmp_path: Path) -> None:
    assert world_story(3, seed=1) == world_story(3, seed=1)
    assert world_story(3, seed=1) != world_story(3, seed=2)
    splits = {split: beginnings(split) for split in ("train", "dev", "test")}
    assert not splits["train"] & splits["dev"]
    assert not splits["train"] & splits["test"]
    with pytest.raises(UserError, match="did you mean 'train'"):
        world_story(0, seed=1, split="trian")
    write_world(tmp_path, {"dev": 2}, seed=1)
    with pytest.raises(UserError, match="exists already"):
        write_world(tmp_path, {"dev": 2}, seed=1)
    write_world(tmp_path, {"dev": 2}, seed=1, overwrite=True)
