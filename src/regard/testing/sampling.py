"""Checks on what is done in training: draws, and weights made otherwise than in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.testing.precision import check_gradients
from regard.testing.subject import (
    Inputs,
    NotApplicable,
    Subject,
    gradients,
    require,
    require_close,
    require_finite_gradients,
    require_same,
)

_SEEDS = (1, 2, 3)
_DRAWS = 1000


@contextmanager
def _training(subject: Subject, seed: int) -> Iterator[None]:
    module = subject.module()
    module.train()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        module.eval()


def training_holds_the_mask(subject: Subject) -> None:
    """In training too hidden keys get exactly zero, and gradients are finite."""
    inputs, mask = subject.inputs(), subject.key_mask()
    mask[1] = False
    for seed in _SEEDS:
        with _training(subject, seed):
            read = subject.read(inputs, mask)
        what = f"in training, seed {seed}"
        require(torch.isfinite(read.weights).all(), f"weights {what} must be finite")
        spread = mask.view(mask.shape[0], *[1] * (read.weights.dim() - 2), mask.shape[1])
        most = read.weights.masked_fill(spread, 0.0).abs().max().item()
        require(most == 0.0, f"weights {what} of hidden keys must be 0; got up to {most:.3g}")
        require((read.context[1] == 0).all(), f"context {what} of an empty row must be 0")
        if subject.traits.normalised:
            sums = read.weights[[0, 2]].sum(dim=-1)
            require_close(sums, torch.ones_like(sums), f"sum of weights {what}")
        with _training(subject, seed):
            broken = subject.read(inputs.holding(~mask, torch.nan), mask)
        require_same(broken, read, f"with NaN under the mask {what}")
        with _training(subject, seed):
            require_finite_gradients(gradients(subject, inputs, mask))


def training_gradients_are_right(subject: Subject) -> None:
    """In training, for fixed draws, gradients agree with differences, in float64."""
    traits = subject.traits
    if not (traits.stochastic or traits.hard_evaluation):
        raise NotApplicable("it does in training what it does in evaluation")
    if not traits.differentiable or traits.straight_through:
        raise NotApplicable("its gradient is not that of its weights")
    exact = subject.copied(torch.float64)
    mask = exact.key_mask()[:2]

    def read(inputs: Inputs) -> tuple[Tensor, ...]:
        with _training(exact, 1):
            if not traits.stateful:
                return tuple(exact.read(inputs, mask))
            prepared = exact.method("prepare")(inputs.key, inputs.value, mask=mask)
            first = exact.attention(inputs.query[:, :1], prepared)
            then = exact.attention(inputs.query[:, 1:2], prepared, state=first[2])
            return (*first[:2], *then[:2])

    check_gradients(exact, exact.inputs(batch=2, queries=2), read)


def _drawn(subject: Subject, inputs: Inputs, mask: Tensor, seed: int) -> Any:
    """Read many copies of the inputs' first row, in training, with a generator of one's own."""
    many = Inputs(*[tensor[:1].expand(_DRAWS, *tensor.shape[1:]) for tensor in inputs])
    many = many._replace(query=many.query.detach().requires_grad_())
    generator = torch.Generator(subject.device).manual_seed(seed)
    with _training(subject, 1):
        return subject.attention(*many, mask=mask[:1].expand(_DRAWS, -1), generator=generator)


def _require_samples(subject: Subject) -> None:
    subject.module()
    if not subject.traits.stochastic or not hasattr(subject.attention, "prepare"):
        raise NotApplicable("nothing is drawn")


def generators_decide(subject: Subject) -> None:
    """A generator of one's own decides the draws, and the global one is left alone."""
    _require_samples(subject)
    _require_separate_draws(subject)
    inputs, mask = subject.inputs(queries=1), subject.key_mask()
    first, again = [_drawn(subject, inputs, mask, seed=5)[1] for _ in range(2)]
    require(torch.equal(first, again), "one generator must draw the same twice")
    require(
        not torch.equal(first, _drawn(subject, inputs, mask, seed=6)[1]),
        "another generator must draw something else",
    )
    if getattr(subject.attention, "dropout", 0.0) == 0.0:
        torch.manual_seed(1)
        expected = torch.rand(())
        _drawn(subject, inputs, mask, seed=5)
        require(torch.equal(torch.rand(()), expected), "the global generator must be left alone")


def _require_separate_draws(subject: Subject) -> None:
    """Fail unless equal queries of one row are drawn for separately."""
    if subject.traits.stateful or subject.traits.positional_queries:
        return
    inputs = subject.inputs(queries=1)
    many = inputs._replace(query=inputs.query.expand(-1, 50, -1))
    with _training(subject, 1):
        weights = subject.read(many).weights
    rows = weights.movedim(1, -2).flatten(2) if weights.dim() == 4 else weights
    alike = all(bool((row == row[:1]).all()) for row in rows)
    require(not alike, "every query must have a draw of its own")


def samples_follow_the_distribution(subject: Subject) -> None:
    """A drawn key has its probability, and `log_prob` is the logarithm of that."""
    _require_samples(subject)
    inputs = subject.inputs(queries=1)
    mask = subject.key_mask()[1:]
    _, weights, _, shares, log_prob = _drawn(subject, inputs, mask, seed=7)
    if log_prob is None:
        raise NotApplicable("its draws have no log_prob")
    require(((weights == 0) | (weights == 1)).all(), "sampled weights must be 0 or 1")
    require_close(weights.sum(-1), torch.ones_like(weights.sum(-1)), "sum of sampled weights")
    expected = (weights * shares.clamp(min=1e-30).log()).sum(dim=-1)
    expected = expected.sum(dim=1) if weights.dim() == 4 else expected  # over heads
    require_close(log_prob, expected, "log_prob of the choice", tolerance=1e-3)
    reaches = log_prob.requires_grad or not subject.traits.reads_keys
    require(reaches, "log_prob must carry a gradient to the scores")
    frequency, probability = weights.double().mean(dim=0), shares.double()[0]
    allowed = 5.0 * (probability * (1 - probability) / _DRAWS).sqrt() + 1.0 / _DRAWS
    gap = ((frequency - probability).abs() - allowed).max().item()
    require(
        gap <= 0.0,
        f"frequencies of {_DRAWS} draws miss the distribution by {gap:.3g} more "
        "than chance explains",
    )


CHECKS = (
    training_holds_the_mask,
    generators_decide,
    samples_follow_the_distribution,
)
