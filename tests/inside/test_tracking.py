"""The module that runs is known, and nothing is left on the model."""

from __future__ import annotations

import threading

import torch
from torch import nn

from regard.inside.tracking import Place, Tracker


class Inner(nn.Module):
    def __init__(self, seen: list[object]) -> None:
        super().__init__()
        self.seen = seen
        self.tracker: list[Tracker] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.extend(tracker.place for tracker in self.tracker)
        if x.sum() > 100:
            raise ValueError("too large")
        return x + 1


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []
        self.inner = Inner(self.seen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.inner(self.inner(x))
        except ValueError:
            self.seen.extend(tracker.place for tracker in self.inner.tracker)
            return x


def test_paths_and_calls_are_counted():
    model = Outer()
    with Tracker(model) as tracker:
        model.inner.tracker = [tracker]
        model(torch.zeros(1))
        model(torch.zeros(1))
        assert tracker.place is None
    assert model.seen == [Place("inner", call) for call in range(4)]


def test_an_error_inside_leaves_the_right_module_running():
    model = Outer()
    with Tracker(model) as tracker:
        model.inner.tracker = [tracker]
        model(torch.full((1,), 1000.0))
        model(torch.zeros(1))
    assert model.seen == [
        Place("inner", 0),
        Place("", 0),
        Place("inner", 1),
        Place("inner", 2),
    ]


def test_outputs_are_told_and_no_hook_stays():
    told = []
    model, other = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 2)
    with Tracker(model, lambda module, _inputs, output: told.append((type(module), output.shape))):
        other(model(torch.zeros(3, 2)))
    assert told == [(kind, torch.Size([3, 2])) for kind in (nn.Linear, nn.ReLU, nn.Sequential)]
    model(torch.zeros(3, 2))
    assert len(told) == 3
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_trackers_nest_and_threads_are_told_apart():
    model = Outer()
    with Tracker(model) as first, Tracker(model) as second:
        model.inner.tracker = [first, second]
        model(torch.zeros(1))
    assert model.seen == [Place("inner", 0)] * 2 + [Place("inner", 1)] * 2

    other = Outer()
    with Tracker(other) as tracker:
        other.inner.tracker = [tracker]
        thread = threading.Thread(target=other, args=(torch.zeros(1),))
        thread.start()
        thread.join()
        assert tracker.place is None
    assert len(other.seen) == 2
