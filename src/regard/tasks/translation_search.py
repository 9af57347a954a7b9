"""How a translator turns sentences into hypotheses: which search, of which model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batches import pad
from regard.data.tokens import Tokenizer
from regard.models.decoding import (
    Hypothesis,
    Search,
    forced_each,
)
from regard.models.rescoring import AnySeq2Seq, Seq2SeqPair, pair_search, rescored
from regard.tasks.searching import SYMBOLS, Draw, searched


def hypotheses(
    model: AnySeq2Seq, sources: Sequence[Sequence[int]], search: Search, draw: Draw | None = None
) -> list[list[Hypothesis]]:
    """Translate a batch of encoded sentences, empty ones apart.

    Args:
        model: A model, or a pair.
        sources: The sentences; an empty one has no hypothesis.
        search: How to search.
        draw: How to draw, where translations are not searched for.

    Returns:
        The hypotheses of each sentence.
    """
    filled = [i for i, ids in enumerate(sources) if ids]
    found: list[list[Hypothesis]] = [[] for _ in sources]
    if not filled:
        return found
    device = next(model.parameters()).device
    tokens = pad([sources[i] for i in filled], value=Tokenizer.PAD).to(device)
    with torch.inference_mode():
        several = _found(model, tokens, search, None if draw is None else draw.choose(filled))
    for i, own in zip(filled, several, strict=True):
        found[i] = own
    return found


def _found(
    model: AnySeq2Seq, tokens: Tensor, search: Search, draw: Draw | None
) -> list[list[Hypothesis]]:
    mask = tokens != Tokenizer.PAD
    if isinstance(model, Seq2SeqPair):
        return pair_search(model, tokens, mask, SYMBOLS, search)
    return searched(model, tokens, mask, search, draw)


def aligned(
    model: AnySeq2Seq, source: Sequence[int], written: Sequence[int], search: Search
) -> Hypothesis:
    """Read a given translation as if the model had written it.

    Args:
        model: A model, or a pair.
        source: The encoded sentence; it may be empty.
        written: The encoded translation.
        search: Its penalties are those of the score.

    Returns:
        The translation, with its score and where the model looked.
    """
    read = torch.tensor([source], dtype=torch.long, device=next(model.parameters()).device)
    outputs = [[tuple(written)]]
    with torch.inference_mode():
        mask = torch.ones_like(read, dtype=torch.bool)
        if isinstance(model, Seq2SeqPair):
            said = rescored(model, model.begin(read, mask), outputs, SYMBOLS)
        else:
            said = forced_each(model, model.begin(read, mask), outputs, SYMBOLS)
    return said[0][0].hypothesis(outputs[0][0], search)
