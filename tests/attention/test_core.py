from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.attention import (
    SCORES,
    Attention,
    Dot,
    MultiHead,
    Score,
    Selected,
    Selection,
    Softmax,
    State,
    Traits,
    masks,
    unroll,
)
from regard.attention.building import sizes_of
from regard.errors import MaskError, MechanismError, ShapeError


class Fading(Score):
    """Score by the dot product, less what a key has had so far: a stateful score."""

    traits = Traits(stateful=True)
    one_size = True

    def __init__(self) -> None:
        super().__init__()
        self.query_dim = self.key_dim = None

    def prepare(self, key):
        return key

    def forward(self, query, prepared_key, state=None):
        scores = query @ prepared_key.transpose(-1, -2)
        return scores if state is None else scores - state.total


class Drawn(Selection):
    """Draw one key: weights that differ from the distribution they come from."""

    traits = Traits(stochastic=True)

    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        distribution = Softmax()(scores, mask).weights
        place = distribution.argmax(-1, keepdim=True)
        weights = torch.zeros_like(distribution).scatter(-1, place, 1.0)
        return Selected(weights, distribution, distribution.gather(-1, place).log().squeeze(-1))


PARALLEL = [name for name in SCORES if not SCORES[name].traits.stateful]


def attention_of(name: str = "additive") -> Attention:
    sizes = {"hidden_dim": 6} if "hidden_dim" in sizes_of(SCORES[name]) else {}
    return Attention(name, query_dim=4, key_dim=4, **sizes)


def test_attention_worked_by_hand():
    key = torch.tensor([[[0.0], [math.log(3.0)]]])
    value = torch.tensor([[[4.0, 0.0], [8.0, 2.0]]])
    context, weights, state, distribution, log_prob = Attention("dot")(
        torch.ones(1, 1, 1), key, value
    )
    assert weights[0, 0].tolist() == pytest.approx([0.25, 0.75])
    assert context[0, 0].tolist() == pytest.approx([7.0, 1.5])
    assert (state, log_prob) == (None, None)
    assert distribution is weights


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.tuples(*[st.integers(0, 4)] * 3),
    dim=st.integers(1, 5),
    seed=st.integers(0, 1000),
    axes=st.sampled_from([None, 2, 3]),
)
def test_any_shapes_under_any_mask_agree_with_pytorch(sizes, dim, seed, axes):
    batch, queries, keys = sizes
    draw = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, queries, dim, generator=draw)
    key, value = (torch.randn(batch, keys, dim, generator=draw) for _ in range(2))
    full = None
    mask = None
    if axes is not None:
        shape = (batch, keys) if axes == 2 else (batch, queries, keys)
        mask = torch.rand(shape, generator=draw) > 0.4
        full = (mask if axes == 3 else mask.unsqueeze(1)).expand(batch, queries, keys)
    context, weights, *_ = Attention("scaled_dot")(query, key, value, mask=mask)
    assert weights.shape == (batch, queries, keys)
    expected = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=full)
    some = torch.ones(batch, queries, dtype=torch.bool) if full is None else full.any(-1)
    some = some & (keys > 0)
    assert torch.allclose(context[some], expected[some], atol=1e-5)
    assert (context[~some] == 0).all()


def test_a_causal_mask_agrees_with_pytorch():
    items = torch.randn(2, 5, 4)
    context = Attention("scaled_dot")(items, items, mask=masks.causal(5)).context
    expected = nn.functional.scaled_dot_product_attention(items, items, items, is_causal=True)
    assert torch.allclose(context, expected, atol=1e-6)


@pytest.mark.parametrize("name", PARALLEL)
def test_a_growing_cache_is_causal_attention(name):
    attention = attention_of(name)
    items = torch.randn(2, 5, 4)
    whole = attention(items, items, mask=masks.causal(5))
    cache = None
    for step, item in enumerate(items.unbind(1)):
        fresh = attention.prepare(item.unsqueeze(1))
        cache = fresh if cache is None else cache.append(fresh)
        one = attention(item, cache)
        assert torch.allclose(one.context, whole.context[:, step], atol=1e-5)
        assert torch.allclose(one.weights, whole.weights[:, step, : step + 1], atol=1e-5)


@pytest.mark.usefixtures("without_shapes")
def test_a_single_query_is_not_unrolled():
    attention = Attention("uniform")
    with pytest.raises(ShapeError, match=r"queries must have shape \(batch, queries, query_dim\)"):
        unroll(attention, torch.zeros(2, 8), attention.prepare(torch.zeros(2, 5, 8)))


