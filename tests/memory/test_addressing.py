from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from regard.attention import Attention
from regard.attention.scores import Cosine
from regard.memory import addressing


def double(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, requires_grad=True)


def over_slots(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64).softmax(dim=-1).requires_grad_()


def test_bounded_is_softplus_below_the_cap_and_never_beyond() -> None:
    low = torch.linspace(-30, 5, 50)
    torch.testing.assert_close(addressing.bounded(low, 50.0), torch.nn.functional.softplus(low))
    far = torch.tensor([60.0, 1e4, 1e30, torch.inf, -1e30, -torch.inf])
    held = addressing.bounded(far, 50.0)
    assert (held <= 50.001).all()
    assert held[:4].min() > 49.9
    assert held[4:].tolist() == [0.0, 0.0]
    near = torch.linspace(-20, 60, 30, requires_grad=True)
    addressing.bounded(near, 50.0).sum().backward()
    assert near.grad is not None
    assert (near.grad > 0).all()
    assert addressing.bounded(torch.ones(1, dtype=torch.float16), 20.0).dtype == torch.float32


def test_content_is_the_attention_of_cosine_and_softmax() -> None:
    memory, key = torch.randn(3, 7, 5), torch.randn(3, 2, 5)
    attention = Attention(Cosine(5, 5, strength=4.0, learned=False))
    weights = addressing.content_weights(memory, key, torch.full((3, 2, 1), 4.0))
    torch.testing.assert_close(weights, attention(key, memory).weights, atol=1e-5, rtol=1e-4)


def test_content_worked_by_hand() -> None:
    memory = torch.tensor([[[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]])
    key = torch.tensor([[[0.0, 5.0]]])
    weights = addressing.content_weights(memory, key, torch.tensor([[[math.log(6.0)]]]))
    assert weights.flatten().tolist() == pytest.approx([6 / 8, 1 / 8, 1 / 8], abs=1e-5)


@pytest.mark.parametrize("level", [0.0, 1e-30, 1e-6, 1e4, 1e18])
def test_content_of_memories_of_any_size_has_finite_gradients(level: float) -> None:
    memory = torch.full((1, 4, 3), level, requires_grad=True)
    key = torch.full((1, 1, 3), level, requires_grad=True)
    strength = torch.full((1, 1, 1), 50.0, requires_grad=True)
    weights = addressing.content_weights(memory, key, strength)
    assert weights.flatten().tolist() == [0.25] * 4
    weights[..., 0].sum().backward()
    for tensor in (memory, key, strength):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_interpolation_goes_from_the_last_place_to_the_content() -> None:
    before, content = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.0, 1.0]]])
    for gate in (0.0, 0.25, 1.0):
        mixed = addressing.interpolated(content, before, torch.full((1, 1, 1), gate))
        assert mixed.flatten().tolist() == [1 - gate, gate]


@pytest.mark.parametrize(("slots", "reach"), [(7, 0), (7, 1), (7, 3), (4, 6), (1, 2), (128, 1)])
def test_a_shift_is_the_circular_convolution_in_plain_loops(slots: int, reach: int) -> None:
    weights = torch.rand(2, 3, slots).softmax(dim=-1)
    shift = torch.rand(2, 3, 2 * reach + 1).softmax(dim=-1)
    expected = torch.zeros_like(weights)
    for slot in range(slots):
        for offset in range(-reach, reach + 1):
            share = shift[..., offset + reach]
            expected[..., slot] += share * weights[..., (slot - offset) % slots]
    moved = addressing.shifted(weights, shift)
    torch.testing.assert_close(moved, expected)
    torch.testing.assert_close(moved.sum(dim=-1), torch.ones(2, 3))


def test_a_shift_by_whole_places_is_exact() -> None:
    weights = torch.rand(1, 1, 6)
    for offset in (-2, -1, 0, 1, 2):
        shift = torch.zeros(1, 1, 5)
        shift[..., offset + 2] = 1.0
        assert torch.equal(addressing.shifted(weights, shift), weights.roll(offset, dims=-1))


