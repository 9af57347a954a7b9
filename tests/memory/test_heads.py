from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.errors import MechanismError
from regard.memory import addressing
from regard.memory.heads import (
    ADDRESSINGS,
    EXPONENT_CAP,
    STRENGTH_CAP,
    Layout,
    LinkedHeads,
    RecentHeads,
    Slots,
    TuringHeads,
)

LAYOUT = Layout(slots=6, width=4, readers=2, writers=2, reach=2)


def run(heads: torch.nn.Module, steps: int = 4, scale: float = 1.0) -> list[Slots]:
    torch.manual_seed(3)
    states = [heads.first(torch.full((3, 6, 4), 1e-6))]
    for _ in range(steps):
        states.append(heads(scale * torch.randn(3, 5), states[-1]))
    return states


@pytest.mark.parametrize("name", ADDRESSINGS)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_weights_are_weights(name: str, scale: float) -> None:
    for state in run(ADDRESSINGS[name](5, LAYOUT), scale=scale)[1:]:
        for weights in (state.read_weights, state.write_weights):
            assert weights.shape == (3, 2, 6)
            assert (weights >= 0).all()
            assert (weights.sum(dim=-1) <= 1 + 1e-5).all()
        torch.testing.assert_close(state.reads, state.read_weights @ state.memory)
        assert state.memory.isfinite().all()


@pytest.mark.parametrize("name", ["ntm", "lru"])
def test_heads_that_always_read_read_all_of_one(name: str) -> None:
    for state in run(ADDRESSINGS[name](5, LAYOUT))[1:]:
        torch.testing.assert_close(state.read_weights.sum(dim=-1), torch.ones(3, 2))


def test_turing_heads_begin_at_the_first_slot_and_can_learn_not_to() -> None:
    heads = TuringHeads(5, LAYOUT)
    first = heads.first(torch.zeros(3, 6, 4))
    assert (first.read_weights[..., 0] > 0.99).all()
    assert (first.write_weights[..., 0] > 0.99).all()
    first.read_weights[..., 1].sum().backward()
    assert heads.first_weights.grad is not None
    assert heads.first_weights.grad.abs().sum() > 0


def test_turing_heads_in_the_order_of_the_paper() -> None:
    """One head each: the fields of the layer, followed through the four stages."""
    layout = Layout(slots=6, width=4)
    heads = TuringHeads(5, layout)
    before = run(heads, steps=2)[-1]
    said = torch.randn(3, 5)
    raw = (said @ heads.addresses.weight.T + heads.addresses.bias).view(3, 2, 10)
    weights = []
    for head, last in enumerate((before.read_weights[:, 0], before.write_weights[:, 0])):
        fields = raw[:, head]
        strength = torch.nn.functional.softplus(fields[:, 4:5])
        key = fields[:, :4].tanh()
        alike = torch.cosine_similarity(before.memory, key.unsqueeze(1), dim=-1, eps=1e-8)
        content = (strength * alike).softmax(dim=-1)
        gate = fields[:, 5:6].sigmoid()
        mixed = gate * content + (1 - gate) * last
        shift = fields[:, 6:9].softmax(dim=-1)
        moved = sum(shift[:, place, None] * mixed.roll(place - 1, dims=1) for place in range(3))
        power = moved ** (1 + torch.nn.functional.softplus(fields[:, 9:10]))
        weights.append(power / power.sum(dim=-1, keepdim=True))
    after = heads(said, before)
    torch.testing.assert_close(after.read_weights[:, 0], weights[0], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(after.write_weights[:, 0], weights[1], atol=1e-4, rtol=1e-3)


def set_outputs(layer: torch.nn.Linear, numbers: Tensor) -> None:
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(numbers)


def test_recent_heads_take_the_slots_in_turn() -> None:
    """With gates that always choose the least used slot, each write goes to a fresh one."""
    layout = Layout(slots=4, width=3)
    heads = RecentHeads(5, layout)
    set_outputs(heads.contents, torch.tensor([1.0, 2.0, 3.0, -100.0]))
    set_outputs(heads.keys, torch.tensor([1.0, 2.0, 3.0, 100.0]))
    state = heads.first(torch.full((1, 4, 3), 1e-6))
    places = []
    for _ in range(4):
        state = heads(torch.zeros(1, 5), state)
        places.append(int(state.write_weights.argmax()))
        assert state.write_weights.max() == 1.0
    assert sorted(places) == [0, 1, 2, 3]


def test_a_recent_writer_can_write_where_was_read_last_and_empties_only_the_least_used() -> None:
    layout = Layout(slots=4, width=3)
    heads = RecentHeads(5, layout)
    set_outputs(heads.contents, torch.tensor([1.0, 2.0, 3.0, 100.0]))
    before = run(heads, steps=0)[0]
    memory = torch.ones(3, 4, 3)
    read = torch.eye(4)[2].expand(3, 1, 4)
    usage = torch.tensor([[1.0, 0.5, 3.0, 2.0]]).expand(3, 4)
    before = before._replace(memory=memory, read_weights=read, usage=usage)
    after = heads(torch.zeros(3, 5), before)
    torch.testing.assert_close(after.write_weights, read)
    added = torch.tensor([1.0, 2.0, 3.0]).tanh()
    expected = torch.stack([torch.ones(3), torch.zeros(3), 1 + added, torch.ones(3)])
    torch.testing.assert_close(after.memory[0], expected)


def test_linked_heads_take_free_slots_and_read_in_the_order_of_writing() -> None:
    layout = Layout(slots=4, width=3)
    heads = LinkedHeads(5, layout)
    state = heads.first(torch.full((1, 4, 3), 1e-6))
    write = torch.tensor([0.0, 0.0, 0.0, 0.0, 100.0, 100.0])  # to free slots, gate open
    set_outputs(heads.writers, write)
    set_outputs(heads.contents, torch.tensor([100.0] * 3 + [0.5] * 3))
    # Read by what was written before, with nothing given free.
    set_outputs(heads.readers, torch.tensor([0.0, 0.0, 0.0, 0.0, -100.0, 0.0, 0.0, 100.0]))
    for place in range(3):
        state = heads(torch.zeros(1, 5), state)
        assert state.write_weights[0, 0].tolist() == torch.eye(4)[place].tolist()
    # Now stop writing, and read backwards from the last slot.
    set_outputs(heads.writers, torch.tensor([0.0, 0.0, 0.0, 0.0, 100.0, -100.0]))
    state = state._replace(read_weights=torch.eye(4)[2].view(1, 1, 4))
    for place in (1, 0):
        state = heads(torch.zeros(1, 5), state)
        torch.testing.assert_close(state.read_weights[0, 0], torch.eye(4)[place])
        assert state.write_weights.sum() == 0
    set_outputs(heads.readers, torch.tensor([0.0, 0.0, 0.0, 0.0, -100.0, 0.0, 100.0, 0.0]))
    for place in (1, 2):
        state = heads(torch.zeros(1, 5), state)
        torch.testing.assert_close(state.read_weights[0, 0], torch.eye(4)[place])


def test_several_linked_writers_take_different_slots() -> None:
    heads = LinkedHeads(5, LAYOUT)
    set_outputs(heads.writers, torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 100.0]).repeat(2))
    first = heads.first(torch.full((1, 6, 4), 1e-6))
    after = heads(torch.zeros(1, 5), first)
    assert after.write_weights[0].tolist() == torch.eye(6)[:2].tolist()


