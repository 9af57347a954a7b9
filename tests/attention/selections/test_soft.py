from __future__ import annotations

import math

import entmax
import pytest
import torch

from regard.attention import Attention, Entmax, MultiHead, Sigmoid, Softmax, Sparsemax, TopK
from regard.errors import MechanismError


def random_rows():
    scores, mask = 2 * torch.randn(2, 3, 6), torch.rand(2, 3, 6) > 0.3
    mask[0, 0] = False
    mask[1, 1] = True
    return scores, mask


def rows(scores, mask):
    """Yield what each query may attend to, and where it stands."""
    for row in range(scores.shape[0]):
        for query in range(scores.shape[1]):
            places = mask[row, query].nonzero().flatten().tolist()
            yield row, query, places, [scores[row, query, j].item() for j in places]


def spread(weights, places, keys=6):
    line = [0.0] * keys
    for weight, place in zip(weights, places, strict=True):
        line[place] = weight
    return line


def test_the_softmax_worked_by_hand():
    scores = torch.tensor([[[0.0, math.log(3.0)]]])
    weights, distribution, log_prob = Softmax()(scores, None)
    assert weights[0, 0].tolist() == pytest.approx([0.25, 0.75])
    assert distribution is weights
    assert log_prob is None


def softmax(line, temperature=1.0):
    powers = [math.exp(score / temperature) for score in line]
    return [power / sum(powers) for power in powers]


def test_the_softmax_is_that_of_plain_loops():
    scores, mask = random_rows()
    found = Softmax(temperature=0.7)(scores, mask).weights
    for row, query, places, line in rows(scores, mask):
        expected = spread(softmax(line, 0.7), places)
        assert found[row, query].tolist() == pytest.approx(expected, abs=1e-6)


def test_temperature_sharpens_and_flattens():
    scores = torch.tensor([[[0.0, 1.0]]])
    sharp, plain, flat = (Softmax(t)(scores, None).weights[0, 0, 1] for t in (0.1, 1.0, 10.0))
    assert sharp > plain > flat > 0.5
    assert "temperature=0.1" in repr(Softmax(0.1))


def test_the_sigmoid_worked_by_hand():
    scores = torch.tensor([[[0.0, math.log(3.0), -math.inf]]])
    assert Sigmoid()(scores, None).weights[0, 0].tolist() == pytest.approx([0.5, 0.75, 0.0])
    shifted = Sigmoid(bias=math.log(3.0))(scores, None).weights[0, 0]
    assert shifted.tolist() == pytest.approx([0.75, 0.9, 0.0])
    smooth = Sigmoid(normalise=True)(scores, None).weights[0, 0]
    assert smooth.tolist() == pytest.approx([0.4, 0.6, 0.0])


@pytest.mark.parametrize("normalise", [False, True])
def test_the_sigmoid_is_that_of_plain_loops(normalise):
    scores, mask = random_rows()
    selection = Sigmoid(normalise=normalise, bias=-0.5)
    assert selection.traits.normalised == normalise
    found = selection(scores, mask).weights
    for row, query, places, line in rows(scores, mask):
        shares = [1.0 / (1.0 + math.exp(0.5 - score)) for score in line]
        total = sum(shares) if normalise else 1.0
        expected = spread([share / total for share in shares], places)
        assert found[row, query].tolist() == pytest.approx(expected, abs=1e-6)


def test_top_k_worked_by_hand_and_in_loops():
    weights = TopK(2)(torch.tensor([[[0.0, 5.0, 5.0 + math.log(3.0)]]]), None).weights
    assert weights[0, 0].tolist() == pytest.approx([0.0, 0.25, 0.75])
    scores, mask = random_rows()
    found = TopK(3, temperature=0.5)(scores, mask).weights
    for row, query, places, line in rows(scores, mask):
        best = sorted(range(len(line)), key=lambda j: -line[j])[:3]
        shares = softmax([line[j] for j in best], 0.5) if best else []
        expected = spread(shares, [places[j] for j in best])
        assert found[row, query].tolist() == pytest.approx(expected, abs=1e-6)


def test_top_k_among_equals_keeps_no_more_than_k():
    weights = TopK(2)(torch.zeros(1, 1, 5), None).weights
    assert sorted(weights[0, 0].tolist()) == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert torch.equal(TopK(9)(torch.zeros(1, 1, 2), None).weights, torch.full((1, 1, 2), 0.5))


