"""A controller and a structure it writes to and reads from, used like a recurrent layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import functional, masks
from regard.errors import MechanismError, ShapeError, did_you_mean
from regard.memory.controllers import CONTROLLERS, applied

GRADIENT_BOUND = 1e6  # of each number of the gradient that goes back by one step


class LayerState(NamedTuple):
    """What a layer hands on from step to step.

    Attributes:
        controller: The controller's states.
        structure: What the memory is made of: tensors with the batch first.
    """

    controller: Float[Tensor, "batch states hidden_dim"]
    structure: tuple[Tensor, ...]

    def detach(self) -> LayerState:
        """Cut it off from how it came about, for back-propagation through so many steps only."""
        return self.changed([tensor.detach() for tensor in self.tensors()])

    def select(self, index: Int[Tensor, " chosen"]) -> LayerState:
        """Choose sequences of the batch, in any order."""
        return self.changed([tensor[index] for tensor in self.tensors()])

    def tensors(self) -> list[Tensor]:
        """List all tensors."""
        return [self.controller, *self.structure]

    def changed(self, tensors: Sequence[Tensor]) -> LayerState:
        """Put other tensors in place of all of them, in the order of `tensors`."""
        made: Any = getattr(self.structure, "_make", tuple)
        return LayerState(tensors[0], made(tensors[1:]))


class Trace(NamedTuple):
    """What a layer did: what it said, its last state, and where it read and wrote at each step.

    Attributes:
        outputs: What it said.
        state: Its last state.
        read_weights: Where each reader read.
        write_weights: Where each writer wrote.
    """

    outputs: Float[Tensor, "batch steps output_dim"]
    state: LayerState
    read_weights: Float[Tensor, "batch readers steps slots"]
    write_weights: Float[Tensor, "batch writers steps slots"]


class Structure(nn.Module, ABC):
    """What a controller writes to and reads from; its state is a tuple of tensors of its own.

    Attributes:
        read_dim: Size of all that is read at a step.
    """

    read_dim: int

    @abstractmethod
    def first(self, batch: int, like: Tensor) -> Any:
        """Return it as it begins, with the type and device of a tensor."""

    @abstractmethod
    def step(self, said: Tensor, before: Any, goes_on: Tensor | None) -> Any:
        """Write and read once; a sequence that does not go on keeps what it has."""

    @abstractmethod
    def read(self, state: Any) -> Tensor:
        """Return what was read last: `(batch, read_dim)`."""

    @abstractmethod
    def looks(self, states: list[Any]) -> tuple[Tensor, Tensor]:
        """Return where was read and written over time: `(batch, heads, steps, slots)`."""


class MemoryLayer(nn.Module):
    """A controller with a memory, called like a recurrent layer with the batch first.

    At each step the controller takes the input and what was read at the step before; the memory
    is written, then read; the output is a linear function of what the controller said and of
    what was read. States are float32 or wider, under autocast too. What goes back in the gradient
    by one step is held within `GRADIENT_BOUND`, far above what training meets, so that no
    number of steps makes it overflow.

    Args:
        input_dim: Size of the inputs.
        output_dim: Size of the outputs.
        structure: The memory.
        controller: "lstm" or "feed_forward".
        hidden_dim: Size of the controller.

    Raises:
        MechanismError: A size is below 1, or the controller is unknown.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        structure: Structure,
        *,
        controller: str,
        hidden_dim: int,
    ) -> None:
        super().__init__()
        check_sizes(input_dim=input_dim, output_dim=output_dim, hidden_dim=hidden_dim)
        if controller not in CONTROLLERS:
            known = did_you_mean(controller, CONTROLLERS)
            raise MechanismError(f"controller must be the name of one; got {controller!r}: {known}")
        self.input_dim, self.output_dim = input_dim, output_dim
        self.structure = structure
        self.controller = CONTROLLERS[controller](input_dim + structure.read_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim + structure.read_dim, output_dim)

    def first_state(self, batch: int) -> LayerState:
        """Return the state before the first step.

        Args:
            batch: How many sequences.

        Returns:
            Zeros for the controller, and the memory as it begins.
        """
        like = functional.widened(self.output.weight)
        controller = like.new_zeros(batch, self.controller.states, self.controller.hidden_dim)
        return LayerState(controller, self.structure.first(batch, like))

    def forward(
        self,
        inputs: Float[Tensor, "batch steps input_dim"],
        state: LayerState | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch steps output_dim"], LayerState]:
        """Go over the sequences.

        Args:
            inputs: The sequences; padding may hold anything.
            state: What a call before returned, to go on from there; by default the first state.
            lengths: The length of each; all steps by default. A step of padding changes nothing
                in the state, and its output is zeros.

        Returns:
            What was said at every step, and the last state.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.

        Example:
            >>> from regard.memory import Machine
            >>> machine = Machine(3, 2)
            >>> outputs, state = machine(torch.ones(4, 5, 3), lengths=torch.tensor([5, 0, 2, 3]))
            >>> outputs.shape
            torch.Size([4, 5, 2])
        """
        outputs, states = self._run(inputs, state, lengths)
        return outputs, states[-1]

    def traced(
        self,
        inputs: Float[Tensor, "batch steps input_dim"],
        state: LayerState | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Trace:
        """Go over the sequences as a call does, and say where was read and written.

        Args:
            inputs: The sequences; padding may hold anything.
            state: What a call before returned; by default the first state.
            lengths: The length of each; all steps by default.

        Returns:
            What was done; weights at steps of padding are zeros.

        Raises:
            ShapeError: A size does not fit, or the axes are wrong.
        """
        outputs, states = self._run(inputs, state, lengths)
        looks = self.structure.looks([one.structure for one in states])
        if lengths is not None:
            there = masks.lengths(lengths, inputs.shape[1])[:, None, :, None]
            looks = (looks[0].where(there, 0.0), looks[1].where(there, 0.0))
        return Trace(outputs, states[-1], *looks)

    def step(
        self, inputs: Float[Tensor, "batch input_dim"], state: LayerState | None = None
    ) -> tuple[Float[Tensor, "batch output_dim"], LayerState]:
        """Take a single step.

        Args:
            inputs: One input for each sequence.
            state: What the step before returned; by default the first state.

        Returns:
            What was said, and the state after.

        Raises:
            ShapeError: A size does not fit.
        """
        if inputs.dim() != 2:
            raise ShapeError(
                f"inputs must have shape (batch, input_dim) for a step; got "
                f"{tuple(inputs.shape)}. Call the layer itself for sequences."
            )
        outputs, after = self.forward(inputs.unsqueeze(1), state)
        return outputs.squeeze(1), after

    def _run(
        self, inputs: Tensor, state: LayerState | None, lengths: Tensor | None
    ) -> tuple[Tensor, list[LayerState]]:
        self._check(inputs, state, lengths)
        states = [self.first_state(inputs.shape[0]) if state is None else state]
        wide = functional.widened(inputs)
        there = None if lengths is None else masks.lengths(lengths, inputs.shape[1])
        if there is not None:
            wide = wide.where(there.unsqueeze(-1), 0.0)
        said = []
        with functional.full_precision(inputs):
            for place, one in enumerate(wide.unbind(dim=1)):
                goes_on = None if there is None else there[:, place]
                now, after = self._step(one, states[-1], goes_on)
                said.append(torch.cat([now, self.structure.read(after.structure)], dim=1))
                states.append(after)
        if not said:
            return inputs.new_zeros(*inputs.shape[:2], self.output_dim), states
        outputs = applied(self.output, torch.stack(said, dim=1)).to(inputs.dtype)
        return (outputs if there is None else outputs.where(there.unsqueeze(-1), 0.0)), states

    def _step(
        self, inputs: Tensor, before: LayerState, goes_on: Tensor | None
    ) -> tuple[Tensor, LayerState]:
        if torch.is_grad_enabled():
            hold: Callable[..., tuple[Tensor, ...]] = _Bounded.apply  # torch leaves it untyped
            before = before.changed(hold(*before.tensors()))
        joined = torch.cat([inputs, self.structure.read(before.structure)], dim=1)
        said, hidden = self.controller(joined, before.controller)
        structure = self.structure.step(said, before.structure, goes_on)
        if goes_on is not None:
            hidden = kept(goes_on, hidden, before.controller)
        return said, LayerState(hidden, structure)

    def _check(self, inputs: Tensor, state: LayerState | None, lengths: Tensor | None) -> None:
        if inputs.dim() != 3 or inputs.shape[2] != self.input_dim:
            raise ShapeError(
                f"inputs must have shape (batch, steps, input_dim={self.input_dim}); got "
                f"{tuple(inputs.shape)}. Put the batch first."
            )
        batch = inputs.shape[0]
        if lengths is not None and lengths.shape != (batch,):
            raise ShapeError(
                f"lengths must have shape (batch={batch},); got {tuple(lengths.shape)}. Give one "
                "for each sequence."
            )
        if state is not None and state.controller.shape[0] != batch:
            raise ShapeError(
                f"state must be of as many sequences as the inputs, {batch}; got "
                f"{state.controller.shape[0]}. Choose them with state.select."
            )


class _Bounded(torch.autograd.Function):
    """Leave tensors as they are, and hold each number of their gradients within a bound."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        bound = GRADIENT_BOUND
        return tuple(None if g is None else g.clamp(-bound, bound) for g in gradients)


def kept(goes_on: Bool[Tensor, " batch"], after: Tensor, before: Tensor) -> Tensor:
    """Take what comes after for sequences that go on, and what was before for the others."""
    return after.where(goes_on.view(-1, *[1] * (after.dim() - 1)), before)


def check_sizes(**sizes: int) -> None:
    """Refuse sizes below 1.

    Args:
        sizes: By name.

    Raises:
        MechanismError: A size is below 1.
    """
    for name, size in sizes.items():
        if size < 1:
            raise MechanismError(f"{name} must be at least 1; got {size}. Raise it.")