def test_a_slot_that_is_given_free_is_taken_again() -> None:
    layout = Layout(slots=3, width=3)
    heads = LinkedHeads(5, layout)
    set_outputs(heads.writers, torch.tensor([0.0, 0.0, 0.0, 0.0, 100.0, 100.0]))
    state = heads.first(torch.full((1, 3, 3), 1e-6))
    for _ in range(3):
        set_outputs(heads.readers, torch.tensor([0.0] * 4 + [-100.0] + [0.0] * 3))
        state = heads(torch.zeros(1, 5), state)
    state = state._replace(read_weights=torch.eye(3)[1].view(1, 1, 3))
    set_outputs(heads.readers, torch.tensor([0.0] * 4 + [100.0] + [0.0] * 3))
    state = heads(torch.zeros(1, 5), state)
    torch.testing.assert_close(state.write_weights[0, 0], torch.eye(3)[1])


def test_strengths_and_exponents_are_capped() -> None:
    heads = TuringHeads(5, Layout(slots=6, width=4))
    set_outputs(heads.addresses, torch.full((20,), 1e30))
    after = heads(torch.zeros(1, 5), heads.first(torch.full((1, 6, 4), 1e-6)))
    assert after.memory.isfinite().all()
    assert addressing.bounded(torch.tensor(1e30), STRENGTH_CAP) <= STRENGTH_CAP + 1e-3
    assert addressing.bounded(torch.tensor(1e30), EXPONENT_CAP) <= EXPONENT_CAP + 1e-3


@pytest.mark.parametrize("field", ["slots", "width", "readers", "writers"])
def test_l8_sizes_below_one_are_refused(field: str) -> None:
    with pytest.raises(MechanismError, match=f"{field} must be at least 1; got 0"):
        Layout(**{field: 0})


def test_l8_other_numbers_out_of_range() -> None:
    with pytest.raises(MechanismError, match="reach must not be negative; got -1"):
        Layout(reach=-1)
    with pytest.raises(MechanismError, match=r"writers must be at most 1, .*; got 2"):
        RecentHeads(5, Layout(writers=2))
    with pytest.raises(MechanismError, match="decay must be from 0 to below 1; got 1"):
        RecentHeads(5, Layout(), decay=1.0)
