import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck

from regard.attention import Attention, MultiHead, Softmax
from regard.attention.kernels import dot


def _called(monkeypatch):
    calls = []
    real = nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        nn.functional,
        "scaled_dot_product_attention",
        lambda *parts, **more: calls.append(1) or real(*parts, **more),
    )
    return calls


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize(
    "make",
    [lambda s: Attention("scaled_dot", s), lambda s: MultiHead(2, 8, selection=s)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_scaled_dot_without_weights_is_pytorchs_own(monkeypatch, make, temperature, dtype):
    attention = make(Softmax(temperature)).to(dtype)
    query, items = torch.randn(3, 4, 8, dtype=dtype), torch.randn(3, 5, 8, dtype=dtype)
    mask = torch.rand(3, 4, 5) > 0.4
    mask[0, 0] = False
    mask[1] = False
    expected = attention(query, items, mask=mask)
    calls = _called(monkeypatch)
    found = attention(query, items, mask=mask, need_weights=False)
    assert calls
    assert found.weights is None
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    assert torch.allclose(found.context, expected.context, atol=tolerance)
    assert not found.context[1].any()


@pytest.mark.parametrize("masked", [True, False])
def test_gradients_are_those_with_weights(masked):
    attention = MultiHead(2, 8)
    query, items = torch.randn(2, 4, 8, requires_grad=True), torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [False] * 5]) if masked else None
    wanted = [query, *attention.parameters()]
    results = []
    for need_weights in (True, False):
        read = attention(query, items, mask=mask, need_weights=need_weights)
        results.append(torch.autograd.grad(read.context.sin().sum(), wanted, allow_unused=True))
    for left, right in zip(*results, strict=True):
        assert torch.allclose(left, right, atol=1e-5)
        assert right.isfinite().all()


def _read(query, key, value):
    mask = torch.tensor([[[True, True, False], [False, False, False]]])
    return dot.dot_attention(query, key, value, mask=mask, scale=0.7)


def test_derivatives_of_both_orders():
    shapes = (1, 2, 4), (1, 3, 4), (1, 3, 5)
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert gradcheck(_read, tensors)
    assert gradgradcheck(_read, tensors)
    frozen = [tensors[0], tensors[1].detach(), tensors[2]]
    assert gradcheck(_read, frozen)


def test_a_backward_pass_may_be_taken_twice():
    query, key = torch.randn(1, 2, 4, requires_grad=True), torch.randn(1, 3, 4)
    total = _read(query, key, key).sum()
    first, second = (torch.autograd.grad(total, query, retain_graph=True) for _ in range(2))
    assert torch.equal(first[0], second[0])


@pytest.mark.filterwarnings("ignore:.*script.*:DeprecationWarning")  # within PyTorch
def test_transforms_and_no_keys_take_the_formula(monkeypatch):
    query, key = torch.randn(1, 2, 4), torch.randn(1, 3, 4)
    expected = _read(query, key, key)
    calls = _called(monkeypatch)
    found = torch.func.vmap(lambda q: _read(q, key, key))(torch.stack([query, query]))
    assert torch.allclose(found[0], expected, atol=1e-6)
    empty = dot.dot_attention(query, key[:, :0], key[:, :0], mask=None, scale=1.0)
    assert torch.equal(empty, torch.zeros(1, 2, 4))
    assert not calls
