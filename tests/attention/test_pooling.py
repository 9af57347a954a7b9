from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from regard.attention import SELECTIONS, Monotonic, Traits
from regard.attention.pooling import (
    AttentionPooling,
    FeedForwardAttention,
    MultiHeadPooling,
    StepAttention,
)
from regard.errors import MaskError, MechanismError, ShapeError
from regard.testing import check_attention

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
POOLINGS = [
    AttentionPooling(4),
    AttentionPooling(4, hidden_dim=3, gated=True, dropout=0.3),
    FeedForwardAttention(4),
]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings_conform(pooling):
    # The suite asks with queries; a pooling answers all alike, so its inner attention is asked.
    report = check_attention(
        pooling.attention, query_dim=4, dtypes=DTYPES, checks=None, raises=False
    )
    reached = {"gradients_reach_the_inputs (any type)"}
    assert set(report.failed) <= {"gradients_reach_the_inputs"}, (report, reached)
    assert [o.reason for o in report.outcomes if o.status == "failed"] == [
        "no gradient reaches the query"
    ] * len(DTYPES)


def in_loops(pooling, items):
    score = pooling.attention.score
    scores = []
    for item in items.tolist():
        if isinstance(pooling, FeedForwardAttention):
            weight, bias = score.projection.weight[0].tolist(), score.projection.bias.item()
            scores.append(math.tanh(sum(w * x for w, x in zip(weight, item, strict=True)) + bias))
            continue
        hidden = [
            math.tanh(sum(w * x for w, x in zip(row, item, strict=True)) + b)
            for row, b in zip(score.hidden.weight.tolist(), score.hidden.bias.tolist(), strict=True)
        ]
        if score.gate is not None:
            gates = (score.gate.weight @ torch.tensor(item) + score.gate.bias).tolist()
            hidden = [h / (1 + math.exp(-g)) for h, g in zip(hidden, gates, strict=True)]
        vector = score.vector.weight[0].tolist()
        scores.append(sum(v * h for v, h in zip(vector, hidden, strict=True)))
    powers = [math.exp(s) for s in scores]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings_are_those_of_plain_loops(pooling):
    pooling = pooling.eval()
    items, mask = torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    context, weights, *_ = pooling(items, mask=mask)
    for row, count in ((0, 5), (1, 3)):
        expected = in_loops(pooling, items[row, :count])
        assert weights[row].tolist() == pytest.approx([*expected, *[0.0] * (5 - count)], abs=1e-6)
    assert torch.allclose(context, torch.einsum("bi,bid->bd", weights, items), atol=1e-6)


def test_feed_forward_attention_worked_by_hand():
    pooling = FeedForwardAttention(1)
    with torch.no_grad():
        pooling.attention.score.projection.weight.fill_(1.0)
        pooling.attention.score.projection.bias.zero_()
    weights = pooling(torch.tensor([[[0.0], [100.0]]])).weights[0]
    assert weights.tolist() == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)])


def test_attention_pooling_worked_by_hand():
    pooling = AttentionPooling(2, hidden_dim=2)
    score = pooling.attention.score
    with torch.no_grad():
        score.hidden.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        score.hidden.bias.copy_(torch.tensor([0.0, -2.0]))
        score.vector.weight.copy_(torch.tensor([[math.log(3.0), math.log(2.0)]]))
    # tanh(W h + b) is (0, 0), then next to (1, 0), (0, -1) and (1, 1): e^score is 1, 3, 1/2, 6.
    items = torch.tensor([[[0.0, 1.0], [40.0, 1.0], [0.0, -40.0], [40.0, 40.0]]])
    context, weights, *_ = pooling(items)
    assert weights[0].tolist() == pytest.approx([2 / 21, 6 / 21, 1 / 21, 12 / 21])
    assert context[0].tolist() == pytest.approx([40 * 18 / 21, (8 - 40 + 480) / 21])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_order_does_not_matter_and_nothing_gives_zeros(pooling):
    pooling = pooling.eval()
    items = torch.randn(2, 5, 4)
    order = torch.tensor([4, 2, 0, 1, 3])
    assert torch.allclose(pooling(items).context, pooling(items[:, order]).context, atol=1e-6)
    mask = torch.tensor([[True] * 5, [False] * 5])
    items[1] = math.nan
    context, weights, *_ = pooling(items, mask=mask)
    assert (context[1] == 0).all()
    assert (weights[1] == 0).all()
    assert pooling(torch.zeros(2, 0, 4)).context.tolist() == [[0.0] * 4] * 2
    assert pooling(torch.zeros(0, 3, 4)).context.shape == (0, 4)


