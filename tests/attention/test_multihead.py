from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention import Additive, Bilinear, MultiHead, Score, Traits, masks
from regard.attention.heads import HeadScores
from regard.errors import MechanismError, ShapeError


def with_the_parameters_of(theirs: nn.MultiheadAttention) -> MultiHead:
    """Copy what PyTorch's layer has learnt."""
    ours = MultiHead(theirs.num_heads, theirs.embed_dim, key_dim=theirs.kdim, value_dim=theirs.vdim)
    same = theirs._qkv_same_embed_dim
    weights = (
        theirs.in_proj_weight.chunk(3)
        if same
        else (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    )
    projections = (ours.query_projection, ours.key_projection, ours.value_projection)
    biases = theirs.in_proj_bias.chunk(3)
    for projection, weight, bias in zip(projections, weights, biases, strict=True):
        projection.load_state_dict({"weight": weight, "bias": bias})
    ours.out_projection.load_state_dict(theirs.out_proj.state_dict())
    return ours


@pytest.fixture(params=[{}, {"kdim": 6, "vdim": 4}], ids=["one size", "three sizes"])
def pair(request):
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, **request.param)
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    return theirs, with_the_parameters_of(theirs)


@pytest.mark.parametrize("masked", ["not", "by padding", "causally", "both ways"])
def test_the_results_are_those_of_pytorch(pair, masked):
    theirs, ours = pair
    query = torch.randn(3, 5, 8)
    key, value = torch.randn(3, 5, theirs.kdim), torch.randn(3, 5, theirs.vdim)
    padding = (
        ~masks.lengths(torch.tensor([5, 3, 1])) if masked in ("by padding", "both ways") else None
    )
    causal = ~masks.causal(5)[0] if masked in ("causally", "both ways") else None
    expected, weights = theirs(
        query,
        key,
        value,
        key_padding_mask=padding,
        attn_mask=causal,
        average_attn_weights=False,
    )
    shared = None if padding is None else masks.from_key_padding_mask(padding)
    prepared = ours.prepare(key, value, mask=shared)
    found = ours(query, prepared, mask=None if causal is None else ~causal.unsqueeze(0))
    assert torch.allclose(found.weights, weights, atol=1e-6)
    assert torch.allclose(found.context, expected, atol=1e-5)


def test_one_head_worked_by_hand():
    attention = MultiHead(1, 1)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.fill_(1.0)
    attended = attention(torch.tensor([[[-1.0]]]), torch.tensor([[[1.0], [5.0]]]))
    # Query 0 scores both keys 0; the values are 2 and 6, their mean 4, and the layer adds 1.
    assert attended.weights.tolist() == [[[[0.5, 0.5]]]]
    assert attended.context.item() == 5.0


def test_a_single_query_has_no_queries_axis():
    attention, key = MultiHead(2, 8), torch.randn(3, 5, 8)
    attended = attention(torch.randn(3, 8), key)
    assert attended.context.shape == (3, 8)
    assert attended.weights.shape == (3, 2, 5)
    assert attended.distribution is attended.weights


def test_masks_may_differ_between_heads():
    attention, items = MultiHead(2, 8), torch.randn(3, 5, 8)
    mask = torch.ones(1, 2, 5, 5, dtype=torch.bool)
    mask[:, 0, :, 1:] = False
    weights = attention(items, items, mask=mask).weights
    assert torch.equal(weights[:, 0, :, 0], torch.ones(3, 5))
    assert (weights[:, 1] > 0).all()


def test_a_head_that_sees_nothing_leaves_the_others_alone():
    attention, items = MultiHead(2, 8), torch.randn(1, 4, 8)
    mask = torch.ones(1, 2, 4, 4, dtype=torch.bool)
    mask[:, 0, 2] = False
    attended = attention(items, items, mask=mask)
    assert (attended.weights[0, 0, 2] == 0).all()
    assert torch.equal(attended.weights[0, 1, 2], attention(items, items).weights[0, 1, 2])
    assert attended.context[0, 2].abs().sum() > 0
    mask[:, 1, 2] = False
    assert (attention(items, items, mask=mask).context[0, 2] == 0).all()


def test_a_nan_that_one_head_may_read_is_told_and_stays_where_it_is():
    attention, items = MultiHead(2, 8), torch.randn(1, 4, 8)
    expected = attention(items, items[:, :3])
    items[0, 3] = torch.nan
    mask = torch.ones(1, 2, 4, 4, dtype=torch.bool)
    mask[..., 3] = False
    mask[0, 1, 1, 3] = True
    mask[0, :, 3] = False  # the query that is NaN itself
    attended = attention(items, items, mask=mask)
    assert attended.context[0, 1].isnan().all()
    assert attended.weights[0, 1, 1].isnan().all()
    assert attended.weights[0, 0, 1].isfinite().all()
    assert torch.allclose(attended.context[0, [0, 2]], expected.context[0, [0, 2]], atol=1e-6)
    attended.context[0, [0, 2]].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())


