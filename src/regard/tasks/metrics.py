"""Scores of text against references, with signatures that make them comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.errors import DataError, MissingExtraError


class Scored(NamedTuple):
    """A score and how it was measured.

    Args:
        name: "bleu" or "chrf".
        score: The score, of 100.
        signature: sacrebleu's signature.
    """

    name: str
    score: float
    signature: str


def tokenisation(language: str | None) -> str:
    """Return sacrebleu's name for how a language is cut into words for BLEU.

    Args:
        language: A language tag such as "zh" or "zh-Hant", or None.

    Returns:
        "zh", "char" where words are not set apart, else "13a".

    Example:
        >>> tokenisation("zh-CN"), tokenisation("en")
        ('zh', '13a')
    """
    primary = (language or "").replace("_", "-").partition("-")[0].lower()
    names = {"zh": "zh", "ja": "char", "ko": "char", "th": "char", "lo": "char", "km": "char"}
    return names.get(primary, "13a")


def require_sacrebleu() -> Any:
    """Return sacrebleu, or raise where it is not installed.

    Raises:
        MissingExtraError: The extra `translate` is not installed.
    """
    try:
        import sacrebleu  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError(
            "sacrebleu must be installed to score translations. "
            "Run: pip install 'regard[translate]'"
        ) from None
    return sacrebleu


def text_scores(
    written: Sequence[str], references: Sequence[str], *, language: str | None
) -> list[Scored]:
    """Score translations by BLEU and chrF.

    Args:
        written: What was written.
        references: What should have been, in the same order.
        language: Language of both, for BLEU's words.

    Returns:
        BLEU and chrF.

    Raises:
        DataError: The counts differ or are zero: sacrebleu would score what is left.
        MissingExtraError: The extra `translate` is not installed.
    """
    if len(written) != len(references) or not written:
        raise DataError(
            f"translations and references must be equally many; got {len(written)} and "
            f"{len(references)}. Compare the files.",
            where="scores",
        )
    metrics = require_sacrebleu().metrics
    scored = []
    for name, metric in (
        ("bleu", metrics.BLEU(tokenize=tokenisation(language))),
        ("chrf", metrics.CHRF()),
    ):
        result = metric.corpus_score(list(written), [list(references)])
        scored.append(Scored(name, float(result.score), str(metric.get_signature())))
    return scored
