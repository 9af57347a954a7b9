from __future__ import annotations

import pytest
import torch

from regard.errors import MechanismError, ShapeError
from regard.models.grids import (
    GridEncoder,
    Lite0Describer,
    PartsDescriber,
    PictureEncoder,
    SmallDescriber,
)
from regard.models.lite0 import Lite0


def pixels(height: int, width: int, batch: int = 2) -> torch.Tensor:
    return torch.randint(256, (batch, 3, height, width)).float()


@pytest.mark.parametrize(("height", "width"), [(32, 32), (40, 64), (33, 17)])
def test_the_grid_is_what_comes_out(height, width):
    for describer in (SmallDescriber(12, layers=3, channels=4), SmallDescriber(6, layers=1)):
        rows, columns = describer.grid(height, width)
        assert describer(pixels(height, width)).shape == (2, rows * columns, describer.dim)


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize(("height", "width"), [(64, 96), (50, 70)])
def test_lite0_describes_any_size(fine, height, width):
    describer = Lite0Describer(Lite0(), fine=fine)
    rows, columns = describer.grid(height, width)
    found = describer.train()(pixels(height, width))
    assert found.shape == (2, rows * columns, 1280 + 448 * fine)
    assert not found.requires_grad
    assert not any(parameter.requires_grad for parameter in describer.parameters())
    assert not describer.network.training  # the statistics are those of training


def test_a_cell_sees_what_lies_there():
    describer = SmallDescriber(8, layers=2, channels=4).eval()
    plain = torch.full((1, 3, 32, 32), 100.0)
    changed = plain.clone()
    changed[:, :, :4, 24:28] = 255.0
    difference = (describer(plain) - describer(changed)).abs().sum(-1).view(8, 8)
    assert difference[0, 6] > 0
    assert difference[5:, :2].sum() == 0


@pytest.mark.parametrize(("neighbours", "first", "last"), [(0, 25, 39), (1, 17, 47)])
def test_how_far_a_cell_sees(neighbours, first, last):
    describer = SmallDescriber(8, channels=4, neighbours=neighbours).eval().double()
    given = pixels(64, 64, batch=1).double().requires_grad_()
    cell = describer(given).view(8, 8, -1)[4, 4]  # its own pixels are 32 to 39
    (gradient,) = torch.autograd.grad(cell.square().sum(), given)
    seen = gradient.abs().sum(dim=(0, 1)).nonzero()
    assert seen.min(dim=0).values.tolist() == [first, first]
    assert seen.max(dim=0).values.tolist() == [last, last]


def test_parts_see_nothing_beyond_their_edges():
    describer = PartsDescriber(SmallDescriber(8, layers=2, channels=4), 2, 4).eval()
    assert describer.grid(32, 64) == (2, 4)
    plain = pixels(32, 64, batch=1)
    changed = plain.clone()
    changed[:, :, 16:, 32:48] = 0.0  # row 1, column 2
    difference = (describer(plain) - describer(changed)).abs().sum(-1)[0]
    assert difference.nonzero().flatten().tolist() == [6]
    alone = describer.describer(plain[:, :, 16:, 32:48]).mean(1)
    assert torch.allclose(describer(plain)[:, 6], alone, atol=1e-5)


def test_items_are_projected_cells_and_their_mean():
    encoder = GridEncoder(5, 7)
    cells, mask = torch.randn(2, 6, 5), torch.ones(2, 6, dtype=torch.bool)
    mask[1, 4:] = False
    cells[1, 4:] = torch.nan
    memory, seen, final = encoder(cells, mask)
    assert memory.shape == (2, 6, 7)
    assert torch.equal(seen, mask)
    assert (memory[1, 4:] == 0).all()
    assert torch.allclose(final[1], memory[1, :4].mean(0), atol=1e-6)
    nothing = encoder(cells[:, :0], mask[:, :0])
    assert nothing.memory.shape == (2, 0, 7)
    assert (nothing.final == 0).all()


def test_a_sentinel_stands_behind_the_cells():
    encoder = GridEncoder(5, 7, sentinel=True)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    memory, seen, _ = encoder(torch.randn(2, 3, 5), mask)
    assert memory.shape == (2, 4, 7)
    assert seen.tolist() == [[True, True, True, True], [True, False, False, True]]
    assert torch.equal(memory[0, 3], encoder.sentinel)


def test_a_describer_is_trained_with_the_rest():
    encoder = PictureEncoder(SmallDescriber(6, layers=2, channels=4), GridEncoder(6, 5))
    memory, _, _ = encoder(pixels(16, 24), torch.ones(2, 24, dtype=torch.bool))
    memory.square().sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.describer.parameters())


def test_settings_and_sizes_are_checked():
    with pytest.raises(MechanismError, match="at least 1; got 0, 3 and 32"):
        SmallDescriber(0)
    with pytest.raises(MechanismError, match="neighbours must be at least 0; got -1"):
        SmallDescriber(neighbours=-1)
    with pytest.raises(MechanismError, match="rows and columns must be at least 1; got 0 and 2"):
        PartsDescriber(SmallDescriber(4), 0, 2)
    with pytest.raises(ShapeError, match="divided by 3 rows and 2 columns; got 32 x 32"):
        PartsDescriber(SmallDescriber(4), 3, 2)(pixels(32, 32))
