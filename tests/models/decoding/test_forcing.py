from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.models.decoding import forced, forced_each


def test_forced_reads_each_token_before_it_foretells_the_next(table: Any, symbols: Any) -> None:
    model = table(2, seed=1)
    outputs = torch.tensor([[3, 4, 2], [4, 4, 2]])
    log_probs, weights = forced(model, model.begin(), outputs, symbols)
    for row, path in enumerate(outputs.tolist()):
        for place, token in enumerate(path):
            assert float(log_probs[row, place]) == float(model.row(row, tuple(path[:place]))[token])
    assert weights.shape == (2, 1, 3, 2)
    assert weights[0, 0, :, 1].tolist() == [1.0, 1 + 3 * 7, 1 + 3 * 7 + 4 * 49]


OUTPUTS = [[(3, 4, 3), (), (4,)], [], [(4, 4)]]


def test_each_of_many_is_what_forced_says_of_it_alone(table: Any, symbols: Any) -> None:
    model = table(3, seed=4)
    said = forced_each(model, model.begin(), OUTPUTS, symbols)
    assert model.steps == 4
    for sentence, (own, answers) in enumerate(zip(OUTPUTS, said, strict=True)):
        assert len(own) == len(answers)
        for output, answer in zip(own, answers, strict=True):
            read = torch.tensor([[*output, 2]])
            log_probs, weights = forced(model, model.begin([sentence]), read, symbols)
            assert answer.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-6)
            assert torch.equal(answer.weights, weights[0])


def test_each_of_many_outputs_of_a_real_model(model: Any, target: Any, tokens: Any) -> None:
    source = tokens(4, 2, 3)
    outputs = [[(4, 5, 6, 7), (8,)], [(5,), (), (6, 6)], [(7, 4)]]
    with torch.no_grad():
        said = forced_each(model, model.begin(source, source != 0), outputs, target)
        for row, (own, answers) in enumerate(zip(outputs, said, strict=True)):
            alone = source[row : row + 1, : (4, 2, 3)[row]]
            for output, answer in zip(own, answers, strict=True):
                state, read = model.begin(alone, alone != 0), torch.tensor([[*output, 2]])
                log_probs, weights = forced(model, state, read, target)
                assert answer.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-4)
                keys = weights.shape[-1]
                torch.testing.assert_close(answer.weights[..., :keys], weights[0])


@pytest.mark.parametrize("outputs", [[], [[], []]])
def test_nothing_to_force(outputs: Any, table: Any, symbols: Any) -> None:
    model = table(len(outputs), seed=1)
    assert forced_each(model, model.begin(), outputs, symbols) == outputs
