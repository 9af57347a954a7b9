"""How a translator turns sentences into hypotheses: which search, of which model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.batches import pad
from regard.data.tokens import Tokenizer
from regard.models.decoding import (
    Hypothesis,
    Sampling,
    Search,
    Symbols,
    beam_search,
    forced_each,
    greedy_search,
    sample,
)
from regard.models.rescoring import AnySeq2Seq, Seq2SeqPair, pair_search, rescored
from regard.tasks.translation_settings import DecodingSettings

SYMBOLS = Symbols(
    bos=Tokenizer.BOS, eos=Tokenizer.EOS, banned=(Tokenizer.PAD, Tokenizer.BOS, Tokenizer.UNK)
)


class Draw(NamedTuple):
    """How translations are drawn at random.

    Args:
        sampling: The settings.
        sources: A generator for each sentence.
    """

    sampling: Sampling
    sources: Sequence[torch.Generator]

    def choose(self, indices: Sequence[int]) -> Draw:
        """Return the same for some of the sentences."""
        return Draw(self.sampling, [self.sources[i] for i in indices])


def search_settings(own: DecodingSettings, beam: int | None, nbest: int) -> Search:
    """Return how to search: as the settings say, or with another beam.

    Args:
        own: The settings.
        beam: How many hypotheses are kept; by default the settings' number, and at least `nbest`.
            One has no groups.
        nbest: How many are returned.

    Raises:
        UserError: A number is out of range.
    """
    if beam is None:
        beam = -(-max(own.beam, nbest) // own.groups) * own.groups
    return Search(
        beam=beam,
        nbest=nbest,
        length_penalty=own.length_penalty,
        minimum_length=own.minimum_length,
        maximum_length=own.maximum_length,
        coverage_penalty=own.coverage_penalty,
        block_ngrams=own.block_ngrams,
        groups=1 if beam == 1 else own.groups,
        diversity=own.diversity,
    )


def sampling_settings(own: DecodingSettings, samples: int) -> Sampling:
    """Return how to sample.

    Args:
        own: The settings.
        samples: How many translations of each sentence are wanted.

    Raises:
        UserError: A number is out of range.
    """
    return Sampling(samples, own.temperature, own.top_k, own.top_p)


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
    mask, batch = tokens != Tokenizer.PAD, len(tokens)
    if isinstance(model, Seq2SeqPair):
        return pair_search(model, tokens, mask, SYMBOLS, search)
    state = model.begin(tokens, mask)
    if draw is not None:
        sampling, sources = draw
        return sample(model, state, SYMBOLS, search, sampling=sampling, sources=sources, mask=mask)
    if search.beam == 1:
        one = greedy_search(model, state, batch, SYMBOLS, search, mask=mask)
        return [[hypothesis] for hypothesis in one]
    return beam_search(model, state, batch, SYMBOLS, search, mask=mask)


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
