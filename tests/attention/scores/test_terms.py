from __future__ import annotations

import math

import pytest
import torch

from regard.attention import (
    Additive,
    ALiBi,
    Attention,
    Coverage,
    Dot,
    Monotonic,
    MultiHead,
    RelativeBias,
    ScaledDot,
    Sum,
    masks,
    unroll,
)
from regard.attention.scores import TERMS
from regard.errors import MechanismError
from regard.testing import check_attention


def test_alibi_worked_by_hand():
    added = ALiBi(0.5)(torch.arange(1, 3), 3)
    assert added.tolist() == [[-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]]


def test_alibi_of_heads_has_the_papers_slopes():
    added = ALiBi().of_heads(8)(torch.tensor([0]), 2)
    assert added[:, 0, 1].tolist() == [-(2.0**-n) for n in range(1, 9)]


def test_relative_bias_worked_by_hand():
    term = RelativeBias(max_distance=2)
    with torch.no_grad():
        term.bias.copy_(torch.tensor([10.0, 11.0, 12.0, 13.0, 14.0]))
    added = term(torch.tensor([0, 3]), 4)
    assert added.tolist() == [[12.0, 13.0, 14.0, 14.0], [10.0, 10.0, 11.0, 12.0]]
    term.reset_parameters()
    assert (term.bias == 0).all()


def test_a_sum_is_the_score_and_its_terms():
    score, query, key = ScaledDot(), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    relative = RelativeBias(3)
    torch.nn.init.normal_(relative.bias)
    found = Sum(score, relative, ALiBi(0.25))(query, key)
    plain = score(query, key)
    for i in range(3):
        for j in range(5):
            distance = j - (i + 2)  # the last query stands at the last key
            clipped = max(-3, min(3, distance))
            added = relative.bias[clipped + 3] - 0.25 * abs(distance)
            assert torch.allclose(found[:, i, j], plain[:, i, j] + added, atol=1e-6)


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("score", [ScaledDot(), Additive(4, 4, hidden_dim=3)])
def test_sums_conform(score, term):
    check_attention(Attention(Sum(score, term())))
    check_attention(MultiHead(2, 8, score=Sum(score, term())))


@pytest.mark.parametrize("score", ["rotary", Sum(ScaledDot(), ALiBi(), RelativeBias(2))])
def test_a_growing_cache_gives_what_the_whole_sequence_gives(score):
    attention = MultiHead(2, 8, score=score)
    items = torch.randn(2, 6, 8)
    whole = attention(items, items, mask=masks.causal(6))
    cache = None
    for place in range(6):
        fresh = attention.prepare(items[:, place : place + 1])
        cache = fresh if cache is None else cache.append(fresh)
        step = attention(items[:, place : place + 1], cache)
        assert torch.allclose(step.context, whole.context[:, place : place + 1], atol=1e-5)


def test_every_head_has_its_own_terms():
    attention = MultiHead(4, 8, score=Sum(Additive(2, 2, hidden_dim=3), RelativeBias(5), ALiBi()))
    assert isinstance(attention.score, Sum)
    relative, alibi = attention.score.terms
    assert relative.bias.shape == (4, 11)
    assert alibi.slopes.flatten().tolist() == [0.25, 0.0625, 0.015625, 0.00390625]


def test_terms_and_steps_do_not_go_together():
    with pytest.raises(MechanismError, match=r"score must not go step by step.*got Coverage"):
        Sum(Coverage(4, 4, hidden_dim=3), ALiBi())
    with pytest.raises(MechanismError, match=r"selection must not go step.*got Sum and Monotonic"):
        Attention(Sum(Dot(), ALiBi()), Monotonic())
    attention = Attention(Sum(Dot(), ALiBi()))
    with pytest.raises(MechanismError, match=r"as a whole sequence by Attention\(Sum, Softmax\)"):
        unroll(attention, torch.zeros(1, 2, 4), attention.prepare(torch.zeros(1, 2, 4)))


def test_a_sum_of_a_sum_is_one_sum():
    nested = Sum(Sum(ScaledDot(), ALiBi()), RelativeBias(2))
    flat = Sum(ScaledDot(), ALiBi(), RelativeBias(2))
    assert [type(term) for term in nested.terms] == [ALiBi, RelativeBias]
    heads, items = MultiHead(2, 8, score=nested), torch.randn(1, 6, 8)
    plain = MultiHead(2, 8, score=flat)
    plain.load_state_dict(heads.state_dict())
    assert torch.equal(heads(items, items).weights, plain(items, items).weights)
    assert heads.score.terms[0].slopes.flatten().tolist() == [0.0625, 0.00390625]


@pytest.mark.usefixtures("without_shapes")
def test_what_is_no_term_is_not_added():
    for wrong in (torch.nn.Linear(2, 2), Dot()):
        words = f"terms must be Terms.*got {type(wrong).__name__}"
        with pytest.raises(MechanismError, match=words):
            Sum(ScaledDot(), wrong)


def test_settings_are_checked():
    for slope in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(MechanismError, match=f"slope must be positive.*got {slope}"):
            ALiBi(slope)
    with pytest.raises(MechanismError, match="max_distance must be at least 1; got 0"):
        RelativeBias(0)
    for term in (ALiBi(0.5, 2), RelativeBias(2, 2)):
        with pytest.raises(MechanismError, match=r"num_heads must be left out.*got 2"):
            Sum(Dot(), term)(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))