@pytest.mark.parametrize("name", [name for name in PARALLEL if name != "rotary"])
def test_unrolling_what_has_no_state_is_one_parallel_call(name):
    attention = attention_of(name)
    queries, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    prepared = attention.prepare(key, mask=masks.lengths(torch.tensor([5, 2])))
    steps, whole = unroll(attention, queries, prepared), attention(queries, prepared)
    assert torch.allclose(steps.context, whole.context, atol=1e-6)
    assert torch.allclose(steps.weights, whole.weights, atol=1e-6)
    assert steps.distribution is steps.weights
    assert (steps.state, steps.log_prob) == (None, None)


def test_unrolling_a_state_worked_by_hand():
    attention = Attention(Fading())
    prepared = attention.prepare(torch.zeros(1, 2, 1), torch.tensor([[[1.0], [0.0]]]))
    start = State(*[torch.tensor([[[1.0, 0.0]]])] * 2, 1)
    attended = unroll(attention, torch.ones(1, 2, 1), prepared, state=start)
    first = 1.0 / (1.0 + math.e)
    second = 1.0 / (1.0 + math.exp(1.0 + first - (1.0 - first)))
    assert attended.weights[0, :, 0].tolist() == pytest.approx([first, second])
    assert attended.context[0, :, 0].tolist() == pytest.approx([first, second])
    assert attended.state.step == 3
    assert attended.state.total[0, 0].sum().item() == pytest.approx(3.0)
    assert torch.equal(attended.state.weights, attended.weights[:, 1:])


def test_unrolling_no_query_gives_no_context_and_the_state_back():
    attention = Attention(Fading())
    prepared = attention.prepare(torch.zeros(2, 3, 1))
    start = State(*[torch.zeros(2, 1, 3)] * 2, 4)
    attended = unroll(attention, torch.zeros(2, 0, 1), prepared, state=start)
    assert attended.context.shape == (2, 0, 1)
    assert attended.state is start


def test_unrolling_several_heads_joins_the_queries():
    attention = MultiHead(2, 8)
    queries, prepared = torch.randn(2, 3, 8), attention.prepare(torch.randn(2, 5, 8))
    steps, whole = unroll(attention, queries, prepared), attention(queries, prepared)
    assert steps.weights.shape == (2, 2, 3, 5)
    assert torch.allclose(steps.weights, whole.weights, atol=1e-6)
    assert torch.allclose(steps.context, whole.context, atol=1e-6)


def test_a_sampled_choice_keeps_its_distribution():
    attention = Attention(Dot(), Drawn())
    queries, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    whole = attention(queries, key)
    steps = unroll(attention, queries, attention.prepare(key))
    for attended in (whole, steps):
        assert set(attended.weights.unique().tolist()) == {0.0, 1.0}
        assert torch.allclose(attended.distribution.sum(-1), torch.ones(2, 3))
        assert attended.log_prob.shape == (2, 3)
    single = attention(queries[:, 0], key)
    assert torch.equal(single.log_prob, whole.log_prob[:, 0])
    assert torch.equal(single.distribution, whole.distribution[:, 0])


def test_a_whole_sequence_without_a_state_is_refused():
    with pytest.raises(MechanismError, match=r"one at a time.*got 3. Use regard.unroll"):
        Attention(Fading())(torch.zeros(2, 3, 4), torch.zeros(2, 5, 4))


def test_a_state_of_other_hypotheses_is_refused():
    state = State(*[torch.zeros(2, 1, 5)] * 2, 1)
    with pytest.raises(ShapeError, match=r"weights \(2, 3, 5\).*got \(2, 1, 5\)"):
        Attention(Fading())(torch.zeros(2, 3, 4), torch.zeros(2, 5, 4), state=state)


def test_a_beam_reads_with_its_own_states():
    attention = Attention(Fading())
    prepared = attention.prepare(torch.randn(2, 5, 4))
    state = attention(torch.randn(2, 1, 4), prepared).state
    grown = state.select(torch.zeros(2, 3, dtype=torch.long))
    queries = torch.randn(2, 3, 4)
    together = attention(queries, prepared, state=grown)
    for place in range(3):
        alone = attention(queries[:, place], prepared, state=state)
        assert torch.allclose(alone.context, together.context[:, place], atol=1e-6)
    turned = together.state.select(torch.tensor([[2, 0, 0], [1, 1, 2]]))
    assert torch.equal(turned.weights[0, 0], together.weights[0, 2])
    assert torch.equal(turned.total[1, 2], together.state.total[1, 2])


def test_the_weights_returned_are_those_before_dropout():
    attention = Attention("dot", dropout=0.5).train()
    query, key = torch.randn(2, 3, 4), torch.randn(2, 50, 4)
    value = torch.ones(2, 50, 1)
    context, weights, *_ = attention(query, key, value)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert not torch.allclose(context.squeeze(-1), torch.ones(2, 3), atol=1e-3)
    assert torch.allclose(attention.eval()(query, key, value).context, torch.ones(2, 3, 1))


