import base64
import zlib

import numpy as np
import pytest

from regard.pictures.packing import STEPS, pack


def unpacked(packed):
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), np.uint8)
    low, high = planes.reshape(2, -1).astype(int)
    return ((low + 256 * high) * packed["top"] / packed["steps"]).reshape(packed["shape"])


@pytest.mark.parametrize("largest", [1.0, 0.003, 7.5])
def test_weights_come_back_within_half_a_step(largest):
    weights = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32) ** 4 * largest
    found = unpacked(pack(weights))
    assert np.abs(found - weights).max() <= 0.5 * weights.max() / STEPS + 1e-9
    assert found.max() == pytest.approx(weights.max())


def test_nothing_but_zeros_and_nothing_at_all():
    assert not unpacked(pack(np.zeros((1, 2, 2), np.float32))).any()
    assert pack(np.zeros((2, 0, 3), np.float32))["shape"] == [2, 0, 3]


def test_alike_weights_take_little_space():
    weights = np.zeros((12, 128, 128), np.float32)
    weights[:, np.arange(128), np.arange(128)] = 1.0
    assert len(pack(weights)["data"]) < 12 * 128 * 128 / 50
