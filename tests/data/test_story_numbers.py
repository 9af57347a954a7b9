"""Stories as numbers: words, answers, and what is remembered before a question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.data.stories import Stories, read_stories
from regard.data.story_numbers import NumberedStories, StoryWords
from regard.errors import UserError

TEXT = (
    "1 Mary sat.\n2 Tom ran home.\n3 Mary sat.\n4 Who ran?\tTom\t2\n5 Tom sat.\n"
    "6 What?\tmilk,apple\t1 5\n1 Mary ran.\n2 Who ran?\tmary\t1\n"
)


@pytest.fixture
def stories(tmp_path: Path) -> Stories:
    path = tmp_path / "story.txt"
    path.write_text(TEXT)
    return read_stories(path)


def test_words_and_answers_share_ids(stories: Stories) -> None:
    words = StoryWords.learn([stories])
    assert words.words == ("home", "mary", "ran", "sat", "tom", "what", "who")
    assert words.answers == ("mary", "milk,apple", "tom")
    assert words.answer_ids == (3, 9, 6)
    assert words.size == 10
    assert words.encode("Tom, TOM slept!") == [6, 6, 1]
    assert words.answer_place(" Mary ") == 0
    assert words.answer_place("bread") == -1  # d23: counted wrong, no crash
    assert StoryWords.learn([stories], kind="characters").encode("Ma")[0] > 1
    with pytest.raises(UserError, match="did you mean 'words'"):
        StoryWords([], [], kind="word")


def test_the_newest_sentence_comes_first_and_the_oldest_are_forgotten(stories: Stories) -> None:
    words = StoryWords.learn([stories])
    numbered = NumberedStories(stories, words, memory=3)
    assert numbered.sizes.tolist() == [3, 3, 1]
    assert numbered.forgotten == 1
    rows = numbered.rows([0, 1, 2])
    told = [[[i for i in rows.sentences[slot] if i] for slot in memory] for memory in rows.memory]
    sat, ran = words.encode("Mary sat."), words.encode("Tom ran home.")
    assert told[0] == [sat, ran, sat]
    assert told[1] == [words.encode("Tom sat."), sat, ran]
    assert told[2] == [words.encode("Mary ran."), [], []]
    assert rows.answers.tolist() == [2, 1, 0]
    assert numbered.supporting(0) == (1,)
    assert numbered.supporting(1) == (0,)  # the other one is forgotten
    assert numbered.where(2).endswith(":8")


def test_rows_hold_each_sentence_once_and_no_more_than_needed(stories: Stories) -> None:
    numbered = NumberedStories(stories, StoryWords.learn([stories]), memory=50)
    rows = numbered.rows([2])
    assert rows.memory.shape == (1, 1)
    assert rows.sentences.shape == (3, 2)  # nothing, a sentence, a question
    assert not rows.sentences[0].any()
    rows = numbered.rows([0, 0])
    assert len(np.unique(rows.sentences, axis=0)) == len(rows.sentences) == 4
    assert numbered.rows([]).memory.shape == (0, 0)
