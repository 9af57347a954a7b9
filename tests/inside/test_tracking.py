"""The module that runs is known, and nothing is left on the model."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.nn.modules import module as everywhere

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


def test_hooks_are_for_all_modules_and_go_also_after_an_error():
    def hooks() -> tuple[int, int]:
        return len(everywhere._global_forward_hooks), len(everywhere._global_forward_pre_hooks)

    model, before = nn.Linear(2, 2), hooks()
    with Tracker(model):
        assert hooks() == (before[0] + 1, before[1] + 1)
        assert not model._forward_hooks
        assert not model._forward_pre_hooks
    assert hooks() == before
    with pytest.raises(RuntimeError), Tracker(model):
        model(torch.zeros(3, 7))
    assert hooks() == before


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_native_fast_path_stays_on():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    items = torch.randn(2, 5, 8)
    with torch.no_grad():
        alone = model(items, src_key_padding_mask=padding)
        with Tracker(model):
            followed = model(items, src_key_padding_mask=padding)
    assert torch.equal(alone, followed)
    assert not followed[padding].any()  # which the fast path alone gives


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
