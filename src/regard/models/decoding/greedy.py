"""Greedy decoding: the likeliest token at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.models.decoding.base import (
    Hypothesis,
    S,
    Search,
    Steppable,
    Symbols,
    restricted,
)


@torch.no_grad()
def greedy_search(
    model: Steppable[S], state: S, batch: int, symbols: Symbols, search: Search
) -> list[Hypothesis]:
    """Write the likeliest token at every step, for a batch at once.

    Gives what `beam_search` gives with a beam of 1, without its bookkeeping. Sentences that are
    done leave the batch.

    Args:
        model: The model to step.
        state: Its state before the first token, one hypothesis for each sentence.
        batch: How many sentences.
        symbols: The control tokens.
        search: Minimum and maximum length and the length penalty; the beam is not looked at.

    Returns:
        One hypothesis for each sentence.
    """
    written: list[list[int]] = [[] for _ in range(batch)]
    looks: list[list[Tensor]] = [[] for _ in range(batch)]
    log_probs = [0.0] * batch
    live = list(range(batch))
    tokens = torch.full((batch, 1), symbols.bos)
    for length in range(search.maximum_length + 1):
        if not live:
            break
        step = model.step(tokens, state)
        allowed = restricted(step.log_probs, symbols, search, length)
        best, choice = (part.squeeze(1).cpu() for part in allowed.max(dim=-1))
        weights = step.weights.squeeze(2).cpu()
        for row, sentence in enumerate(live):
            log_probs[sentence] += float(best[row])
            looks[sentence].append(weights[row])
            if choice[row] != symbols.eos:
                written[sentence].append(int(choice[row]))
        kept = (choice != symbols.eos).nonzero().flatten()
        live = [live[row] for row in kept.tolist()]
        tokens = choice[kept].unsqueeze(1)
        state = step.state if len(kept) == len(choice) else step.state.keep(kept, 1)
    return [
        Hypothesis(
            tokens=tuple(written[sentence]),
            log_prob=log_probs[sentence],
            score=search.normalised(log_probs[sentence], len(written[sentence]) + 1),
            weights=torch.stack(looks[sentence], dim=1),
            ended=len(written[sentence]) < search.maximum_length,
        )
        for sentence in range(batch)
    ]
