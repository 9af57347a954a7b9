"""What a search may write, and what it must remember of its hypotheses to know."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import DivergedError, ShapeError, UserError
from regard.models.decoding.base import Search, Symbols


def restricted(
    log_probs: Float[Tensor, "batch hypotheses vocabulary"],
    symbols: Symbols,
    search: Search,
    length: int,
    written: Int[Tensor, "batch hypotheses length"] | None = None,
) -> Float[Tensor, "batch hypotheses vocabulary"]:
    """Forbid banned tokens, an end that is too early, a token too late, and what repeats.

    Args:
        log_probs: What the model says.
        symbols: The control tokens.
        search: The settings.
        length: How many tokens have been written.
        written: The tokens of each hypothesis, where n-grams are blocked.

    Returns:
        The same with -inf where a token is forbidden.

    Raises:
        DivergedError: The model says NaN, or leaves nothing that may be written.
    """
    allowed = torch.zeros_like(log_probs[0, 0], dtype=torch.bool)
    if length >= search.maximum_length:
        allowed[symbols.eos] = True
    else:
        allowed[:] = True
        allowed[list(symbols.banned)] = False
        allowed[symbols.eos] = length >= search.minimum_length
    left = log_probs.masked_fill(~allowed, -torch.inf)
    if written is not None and length < search.maximum_length:
        repeated = repeating(written, search.block_ngrams, log_probs)
        left = left.masked_fill(repeated, -torch.inf)
        stuck = (left == -torch.inf).all(dim=-1)
        end = log_probs[..., symbols.eos]
        left[..., symbols.eos] = torch.where(stuck, end, left[..., symbols.eos])
    best = left.amax(dim=(1, 2))  # NaN where one is NaN
    if not bool((best > -torch.inf).all()):
        raise DivergedError(
            "probabilities must be numbers and leave a token to write; got NaN or none left for "
            f"token {length + 1}. Look at the model's weights, and at what is banned."
        )
    return left


def repeating(
    written: Int[Tensor, "batch hypotheses length"],
    size: int,
    log_probs: Float[Tensor, "batch hypotheses vocabulary"],
) -> Bool[Tensor, "batch hypotheses vocabulary"]:
    """Find the tokens that would end an n-gram for the second time.

    Args:
        written: The tokens of each hypothesis.
        size: `n`.
        log_probs: What the answer has the shape and the device of.

    Returns:
        True where a token would repeat an n-gram of its hypothesis.

    References:
        Paulus, Xiong and Socher, A deep reinforced model for abstractive summarization, 2018.
    """
    batch, hypotheses, vocabulary = log_probs.shape
    found = torch.zeros(
        batch, hypotheses, vocabulary + 1, dtype=torch.bool, device=log_probs.device
    )
    if written.shape[2] >= size:
        ngrams = written.unfold(2, size, 1)  # (batch, hypotheses, n-grams, size)
        last = written[..., written.shape[2] - size + 1 :].unsqueeze(2)
        same = (ngrams[..., :-1] == last).all(dim=-1)
        ends = torch.where(same, ngrams[..., -1], vocabulary)  # the last place: no token
        found.scatter_(2, ends.to(log_probs.device), True)
    return found[..., :-1]


def coverage(total: Float[Tensor, "*lead keys"]) -> Float[Tensor, "*lead"]:
    """Say how much of the items was looked at: `Σ_j log min(total_j, 1)`.

    An item that got no weight at all counts as one that got the smallest normal float32, so that
    outputs can still be compared.

    Args:
        total: The sum of the weights of each item over all steps; 1 for padding, which then
            counts for nothing.

    Returns:
        Zero where every item was looked at for a whole step, and less elsewhere.

    References:
        Wu et al., Google's neural machine translation system, 2016.
    """
    least = torch.finfo(torch.float32).tiny
    return total.float().clamp(least, 1.0).log().sum(dim=-1)


class Past(NamedTuple):
    """What is remembered of every hypothesis, on the CPU; None where nothing asks for it.

    Args:
        written: Its tokens.
        covered: The sum of the weights of each item so far, and 1 for padding; no keys before
            the first step where no padding is known.
    """

    written: Int[Tensor, "batch hypotheses length"] | None
    covered: Float[Tensor, "batch hypotheses keys"] | None

    @classmethod
    def begin(cls, batch: int, search: Search, mask: Bool[Tensor, "batch keys"] | None) -> Past:
        """Remember what a search's settings ask for.

        Args:
            batch: How many sentences, with one hypothesis each.
            search: The settings.
            mask: True where an item is real.
        """
        written = torch.zeros(batch, 1, 0, dtype=torch.long) if search.block_ngrams else None
        covered = None
        if search.coverage_penalty:
            empty = torch.zeros(batch, 1, 0)
            covered = empty if mask is None else (~mask).float().unsqueeze(1).cpu()
        return cls(written, covered)

    def look(self, weights: Float[Tensor, "batch maps hypotheses keys"]) -> Past:
        """Add where the model looked in a step, the mean of its maps."""
        if self.covered is None:
            return self
        maps, keys = weights.shape[1], weights.shape[3]
        if not maps:
            raise UserError(
                "coverage_penalty must be 0 where the decoder does not look at the items; got a "
                "model without attention. Use 0."
            )
        before = self.covered.shape[2]
        if before not in (0, keys):
            raise ShapeError(
                f"mask must have one column for each item; got {before} and {keys} items. Give "
                "the mask of what the decoder looks at."
            )
        mean = weights.float().mean(dim=1)
        return self._replace(covered=self.covered + mean if before else mean)

    def coverage(self) -> Float[Tensor, "batch hypotheses"] | None:
        """Return the coverage of each hypothesis, or None where nothing asks for it."""
        return None if self.covered is None else coverage(self.covered)

    def follow(
        self, index: Int[Tensor, "batch hypotheses"], tokens: Int[Tensor, "batch hypotheses"]
    ) -> Past:
        """Go on with chosen hypotheses, each with one more token.

        Args:
            index: The place that each came from.
            tokens: The token that each wrote.
        """
        if self.written is None and self.covered is None:
            return self
        rows = torch.arange(index.shape[0]).unsqueeze(-1)
        written, covered = self
        if written is not None:
            written = torch.cat([written[rows, index], tokens.unsqueeze(-1)], dim=-1)
        return Past(written, None if covered is None else covered[rows, index])

    def keep(self, rows: Int[Tensor, " kept"]) -> Past:
        """Keep some sentences and drop the others."""
        written = None if self.written is None else self.written[rows]
        return Past(written, None if self.covered is None else self.covered[rows])
