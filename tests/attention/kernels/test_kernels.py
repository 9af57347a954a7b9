"""Fused additive attention through its public doors, and from the core."""

import gc
import importlib
import subprocess
import sys

import pytest
import torch
from tests.attention.kernels import cases
from tests.attention.kernels.cases import Sizes, distance, exact, exact_context, exact_scores
from torch.autograd import gradcheck, gradgradcheck

from regard.attention import Additive, Attention, Coverage, LocationSensitive, MultiHead, kernels
from regard.attention.kernels import cpu, fused, loading
from regard.testing import check_attention


@pytest.fixture(params=["cpu", "reference"])
def forced(request, monkeypatch):
    """Choose a kernel, for small problems too."""
    monkeypatch.setenv("REGARD_KERNEL", request.param)
    return request.param


def _called(monkeypatch, name):
    calls = []
    real = getattr(cpu, name)
    monkeypatch.setattr(cpu, name, lambda *parts: calls.append(1) or real(*parts))
    return calls


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("channels", [0, 2])
@pytest.mark.parametrize("queries", [1, 5])
def test_scores_and_contexts_with_gradients(queries, channels):
    sizes = Sizes(2, queries, 7, 6, 3, channels)
    own, read = cases.inputs(sizes), cases.source(sizes)
    more = {"features": own.features, "matrix": own.matrix}
    wide = cases.Inputs(*map(exact, own))
    scores = kernels.additive_scores(*own[:3], **more)
    assert distance(scores, exact_scores(wide)) < 1e-5
    context = kernels.additive_attention(*own[:3], read.value, mask=read.mask, **more)
    wide_read = cases.Source(exact(read.value), read.mask)
    expected = exact_context(wide, wide_read)
    assert distance(context, expected) < 1e-5
    given = cases.given_like(context)
    found = torch.autograd.grad(context, [*own.given, read.value], given)
    wanted = torch.autograd.grad(expected, [*wide.given, wide_read.value], given.double())
    assert max(map(distance, found, wanted)) < 1e-4


@pytest.mark.usefixtures("forced")
def test_leading_axes_broadcast():
    query, key = torch.randn(2, 1, 4, 6), torch.randn(3, 5, 6)
    vector, value = torch.randn(6), torch.randn(2, 3, 5, 2)
    expected = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ vector
    found = kernels.additive_scores(query, key, vector)
    assert found.shape == (2, 3, 4, 5)
    assert torch.allclose(found, expected, atol=1e-5)
    mask = torch.rand(2, 1, 1, 5) > 0.3
    context = kernels.additive_attention(query, key, vector, value, mask=mask)
    weights = expected.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()
    assert torch.allclose(context, weights @ value, atol=1e-5)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("score", [Additive, Coverage, LocationSensitive])
def test_mechanisms_conform(score):
    check_attention(Attention(score(4, 4, hidden_dim=6)), dtypes=(torch.float64, torch.bfloat16))


@pytest.mark.usefixtures("forced")
def test_heads_conform():
    check_attention(MultiHead(2, 8, score="additive"))


def test_a_second_derivative_is_that_of_the_formula(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    sizes = Sizes(2, 3, 4, 5, 2)
    own, read = cases.inputs(sizes), cases.source(sizes)

    def penalty(query, key, vector, value):
        context = kernels.additive_attention(query, key, vector, value, mask=read.mask)
        scores = kernels.additive_scores(query, key, vector)
        total = context.square().sum() + scores.square().sum()
        (slope,) = torch.autograd.grad(total, query, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), (query, key, vector, value))

    tensors = (*own.given, read.value)
    found = penalty(*tensors)
    wanted = penalty(*map(exact, tensors))
    assert max(map(distance, found, wanted)) < 1e-4


def test_float64_passes_gradcheck():
    sizes = Sizes(2, 3, 4, 5, 2)
    own, read = cases.inputs(sizes, dtype=torch.float64), cases.source(sizes, dtype=torch.float64)

    def attention(value, *parts):
        return kernels.additive_attention(*parts, value, mask=read.mask)

    assert gradcheck(attention, (read.value, *own.given))
    assert gradgradcheck(attention, (read.value, *own.given))
    assert gradcheck(kernels.additive_scores, tuple(own.given))