def test_sharpening_worked_by_hand() -> None:
    weights = torch.tensor([[[0.6, 0.3, 0.1]]])
    assert torch.allclose(addressing.sharpened(weights, torch.ones(1, 1, 1)), weights)
    squared = addressing.sharpened(weights, torch.full((1, 1, 1), 2.0)).flatten().tolist()
    assert squared == pytest.approx([0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46])


@pytest.mark.parametrize("exponent", [1.0, 21.0, 1e3])
@pytest.mark.parametrize(
    "weights", [[1.0, 0.0, 0.0], [1e-20, 1e-25, 0.0], [0.0, 0.0, 0.0], [1e-45, 1.0, 1e-38]]
)
def test_sharpening_stays_finite_where_weights_are_zero(
    weights: list[float], exponent: float
) -> None:
    given = torch.tensor([[weights]], requires_grad=True)
    power = torch.full((1, 1, 1), exponent, requires_grad=True)
    sharp = addressing.sharpened(given, power)
    assert sharp.sum().item() == pytest.approx(1.0)
    sharp.square().sum().backward()
    for tensor in (given, power):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    assert given.grad is not None
    assert (given.grad[given == 0] == 0).all()


def test_the_least_used_are_different_slots_and_the_first_of_equals() -> None:
    usage = torch.tensor([[0.5, 0.1, 0.7, 0.1], [0.0, 0.0, 0.0, 0.0]])
    least = addressing.least_used(usage, 2)
    assert least.tolist() == [
        [[0, 1, 0, 0], [0, 0, 0, 1]],
        [[1, 0, 0, 0], [0, 1, 0, 0]],
    ]


def test_recent_usage_fades() -> None:
    usage = torch.tensor([[1.0, 0.0]])
    read, write = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]]), torch.tensor([[[0.25, 0.0]]])
    after = addressing.recent_usage(usage, read, write, decay=0.5)
    assert after.tolist() == [[1.25, 1.5]]


def test_usage_of_one_writer_is_the_formula_of_the_paper() -> None:
    usage, write = torch.rand(2, 5), torch.rand(2, 1, 5)
    read, free = torch.rand(2, 3, 5), torch.rand(2, 3, 1)
    retention = torch.ones(2, 5)
    for reader in range(3):
        retention = retention * (1 - free[:, reader] * read[:, reader])
    expected = (usage + write[:, 0] - usage * write[:, 0]) * retention
    torch.testing.assert_close(addressing.next_usage(usage, write, read, free), expected)