def test_contexts_without_weights():
    attended = Attention("dot")(torch.randn(2, 4), torch.randn(2, 5, 4), need_weights=False)
    assert attended.weights is None
    assert attended.context.shape == (2, 4)


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize(
    ("query", "key", "value", "words"),
    [
        ((2, 3, 5), (2, 5, 4), None, r"query must have size query_dim=4 for Attention\(Additive"),
        ((2, 3, 4), (2, 5, 3), None, "key must have size key_dim=4 .*got 3"),
        ((2, 3, 4), (3, 5, 4), None, "one batch size .*got 2 and 3"),
        ((2, 3, 4), (2, 5, 4), (2, 6, 4), r"batch=2, keys=5, value_dim\); got \(2, 6, 4\)"),
        ((2, 3, 4), (5, 4), None, r"\(batch, keys, key_dim\) .*got \(5, 4\)"),
        ((4,), (2, 5, 4), None, r"\(batch, queries, query_dim\) or .*got \(4,\)"),
        ((2, 3, 0), (2, 5, 4), None, r"at least 1 feature.*got \(2, 3, 0\)"),
    ],
)
def test_sizes_that_do_not_fit_are_named(query, key, value, words):
    value = None if value is None else torch.zeros(value)
    with pytest.raises(ShapeError, match=words):
        attention_of()(torch.zeros(query), torch.zeros(key), value)


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_a_score_without_sizes_still_wants_one_size(name):
    with pytest.raises(ShapeError, match=r"one size for Attention.*got 4 and 3.*Bilinear"):
        Attention(name)(torch.zeros(2, 3, 4), torch.zeros(2, 5, 3))


def test_prepared_keys_come_back_as_they_were_made():
    attention, heads = attention_of(), MultiHead(2, 4)
    query, key = torch.zeros(2, 3, 4), torch.zeros(2, 5, 4)
    with pytest.raises(ShapeError, match=r"value must be left out.*got \(2, 5, 4\)"):
        attention(query, attention.prepare(key), key)
    with pytest.raises(ShapeError, match=r"no heads for Attention.*got 2 in"):
        attention(query, heads.prepare(key))
    with pytest.raises(ShapeError, match=r"2 heads for MultiHead.*got none in"):
        heads(query, attention.prepare(key))


@pytest.mark.usefixtures("without_shapes")
def test_per_query_masks_go_to_the_call():
    attention, key = attention_of(), torch.zeros(2, 5, 4)
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    with pytest.raises(MaskError, match=r"got \(2, 3, 5\). Give a per-query mask to the call"):
        attention.prepare(key, mask=mask)
    prepared = attention.prepare(key, mask=masks.lengths(torch.tensor([2, 5])))
    weights = attention(torch.zeros(2, 3, 4), prepared, mask=masks.causal(3, 5)).weights
    assert weights[0, :, 2:].abs().sum() == 0
    assert weights[1, 0].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0])


def test_sizes_and_traits_are_those_of_the_parts():
    attention = Attention(SCORES["bilinear"](4, 6))
    assert (attention.query_dim, attention.key_dim) == (4, 6)
    assert not Attention("uniform").traits.differentiable
    assert Attention(Fading()).traits.stateful
    assert Attention("dot", Drawn()).traits.stochastic


@pytest.mark.compiled
@pytest.mark.parametrize("name", PARALLEL)
def test_mechanisms_can_be_exported(name):
    inputs = (torch.randn(2, 3, 4), torch.randn(2, 5, 4))
    mask = masks.lengths(torch.tensor([5, 2]))
    attention = attention_of(name).eval()
    program = torch.export.export(attention, inputs, {"mask": mask})
    found = program.module()(*inputs, mask=mask)
    assert torch.allclose(found[0], attention(*inputs, mask=mask)[0], atol=1e-6)


@pytest.mark.compiled
@torch.no_grad()
def test_a_decoding_step_is_one_graph():
    attention = attention_of()
    prepared = attention.prepare(torch.randn(2, 5, 4), mask=masks.lengths(torch.tensor([5, 2])))
    step = torch.compile(attention, fullgraph=True, backend="aot_eager")
    query = torch.randn(2, 4)
    assert torch.allclose(step(query, prepared)[0], attention(query, prepared)[0], atol=1e-6)


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")  # within PyTorch
def test_inductor_gives_the_same_with_gradients():
    attention = MultiHead(2, 8, score="additive")
    compiled = torch.compile(attention, fullgraph=True)
    items = torch.randn(2, 5, 8, requires_grad=True)
    mask = masks.lengths(torch.tensor([5, 0]), 5)
    found, expected = compiled(items, items, mask=mask), attention(items, items, mask=mask)
    assert torch.allclose(found[0], expected[0], atol=1e-5)
    (left,), (right,) = (torch.autograd.grad(a[0].square().sum(), items) for a in (found, expected))
    assert torch.allclose(left, right, atol=1e-5)