def tsallis(line, alpha):
    """Find entmax by bisection on its threshold, in plain numbers."""
    scaled = [(alpha - 1.0) * score for score in line]
    low, high = max(scaled) - 1.0, max(scaled)
    for _ in range(100):
        middle = (low + high) / 2.0
        total = sum(max(s - middle, 0.0) ** (1.0 / (alpha - 1.0)) for s in scaled)
        low, high = (middle, high) if total > 1.0 else (low, middle)
    return [max(s - low, 0.0) ** (1.0 / (alpha - 1.0)) for s in scaled]


@pytest.mark.parametrize(
    ("selection", "alpha"),
    [
        (Sparsemax(), 2.0),
        (Entmax(), 1.5),
        (Entmax(1.2), 1.2),
        (Entmax(2.0), 2.0),
        (Entmax(3.0), 3.0),
        (Entmax(1.3, learned=True), 1.3),
    ],
)
def test_sparse_weights_are_those_of_plain_loops(selection, alpha):
    scores, mask = random_rows()
    found = selection(scores, mask).weights
    for row, query, places, line in rows(scores, mask):
        expected = spread(tsallis(line, alpha) if line else [], places)
        assert found[row, query].tolist() == pytest.approx(expected, abs=2e-5)


def test_sparse_weights_worked_by_hand():
    scores = torch.tensor([[[1.0, 0.5, -3.0]]])
    assert Sparsemax()(scores, None).weights[0, 0].tolist() == [0.75, 0.25, 0.0]
    # alpha = 1.5: weights are squares of (score / 2 - threshold).
    weights = Entmax()(torch.tensor([[[0.4, 0.0]]]), None).weights[0, 0]
    high, low = math.sqrt(weights[0]), math.sqrt(weights[1])
    assert high - low == pytest.approx(0.2, abs=1e-6)
    assert high**2 + low**2 == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("selection", "package"),
    [
        (Sparsemax(), lambda s: entmax.sparsemax(s, dim=-1)),
        (Entmax(), lambda s: entmax.entmax15(s, dim=-1)),
        (Entmax(1.7), lambda s: entmax.entmax_bisect(s, 1.7, dim=-1)),
    ],
)
def test_without_a_mask_values_and_gradients_are_the_packages(selection, package):
    scores = torch.randn(4, 3, 7, dtype=torch.float64, requires_grad=True)
    pattern = torch.randn(4, 3, 7, dtype=torch.float64)
    results = []
    for function in (lambda s: selection(s, None).weights, package):
        weights = function(scores)
        (gradient,) = torch.autograd.grad((weights * pattern).sum(), scores)
        results.append((weights, gradient))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-9)


def test_a_learned_alpha_gets_a_gradient_and_each_head_its_own():
    selection = Entmax(1.5, learned=True)
    selection(torch.randn(2, 3, 5), None).weights[..., 0].sum().backward()
    assert selection.alpha_logit.grad.abs() > 0
    attention = MultiHead(2, 8, selection=selection)
    with torch.no_grad():
        attention.selection.heads[0].alpha_logit.fill_(-6.0)  # nearly a softmax
        attention.selection.heads[1].alpha_logit.fill_(6.0)  # nearly sparsemax
    items = 3 * torch.randn(3, 9, 8)
    weights = attention(items, items).weights
    assert (weights[:, 0] > 0).float().mean() > (weights[:, 1] > 0).float().mean() + 0.2


def test_a_learned_alpha_stays_where_float32_can_follow():
    selection = Entmax(1.5, learned=True)
    scores = torch.randn(3, 2, 6)
    with torch.no_grad():
        selection.alpha_logit.fill_(-20.0)
    weights = selection(scores, None).weights
    assert torch.allclose(weights, scores.softmax(-1), atol=2e-3)
    weights[..., 0].sum().backward()
    assert selection.alpha_logit.grad.isfinite()


@pytest.mark.parametrize("number", [0.0, -1.0, math.inf, math.nan])
def test_temperatures_that_are_none_are_refused(number):
    for part in (Softmax, lambda t: TopK(temperature=t)):
        with pytest.raises(MechanismError, match=f"temperature must be positive.*got {number}"):
            part(number)


@pytest.mark.usefixtures("without_shapes")
def test_settings_are_checked():
    for k in (0, 2.5, math.nan):
        with pytest.raises(MechanismError, match=f"k must be at least 1; got {k}"):
            TopK(k)
    with pytest.raises(MechanismError, match="bias must be finite; got nan"):
        Sigmoid(bias=math.nan)
    with pytest.raises(MechanismError, match=r"alpha must lie between 1.001 and 5.0; got 1.0"):
        Entmax(1.0)
    with pytest.raises(MechanismError, match=r"alpha must lie between 1.001 and 1.999; got 2.0"):
        Entmax(2.0, learned=True)
    with pytest.raises(MechanismError, match="got Uniform and TopK"):
        Attention("uniform", "top_k")
