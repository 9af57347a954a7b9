"""How a model's outputs are searched for, or drawn, for whatever it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.tokens import Tokenizer
from regard.models.decoding import (
    Hypothesis,
    Sampling,
    Search,
    Symbols,
    beam_search,
    greedy_search,
    sample,
)
from regard.models.seq2seq import Seq2Seq
from regard.tasks.settings import DecodingSettings

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


def searched(
    model: Seq2Seq, source: Tensor, mask: Tensor, search: Search, draw: Draw | None = None
) -> list[list[Hypothesis]]:
    """Search for the outputs of a batch, or draw them.

    Args:
        model: The model.
        source: What it reads.
        mask: True where what it attends to is real, one column for each item.
        search: How to search.
        draw: How to draw, where outputs are not searched for.

    Returns:
        The hypotheses of each row.
    """
    batch = len(source)
    state = model.begin(source, mask)
    seen = state.memory[0].mask if state.memory else None  # with what an encoder adds to it
    mask = mask if seen is None else seen
    if draw is not None:
        sampling, sources = draw
        return sample(model, state, SYMBOLS, search, sampling=sampling, sources=sources, mask=mask)
    if search.beam == 1:
        one = greedy_search(model, state, batch, SYMBOLS, search, mask=mask)
        return [[hypothesis] for hypothesis in one]
    return beam_search(model, state, batch, SYMBOLS, search, mask=mask)
