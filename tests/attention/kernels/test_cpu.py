from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.attention.kernels import cases
from tests.attention.kernels.cases import ODD, Sizes, check_attention, check_scores

from regard.attention.kernels import cpu, threads
from regard.attention.kernels.inputs import Inputs

FEATURES = Sizes(2, 40, 33, 20, 3, channels=3)


@pytest.fixture(params=[1, 2, 5], ids=lambda count: f"{count} threads")
def number_of_threads(request, monkeypatch):
    """Split even small work among so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    monkeypatch.setattr(threads, "WORTH", 1)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("sizes", [*ODD, FEATURES])
@pytest.mark.usefixtures("number_of_threads")
def test_scores_and_gradients_are_those_of_the_formula(sizes):
    check_scores(cpu, sizes)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("sizes", [*ODD, FEATURES])
@pytest.mark.usefixtures("number_of_threads")
def test_contexts_and_gradients_are_those_of_the_formula(sizes, masked):
    check_attention(cpu, sizes, masked=masked)


def test_unit_normal_scores_stay_within_the_stated_tolerance():
    check_scores(cpu, Sizes(4, 64, 64, 256))


@pytest.mark.parametrize("scale", [8.0, 40.0, 1e4])
def test_layers_out_of_reach_are_exact_too(scale):
    # exp(2 q) alone would leave float32 from 44 on.
    check_scores(cpu, Sizes(2, 9, 7, 16), scale=scale)


def test_opposites_that_are_large_cancel():
    own = Inputs(torch.full((1, 1, 4), 60.0), torch.full((1, 2, 4), -59.5), torch.ones(4))
    expected = 4 * torch.tanh(torch.tensor(0.5))
    assert torch.allclose(cpu.scores(own), expected.expand(1, 1, 2), atol=1e-5)


def test_infinity_is_a_tanh_of_one_and_nan_stays_where_it_is():
    query = torch.zeros(1, 3, 4)
    query[0, 0, 0], query[0, 1, 0] = torch.inf, torch.nan
    found = cpu.scores(Inputs(query, torch.zeros(1, 5, 4), torch.ones(4)))
    assert torch.allclose(found[0, 0], torch.ones(5))
    assert found[0, 1].isnan().all()
    assert torch.equal(found[0, 2], torch.zeros(5))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_worked_on_in_float32(dtype):
    sizes = Sizes(2, 20, 17, 32, 4, channels=2)
    own, read = cases.inputs(sizes, dtype=dtype), cases.source(sizes, dtype=dtype)
    wide = Inputs(*(None if t is None else t.detach().float() for t in own))
    assert torch.equal(cpu.scores(own), cpu.scores(wide))
    found = cpu.spread_scores(own, torch.ones(2, 20, 17))
    assert [gradient.dtype for gradient in found] == [dtype] * 5
    context, log_totals = cpu.attention(own, read)
    found = cpu.spread_context(own, read, (context, log_totals), torch.ones_like(context))
    assert all(gradient.dtype == dtype and gradient.isfinite().all() for gradient in found)


def test_strides_are_followed():
    sizes = Sizes(3, 20, 17, 32, 4)
    own, read = cases.inputs(sizes), cases.source(sizes)
    heads = torch.stack([own.query.detach(), own.query.detach()], dim=2)[:, :, 0]
    turned = own.key.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0)
    shared = read.mask[:1].expand(3, -1, -1)
    assert not heads.is_contiguous()
    assert not turned.is_contiguous()
    odd = own._replace(query=heads, key=turned)
    assert torch.equal(cpu.scores(odd), cpu.scores(own))
    straight = read._replace(mask=shared.contiguous())
    found, expected = (cpu.attention(own, r) for r in (read._replace(mask=shared), straight))
    assert torch.equal(found[0], expected[0])
    one = torch.ones(()).expand(found[0].shape)  # as the gradient of a sum comes
    left = cpu.spread_context(own, read, found, one)
    right = cpu.spread_context(own, read, found, one.contiguous())
    assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True) if a is not None)


def test_the_same_number_of_threads_gives_the_same_bits():
    sizes = Sizes(1, 200, 50, 64)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        given = torch.ones(1, 200, 50)
        first, second = (cpu.spread_scores(cases.inputs(sizes), given) for _ in range(2))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(first[:3], second[:3], strict=True))


def test_inputs_are_not_changed():
    own, read = cases.inputs(FEATURES), cases.source(FEATURES)
    kept = [tensor.detach().clone() for tensor in (*own.given, read.value)]
    context, log_totals = cpu.attention(own, read)
    cpu.spread_context(own, read, (context, log_totals), context)
    assert all(map(torch.equal, kept, (*own.given, read.value)))


@pytest.mark.usefixtures("number_of_threads")
def test_several_python_threads_at_once():
    sizes = Sizes(3, 70, 37, 33)
    expected = cpu.scores(cases.inputs(sizes))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cpu.scores(cases.inputs(sizes)), range(40)))
    assert all(torch.equal(scores, expected) for scores in found)


@pytest.mark.parametrize("sizes", [Sizes(0), Sizes(queries=0), Sizes(keys=0)])
def test_nothing_at_all(sizes):
    own, read = cases.inputs(sizes), cases.source(sizes, masked=False)
    assert cpu.scores(own).shape == sizes[:3]
    context, log_totals = cpu.attention(own, read)
    assert torch.equal(context, torch.zeros(sizes.batch, sizes.queries, sizes.value_dim))
    found = cpu.spread_context(own, read, (context, log_totals), context)
    assert all(gradient is None or not gradient.any() for gradient in found)


def test_what_it_serves(monkeypatch):
    assert cpu.serves([torch.ones(2), torch.ones(2, dtype=torch.bfloat16)])
    assert not cpu.serves([torch.ones(2), torch.ones(2, dtype=torch.float64)])
    assert not cpu.serves([torch.ones(2, device="meta")])
    monkeypatch.setattr(cpu, "_passes", lambda: None)  # without numba
    assert not cpu.serves([torch.ones(2)])
    with pytest.raises(ImportError, match=r"numba must be installed .*; got none\. Install it"):
        cpu.scores(cases.inputs(Sizes()))
