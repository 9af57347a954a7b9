"""Operators in graphs: run without jaxtyping's hook."""

import pytest
import torch
from tests.attention.kernels import cases
from tests.attention.kernels.cases import Sizes, distance, exact

from regard.attention import Attention, Coverage, MultiHead, kernels
from regard.attention.kernels import operators

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),  # within PyTorch
]
SIZES = (Sizes(2, 5, 7, 6, 3), Sizes(2, 5, 7, 6, 3, channels=2))


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def forced(request, monkeypatch):
    monkeypatch.setenv("REGARD_KERNEL", request.param)
    return request.param


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operators_are_what_pytorch_expects(sizes, dtype):
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    own, read = cases.inputs(sizes, dtype=dtype), cases.source(sizes, dtype=dtype)
    torch.library.opcheck(operators.SCORES, tuple(own), test_utils=tests)
    torch.library.opcheck(operators.CONTEXT, (read.value, read.mask, *own), test_utils=tests)
    given = torch.randn(2, 5, 7)
    torch.library.opcheck(operators.SPREAD_SCORES, (given, *own), test_utils=tests[0::2])


@pytest.mark.parametrize("sizes", SIZES)
def test_gradients_through_the_operators(sizes):
    own, read = cases.inputs(sizes), cases.source(sizes)
    wide = cases.Inputs(*map(exact, own))
    wide_read = cases.Source(exact(read.value), read.mask)
    scores = operators.SCORES(*own)
    context = operators.CONTEXT(read.value, read.mask, *own)[0]
    total = (scores.sin().sum() + context.sin().sum()).float()
    expected = (
        cases.exact_scores(wide).sin().sum() + cases.exact_context(wide, wide_read).sin().sum()
    )
    found = torch.autograd.grad(total, [*own.given, read.value])
    wanted = torch.autograd.grad(expected, [*wide.given, wide_read.value])
    assert max(map(distance, found, wanted)) < 1e-4


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("need_weights", [True, False])
def test_compiled_models_train(need_weights, dynamic):
    torch.manual_seed(0)
    attention = Attention("additive", query_dim=4, key_dim=3, hidden_dim=6)

    def loss(query, key):
        read = attention(query, key, need_weights=need_weights)
        return read.context.square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for keys in (5, 9):
        query, key = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, keys, 3)
        parameters = [query, *attention.parameters()]
        found = torch.autograd.grad(compiled(query, key), parameters)
        wanted = torch.autograd.grad(loss(query, key), parameters)
        for left, right in zip(found, wanted, strict=True):
            assert torch.allclose(left, right, atol=1e-4, rtol=1e-3)


def test_inductor_and_autocast():
    attention = MultiHead(2, 8, score="additive")
    compiled = torch.compile(attention, fullgraph=True)
    items = torch.randn(2, 5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = compiled(items, items, need_weights=False).context
        expected = attention(items, items, need_weights=False).context
    assert torch.allclose(found, expected, atol=3e-2)


def test_a_step_with_coverage_compiles():
    attention = Attention(Coverage(4, 4, hidden_dim=6))
    query, key = torch.randn(2, 1, 4), torch.randn(2, 5, 4)
    with torch.no_grad():
        state = attention(query, key).state
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    found, expected = (a(query, key, state=state).context for a in (compiled, attention))
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("need_weights", [True, False])
def test_export_holds_the_operator(need_weights):
    attention = Attention("additive", query_dim=4, key_dim=3, hidden_dim=6).eval()
    inputs = (torch.randn(2, 3, 4), torch.randn(2, 5, 3))
    keys = torch.export.Dim("keys", min=2, max=64)
    program = torch.export.export(
        attention,
        inputs,
        {"need_weights": need_weights},
        dynamic_shapes={"query": None, "key": {1: keys}, "need_weights": None},
    )
    assert any("regard.additive" in str(node.target) for node in program.graph.nodes)
    longer = (inputs[0], torch.randn(2, 9, 3))
    found = program.module()(*longer, need_weights=need_weights)
    expected = attention(*longer, need_weights=need_weights)
    assert torch.allclose(found[0], expected[0], atol=1e-5)


def test_float64_stays_in_the_compilers_hands():
    own = cases.inputs(Sizes(), dtype=torch.float64)
    compiled = torch.compile(kernels.additive_scores, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(*own[:3]), cases.exact_scores(own))
