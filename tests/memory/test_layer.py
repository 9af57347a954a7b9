from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from regard.errors import MaskError, MechanismError, ShapeError
from regard.memory import Layout, Machine, NeuralStack
from regard.memory.layer import GRADIENT_BOUND, LayerState, MemoryLayer

LAYOUT = Layout(slots=6, width=4, readers=2)
LAYERS: dict[str, Callable[[], MemoryLayer]] = {
    **{
        f"{addressing} {controller}": lambda a=addressing, c=controller: Machine(
            3, 2, LAYOUT, addressing=a, controller=c, hidden_dim=5
        )
        for addressing in ("ntm", "lru", "dnc")
        for controller in ("lstm", "feed_forward")
    },
    **{
        kind: lambda k=kind: NeuralStack(3, 2, kind=k, hidden_dim=5, width=4)
        for kind in ("stack", "queue", "deque")
    },
}


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest) -> MemoryLayer:
    torch.manual_seed(1)
    return LAYERS[request.param]()


def close(one: LayerState, other: LayerState) -> None:
    for a, b in zip(one.tensors(), other.tensors(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_sequence_at_once_is_the_sequence_in_pieces(layer: MemoryLayer) -> None:
    inputs = torch.randn(3, 5, 3)
    outputs, state = layer(inputs)
    first, middle = layer(inputs[:, :2])
    second, last = layer(inputs[:, 2:], middle)
    torch.testing.assert_close(torch.cat([first, second], dim=1), outputs)
    close(last, state)
    alone: LayerState | None = None
    for place in range(5):
        said, alone = layer.step(inputs[:, place], alone)
        torch.testing.assert_close(said, outputs[:, place])
    assert alone is not None
    close(alone, state)


def test_each_sequence_is_as_if_it_stood_alone(layer: MemoryLayer) -> None:
    inputs, lengths = torch.randn(4, 5, 3), torch.tensor([5, 0, 2, 4])
    outputs, state = layer(inputs, lengths=lengths)
    trace = layer.traced(inputs, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, last = layer(inputs[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        assert (outputs[row, length:] == 0).all()
        assert (trace.read_weights[row, :, length:] == 0).all()
        assert (trace.write_weights[row, :, length:] == 0).all()
        one = state.select(torch.tensor([row]))
        torch.testing.assert_close(one.controller, last.controller)
        torch.testing.assert_close(
            layer.structure.read(one.structure), layer.structure.read(last.structure)
        )
        goes_on, other = layer(inputs[row : row + 1], one)
        again, _ = layer(inputs[row : row + 1], last)
        torch.testing.assert_close(goes_on, again)
        assert other.controller.shape == one.controller.shape


@pytest.mark.parametrize("held", [torch.nan, torch.inf, -1e30])
def test_l1b_padding_may_hold_anything(layer: MemoryLayer, held: float) -> None:
    inputs, lengths = torch.randn(2, 4, 3), torch.tensor([4, 2])
    clean = inputs.clone().requires_grad_()
    layer(clean, lengths=lengths)[0].sum().backward()
    expected = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    layer.zero_grad()
    broken = inputs.clone()
    broken[1, 2:] = held
    broken.requires_grad_()
    outputs, _ = layer(broken, lengths=lengths)
    assert torch.equal(outputs, layer(inputs, lengths=lengths)[0])
    outputs.sum().backward()
    assert broken.grad is not None
    assert (broken.grad[1, 2:] == 0).all()
    assert torch.equal(broken.grad, clean.grad)
    found = [p.grad for p in layer.parameters() if p.grad is not None]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 0, 3), (0, 0, 3)])
def test_l2_no_sequence_and_no_step(layer: MemoryLayer, shape: tuple[int, int, int]) -> None:
    outputs, state = layer(torch.zeros(shape))
    assert outputs.shape == (*shape[:2], 2)
    assert state.controller.shape[0] == shape[0]
    trace = layer.traced(torch.zeros(shape), lengths=torch.zeros(shape[0], dtype=torch.long))
    assert trace.read_weights.shape[2] == shape[1]
    assert trace.write_weights.shape[2] == shape[1]
    if shape[1]:
        outputs.sum().backward()
        assert all(p.grad is None or (p.grad == 0).all() for p in layer.parameters())


def test_l6_lengths_of_zero_leave_the_state(layer: MemoryLayer) -> None:
    _, before = layer(torch.randn(2, 3, 3))
    outputs, after = layer(torch.randn(2, 2, 3), before, torch.tensor([0, 0]))
    assert (outputs == 0).all()
    assert torch.equal(after.controller, before.controller)
    read = layer.structure.read
    torch.testing.assert_close(read(after.structure), read(before.structure))


def test_l10_a_copy_and_saved_weights_say_the_same(layer: MemoryLayer) -> None:
    inputs = torch.randn(2, 3, 3)
    outputs = layer(inputs)[0]
    assert torch.equal(copy.deepcopy(layer)(inputs)[0], outputs)
    torch.manual_seed(9)
    other = copy.deepcopy(layer)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.normal_()
    assert not torch.equal(other(inputs)[0], outputs)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(inputs)[0], outputs)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_l10_types(layer: MemoryLayer, kind: torch.dtype) -> None:
    inputs = torch.randn(2, 4, 3)
    plain = layer(inputs)[0]
    outputs, state = layer.to(kind)(inputs.to(kind))
    assert outputs.dtype == kind
    wide = torch.float64 if kind == torch.float64 else torch.float32
    assert {tensor.dtype for tensor in state.tensors()} == {wide}
    tolerance = 1e-5 if kind == torch.float64 else 0.05
    torch.testing.assert_close(outputs.to(plain.dtype), plain, atol=tolerance, rtol=tolerance)
    outputs.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


def test_l10_autocast_changes_nothing(layer: MemoryLayer) -> None:
    inputs = torch.randn(2, 4, 3)
    plain = layer(inputs)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(layer(inputs)[0], plain)


def test_inputs_and_states_are_not_changed(layer: MemoryLayer) -> None:
    inputs = torch.randn(2, 3, 3)
    _, state = layer(inputs)
    copies = [tensor.clone() for tensor in (inputs, *state.tensors())]
    layer(inputs, state)
    for one, other in zip((inputs, *state.tensors()), copies, strict=True):
        assert torch.equal(one, other)


def test_a_state_can_be_detached(layer: MemoryLayer) -> None:
    inputs = torch.randn(2, 3, 3, requires_grad=True)
    _, state = layer(inputs)
    layer(torch.randn(2, 3, 3), state.detach())[0].sum().backward()
    assert inputs.grad is None
    assert type(state.detach().structure) is type(state.structure)
    layer(torch.randn(2, 3, 3), state)[0].sum().backward()
    assert inputs.grad is not None


def test_gradients_in_float64(layer: MemoryLayer) -> None:
    layer = layer.double()
    inputs = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x)[0], (inputs,))


