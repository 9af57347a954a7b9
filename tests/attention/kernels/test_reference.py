import pytest
import torch
from tests.attention.kernels.cases import (
    ODD,
    Sizes,
    check_attention,
    check_scores,
    distance,
    exact,
    exact_context,
    exact_scores,
)
from tests.attention.kernels.cases import inputs as drawn
from tests.attention.kernels.cases import source as read_from
from torch.autograd import gradcheck, gradgradcheck

from regard.attention.kernels import reference
from regard.attention.kernels.inputs import Inputs, Source

FEATURES = Sizes(2, 5, 4, 6, 3, channels=2)


@pytest.fixture
def few_elements(monkeypatch):
    """Let memory hold one query at a time."""
    monkeypatch.setattr(reference, "ELEMENTS", 64)


@pytest.mark.parametrize("sizes", [*ODD, FEATURES])
@pytest.mark.usefixtures("few_elements")
def test_chunks_give_what_the_formula_gives(sizes):
    own, read = drawn(sizes), read_from(sizes)
    assert distance(reference.scores(own), exact_scores(Inputs(*map(exact, own)))) < 1e-5
    wide = Source(exact(read.value), read.mask)
    expected = exact_context(Inputs(*map(exact, own)), wide)
    assert distance(reference.contexts(own, read), expected) < 1e-5


@pytest.mark.usefixtures("few_elements")
def test_first_and_second_derivatives_in_chunks():
    own = drawn(FEATURES, dtype=torch.float64)
    read = read_from(FEATURES, dtype=torch.float64)

    def scores(*tensors):
        return reference.scores(Inputs(*tensors))

    def attention(value, *tensors):
        return reference.contexts(Inputs(*tensors), Source(value, read.mask))

    assert gradcheck(scores, own.given)
    assert gradcheck(attention, [read.value, *own.given])
    assert gradgradcheck(scores, own.given)
    assert gradgradcheck(attention, [read.value, *own.given])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_scores_are_float32_or_wider(dtype):
    own, read = drawn(FEATURES, dtype=dtype), read_from(FEATURES, dtype=dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert reference.scores(own).dtype == wide
    assert reference.contexts(own, read).dtype == dtype


def test_memory_is_bounded_in_training(monkeypatch):
    sizes = Sizes(1, 64, 64, 32, 4)
    limit = 2 * 64 * 32  # two queries
    monkeypatch.setattr(reference, "ELEMENTS", limit)
    sizes_seen = []
    real = torch.tanh
    monkeypatch.setattr(torch, "tanh", lambda t: sizes_seen.append(t.numel()) or real(t))
    reference.scores(drawn(sizes)).sum().backward()
    assert len(sizes_seen) == 2 * 32  # once forward, and once more for each gradient
    assert max(sizes_seen) == limit


@pytest.mark.parametrize("sizes", [*ODD[:3], FEATURES])
@pytest.mark.usefixtures("few_elements")
def test_gradients_written_out_are_those_of_the_formula(sizes):
    check_scores(reference, sizes)
    check_attention(reference, sizes)
    check_attention(reference, sizes, masked=False)


def test_gradients_written_out_keep_float64():
    own = drawn(FEATURES, dtype=torch.float64)
    given = torch.randn(2, 5, 4, dtype=torch.float64)
    wanted = torch.autograd.grad(reference.scores(own), own.given, given)
    with torch.no_grad():
        found = reference.spread_scores(own, given)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(found, wanted, strict=True))
