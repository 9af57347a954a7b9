from __future__ import annotations

import pytest
import torch

from regard.attention import Attention, MultiHead, Prepared, State, Traits, masks
from regard.errors import ShapeError


def test_traits_are_joined_to_what_holds_for_both():
    order = Traits(permutation_equivariant=False, stateful=True)
    drawn = Traits(normalised=False, stochastic=True, differentiable=False)
    assert order.joined(drawn) == Traits(False, False, True, False, True)
    assert Traits().joined(Traits()) == Traits()


def test_a_state_counts_its_steps_and_sums_its_weights():
    first = State.following(None, torch.tensor([[[0.25, 0.75]]]))
    second = State.following(first, torch.tensor([[[1.0, 0.0]]]))
    assert (first.step, second.step) == (1, 2)
    assert second.weights.tolist() == [[[1.0, 0.0]]]
    assert second.total.tolist() == [[[1.25, 0.75]]]


@pytest.mark.parametrize("lead", [(2,), (2, 4)], ids=["one head", "four heads"])
def test_hypotheses_of_a_state_are_reordered(lead):
    weights = torch.randn(*lead, 3, 5)
    index = torch.tensor([[2, 0, 0, 1], [1, 1, 2, 0]])
    chosen = State(weights, 2 * weights, 6).select(index)
    assert chosen.weights.shape == (*lead, 4, 5)
    assert chosen.step == 6
    for row in range(2):
        for place in range(4):
            old = weights[row, ..., index[row, place], :]
            assert torch.equal(chosen.weights[row, ..., place, :], old)
            assert torch.equal(chosen.total[row, ..., place, :], 2 * old)


@pytest.mark.parametrize("attention", [Attention("dot"), MultiHead(2, 4)], ids=["one", "heads"])
@pytest.mark.parametrize("masked", [True, False])
def test_rows_of_prepared_keys_are_chosen(attention, masked):
    key, query = torch.randn(3, 5, 4), torch.randn(3, 2, 4)
    key[0, 4] = torch.nan
    mask = masks.lengths(torch.tensor([5, 2, 3])) if masked else None
    prepared = attention.prepare(key, mask=mask)
    whole = attention(query, prepared)
    for index in (torch.tensor([2, 0, 0]), torch.tensor([True, False, True])):
        found = attention(query[index], prepared.select(index))
        assert torch.allclose(found.context, whole.context[index], atol=1e-6, equal_nan=True)
        assert torch.allclose(found.weights, whole.weights[index], atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("attention", [Attention("dot"), MultiHead(2, 4)], ids=["one", "heads"])
@pytest.mark.parametrize("masked", ["neither", "first", "second", "both"])
def test_appended_keys_are_read_as_if_prepared_together(attention, masked):
    key, query = torch.randn(2, 5, 4), torch.randn(2, 3, 4)
    mask = torch.tensor([[True, False, True, True, False], [True, True, True, False, True]])
    if masked in ("neither", "second"):
        mask[:, :2] = True
    if masked in ("neither", "first"):
        mask[:, 2:] = True
    first = mask[:, :2] if masked in ("first", "both") else None
    second = mask[:, 2:] if masked in ("second", "both") else None
    joined = attention.prepare(key[:, :2], mask=first).append(
        attention.prepare(key[:, 2:], mask=second)
    )
    assert (joined.mask is None) == (masked == "neither")
    found, expected = attention(query, joined), attention(query, key, mask=mask)
    assert torch.allclose(found.weights, expected.weights, atol=1e-6)
    assert torch.allclose(found.context, expected.context, atol=1e-6)


def test_what_does_not_belong_together_is_not_appended():
    def prepared(*sizes: int) -> Prepared:
        key = torch.zeros(sizes)
        return Prepared(key, key, None, torch.zeros(sizes[0], sizes[-2], dtype=torch.bool))

    for other in ((3, 1, 4), (2, 1, 5), (2, 2, 1, 4)):
        with pytest.raises(ShapeError) as caught:
            prepared(2, 3, 4).append(prepared(*other))
        assert f"got {other} and {other} for (2, 3, 4) and (2, 3, 4)" in str(caught.value)
    narrow = prepared(2, 1, 4)._replace(value=torch.zeros(2, 1, 3))
    with pytest.raises(ShapeError, match=r"got \(2, 1, 4\) and \(2, 1, 3\) for"):
        prepared(2, 3, 4).append(narrow)


def test_mechanisms_name_their_parts_and_place():
    attention = Attention("dot")
    assert attention.name == "Attention(Dot, Softmax)"
    attention.label = "decoder.attention"
    assert attention.name == "Attention(Dot, Softmax) at decoder.attention"
