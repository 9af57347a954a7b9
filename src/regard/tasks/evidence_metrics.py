"""How well weights agree with the places that people marked, all in percent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.tasks.classification_metrics import Numbers, Truths


def evidence_scores(weights: Sequence[Numbers], truth: Sequence[Truths]) -> dict[str, float]:
    """Score weights against marks, document by document.

    `auc` is the chance that a marked item weighs more than one that is not, ties counting half;
    `average_precision` the mean precision at the marked items, from the heaviest on; `f1` that of
    the heaviest items, as many in each document as the share of all marked ones. All are means
    over the documents that have both kinds of items; a half is chance for `auc`.

    Args:
        weights: The weights of each document's items.
        truth: Which of them are marked.

    Returns:
        `auc`, `average_precision`, `f1`, and `documents`, how many there were to score; the rest
        is missing where that is 0.

    References:
        DeYoung et al., ERASER: a benchmark to evaluate rationalized NLP models, 2020.
    """
    pairs = [(w, t) for w, t in zip(weights, truth, strict=True) if t.any() and not t.all()]
    if not pairs:
        return {"documents": 0.0}
    share = sum(int(t.sum()) for _, t in pairs) / sum(t.size for _, t in pairs)
    return {
        "auc": _mean([area(w, t) for w, t in pairs]),
        "average_precision": _mean([average_precision(w, t) for w, t in pairs]),
        "f1": _mean([_f1_of_heaviest(w, t, share) for w, t in pairs]),
        "documents": float(len(pairs)),
    }


def area(weights: Numbers, truth: Truths) -> float:
    """Return the area under the ROC curve: both kinds of items must occur."""
    _, places, counts = np.unique(weights, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # from 1; the mean of those that tie
    marked = int(truth.sum())
    beaten = float(ranks[truth].sum()) - marked * (marked + 1) / 2
    return beaten / (marked * (truth.size - marked))


def average_precision(weights: Numbers, truth: Truths) -> float:
    """Return `Σ_n (R_n - R_{n-1}) P_n` over the weights that occur, the heaviest first."""
    order = np.argsort(-weights, kind="stable")
    last = np.append(np.diff(weights[order]) != 0, True)  # items that tie come in together
    hits, count = np.cumsum(truth[order])[last], np.flatnonzero(last) + 1
    gained = np.diff(hits, prepend=0) / truth.sum()
    return float((gained * hits / count).sum())


def _f1_of_heaviest(weights: Numbers, truth: Truths, share: float) -> float:
    count = max(1, round(share * truth.size))
    chosen = np.argsort(-weights, kind="stable")[:count]
    return 2.0 * int(truth[chosen].sum()) / (count + int(truth.sum()))


def _mean(values: Sequence[float]) -> float:
    return 100.0 * float(np.mean(values))
