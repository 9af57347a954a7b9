"""Greedy decoding: the likeliest token at every step."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.models.decoding.base import Hypothesis, S, Search, Steppable, Symbols
from regard.models.decoding.constraints import Past, restricted


@torch.no_grad()
def greedy_search(
    model: Steppable[S],
    state: S,
    batch: int,
    symbols: Symbols,
    search: Search,
    *,
    mask: Bool[Tensor, "batch keys"] | None = None,
) -> list[Hypothesis]:
    """Write the likeliest token at every step, for a batch at once.

    Gives what `beam_search` gives with a beam of 1, without its bookkeeping. Sentences that are
    done leave the batch.

    Args:
        model: The model to step.
        state: Its state before the first token, one hypothesis for each sentence.
        batch: How many sentences.
        symbols: The control tokens.
        search: Lengths, penalties and n-grams; the beam and its groups are not looked at.
        mask: True where an item is real, for the coverage penalty; None where all are.

    Returns:
        One hypothesis for each sentence.

    Raises:
        DivergedError: The model says NaN, or leaves nothing that may be written.
        UserError: There is a coverage penalty, and the model does not look at the items.
    """
    past = Past.begin(batch, search, mask)
    outputs = [_Output() for _ in range(batch)]
    live = outputs
    tokens = torch.full((batch, 1), symbols.bos)
    for length in range(search.maximum_length + 1):
        if not live:
            break
        step = model.step(tokens, state)
        allowed = restricted(step.log_probs, symbols, search, length, past.written)
        best, choice = (part.squeeze(1).cpu() for part in allowed.max(dim=-1))
        weights = step.weights.cpu()
        past = past.look(weights)
        covered = past.coverage()
        looked, said, written = weights.squeeze(2), best.tolist(), choice.tolist()
        for row, output in enumerate(live):
            output.add(written[row], said[row], looked[row])
            output.coverage = 0.0 if covered is None else float(covered[row])
        kept = (choice != symbols.eos).nonzero().flatten()
        live = [live[row] for row in kept.tolist()]
        tokens = choice[kept].unsqueeze(1)
        past = past.keep(kept).follow(torch.zeros_like(tokens), tokens)
        state = step.state if len(kept) == len(choice) else step.state.keep(kept, 1)
    return [output.hypothesis(search) for output in outputs]


class _Output:
    """An output while it is written; its last token is the end mark."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.weights: list[Tensor] = []
        self.log_prob = self.coverage = 0.0

    def add(self, token: int, log_prob: float, weights: Float[Tensor, "maps keys"]) -> None:
        self.tokens.append(token)
        self.weights.append(weights)
        self.log_prob += log_prob

    def hypothesis(self, search: Search) -> Hypothesis:
        return Hypothesis(
            tokens=tuple(self.tokens[:-1]),
            log_prob=self.log_prob,
            score=search.scored(self.log_prob, len(self.tokens), self.coverage),
            weights=torch.stack(self.weights, dim=1),
            ended=len(self.tokens) <= search.maximum_length,
        )
