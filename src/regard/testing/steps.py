"""Checks on mechanisms that go step by step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.testing.precision import check_gradients
from regard.testing.subject import (
    Inputs,
    NotApplicable,
    Read,
    Subject,
    require,
    require_close,
    require_same,
)

STEPS = 4


def _walk(subject: Subject, inputs: Inputs, mask: Tensor | None) -> list[Any]:
    """Read the queries of the inputs one after the other, handing the state on."""
    if not subject.traits.stateful:
        raise NotApplicable("it does not go step by step")
    prepared = subject.method("prepare")(inputs.key, inputs.value, mask=mask)
    steps: list[Any] = []
    for query in inputs.query.unbind(dim=1):
        state = steps[-1][2] if steps else None
        steps.append(subject.attention(query.unsqueeze(1), prepared, state=state))
    return steps


def steps_hold_the_mask(subject: Subject) -> None:
    """At every step hidden keys get exactly zero, and an empty row gets zeros."""
    inputs, mask = subject.inputs(queries=STEPS), subject.key_mask()
    mask[1] = False
    for place, step in enumerate(_walk(subject, inputs, mask)):
        read = Read(step[0], step[1])
        what = f"of step {place}"
        require(torch.isfinite(read.weights).all(), f"weights {what} must be finite")
        require((read.weights >= 0).all(), f"weights {what} must be at least 0")
        weights = read.weights.movedim(1, -2) if read.has_heads else read.weights
        hidden = ~mask.view(mask.shape[0], *[1] * (weights.dim() - 2), -1)
        most = weights.masked_fill(~hidden, 0.0).max().item()
        require(most == 0.0, f"weights {what} of hidden keys must be 0; got up to {most:.3g}")
        require((read.context[1] == 0).all(), f"context {what} of an empty row must be 0")
        if subject.traits.normalised:
            sums = weights[[0, 2]].sum(dim=-1)
            require_close(sums, torch.ones_like(sums), f"sum of weights {what}")


def steps_ignore_padding(subject: Subject) -> None:
    """At every step keys added behind the others and hidden change nothing."""
    short, extra = subject.inputs(queries=STEPS), subject.inputs(queries=STEPS, keys=8)
    padded = Inputs(
        short.query,
        torch.cat([short.key, extra.key[:, -3:]], dim=1),
        torch.cat([short.value, extra.value[:, -3:]], dim=1),
    )
    mask = torch.arange(subject.KEYS + 3, device=subject.device) < subject.KEYS
    longer = _walk(subject, padded, mask.expand(subject.BATCH, -1))
    for place, (step, plain) in enumerate(zip(longer, _walk(subject, short, None), strict=True)):
        shown = Read(step[0], step[1][..., : subject.KEYS])
        require_same(shown, Read(plain[0], plain[1]), f"of step {place} with padding added")


def hypotheses_are_independent(subject: Subject) -> None:
    """Hypotheses that read side by side give what each gives alone, in any order."""
    inputs, mask = subject.inputs(queries=3), subject.key_mask()
    first = inputs._replace(query=inputs.query[:, :1])
    state = _walk(subject, first, mask)[0][2]
    prepared = subject.method("prepare")(inputs.key, inputs.value, mask=mask)
    twice = torch.zeros(subject.BATCH, 2, dtype=torch.long, device=subject.device)
    both = subject.attention(inputs.query[:, 1:], prepared, state=state.select(twice))
    apart = [
        subject.attention(inputs.query[:, place : place + 1], prepared, state=state)
        for place in (1, 2)
    ]
    expected = Read(
        torch.cat([one[0] for one in apart], dim=1), torch.cat([one[1] for one in apart], dim=-2)
    )
    require_same(Read(both[0], both[1]), expected, "of hypotheses side by side")
    swapped = torch.tensor([1, 0], device=subject.device).expand(subject.BATCH, -1)
    turned = subject.attention(inputs.query[:, [2, 1]], prepared, state=both[2].select(swapped))
    straight = subject.attention(inputs.query[:, [1, 2]], prepared, state=both[2])
    require_close(turned[0][:, [1, 0]], straight[0], "context of hypotheses in another order")


def whole_sequences_are_refused(subject: Subject) -> None:
    """Several queries without a state raise an error that says what to do."""
    if not subject.traits.stateful:
        raise NotApplicable("it does not go step by step")
    try:
        subject.read(subject.inputs(queries=2))
    except Exception:  # of whatever kind: what counts is that they are not taken
        return
    require(False, "two queries without a state must raise an error")


def gradients_through_steps_are_right(subject: Subject) -> None:
    """Gradients over several steps agree with differences, in float64."""
    exact = subject.copied(torch.float64)
    if not exact.smooth:
        raise NotApplicable("no gradient reaches its scores in evaluation")
    mask = exact.key_mask()[:2]

    def read(inputs: Inputs) -> tuple[Tensor, ...]:
        steps = _walk(exact, inputs, mask)
        return tuple(part for step in steps for part in step[:2])

    _walk(exact, exact.inputs(queries=2), None)
    check_gradients(exact, exact.inputs(batch=2, queries=3), read)


CHECKS = (
    steps_hold_the_mask,
    steps_ignore_padding,
    hypotheses_are_independent,
    whole_sequences_are_refused,
)
