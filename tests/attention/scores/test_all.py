"""What holds for every score."""

from __future__ import annotations

import pytest
import torch
from tests.attention.scores.loops import built, in_loops

from regard.attention import SCORES, LocationSensitive, State
from regard.attention.building import sizes_of
from regard.errors import MechanismError

STATEFUL = [name for name in SCORES if SCORES[name].traits.stateful]


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_plain_loops(name):
    score = built(name)
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    found = score(query, score.prepare(key))
    assert found.shape == (2, 3, 5)
    for row in range(2):
        expected = in_loops(score, query[row].tolist(), key[row].tolist())
        assert torch.allclose(found[row], torch.tensor(expected), atol=1e-5)


@pytest.mark.parametrize("name", [*STATEFUL, "cumulative"])
def test_scores_with_a_state_are_those_of_plain_loops(name):
    score = built("location_sensitive" if name == "cumulative" else name)
    if isinstance(score, LocationSensitive):
        score.cumulative = name == "cumulative"
    query, key = torch.randn(1, 2, 4), torch.randn(1, 5, 4)
    weights, earlier = torch.rand(2, 1, 2, 5).softmax(-1).unbind(0)
    state = State(weights, weights + earlier, 2)
    found = score(query, score.prepare(key), state)
    expected = in_loops(score, query[0].tolist(), key[0].tolist(), state)
    assert torch.allclose(found[0], torch.tensor(expected), atol=1e-5)
    assert not torch.allclose(found, score(query, score.prepare(key)), atol=1e-3)


@pytest.mark.parametrize("name", SCORES)
def test_scores_work_on_any_leading_axes(name):
    score = built(name)
    query, key = torch.randn(2, 6, 3, 4), torch.randn(2, 6, 5, 4)
    weights = torch.rand(2, 6, 3, 5)
    state = State(weights, 2 * weights, 2)
    whole = score(query, score.prepare(key), state)
    one = State(weights[1, 2], 2 * weights[1, 2], 2)
    single = score(query[1, 2], score.prepare(key[1, 2]), one)
    assert torch.allclose(whole[1, 2], single, atol=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_half_precision_come_in_float32(name):
    score = built(name).to(torch.bfloat16)
    query = torch.randn(2, 3, 4, dtype=torch.bfloat16)
    assert score(query, score.prepare(query)).dtype == torch.float32
    state = State(torch.rand(2, 3, 3), torch.rand(2, 3, 3), 1)
    assert score(query, score.prepare(query), state).dtype == torch.float32


@pytest.mark.parametrize("name", [name for name in SCORES if not SCORES[name].one_size])
def test_sizes_may_differ(name):
    score = built(name, 4, 6)
    assert score(torch.randn(2, 3, 4), score.prepare(torch.randn(2, 5, 6))).shape == (2, 3, 5)
    assert (score.query_dim, score.key_dim) == (4, 6)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [0, -2])
def test_sizes_below_one_are_refused(name, size):
    for wrong in sizes_of(SCORES[name]):
        sizes = {"query_dim": 4, "key_dim": 4, "hidden_dim": 4}
        given = {n: sizes[n] for n in sizes_of(SCORES[name])} | {wrong: size}
        with pytest.raises(MechanismError, match=f"{wrong} must be at least 1; got {size}"):
            SCORES[name](**given)


@pytest.mark.parametrize("name", SCORES)
def test_parameters_can_be_drawn_anew(name):
    score = built(name)
    before = [parameter.clone() for parameter in score.parameters()]
    if before:
        score.reset_parameters()
    assert not any(torch.equal(a, b) for a, b in zip(before, score.parameters(), strict=True))
