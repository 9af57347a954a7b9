from typing import Any

import pytest

from regard.errors import MechanismError
from regard.models.describers import PictureSettings, build_describer, is_trained
from regard.models.grids import PartsDescriber


@pytest.mark.parametrize(
    ("own", "dim", "grid"),
    [
        ({"network": "lite0"}, 1280, (2, 3)),
        ({"network": "lite0", "fine": True}, 1280 + 4 * 112, (2, 3)),
        ({"network": "small", "dim": 12, "layers": 4}, 12, (4, 6)),
        ({"network": "small", "dim": 12, "parts": {"rows": 2, "columns": 4}}, 12, (2, 4)),
    ],
)
def test_what_is_built(own: dict[str, Any], dim: int, grid: tuple[int, int]) -> None:
    settings = PictureSettings(height=64, width=96, **own)
    describer = build_describer(settings)
    assert describer.dim == dim
    assert describer.grid(64, 96) == grid
    assert is_trained(describer) == (settings.network == "small")
    assert isinstance(describer, PartsDescriber) == (settings.parts is not None)


def test_sizes_that_do_not_go_together() -> None:
    with pytest.raises(MechanismError, match=r"must be divided by .* got 64 x 64 and 3 x 2"):
        build_describer(PictureSettings(height=64, width=64, parts={"rows": 3, "columns": 2}))
    with pytest.raises(MechanismError, match=r"at least two cells to choose from; got 1 x 1"):
        build_describer(PictureSettings(height=32, width=32))