@pytest.mark.filterwarnings("ignore:.*script.*:DeprecationWarning")  # within PyTorch
def test_transforms_of_functions(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    query, key, vector, *_ = (t if t is None else t.detach() for t in cases.inputs(Sizes()))

    def total(one):
        return kernels.additive_scores(one, key, vector).square().sum()

    leaf = query.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(leaf), leaf)
    assert torch.allclose(torch.func.grad(total)(query), expected, atol=1e-4)
    stacked = torch.stack([query, 2 * query])
    found = torch.func.vmap(total)(stacked)
    assert torch.allclose(found, torch.stack([total(query), total(2 * query)]), rtol=1e-4)
    _, tangent = torch.func.jvp(total, (query,), (torch.ones_like(query),))
    assert torch.allclose(tangent, expected.sum(), rtol=1e-4)


def test_autocast_keeps_scores_in_float32(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    attention = Attention("additive", query_dim=4, key_dim=3, hidden_dim=5)
    query, key = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 6, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        context, weights, *_ = attention(query, key)
        read = attention(query, key, need_weights=False).context
    assert weights.dtype == torch.float32
    assert torch.allclose(read, context, atol=1e-2)
    read.sum().backward()
    assert query.grad.dtype == torch.float32
    assert query.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize(
    "make",
    [
        lambda selection: Attention(Additive(8, 8, hidden_dim=6), selection),
        lambda selection: Attention(Additive(8, 8, hidden_dim=6, weight_norm=True), selection),
        lambda selection: MultiHead(2, 8, score="additive", selection=selection),
    ],
)
def test_the_core_reads_in_one_pass_where_no_weights_are_kept(monkeypatch, make, temperature):
    from regard.attention import Softmax

    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    attention = make(Softmax(temperature))
    calls = _called(monkeypatch, "attention")
    query, items = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True, False, True, False, False]])
    expected = attention(query, items, mask=mask)
    assert not calls
    found = attention(query, items, mask=mask, need_weights=False)
    assert calls
    assert found.weights is None
    assert found.distribution is None
    assert torch.allclose(found.context, expected.context, atol=1e-5)


def test_where_weights_have_to_be_seen_nothing_is_skipped(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    calls = _called(monkeypatch, "attention")
    query, items = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    dropped = Attention("additive", query_dim=8, key_dim=8, hidden_dim=4, dropout=0.5).train()
    dropped(query, items, need_weights=False)
    stateful = Attention(Coverage(8, 8, hidden_dim=4))
    assert stateful(query, items, need_weights=False).state is not None
    sparse = Attention("additive", "sparsemax", query_dim=8, key_dim=8, hidden_dim=4)
    sparse(query, items, need_weights=False)
    assert not calls


def test_items_that_are_not_finite_under_a_mask(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    attention = Attention("additive", query_dim=4, key_dim=4, hidden_dim=6)
    items = torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    expected = attention(items, items, mask=mask, need_weights=False).context
    items = items.masked_fill(~mask.unsqueeze(-1), torch.nan)
    query = torch.where(mask.unsqueeze(-1), items, 0.0)
    found = attention(query, items, mask=mask, need_weights=False).context
    assert torch.allclose(found[mask], expected[mask])


def test_small_problems_take_the_formula(monkeypatch):
    monkeypatch.delenv("REGARD_KERNEL", raising=False)
    calls = _called(monkeypatch, "scores")
    with torch.no_grad():
        kernels.additive_scores(torch.ones(1, 1, 8), torch.ones(1, 8, 8), torch.ones(8))
        many = kernels.SMALL // 8
        kernels.additive_scores(torch.ones(1, 1, 8), torch.ones(1, many, 8), torch.ones(8))
        assert not calls
        kernels.additive_scores(torch.ones(1, 2, 8), torch.ones(1, many // 2, 8), torch.ones(8))
        assert len(calls) == 1
        kernels.additive_scores(torch.ones(1, 1, 8), torch.ones(1, many + 1, 8), torch.ones(8))
    assert len(calls) == 2


@pytest.mark.parametrize("enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(enabled):
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with loading.without_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ImportError), loading.without_collection():
            importlib.import_module("regard.absent")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_backward_is_the_kernels_own(monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", "cpu")
    calls = _called(monkeypatch, "spread_scores")
    own = cases.inputs(Sizes())
    kernels.additive_scores(*own[:3]).sum().backward()
    assert calls
    frozen = own._replace(key=own.key.detach())
    kernels.additive_scores(*frozen[:3]).sum().backward()
    assert issubclass(fused.Scores, torch.autograd.Function)


def test_importing_regard_loads_no_numba():
    code = "import sys, regard.attention; print('numba' in sys.modules or 'triton' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "False"
