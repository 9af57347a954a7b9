"""Options that change how translations are searched for or drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.fixture
def translate(regard: Any, reversal_run: Any) -> Any:
    def call(*arguments: object, **own: Any) -> Any:
        return regard("translate", "--model", reversal_run.run, *arguments, **own)

    return call


def test_a_seed_gives_the_same_translations(
    translate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"a b c\n\nd e f\na b c\nf f e\n"
    options = ("--sample", "--temperature", "3", "--nbest", "3")

    def drawn(*own: str) -> list[str]:
        result = translate(*options, *own, stdin=lines)
        assert (result.code, result.err) == (0, "")
        return [line.partition("\t")[2] for line in result.out.splitlines()]

    first = drawn("--seed", "4")
    assert len(first) == 13  # the blank line gives one
    assert drawn("--seed", "5") != first
    assert drawn("--seed", "4", "--batch-size", "1") == first
    monkeypatch.setattr("regard.cli.translate._AT_ONCE", 2)
    assert drawn("--seed", "4") == first


def test_without_a_seed_it_is_0(translate: Any) -> None:
    first = translate("a b c", "--plain", "--sample", "--temperature", "3").out
    again = translate("a b c", "--plain", "--sample", "--temperature", "3", "--seed", "0").out
    assert first == again


@pytest.mark.parametrize("option", [("--top-k", "1"), ("--top-p", "0.01")])
def test_the_likeliest_token_alone_is_greedy(option: tuple[str, str], translate: Any) -> None:
    greedy = translate("a b c d", "c c", "--plain", "--beam", "1").out
    assert translate("a b c d", "c c", "--plain", "--sample", *option).out == greedy


def test_ngrams_and_coverage(translate: Any) -> None:
    assert translate("c c b", "--plain").out == "b c c\n"
    row = json.loads(translate("c c b", "--json", "--block-ngrams", "1").out)
    assert len(set(row["tokens"])) == len(row["tokens"])
    bare = json.loads(translate("a b c d", "--json").out)
    covered = json.loads(translate("a b c d", "--json", "--coverage-penalty", "1.5").out)
    assert covered["translation"] == bare["translation"]
    assert covered["log_prob"] == pytest.approx(bare["log_prob"], abs=1e-5)
    assert covered["score"] < bare["score"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample", "--top-p", "2"], "translate: top_p: must be less than or equal to 1; got"),
        (["--sample", "--top-k", "-1"], "translate: top_k: must be greater than or equal to 0"),
        (["--sample", "--temperature", "0"], "translate: temperature: must be greater than"),
        (["--sample", "--temperature", "nan"], "translate: temperature: must be a finite number"),
        (["--sample", "--beam", "3"], "--sample: draws at random, and --beam searches"),
        (["--sample", "--nbest", "1001"], "invalid value for '--nbest'"),
        (["--block-ngrams", "-2"], "translate: block_ngrams: must be greater than or equal to 0"),
        (["--coverage-penalty", "11"], "translate: coverage_penalty: must be less than or equal"),
        (["--top-k", "3"], "--top-k: counts only where outputs are drawn; add --sample."),
        (["--seed", "3"], "--seed: counts only where outputs are drawn; add --sample."),
    ],
)
def test_what_is_refused(options: list[str], message: str, refused: Any, reversal_run: Any) -> None:
    line = refused("translate", "--model", reversal_run.run, "a b", *options)
    assert message in line