def test_allocation_worked_by_hand() -> None:
    usage = torch.tensor([[0.5, 0.0, 1.0, 0.5], [1.0, 0.8, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    weights = addressing.allocation(usage)
    expected = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.2, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(weights, expected)


def test_allocation_in_plain_loops() -> None:
    usage = torch.rand(3, 6)
    weights = addressing.allocation(usage)
    for row, given in zip(usage.tolist(), weights.tolist(), strict=True):
        passed = 1.0
        for slot in sorted(range(6), key=row.__getitem__):
            assert given[slot] == pytest.approx((1 - row[slot]) * passed, abs=1e-6)
            passed *= row[slot]
    torch.testing.assert_close(weights.sum(dim=1), 1 - usage.prod(dim=1))


@pytest.mark.parametrize(
    "usage", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.5], [1e-30, 1e-30, 1.0]]
)
def test_allocation_at_the_ends_has_finite_gradients(usage: list[float]) -> None:
    given = torch.tensor([usage], requires_grad=True)
    weights = addressing.allocation(given)
    assert weights.isfinite().all()
    (weights * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert given.grad is not None
    assert given.grad.isfinite().all()


def test_links_in_plain_loops() -> None:
    links, precedence = torch.zeros(2, 1, 4, 4), torch.zeros(2, 1, 4)
    expected = links.clone()
    for _ in range(5):
        weights = torch.rand(2, 1, 4).softmax(dim=-1) * torch.rand(2, 1, 1)
        for i in range(4):
            for j in range(4):
                kept = (1 - weights[..., i] - weights[..., j]) * expected[..., i, j]
                fresh = weights[..., i] * precedence[..., j]
                expected[..., i, j] = 0.0 if i == j else kept + fresh
        links = addressing.next_links(links, precedence, weights)
        precedence = addressing.next_precedence(precedence, weights)
        torch.testing.assert_close(links, expected)
    assert (links >= 0).all()
    assert (links.sum(dim=-1) <= 1 + 1e-6).all()
    assert (links.sum(dim=-2) <= 1 + 1e-6).all()


def test_reading_follows_the_order_of_writing() -> None:
    links, precedence = torch.zeros(1, 1, 5, 5), torch.zeros(1, 1, 5)
    order = [3, 0, 4]
    for slot in order:
        weights = torch.eye(5)[slot].view(1, 1, 5)
        links = addressing.next_links(links, precedence, weights)
        precedence = addressing.next_precedence(precedence, weights)
    at = torch.eye(5)
    for earlier, later in itertools.pairwise(order):
        forwards = addressing.followed(links, at[earlier].view(1, 1, 5))
        assert torch.equal(forwards[0, 0, 0], at[later])
        back = addressing.followed(links, at[later].view(1, 1, 5), backwards=True)
        assert torch.equal(back[0, 0, 0], at[earlier])
    assert addressing.followed(links, at[4].view(1, 1, 5)).sum() == 0


def test_writing_worked_by_hand() -> None:
    memory = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    weights = torch.tensor([[[1.0, 0.0]]])
    erase, add = torch.tensor([[[1.0, 0.5]]]), torch.tensor([[[5.0, 0.0]]])
    after = addressing.written(memory, weights, erase, add)
    assert after.tolist() == [[[5.0, 1.0], [3.0, 4.0]]]


def test_all_heads_erase_before_any_adds() -> None:
    memory, weights = torch.rand(2, 4, 3), torch.rand(2, 2, 4)
    erase, add = torch.rand(2, 2, 3), torch.randn(2, 2, 3)
    expected = memory.clone()
    for head in range(2):
        expected *= 1 - weights[:, head, :, None] * erase[:, head, None]
    for head in range(2):
        expected += weights[:, head, :, None] * add[:, head, None]
    torch.testing.assert_close(addressing.written(memory, weights, erase, add), expected)
    turned = addressing.written(memory, weights.flip(1), erase.flip(1), add.flip(1))
    torch.testing.assert_close(turned, expected)


def test_gradients_in_float64() -> None:
    torch.manual_seed(0)
    memory, key, strength = double(2, 4, 3), double(2, 2, 3), double(2, 2, 1)
    assert gradcheck(addressing.content_weights, (memory, key, strength))
    before, after = over_slots(2, 2, 4), over_slots(2, 2, 4)
    assert gradcheck(addressing.interpolated, (before, after, double(2, 2, 1)))
    assert gradcheck(addressing.shifted, (before, over_slots(2, 2, 3)))
    exponent = (1.0 + torch.rand(2, 2, 1, dtype=torch.float64)).requires_grad_()
    assert gradcheck(addressing.sharpened, (before, exponent))
    assert gradcheck(addressing.allocation, (double(2, 4),))
    assert gradcheck(addressing.next_usage, (double(2, 4), after, before, double(2, 2, 1)))
    assert gradcheck(addressing.next_links, (double(2, 2, 4, 4), before, after))
    assert gradcheck(addressing.followed, (double(2, 2, 4, 4), before))
    assert gradcheck(addressing.written, (memory, before, double(2, 2, 3), double(2, 2, 3)))
    assert gradcheck(lambda raw: addressing.bounded(raw, 3.0), (double(5),))


def test_half_precision_is_raised_under_autocast_too() -> None:
    memory, key = torch.randn(1, 4, 3), torch.randn(1, 2, 3)
    strength = torch.ones(1, 2, 1)
    plain = addressing.content_weights(memory, key, strength)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(addressing.content_weights(memory, key, strength), plain)
        moved = addressing.shifted(plain, torch.ones(1, 2, 3) / 3)
        assert moved.dtype == torch.float32
    half = addressing.content_weights(memory.half(), key.half(), strength.half())
    assert half.dtype == torch.float32