def test_an_empty_memory_does_not_let_a_bias_speak():
    attention = MultiHead(2, 8)
    nn.init.ones_(attention.out_projection.bias)
    nn.init.ones_(attention.value_projection.bias)
    attended = attention(torch.randn(3, 2, 8), torch.zeros(3, 0, 8))
    assert (attended.context == 0).all()


@pytest.mark.parametrize("score", [Additive(4, 4, hidden_dim=3), Bilinear(4, 4)])
def test_every_head_has_its_own_parameters(score):
    attention = MultiHead(2, 8, score=score)
    assert isinstance(attention.score, HeadScores)
    first, second = attention.score.heads
    assert all(p is not q for p, q in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.key_projection.weight, second.key_projection.weight)
    query, key = torch.randn(3, 2, 6, 4), torch.randn(3, 2, 5, 4)
    scores = attention.score(query, attention.score.prepare(key))
    for head, part in enumerate((first, second)):
        alone = part(query[:, head], part.prepare(key[:, head]))
        assert torch.allclose(scores[:, head], alone, atol=1e-6)


class Fading(Score):
    """A stateful score with a parameter, so that every head has its own."""

    traits = Traits(stateful=True)

    def __init__(self) -> None:
        super().__init__()
        self.query_dim = self.key_dim = None
        self.rate = nn.Parameter(torch.ones(()))

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.rate)

    def prepare(self, key):
        return key

    def forward(self, query, prepared_key, state=None):
        scores = query @ prepared_key.transpose(-1, -2)
        return scores if state is None else scores - self.rate * state.total


def test_every_head_has_its_own_state():
    attention = MultiHead(2, 8, score=Fading())
    queries, prepared = torch.randn(3, 2, 8), attention.prepare(torch.randn(3, 5, 8))
    first = attention(queries[:, :1], prepared)
    assert first.state.weights.shape == (3, 2, 1, 5)
    second = attention(queries[:, 1:], prepared, state=first.state)
    assert torch.allclose(second.state.total, first.weights + second.weights)
    assert not torch.allclose(second.weights, attention(queries[:, 1:], prepared).weights)
    beam = first.state.select(torch.tensor([[0, 0], [0, 0], [0, 0]]))
    assert beam.weights.shape == (3, 2, 2, 5)
    with pytest.raises(MechanismError, match=r"one at a time for MultiHead.*got 2"):
        attention(queries, prepared)


@pytest.mark.parametrize(("heads", "dim"), [(3, 8), (0, 8), (-1, 8), (2, 0)])
def test_heads_must_divide_the_size(heads, dim):
    with pytest.raises(
        MechanismError, match=f"num_heads must divide query_dim; got {heads} and {dim}"
    ):
        MultiHead(heads, dim)


def test_sizes_and_parts_are_checked_when_built():
    with pytest.raises(MechanismError, match=r"at least 1; got 0 and 0"):
        MultiHead(2, 8, key_dim=0)
    with pytest.raises(MechanismError, match=r"query_dim=4, the size of a head; got 8 in Bilinear"):
        MultiHead(2, 8, score=Bilinear(8, 8))
    with pytest.raises(MechanismError, match=r"dropout must lie in \[0, 1\); got 1.0"):
        MultiHead(2, 8, dropout=1.0)


@pytest.mark.usefixtures("without_shapes")
@pytest.mark.parametrize(
    ("query", "key", "value", "words"),
    [
        (
            (3, 2, 7),
            (3, 5, 6),
            (3, 5, 4),
            r"query_dim=8 for MultiHead\(ScaledDot, Softmax\); got 7",
        ),
        ((3, 2, 8), (3, 5, 7), (3, 5, 4), "key_dim=6 .*got 7"),
        ((3, 2, 8), (3, 5, 6), (3, 5, 5), "value_dim=4 .*got 5"),
        ((3, 2, 8), (3, 5, 6), None, "value_dim=4 .*got 6 .*the key"),
        ((2, 2, 8), (3, 5, 6), (3, 5, 4), "one batch size .*got 2 and 3"),
    ],
)
def test_sizes_that_do_not_fit_are_named(query, key, value, words):
    attention = MultiHead(2, 8, key_dim=6, value_dim=4)
    value = None if value is None else torch.zeros(value)
    with pytest.raises(ShapeError, match=words):
        attention(torch.zeros(query), torch.zeros(key), value)
