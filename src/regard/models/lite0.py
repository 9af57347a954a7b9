"""EfficientNet-Lite0: a small convolutional network that describes pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import MechanismError


class Stage(NamedTuple):
    """Blocks of one size: how many, their kernel, stride, expansion, and channels after them."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
FINE_BLOCK = 10  # the last block of stride 16
_EPSILON = 1e-3  # of the batch normalisation, as the weights were trained with


class SamePadded(nn.Conv2d):
    """A convolution that pads as TensorFlow's "same" does: an odd pixel goes behind."""

    def __init__(
        self, channels: int, out_channels: int, kernel: int, *, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(channels, out_channels, kernel, stride=stride, groups=groups, bias=False)

    def forward(self, maps: Float[Tensor, "batch channels rows columns"]) -> Tensor:
        """Pad and convolve."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        sides: list[int] = []
        for size in (maps.shape[-1], maps.shape[-2]):
            missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            sides += [missing // 2, missing - missing // 2]
        padded = nn.functional.pad(maps, sides)
        return nn.functional.conv2d(padded, self.weight, stride=stride, groups=self.groups)


class Block(nn.Module):
    """Expand, convolve each channel by itself, project; added to the input where sizes allow.

    Args:
        channels: Channels of the input.
        stage: What the block is like.
        stride: Its own stride; only the first block of a stage has the stage's.
    """

    def __init__(self, channels: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inside = channels * stage.expansion
        self.expands = stage.expansion > 1
        if self.expands:
            self.expand_conv = SamePadded(channels, inside, 1)
            self.bn0 = nn.BatchNorm2d(inside, eps=_EPSILON)
        self.depthwise_conv = SamePadded(inside, inside, stage.kernel, stride=stride, groups=inside)
        self.bn1 = nn.BatchNorm2d(inside, eps=_EPSILON)
        self.project_conv = SamePadded(inside, stage.channels, 1)
        self.bn2 = nn.BatchNorm2d(stage.channels, eps=_EPSILON)
        self.adds = stride == 1 and channels == stage.channels

    def forward(self, maps: Float[Tensor, "batch channels rows columns"]) -> Tensor:
        """Refine the maps."""
        inside = maps
        if self.expands:
            inside = nn.functional.relu6(self.bn0(self.expand_conv(inside)))
        inside = nn.functional.relu6(self.bn1(self.depthwise_conv(inside)))
        projected: Tensor = self.bn2(self.project_conv(inside))
        return maps + projected if self.adds else projected


class Lite0(nn.Module):
    """EfficientNet-Lite0 up to its last map: 1,280 features for every 32 x 32 pixels.

    Pictures of any size from 32 pixels on; a side that 32 does not divide gets a last cell that
    looks beyond the edge. Pixels go in as `(x - 127) / 128`. It has no squeezing and no swish,
    unlike EfficientNet-B0.

    References:
        Tan and Le, EfficientNet: rethinking model scaling for convolutional neural networks,
        2019; Liu, Higher accuracy on vision models with EfficientNet-Lite, 2020.
    """

    DIM, FINE_DIM, STRIDE = 1280, 112, 32

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = SamePadded(3, 32, 3, stride=2)
        self.bn0 = nn.BatchNorm2d(32, eps=_EPSILON)
        blocks: list[Block] = []
        channels = 32
        for stage in STAGES:
            for place in range(stage.repeats):
                blocks.append(Block(channels, stage, stage.stride if place == 0 else 1))
                channels = stage.channels
        self.blocks = nn.ModuleList(blocks)
        self.conv_head = SamePadded(channels, self.DIM, 1)
        self.bn1 = nn.BatchNorm2d(self.DIM, eps=_EPSILON)

    def forward(self, pixels: Float[Tensor, "batch 3 height width"]) -> Tensor:
        """Describe every cell, `(batch, 1280, rows, columns)`."""
        return self.scales(pixels)[1]

    def scales(self, pixels: Float[Tensor, "batch 3 height width"]) -> tuple[Tensor, Tensor]:
        """Describe every cell of 16 x 16 pixels by 112 features, and of 32 x 32 by 1,280."""
        maps = nn.functional.relu6(self.bn0(self.conv_stem(pixels)))
        fine = maps
        for place, block in enumerate(self.blocks):
            maps = block(maps)
            fine = maps if place == FINE_BLOCK else fine
        return fine, nn.functional.relu6(self.bn1(self.conv_head(maps)))

    def load_published(self, state: Mapping[str, Tensor]) -> None:
        """Load weights whose names begin with underscores, and leave out the classifier.

        Args:
            state: The state dict as it is published.

        Raises:
            MechanismError: A name or a shape does not fit.
        """
        renamed = {
            name.removeprefix("_").replace("._", "."): tensor
            for name, tensor in state.items()
            if not name.startswith("_fc.")
        }
        try:
            self.load_state_dict(renamed)
        except RuntimeError as error:
            lines = str(error).splitlines()
            raise MechanismError(
                f"state must be that of EfficientNet-Lite0; got {lines[-1].strip()}"
            ) from error


def normalised(
    pixels: Float[Tensor, "batch 3 height width"],
) -> Float[Tensor, "batch 3 height width"]:
    """Bring pixels from 0..255 to the range that Lite0 was trained on."""
    return (pixels - 127.0) / 128.0
