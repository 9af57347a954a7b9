from __future__ import annotations

import pytest
import torch

from regard.errors import MechanismError
from regard.models.lite0 import FINE_BLOCK, Lite0, SamePadded, normalised


def published(network: Lite0) -> dict[str, torch.Tensor]:
    """Name weights as they are published, with the classifier that is not used here."""
    state = {}
    for name, tensor in network.state_dict().items():
        parts = [
            part if part.isdigit() or part in LEAVES else f"_{part}" for part in name.split(".")
        ]
        state[".".join(parts)] = tensor
    return {**state, "_fc.weight": torch.zeros(1000, 1280), "_fc.bias": torch.zeros(1000)}


LEAVES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def test_published_names_are_understood():
    first, second = Lite0().eval(), Lite0().eval()
    second.load_published(published(first))
    picture = normalised(torch.rand(1, 3, 64, 64) * 255)
    assert torch.equal(first(picture), second(picture))


def test_it_has_the_published_number_of_parameters():
    # 4.65 million with the classifier's 1,281,000.
    assert sum(p.numel() for p in Lite0().parameters()) == 4_652_008 - 1_281_000


def test_other_weights_are_refused_in_one_line():
    with pytest.raises(MechanismError, match="state must be that of EfficientNet-Lite0") as caught:
        Lite0().load_published({"_conv_stem.weight": torch.zeros(3)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [7, 8])
def test_padding_puts_the_odd_pixel_behind(kernel, stride, size):
    convolution = SamePadded(1, 1, kernel, stride=stride)
    torch.nn.init.ones_(convolution.weight)
    found = convolution(torch.ones(1, 1, size, size))
    assert found.shape[-1] == -(-size // stride)
    missing = max((found.shape[-1] - 1) * stride + kernel - size, 0)
    before = missing // 2
    for row in range(found.shape[-1]):
        inside = range(row * stride - before, row * stride - before + kernel)
        count = sum(0 <= r < size for r in inside)
        assert found[0, 0, row, 0] == count * sum(
            0 <= r < size for r in range(-before, kernel - before)
        )


def test_the_finer_map_is_that_of_stride_16():
    network = Lite0().eval()
    fine, coarse = network.scales(torch.randn(1, 3, 64, 96))
    assert fine.shape == (1, 112, 4, 6)
    assert coarse.shape == (1, 1280, 2, 3)
    assert len(network.blocks) == 16
    assert network.blocks[FINE_BLOCK].project_conv.out_channels == 112
