from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import Attention, MultiHead, Prepared, check_finite, masks, unroll
from regard.attention.parts import Attended, Score, Traits
from regard.attention.reading import (
    Reading,
    allowed_pairs,
    lost_queries,
    marked,
    sanitised,
    without_queries_axis,
)
from regard.errors import DivergedError, MaskError


def prepared_of(*, batch: int = 2, keys: int = 3, mask: torch.Tensor | None = None) -> Prepared:
    key = torch.zeros(batch, keys, 4)
    return Prepared(key, key, mask, torch.zeros(batch, keys, dtype=torch.bool))


def test_items_are_replaced_where_hidden_or_broken():
    key, value = torch.ones(1, 4, 2), torch.ones(1, 4, 1)
    key[0, 1, 0], value[0, 2, 0], key[0, 3, 1] = torch.nan, torch.inf, -torch.inf
    mask = torch.tensor([[True, True, True, False]])
    (clean_key, clean_value), broken = sanitised([key, value], mask)
    assert clean_key[0, :, 0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert clean_value[0, :, 0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert broken.tolist() == [[False, True, True, False]]
    assert sanitised([key], None)[1].tolist() == [[False, True, False, True]]


def test_the_mask_of_the_keys_and_that_of_the_call_are_joined():
    shared = masks.lengths(torch.tensor([3, 1]))
    prepared = prepared_of(mask=shared)
    assert torch.equal(allowed_pairs(prepared, None, 2), shared.unsqueeze(1))
    assert allowed_pairs(prepared, None, 2, 4).shape == (2, 1, 1, 3)
    joined = allowed_pairs(prepared, masks.causal(2, 3), 2)
    assert joined.int().tolist() == [[[1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 0, 0]]]
    assert allowed_pairs(prepared_of(), None, 2) is None
    assert allowed_pairs(prepared_of(keys=0), None, 2).shape == (2, 1, 0)
    with pytest.raises(MaskError, match="queries=2"):
        allowed_pairs(prepared, masks.causal(3), 2)


def test_lost_queries_are_those_that_may_read_a_broken_item():
    prepared = prepared_of()
    prepared.broken[0, 2] = True
    query = torch.zeros(2, 2, 4)
    assert lost_queries(Reading(query, prepared, None)).tolist() == [[[True]], [[False]]]
    causal = masks.causal(2, 3)
    lost = lost_queries(Reading(query, prepared, causal))
    assert lost[..., 0].tolist() == [[False, True], [False, False]]


def test_lost_queries_are_marked_in_everything_that_is_returned():
    weights = torch.full((1, 2, 3), 1 / 3)
    attended = Attended(torch.ones(1, 2, 4), weights, None, weights, None)
    found = marked(attended, torch.tensor([[[True], [False]]]))
    assert found.context[0, 0].isnan().all()
    assert found.weights[0, 0].isnan().all()
    assert found.distribution is found.weights
    assert found.context[0, 1].isfinite().all()
    other = marked(attended._replace(distribution=weights + 0), torch.tensor([[[True], [False]]]))
    assert other.distribution[0, 0].isnan().all()


def test_the_queries_axis_is_taken_from_every_part():
    weights = torch.ones(2, 4, 1, 3)
    attended = Attended(torch.ones(2, 1, 5), weights, None, weights + 0, torch.ones(2, 1))
    context, found, _, distribution, log_prob = without_queries_axis(attended)
    assert (context.shape, found.shape) == ((2, 5), (2, 4, 3))
    assert (distribution.shape, log_prob.shape) == ((2, 4, 3), (2,))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.ModuleDict({"reader": Attention("dot"), "heads": MultiHead(2, 4)})


@pytest.mark.parametrize("name", ["reader", "heads"])
def test_check_finite_names_the_layer(name):
    model = Model()
    layer = model.decoder[name]
    items = torch.ones(1, 3, 4)
    items[0, 1] = torch.inf
    layer(items, items)  # nothing is said unless it is asked for
    check_finite(model)
    with pytest.raises(DivergedError, match=f"decoder.{name}: scores must be finite") as caught:
        layer(torch.ones(1, 3, 4), items)
    assert "in a key or value" in str(caught.value)
    with pytest.raises(DivergedError, match="from "):
        layer(items, torch.ones(1, 3, 4))
    layer(torch.ones(1, 3, 4), items, mask=torch.tensor([[True, False, True]]))
    check_finite(model, enabled=False)
    layer(items, items)


def test_check_finite_says_so_for_a_layer_by_itself():
    attention = Attention("dot", check_finite=True)
    with pytest.raises(DivergedError, match=r"Attention\(Dot, Softmax\): scores must be finite"):
        attention(torch.full((1, 1, 2), torch.nan), torch.ones(1, 3, 2))


class Bursting(Score):
    """A stateful score that overflows at its third step."""

    traits = Traits(stateful=True)

    def __init__(self) -> None:
        super().__init__()
        self.query_dim = self.key_dim = None

    def prepare(self, key):
        return key

    def forward(self, query, prepared_key, state=None):
        step = 0 if state is None else state.step
        number = torch.inf if step == 2 else 0.0
        return query.new_full((*query.shape[:-1], prepared_key.shape[-2]), number)


def test_check_finite_names_the_step():
    attention = Attention(Bursting(), check_finite=True)
    prepared = attention.prepare(torch.ones(1, 3, 2))
    with pytest.raises(DivergedError, match="from Bursting at step 2"):
        unroll(attention, torch.ones(1, 4, 2), prepared)


def test_a_broken_item_does_not_enter_the_state():
    class Quiet(Bursting):
        def forward(self, query, prepared_key, state=None):
            return query.new_zeros((*query.shape[:-1], prepared_key.shape[-2]))

    attention = Attention(Quiet())
    key = torch.ones(2, 3, 2)
    key[0, 1] = torch.nan
    attended = attention(torch.ones(2, 1, 2), key)
    assert attended.weights[0].isnan().all()
    assert attended.state.total.isfinite().all()