@pytest.mark.parametrize(
    "name", [n for n in SELECTIONS if "monotonic" not in n and "local" not in n]
)
def test_any_selection_without_steps_serves(name):
    pooling = AttentionPooling(4, selection=name).train()
    attended = pooling(torch.randn(3, 5, 4), generator=torch.Generator().manual_seed(1))
    assert attended.context.shape == (3, 4)
    assert (attended.log_prob is None) == (name != "sampled")


def test_gates_can_shut_items_off():
    pooling = AttentionPooling(4, gated=True)
    nn.init.constant_(pooling.attention.score.gate.bias, -60.0)
    assert torch.allclose(pooling(torch.randn(2, 5, 4)).weights, torch.full((2, 5), 0.2))


def heads_in_loops(pooling, items):
    attention = pooling.attention
    size = 4 // attention.num_heads
    query = attention.query_projection(pooling.query)
    keys, values = attention.key_projection(items), attention.value_projection(items)
    weights, parts = [], []
    for head in range(attention.num_heads):
        own = slice(head * size, (head + 1) * size)
        powers = [math.exp(float(key[own] @ query[own]) / math.sqrt(size)) for key in keys]
        shares = [power / sum(powers) for power in powers]
        weights.append(shares)
        parts += [
            sum(share * float(value[own][f]) for share, value in zip(shares, values, strict=True))
            for f in range(size)
        ]
    return weights, attention.out_projection(torch.tensor(parts))


def test_multihead_pooling_is_that_of_plain_loops():
    pooling = MultiHeadPooling(4, 2).eval()
    nn.init.normal_(pooling.attention.out_projection.bias)
    items, mask = torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    with torch.no_grad():
        context, weights, *_ = pooling(items, mask=mask)
        for row, count in ((0, 5), (1, 3)):
            shares, expected = heads_in_loops(pooling, items[row, :count])
            assert torch.allclose(weights[row, :, :count], torch.tensor(shares), atol=1e-6)
            assert not weights[row, :, count:].any()
            assert torch.allclose(context[row], expected, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_multihead_pooling_keeps_what_poolings_promise(dtype):
    pooling = MultiHeadPooling(4, 2).to(dtype)
    nn.init.normal_(pooling.attention.out_projection.bias)
    items = torch.randn(2, 5, 4).to(dtype)
    mask = torch.tensor([[True, True, False, True, False], [False] * 5])
    hidden = ~mask.unsqueeze(-1)
    first = pooling(items.masked_fill(hidden, math.nan).requires_grad_(), mask=mask)
    again = pooling(items.masked_fill(hidden, 7.0), mask=mask)
    assert torch.equal(first.context, again.context)
    assert first.context.dtype == dtype
    assert not first.weights[0, :, ~mask[0]].any()
    assert not first.weights[1].any()
    assert not first.context[1].any()
    sums = first.weights[0].float().sum(-1)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-2)
    order = torch.tensor([4, 2, 0, 1, 3])
    turned = pooling(items[:, order], mask=mask[:, order]).context
    near = 1e-6 if dtype in (torch.float32, torch.float64) else 0.05
    assert torch.allclose(turned, first.context, atol=near)
    first.context.float().square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in pooling.parameters())
    assert pooling.query.grad.any()
    assert pooling(torch.zeros(2, 0, 4, dtype=dtype)).context.tolist() == [[0.0] * 4] * 2
    assert pooling(torch.zeros(0, 3, 4, dtype=dtype)).weights.shape == (0, 2, 3)


def test_multihead_pooling_conforms_and_has_exact_gradients():
    report = check_attention(
        MultiHeadPooling(4, 2).attention, query_dim=4, checks=None, raises=False
    )
    assert report.ok, report
    pooling = MultiHeadPooling(4, 2, score="additive", selection="entmax").double()
    items = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, False, True, True]])
    assert torch.autograd.gradcheck(lambda i: pooling(i, mask=mask).context, items)
    sampled = MultiHeadPooling(4, 2, selection="sampled").train()
    attended = sampled(items.float(), generator=torch.Generator().manual_seed(1))
    assert attended.log_prob.shape == (2,)


