"""Which search a translator makes of its settings, drawing, and pairs of decoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, UserError
from regard.models.decoding import Search, generators
from regard.models.rescoring import Seq2SeqPair
from regard.tasks import load
from regard.tasks.searching import Draw, sampling_settings, search_settings
from regard.tasks.settings import DecodingSettings
from regard.tasks.translation import Translator
from regard.tasks.translation_search import hypotheses
from regard.tasks.translation_training import evaluate_translation, train_translation
from regard.training import RunOptions

TEXTS = ["a b c d", "", "f e", "a", "c c b", "d e f a b c"]


@pytest.fixture(scope="module")
def translator(reversal_run: Any) -> Translator:
    found = load(reversal_run.run, device="cpu")
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def pair_run(reversal_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair that has learnt to reverse, trained as the command would."""
    run: Path = tmp_path_factory.mktemp("pair") / "run"
    changes = ["model.rescoring=true", "decoding.coverage_penalty=0.01"]
    train_translation(reversal_run.config, changes, RunOptions(run, quiet=True))
    return run


def test_a_search_is_made_of_the_settings() -> None:
    own = DecodingSettings(
        beam=6, groups=3, diversity=0.2, block_ngrams=2, coverage_penalty=0.1, maximum_length=9
    )
    expected = Search(
        beam=6,
        nbest=2,
        groups=3,
        diversity=0.2,
        block_ngrams=2,
        coverage_penalty=0.1,
        maximum_length=9,
    )
    assert search_settings(own, None, 2) == expected
    assert search_settings(own, None, 7).beam == 9  # so that the groups divide it
    greedy = search_settings(own, 1, 1)
    assert (greedy.beam, greedy.groups, greedy.block_ngrams) == (1, 1, 2)
    with pytest.raises(UserError, match="groups must divide beam; got 3 and 4"):
        search_settings(own, 4, 1)
    with pytest.raises(UserError, match="samples must be from 1 to 1000; got 0"):
        sampling_settings(own, 0)


def drawing(translator: Translator, **own: Any) -> Translator:
    table = {**translator.settings.decoding.model_dump(), "sample": True, **own}
    return translator.searching(DecodingSettings(**table))


def test_what_is_drawn_depends_on_the_seed_and_the_place_alone(translator: Translator) -> None:
    """Not on the batches, nor on where a list of texts was cut."""
    drawn = drawing(translator, temperature=3.0)
    runs = [
        [
            [one.text, *(other.text for other in one.alternatives)]
            for one in drawn(
                TEXTS, nbest=3, batch_size=size, generator=torch.Generator().manual_seed(seed)
            )
        ]
        for size, seed in ((64, 1), (1, 1), (2, 1), (64, 2))
    ]
    assert runs[0] == runs[1] == runs[2] != runs[3]
    generator = torch.Generator().manual_seed(1)
    parts = [*drawn(TEXTS[:2], nbest=3, generator=generator)]
    parts += drawn(TEXTS[2:], nbest=3, generator=generator)
    assert [one.text for one in parts] == [texts[0] for texts in runs[0]]
    assert drawn(TEXTS[0]).text == drawn(TEXTS)[0].text  # by default always the same


def test_a_drawn_translation_has_its_own_probability_and_weights(translator: Translator) -> None:
    drawn = drawing(translator, temperature=2.0)
    for one in drawn(["a b c d e f"], nbest=8)[0].alternatives:
        again = translator.align([one.source], [one.text])[0]
        if again.tokens == one.tokens:
            assert one.log_prob == pytest.approx(again.log_prob, abs=1e-4)
            assert one.score == pytest.approx(again.score, abs=1e-4)
            weights = again.record.weights()
            np.testing.assert_allclose(one.record.weights(), weights, atol=1e-4)
    texts = {one.text for one in drawn(["a b c d e f"], nbest=8)[0].alternatives}
    assert len(texts) > 1


def test_a_beam_that_is_asked_for_is_searched(translator: Translator) -> None:
    drawn = drawing(translator, temperature=5.0)
    assert drawn("a b c d", beam=3).text == translator("a b c d", beam=3).text
    assert drawn("a b c d").text != translator("a b c d").text


def test_nothing_is_drawn_for_an_empty_sentence(translator: Translator) -> None:
    sources = generators(torch.Generator().manual_seed(0), 3)
    draw = Draw(sampling_settings(translator.settings.decoding, 2), sources)
    ids = translator.source.encode("a b").ids
    found = hypotheses(translator.model, [[], ids, []], Search(), draw)
    assert [len(several) for several in found] == [0, 2, 0]


def test_a_translator_that_searches_in_another_way(translator: Translator) -> None:
    blocked = translator.searching(DecodingSettings(beam=3, maximum_length=14, block_ngrams=1))
    assert blocked.model is translator.model
    assert translator("c c b b").tokens == ("b", "b", "c", "c")
    assert len(set(blocked("c c b b").tokens)) == len(blocked("c c b b").tokens)
    covered = translator.searching(
        DecodingSettings(beam=3, maximum_length=14, coverage_penalty=0.5)
    )
    costs = []
    for best in covered(["a b c", "d e f a b"], nbest=3):
        for one in (best, *best.alternatives):
            again = covered.align([one.source], [one.text])[0]
            assert again.score == pytest.approx(one.score, abs=1e-4)
            total = one.log_prob / ((5 + len(one.tokens) + 1) / 6)
            costs.append(total - one.score)
    assert min(costs) > -1e-6
    assert max(costs) > 0.01


def test_a_pair_is_trained_saved_and_loaded(pair_run: Path, reversal_run: Any) -> None:
    translator = load(pair_run, device="cpu")
    assert isinstance(translator.model, Seq2SeqPair)
    result = translator("a b c d e")
    assert result.tokens == ("e", "d", "c", "b", "a")
    assert result.record.weights().argmax(axis=1).tolist() == [4, 3, 2, 1, 0]
    several = translator(TEXTS, nbest=3)
    assert several[1].text == ""
    for one in (several[0], several[5]):
        scores = [one.score, *(other.score for other in one.alternatives)]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
    files = [str(reversal_run.folder / "test.tsv")]
    assert evaluate_translation(str(pair_run), files, device="cpu").scores[0].score > 90


def test_a_pair_reads_a_given_translation_with_both(pair_run: Path) -> None:
    translator = load(pair_run, device="cpu")
    found = translator(["a b c", "f e d c"], beam=3)
    again = translator.align(["a b c", "f e d c"], [one.text for one in found])
    for one, other in zip(found, again, strict=True):
        assert other.log_prob == pytest.approx(one.log_prob, abs=1e-4)
        assert other.score == pytest.approx(one.score, abs=1e-4)
        np.testing.assert_allclose(other.record.weights(), one.record.weights(), atol=1e-4)
    assert not np.isnan(translator.align([""], ["a"])[0].log_prob)


def test_a_pair_draws_nothing(pair_run: Path) -> None:
    with pytest.raises(ConfigError, match="sample must be false for a pair of decoders"):
        drawing(load(pair_run, device="cpu"))