def test_the_trace_says_what_was_done(layer: MemoryLayer) -> None:
    inputs = torch.randn(2, 4, 3)
    trace = layer.traced(inputs)
    outputs, state = layer(inputs)
    assert torch.equal(trace.outputs, outputs)
    close(trace.state, state)
    assert trace.read_weights.shape[:3:2] == (2, 4)
    assert (trace.read_weights >= 0).all()
    assert (trace.read_weights.sum(dim=-1) <= 1 + 1e-5).all()


def test_hundreds_of_steps_of_extreme_inputs_have_finite_gradients(layer: MemoryLayer) -> None:
    long = isinstance(layer, Machine) and layer.controller.states
    steps = 500 if long else 100
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(5.0)
    scale = torch.tensor([1e-4, 1.0, 1e4, 1e30])
    inputs = torch.randn(1, steps, 3) * scale[torch.randint(4, (1, steps, 1))]
    inputs.requires_grad_()
    outputs, state = layer(inputs)
    assert outputs.isfinite().all()
    assert all(tensor.isfinite().all() for tensor in state.tensors())
    outputs.square().sum().backward()
    assert inputs.grad is not None
    assert inputs.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


def test_what_goes_back_by_a_step_is_held_within_its_bound() -> None:
    torch.manual_seed(0)
    machine = Machine(3, 2, LAYOUT, hidden_dim=5)
    _, state = machine(torch.randn(1, 1, 3))
    tensors = [tensor.detach().requires_grad_() for tensor in state.tensors()]
    (1e30 * machine(torch.randn(1, 2, 3), state.changed(tensors))[0]).sum().backward()
    gradients = [tensor.grad for tensor in tensors if tensor.grad is not None]
    assert max(float(gradient.abs().max()) for gradient in gradients) == GRADIENT_BOUND


@pytest.mark.slow
@pytest.mark.parametrize("addressing", ["ntm", "lru", "dnc"])
def test_a_hundred_thousand_steps(addressing: str) -> None:
    """Trained all the way, a hundred steps at a time, at a rate at which weights grow large."""
    torch.manual_seed(2)
    machine = Machine(3, 2, LAYOUT, addressing=addressing, hidden_dim=8)
    optimizer = torch.optim.Adam(machine.parameters(), lr=0.03)
    state = machine.first_state(1)
    for _ in range(1_000):
        inputs = torch.randn(1, 100, 3) * 10 ** torch.empty(1, 100, 1).uniform_(-4, 4)
        outputs, state = machine(inputs, state.detach())
        loss = (outputs - torch.randn(1, 100, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in machine.parameters())
        optimizer.step()
    assert all(tensor.isfinite().all() for tensor in state.tensors())


@pytest.mark.usefixtures("without_shapes")
def test_l5_shapes_that_do_not_fit() -> None:
    machine = Machine(3, 2, LAYOUT, hidden_dim=5)
    with pytest.raises(ShapeError, match=r"inputs must have .* input_dim=3\); got \(2, 4, 5\)"):
        machine(torch.zeros(2, 4, 5))
    with pytest.raises(ShapeError, match=r"inputs must have .*; got \(2, 3\)"):
        machine(torch.zeros(2, 3))
    with pytest.raises(ShapeError, match=r"inputs must have shape \(batch, input_dim\) for a step"):
        machine.step(torch.zeros(2, 4, 3))
    with pytest.raises(ShapeError, match=r"lengths must have shape \(batch=2,\); got \(3,\)"):
        machine(torch.zeros(2, 4, 3), lengths=torch.ones(3, dtype=torch.long))
    with pytest.raises(MaskError, match=r"counts must lie in 0\.\.4; got \[5, 1\]"):
        machine(torch.zeros(2, 4, 3), lengths=torch.tensor([5, 1]))
    with pytest.raises(ShapeError, match=r"state must be of as many sequences .*, 2; got 3"):
        machine(torch.zeros(2, 4, 3), machine.first_state(3))


def test_l8_names_and_sizes() -> None:
    with pytest.raises(MechanismError, match="got 'lst': did you mean 'lstm'"):
        Machine(3, 2, controller="lst")
    for name in ("input_dim", "output_dim", "hidden_dim"):
        sizes = {"input_dim": 3, "output_dim": 2, "hidden_dim": 5, name: 0}
        with pytest.raises(MechanismError, match=f"{name} must be at least 1; got 0"):
            Machine(sizes["input_dim"], sizes["output_dim"], hidden_dim=sizes["hidden_dim"])
