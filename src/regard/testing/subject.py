"""What is examined: an attention of any make, and how it is called."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import Traits
from regard.errors import MechanismError


class CheckFailed(AssertionError):
    """An attention does not do what a check demands; the message says where."""


class NotApplicable(Exception):
    """A check has nothing to say about this attention."""


class Inputs(NamedTuple):
    """What an attention is given, batch first and sizes last."""

    query: Tensor
    key: Tensor
    value: Tensor

    def rows(self, index: Tensor | slice) -> Inputs:
        """Keep some rows of the batch."""
        return Inputs(self.query[index], self.key[index], self.value[index])

    def items(self, index: Tensor | slice) -> Inputs:
        """Keep some keys with their values."""
        return Inputs(self.query, self.key[:, index], self.value[:, index])

    def holding(self, where: Tensor, number: float, parts: str = "both") -> Inputs:
        """Put a number into keys and values wherever `(batch, keys)` is True.

        Args:
            where: Which items.
            number: The number.
            parts: "both" whole, "value" alone, or "feature" for the first of each key and value.
        """
        spread = where.unsqueeze(-1)
        key, value = self.key.masked_fill(spread, number), self.value.masked_fill(spread, number)
        if parts == "value":
            key = self.key
        if parts == "feature":
            key = torch.cat([key[..., :1], self.key[..., 1:]], dim=-1)
            value = torch.cat([value[..., :1], self.value[..., 1:]], dim=-1)
        return Inputs(self.query, key, value)


class Read(NamedTuple):
    """What came back: a context, and weights with or without heads."""

    context: Tensor
    weights: Tensor

    @property
    def has_heads(self) -> bool:
        """Whether the weights have an axis for heads, second."""
        return self.weights.dim() == self.context.dim() + 1

    def rows(self, index: Tensor | slice) -> Read:
        """Keep some rows of the batch."""
        return Read(self.context[index], self.weights[index])


@dataclasses.dataclass(frozen=True)
class Subject:
    """An attention under examination.

    Args:
        attention: A callable `(query, key, value, *, mask) -> (context, weights, ...)`.
        traits: What holds for it.
        query_dim: Size of the queries it is given.
        key_dim: Size of the keys it is given.
        value_dim: Size of the values it is given.
        dtype: Type of everything it is given.
        device: Where everything lives.
    """

    attention: Callable[..., Any]
    traits: Traits
    query_dim: int
    key_dim: int
    value_dim: int
    dtype: torch.dtype = torch.float32
    device: torch.device = dataclasses.field(default_factory=lambda: torch.device("cpu"))

    BATCH = 3
    KEYS = 5

    @property
    def queries(self) -> int:
        """How many queries a call gets: stateful mechanisms go step by step."""
        return 1 if self.traits.stateful else 3

    @property
    def smooth(self) -> bool:
        """Whether gradients reach the scores in evaluation."""
        return self.traits.differentiable and not self.traits.hard_evaluation

    def inputs(self, batch: int = BATCH, queries: int | None = None, keys: int = KEYS) -> Inputs:
        """Draw inputs, always the same ones for the same sizes."""
        generator = torch.Generator().manual_seed(20)

        def draw(*sizes: int) -> Tensor:
            drawn = torch.randn(*sizes, generator=generator, dtype=torch.float64)
            return drawn.to(self.device, self.dtype)

        count = self.queries if queries is None else queries
        return Inputs(
            draw(batch, count, self.query_dim),
            draw(batch, keys, self.key_dim),
            draw(batch, keys, self.value_dim),
        )

    def strong_inputs(self, sign: float) -> Inputs:
        """Make inputs whose scores under a dot product lie near `sign · 1e4`."""
        query, key, value = self.inputs()
        along = sign * 100.0 / query.shape[-1] ** 0.5  # one direction, of length 100
        toward = 100.0 / key.shape[-1] ** 0.5
        return Inputs(along + 0.01 * query, toward + 0.01 * key, value)

    def key_mask(self) -> Tensor:
        """Return a mask `(batch, keys)` that hides some keys of every row but the first."""
        mask = torch.ones(self.BATCH, self.KEYS, dtype=torch.bool, device=self.device)
        mask[1, 3:] = False
        mask[2, 1:3] = False
        return mask

    def query_mask(self) -> Tensor:
        """Return a mask `(batch, queries, keys)` that differs between queries."""
        query = torch.arange(self.queries).unsqueeze(-1)
        hidden = (torch.arange(self.KEYS) + 2 * query) % 3 == 1
        rows = torch.arange(self.BATCH).view(-1, 1, 1)
        return (~hidden | (torch.arange(self.KEYS) == rows)).to(self.device)

    def read(self, inputs: Inputs, mask: Tensor | None = None) -> Read:
        """Call the attention."""
        result = self.attention(*inputs, mask=mask)
        return Read(result[0], result[1])

    def copied(self, dtype: torch.dtype | None = None) -> Subject:
        """Return the same with a copy of the attention, in another type if one is given."""
        attention = copy.deepcopy(self.attention)
        wanted = self.dtype if dtype is None else dtype
        if isinstance(attention, nn.Module):
            attention = attention.to(wanted).eval()
        return dataclasses.replace(self, attention=attention, dtype=wanted)

    def module(self) -> nn.Module:
        """Return the attention where it is a module; else the check has nothing to say."""
        if not isinstance(self.attention, nn.Module):
            raise NotApplicable("it is not a module")
        return self.attention

    def method(self, name: str) -> Callable[..., Any]:
        """Return a method where there is one; else the check has nothing to say."""
        found = getattr(self.attention, name, None)
        if not callable(found):
            raise NotApplicable(f"it has no {name}")
        return found  # type: ignore[no-any-return]


def subject_of(
    attention: Callable[..., Any],
    *,
    query_dim: int | None,
    key_dim: int | None,
    traits: Traits | None,
) -> Subject:
    """Find out the sizes and traits of an attention, and take a copy of it.

    Args:
        attention: The attention.
        query_dim: Size of the queries; by default what the attention says, or 4.
        key_dim: Size of the keys; by default what the attention says, or that of the queries.
        traits: What holds for it; by default what it says, or the traits of a softmax.

    Returns:
        The subject, in evaluation mode.

    Raises:
        MechanismError: Sizes are given that differ from what the attention says.
    """
    sizes = {}
    for name, given in (("query_dim", query_dim), ("key_dim", key_dim)):
        stated = getattr(attention, name, None)
        if isinstance(stated, int) and given not in (None, stated):
            raise MechanismError(
                f"{name} must be what the attention says, {stated}; got {given}. Leave it out."
            )
        sizes[name] = stated if isinstance(stated, int) else given
    query = sizes["query_dim"] or sizes["key_dim"] or 4
    key = sizes["key_dim"] or query
    value = getattr(attention, "value_dim", None)
    found = getattr(attention, "traits", None)
    known = traits or (found if isinstance(found, Traits) else Traits())
    value = value if isinstance(value, int) else key
    device = torch.device("cpu")
    if isinstance(attention, nn.Module):
        device = next((parameter.device for parameter in attention.parameters()), device)
    return Subject(attention, known, query, key, value, device=device)


def require(condition: bool | Tensor, reason: str) -> None:
    """Fail the check with a reason unless the condition holds."""
    if not bool(condition):
        raise CheckFailed(reason)


TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}


def require_close(
    got: Tensor, expected: Tensor, what: str, *, tolerance: float | None = None
) -> None:
    """Fail the check unless two tensors agree within what their type allows.

    Args:
        got: What the attention gave.
        expected: What it should have given.
        what: What is compared, to begin the reason with.
        tolerance: An absolute and relative bound instead of that of the types.
    """
    require(
        got.shape == expected.shape,
        f"{what} must have shape {tuple(expected.shape)}; got {tuple(got.shape)}",
    )
    bound = max(TOLERANCES.get(t.dtype, 1e-5) for t in (got, expected))
    bound = bound if tolerance is None else tolerance
    left, right = got.detach().double(), expected.detach().double()
    if torch.allclose(left, right, rtol=bound, atol=bound):
        return
    gap = (left - right).abs().max().item()
    raise CheckFailed(f"{what}: differs by up to {gap:.3g}; {bound:.0e} is allowed")


def require_same(got: Read, expected: Read, what: str, *, tolerance: float | None = None) -> None:
    """Fail the check unless contexts and weights agree."""
    require_close(got.weights, expected.weights, f"weights {what}", tolerance=tolerance)
    require_close(got.context, expected.context, f"context {what}", tolerance=tolerance)


def gradients(
    subject: Subject, inputs: Inputs, mask: Tensor | None, keep: Tensor | None = None
) -> dict[str, Tensor]:
    """Take the gradient of a fixed function of contexts and weights.

    Args:
        subject: The attention.
        inputs: What it is given.
        mask: What it may attend to.
        keep: `(batch, queries)`, True for the queries whose results count; all by default.

    Returns:
        A gradient for each input and each parameter, zeros where nothing reached it.
    """
    leaves = Inputs(*[tensor.detach().clone().requires_grad_() for tensor in inputs])
    sources = dict(leaves._asdict())
    if isinstance(subject.attention, nn.Module):
        sources |= {n: p for n, p in subject.attention.named_parameters() if p.requires_grad}
    read = subject.read(leaves, mask)
    weights = read.weights.movedim(1, -2) if read.has_heads else read.weights
    loss = sum((_measured(part, keep) for part in (read.context, weights)), torch.zeros(()))
    if not loss.requires_grad:
        return {name: torch.zeros_like(tensor) for name, tensor in sources.items()}
    found = torch.autograd.grad(loss, list(sources.values()), allow_unused=True)
    return {
        name: torch.zeros_like(tensor) if gradient is None else gradient
        for (name, tensor), gradient in zip(sources.items(), found, strict=True)
    }


def _measured(part: Tensor, keep: Tensor | None) -> Tensor:
    sizes = part.shape[1:]
    pattern = torch.sin(torch.arange(sizes.numel(), dtype=torch.float64) + 1.0).view(sizes)
    pattern = pattern.to(part.device).expand(part.shape)
    if keep is not None:
        part, pattern = part[keep], pattern[keep]
    return (part.double() * pattern).sum().cpu()


def require_finite_gradients(found: dict[str, Tensor]) -> None:
    """Fail the check unless every gradient is finite."""
    for name, gradient in found.items():
        require(torch.isfinite(gradient).all(), f"the gradient of {name} is not finite")
