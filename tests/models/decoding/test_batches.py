"""A sentence alone agrees with itself in a batch of 64 (DESIGN.md, Equality)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.models.decoding import (
    Hypothesis,
    Sampling,
    Search,
    beam_search,
    generators,
    greedy_search,
    sample,
)

TOLERANCE = 1e-4  # of log-probabilities and of weights
SEARCHES = {
    "greedy": Search(beam=1, maximum_length=9, block_ngrams=3),
    "beam": Search(beam=4, nbest=4, maximum_length=9),
    "constraints": Search(
        beam=4, nbest=4, maximum_length=9, block_ngrams=1, coverage_penalty=0.3, minimum_length=1
    ),
    "diverse beam": Search(beam=4, nbest=4, maximum_length=9, groups=2, diversity=0.4),
    "sampling": Search(maximum_length=9),
}


def looks(model: Any) -> bool:
    source = torch.ones(1, 1, dtype=torch.long)
    with torch.no_grad():
        return bool(model.step(source, model.begin(source, source != 0)).weights.shape[1])


def found_by(name: str, model: Any, target: Any) -> Callable[..., list[list[Hypothesis]]]:
    search = SEARCHES[name]
    if not looks(model):
        search = replace(search, coverage_penalty=0.0)

    def call(source: torch.Tensor, sources: list[torch.Generator]) -> list[list[Hypothesis]]:
        mask = source != 0
        with torch.no_grad():
            state, batch = model.begin(source, mask), len(source)
            if name == "greedy":
                one = greedy_search(model, state, batch, target, search, mask=mask)
                return [[hypothesis] for hypothesis in one]
            if name == "sampling":
                sampling = Sampling(samples=3, temperature=1.3, top_k=6, top_p=0.95)
                return sample(model, state, target, search, sampling=sampling, sources=sources)
            return beam_search(model, state, batch, target, search, mask=mask)

    return call


@pytest.mark.parametrize("name", SEARCHES)
def test_a_sentence_alone_and_in_a_batch_of_64(
    name: str, model: Any, tokens: Any, target: Any
) -> None:
    model.bias.data[2] = -0.5
    lengths = [1 + (5 * i) % 9 for i in range(64)]
    source = tokens(*lengths)
    call = found_by(name, model, target)
    everyone = generators(torch.Generator().manual_seed(0), 64)
    together = call(source, everyone)
    assert len({one.tokens for several in together for one in several}) > 1
    for row in range(0, 64, 3):
        own = generators(torch.Generator().manual_seed(0), 64)[row : row + 1]
        alone = call(source[row : row + 1, : lengths[row]], own)[0]
        assert len(alone) == len(together[row])
        for ours, theirs in zip(alone, together[row], strict=True):
            # No margin between two candidates of these models is below the tolerance.
            assert ours.tokens == theirs.tokens
            assert ours.log_prob == pytest.approx(theirs.log_prob, abs=TOLERANCE)
            assert ours.score == pytest.approx(theirs.score, abs=TOLERANCE)
            keys = ours.weights.shape[-1]
            torch.testing.assert_close(
                ours.weights, theirs.weights[..., :keys], atol=TOLERANCE, rtol=0
            )
            assert not theirs.weights[..., keys:].any()
