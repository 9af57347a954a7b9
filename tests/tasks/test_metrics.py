from __future__ import annotations

import builtins
from typing import Any

import pytest

from regard.errors import DataError, MissingExtraError
from regard.tasks.metrics import text_scores, tokenisation


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("zh", "zh"),
        ("zh-Hant", "zh"),
        ("ZH_cn", "zh"),
        ("ja", "char"),
        ("th", "char"),
        ("en", "13a"),
        ("", "13a"),
        (None, "13a"),
    ],
)
def test_d13_bleu_follows_the_language(language: str | None, name: str) -> None:
    assert tokenisation(language) == name


def test_scores_and_signatures() -> None:
    bleu, chrf = text_scores(["the cat sat down"], ["the cat sat down"], language="en")
    assert (bleu.name, chrf.name) == ("bleu", "chrf")
    assert bleu.score == pytest.approx(100.0)
    assert chrf.score == pytest.approx(100.0)
    assert bleu.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.")
    assert chrf.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.")
    assert "tok:zh" in text_scores(["猫追狗"], ["猫追狗"], language="zh-CN")[0].signature


def test_d13_chinese_is_scored_by_character() -> None:
    ours = text_scores(["我今天很高兴来到这里"], ["我今天很高兴来到那里"], language="zh")[0]
    theirs = text_scores(["我今天很高兴来到这里"], ["我今天很高兴来到那里"], language="en")[0]
    assert ours.score > 50
    assert theirs.score < 1


@pytest.mark.parametrize(
    ("written", "references", "counts"), [(["a", "b"], ["a"], "2 and 1"), ([], [], "0 and 0")]
)
def test_unequal_counts_are_refused(written: list[str], references: list[str], counts: str) -> None:
    """By itself sacrebleu scores what is left, 100 for the first of these."""
    with pytest.raises(DataError, match=f"must be equally many; got {counts}"):
        text_scores(written, references, language=None)


def test_c6_without_sacrebleu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name == "sacrebleu":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[translate\]'") as caught:
        text_scores(["a"], ["a"], language=None)
    assert caught.value.exit_code == 3
