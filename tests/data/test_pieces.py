"""Learning a vocabulary: bounded, sorted, the same every time."""

import os
import subprocess
import sys

import pytest

from regard.data.pieces import learn
from regard.data.vocabulary import Vocabulary
from regard.errors import DataError, UserError

TEXTS = ["the cat sees the dog", "the dog sees the bird", "a bird sings (sings)"]


def learned(kind: str, texts: list[str] = TEXTS, **changes: int | None) -> Vocabulary:
    settings = {"size": None, "minimum_frequency": 1} | changes
    return learn(texts, kind=kind, normalisation="nfc", lowercase=False, **settings)  # type: ignore[arg-type]


def test_words_come_after_characters_most_frequent_first() -> None:
    pieces = learned("words", ["b b a (c", "bb bb aa aa d"]).pieces
    assert pieces == ("(", "a", "b", "c", "d", "▁", "▁(", "▁a", "▁b", "▁d", "▁aa", "▁bb")


def test_rare_words_are_left_out_and_size_caps() -> None:
    assert "▁cat" not in learned("words", minimum_frequency=2).pieces
    assert "▁dog" in learned("words", minimum_frequency=2).pieces
    everything = learned("words")
    capped = learned("words", size=len(everything.pieces))  # four control ids take room
    assert capped.pieces == everything.pieces[:-4]


@pytest.mark.parametrize("kind", ["words", "characters", "bpe", "unigram"])
def test_all_characters_are_pieces(kind: str) -> None:
    assert {*"".join(TEXTS).replace(" ", ""), "▁"} <= set(learned(kind).pieces)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_keep_to_the_size(kind: str) -> None:
    vocabulary = learned(kind, size=30)
    assert 20 < len(vocabulary.pieces) <= 26
    assert any(len(piece) > 2 for piece in vocabulary.pieces)


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_d12_size_below_the_characters_is_refused_with_both_numbers(kind: str) -> None:
    with pytest.raises(UserError, match=r"size must be from 2\d .* got 5"):
        learned(kind, size=5)


@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_d12_empty_vocabulary_is_refused(texts: list[str]) -> None:
    with pytest.raises(DataError, match="at least one character"):
        learned("words", texts)


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram"])
def test_d7_one_endless_word_does_no_harm(kind: str) -> None:
    vocabulary = learned(kind, ["ab" * 50_000])
    assert max(map(len, vocabulary.pieces)) <= 65


def test_training_is_the_same_in_every_process() -> None:
    code = (
        "from regard.data.tokens import Tokenizer\n"
        "texts = [f'{a}{b} {b}{a}ing un{a}able' for a in 'abcdefgh' for b in 'ijklmno']\n"
        "for kind in ('words', 'bpe', 'unigram'):\n"
        "    print(Tokenizer.train(texts, kind=kind, size=90).sha256)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "TOKENIZERS_PARALLELISM": parallel},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, parallel in (("1", "true"), ("2", "false"), ("3", "true"))
    }
    assert len(outputs) == 1
