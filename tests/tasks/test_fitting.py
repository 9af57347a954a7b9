"""Fitting in memory: what it borrows of random states, and plain numbers."""

from __future__ import annotations

import numpy as np
import torch

from regard.tasks.fitting import own_random_state, plain


def test_a_random_state_is_borrowed_and_put_back() -> None:
    before = torch.get_rng_state()
    drawn = []
    for seed in (1, 1, 2):
        with own_random_state(seed, torch.device("cpu")):
            drawn.append(torch.rand(3))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_numbers_become_plain() -> None:
    found = plain({"a": np.int64(3), "b": {"c": np.float64(0.5), "d": "x"}, "e": None})
    assert found == {"a": 3, "b": {"c": 0.5, "d": "x"}, "e": None}
    assert type(found["a"]) is int
