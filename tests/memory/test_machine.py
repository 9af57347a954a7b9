from __future__ import annotations

import pytest
import torch

from regard.errors import MechanismError
from regard.memory import Layout, Machine
from regard.memory.machine import CONSTANT

LAYOUT = Layout(slots=6, width=4)


def test_a_constant_memory_is_the_published_one_and_no_parameter() -> None:
    machine = Machine(3, 2, LAYOUT)
    first = machine.first_state(2).structure
    assert (first.memory == CONSTANT).all()
    assert "structure.first_memory" not in dict(machine.named_parameters())


def test_a_random_memory_is_drawn_once_and_saved() -> None:
    torch.manual_seed(1)
    machine, other = (Machine(3, 2, LAYOUT, initial="random") for _ in range(2))
    memory = machine.first_state(2).structure.memory
    assert torch.equal(memory[0], memory[1])
    assert memory.abs().max() <= 1.0
    assert memory.std() > 0.1
    assert torch.equal(machine.first_state(2).structure.memory, memory)
    assert not torch.equal(other.first_state(2).structure.memory, memory)
    other.load_state_dict(machine.state_dict())
    assert torch.equal(other.first_state(2).structure.memory, memory)
    assert "structure.first_memory" not in dict(machine.named_parameters())


def test_a_learned_memory_learns() -> None:
    machine = Machine(3, 2, LAYOUT, initial="learned")
    machine(torch.randn(2, 3, 3))[0].sum().backward()
    gradient = dict(machine.named_parameters())["structure.first_memory"].grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_every_parameter_bears_on_the_output() -> None:
    for addressing in ("ntm", "lru", "dnc"):
        machine = Machine(3, 2, Layout(6, 4, readers=2, writers=2), addressing=addressing)
        machine(torch.randn(2, 4, 3))[0].square().sum().backward()
        for name, parameter in machine.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("addressing", ["ntm", "lru", "dnc"])
def test_a_machine_learns_to_say_what_it_was_told_two_steps_ago(addressing: str) -> None:
    """A feed-forward controller has nothing but its memory to remember with."""
    torch.manual_seed(1)
    machine = Machine(
        2,
        1,
        Layout(slots=4, width=4),
        controller="feed_forward",
        hidden_dim=16,
        addressing=addressing,
    )
    optimizer = torch.optim.Adam(machine.parameters(), lr=0.02)
    for _ in range(150):
        bits = torch.randint(0, 2, (16, 1)).float()
        inputs = torch.zeros(16, 3, 2)
        inputs[:, 0, 0], inputs[:, 0, 1] = bits[:, 0], 1.0
        said = machine(inputs)[0][:, -1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(said, bits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_names_that_are_none() -> None:
    with pytest.raises(MechanismError, match=r"addressing .*; got 'nmt': did you mean 'ntm'"):
        Machine(3, 2, addressing="nmt")
    with pytest.raises(MechanismError, match=r"initial .*: did you mean 'constant'"):
        Machine(3, 2, initial="constnat")
