"""Answers about stories: what is said, where it was looked for, and how it is shown."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.data.story_numbers import StoryWords
from regard.errors import UserError
from regard.models.memory_network import MemoryNetwork, MemoryNetworkSettings
from regard.pictures import Record, render_html, render_svg, render_terminal
from regard.tasks.answering import Answerer
from regard.tasks.answering_settings import AnswererSettings

STORY = ["Mary went to the garden.", "Tom went to the hall.", "Mary took the milk."]


@pytest.fixture(scope="module")
def answerer() -> Answerer:
    """One that has learnt nothing."""
    torch.manual_seed(1)
    model = MemoryNetworkSettings(memory=4)
    words = StoryWords(
        ["garden", "hall", "mary", "milk", "the", "to", "tom", "took", "went", "where"],
        ["apple,milk", "garden", "hall"],
    )
    settings = AnswererSettings(
        task="answering",
        language="en",
        kind="words",
        words=list(words.words),
        answers=list(words.answers),
        restarts=1,
        model=model,
    )
    network = MemoryNetwork(model, words=words.size, answers=words.answer_ids)
    return Answerer(network, words, settings, name="mine")


def test_an_answer_says_how_likely_it_is_and_where_it_was_looked_for(answerer: Answerer) -> None:
    found = answerer(STORY, "Where is Mary?")
    assert found.answer in found.probabilities
    assert found.probability == max(found.probabilities.values())
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert found.sentences == tuple(STORY)
    assert found.weights.shape == (3, 3)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, rtol=1e-5)
    assert not found.truncated
    rows = [list(map(float, hop)) for hop in found.record.maps[0].weights]
    np.testing.assert_allclose(rows, found.weights)
    assert [token.text for token in found.record.written.tokens] == ["hop 1", "hop 2", "hop 3"]
    assert [token.text for token in found.record.read_text().tokens] == STORY
    assert found.record.details["answer"] == found.answer
    assert found.record.details["model"] == "mine"


def test_weights_are_those_of_the_sentences_in_their_order(answerer: Answerer) -> None:
    """The newest sentence is the first slot: turned round, the weights must go with the lines."""
    numbered = answerer.number
    found = answerer(STORY, "Where is Mary?")
    from regard.data.stories import Question, Stories

    stories = Stories((tuple(STORY),), (Question(0, 3, "Where is Mary?", "", (), 0),), "x")
    slots = answerer.read(numbered(stories).rows([0])).weights[0, 0].numpy()
    np.testing.assert_allclose(found.weights, slots[:, ::-1])
    assert len({round(float(weight), 6) for weight in found.weights[0]}) == 3


def test_lists_in_lists_out_and_a_text_is_its_lines(answerer: Answerer) -> None:
    several = answerer("\n".join([*STORY, "", " "]), ["Where is Mary?", "Where is Tom?"])
    assert [one.question for one in several] == ["Where is Mary?", "Where is Tom?"]
    single = answerer(STORY, "Where is Tom?")
    np.testing.assert_allclose(several[1].weights, single.weights, rtol=1e-5)
    assert several[1].probability == pytest.approx(single.probability, rel=1e-5)
    assert answerer(STORY, []) == []


def test_supporting_sentences_are_marked(answerer: Answerer) -> None:
    record = answerer(STORY, "Where is the milk?", supporting=[0, 2]).record
    marked = [token.text.startswith("* ") for token in record.read_text().tokens]
    assert marked == [True, False, True]
    assert record.details["supporting facts"] == "lines 1, 3, marked *"
    with pytest.raises(UserError, match="from 0 to 2; got 3"):
        answerer(STORY, "Where?", supporting=[3])


def test_only_the_last_sentences_are_remembered(answerer: Answerer) -> None:
    long = [f"Tom went to the hall {n}." for n in range(3)] + STORY
    found = answerer(long, "Where is Mary?", supporting=[0, 3])
    assert found.truncated
    assert found.sentences == tuple(long[2:])
    assert found.record.details["supporting facts"] == "lines 2, marked *"


def test_no_story_and_unknown_words_are_no_trouble(answerer: Answerer) -> None:
    for story, question in (([], "Where is Mary?"), (["???"], "Qui?"), (STORY, "")):
        found = answerer(story, question)
        assert np.isfinite(found.probability)
        assert found.weights.shape == (3, len(story))
        for render in (render_terminal, render_svg, render_html):
            assert render(found.record)
        assert Record.from_json(found.record.to_json()).maps[0].name == "hops"


def test_the_pictures_hold_lines_and_hops(answerer: Answerer) -> None:
    record = answerer(STORY, "Where is Mary?", supporting=[0]).record
    for drawn in (render_svg(record), render_html(record), render_terminal(record, width=200)):
        assert "hop 3" in drawn
        assert "* Mary went" in drawn