def steps_in_loops(attention, sequence):
    steps, features = sequence.shape
    columns = []
    for f in range(features):
        scores = (attention.dense.weight @ sequence[:, f] + attention.dense.bias).tolist()
        scores = [math.tanh(s) for s in scores] if attention.activation else scores
        powers = [math.exp(s) for s in scores]
        columns.append([p / sum(powers) for p in powers])
    if attention.shared:
        mean = [sum(column[t] for column in columns) / features for t in range(steps)]
        columns = [mean] * features
    return torch.tensor(columns).t()


@pytest.mark.parametrize("activation", [None, "tanh"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("reduce", [None, "sum"])
def test_step_attention_is_that_of_plain_loops(activation, shared, reduce):
    attention = StepAttention(5, activation=activation, shared=shared, reduce=reduce)
    sequence = torch.randn(2, 5, 3)
    context, weights, *_ = attention(sequence)
    for row in range(2):
        expected = steps_in_loops(attention, sequence[row])
        weighted = expected * sequence[row]
        assert torch.allclose(context[row], weighted.sum(0) if reduce else weighted, atol=1e-6)
        seen = weights[row].unsqueeze(-1).expand(5, 3) if shared else weights[row]
        assert torch.allclose(seen, expected, atol=1e-6)


def test_step_attention_worked_by_hand():
    attention = StepAttention(2, reduce="sum")
    with torch.no_grad():
        attention.dense.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        attention.dense.bias.zero_()
    # The score of the first step is what the second holds: log 3 against 0.
    context = attention(torch.tensor([[[8.0], [math.log(3.0)]]])).context
    assert context.item() == pytest.approx(0.75 * 8.0 + 0.25 * math.log(3.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shared", [False, True])
def test_hidden_steps_change_nothing_and_empty_rows_give_zeros(dtype, shared):
    attention = StepAttention(5, shared=shared).to(dtype)
    sequence = torch.randn(2, 5, 3).to(dtype)
    mask = torch.tensor([[True, True, False, True, False], [False] * 5])
    hidden = ~mask.unsqueeze(-1)
    first = attention(sequence.masked_fill(hidden, math.nan).requires_grad_(), mask=mask)
    again = attention(sequence.masked_fill(hidden, 7.0), mask=mask)
    assert torch.equal(first.context, again.context)
    assert first.context.dtype == dtype
    assert (first.weights[0, ~mask[0]] == 0).all()
    assert (first.context[1] == 0).all()
    sums = first.weights[0].float().sum(0)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-2)
    first.context.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())


def test_step_attention_has_exact_gradients():
    attention = StepAttention(4, activation="tanh", shared=True, reduce="sum").double()
    sequence = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, False, True, True]])
    assert torch.autograd.gradcheck(lambda s: attention(s, mask=mask).context, sequence)


@pytest.mark.usefixtures("without_shapes")
def test_settings_and_shapes_are_checked():
    with pytest.raises(MechanismError, match="key_dim must be at least 1; got 0"):
        FeedForwardAttention(0)
    with pytest.raises(MechanismError, match="hidden_dim must be at least 1; got -1"):
        AttentionPooling(4, hidden_dim=-1)
    with pytest.raises(MechanismError, match=r"nor look at a query.*got Monotonic"):
        AttentionPooling(4, selection=Monotonic())
    with pytest.raises(MechanismError, match=r"must not go step by step.*got .*HeadSelections"):
        MultiHeadPooling(4, 2, selection="monotonic")
    with pytest.raises(MechanismError, match="num_heads must divide query_dim; got 3 and 4"):
        MultiHeadPooling(4, 3)
    with pytest.raises(ShapeError, match="key must have size key_dim=4"):
        MultiHeadPooling(4, 2)(torch.zeros(2, 3, 5))
    with pytest.raises(MechanismError, match="steps must be at least 1; got 0"):
        StepAttention(0)
    with pytest.raises(MechanismError, match=r"activation must be None or 'tanh'.*got 'relu'"):
        StepAttention(3, activation="relu")
    with pytest.raises(ShapeError, match=r"\(batch, steps=3, features\); got \(2, 4, 5\)"):
        StepAttention(3)(torch.zeros(2, 4, 5))
    with pytest.raises(MaskError, match="mask must be bool"):
        StepAttention(3)(torch.zeros(2, 3, 5), mask=torch.ones(2, 3))
    with pytest.raises(ShapeError, match="key must have size key_dim=4"):
        AttentionPooling(4)(torch.zeros(2, 3, 5))
    assert AttentionPooling(4).key_dim == MultiHeadPooling(4, 2).key_dim == 4
    assert Traits().normalised
