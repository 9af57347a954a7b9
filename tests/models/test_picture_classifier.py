"""Attention over the cells of pictures: shapes, weights that are those used, what is trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.errors import MechanismError, ShapeError
from regard.models.describers import build_describer
from regard.models.picture_classifier import (
    PictureModel,
    PictureModelSettings,
    build_picture_model,
)

SMALL = {"network": "small", "height": 32, "width": 48, "dim": 12, "layers": 3}


def build(**own: Any) -> PictureModel:
    torch.manual_seed(0)
    settings = PictureModelSettings.model_validate({"picture": SMALL, "dropout": 0.0, **own})
    return build_picture_model(settings, build_describer(settings.picture), labels=3)


POOLS = [
    {},
    {"gated": True},
    {"pooling": "mean"},
    {"pooling": "max"},
    {"pooling": "feed_forward"},
    {"pooling": "multihead", "num_heads": 2},
    {"selection": "sparsemax"},
    {"selection": "entmax"},
    {"projection": 8, "attention_dim": 5},
    {"picture": {**SMALL, "parts": {"rows": 2, "columns": 3}}},
]


@pytest.mark.parametrize("own", POOLS, ids=str)
def test_every_pooling_reads_pixels(own: dict[str, Any]) -> None:
    model = build(**own)
    pixels = 255 * torch.rand(4, 3, 32, 48)
    reading = model(pixels)
    cells = 6 if "parts" in own.get("picture", {}) else 24
    assert reading.logits.shape == (4, 3)
    heads = own.get("num_heads")
    assert reading.weights.shape == ((4, cells) if heads is None else (4, heads, cells))
    assert (reading.weights >= 0).all()
    sums = reading.weights.sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    reading.logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    model.eval()
    alone = torch.cat([model(one).logits for one in pixels.split(1)])
    torch.testing.assert_close(model(pixels).logits, alone, rtol=1e-4, atol=1e-5)
    assert model(pixels[:0]).logits.shape == (0, 3)


@pytest.mark.parametrize("own", [{}, {"gated": True}, {"pooling": "mean"}, {"projection": 8}])
def test_the_logits_are_those_of_the_weights_that_are_shown(own: dict[str, Any]) -> None:
    model = build(**own).eval()
    pixels = 255 * torch.rand(2, 3, 32, 48)
    reading = model(pixels)
    items = model.describer(pixels)
    if model.grid is not None:
        items = model.grid(items, torch.ones(items.shape[:2], dtype=torch.bool)).memory
    context = (reading.weights.unsqueeze(-1) * items).sum(dim=1)
    torch.testing.assert_close(model.output(context), reading.logits)


def test_a_describer_that_stays_as_it_is_is_no_part_of_the_model() -> None:
    settings = PictureModelSettings.model_validate(
        {"picture": {"height": 64, "width": 64, "fine": True}}
    )
    describer = build_describer(settings.picture)
    model = build_picture_model(settings, describer, labels=2)
    assert model.describer is None
    assert not any("describer" in name for name in model.state_dict())
    reading = model(torch.randn(3, 4, describer.dim))
    assert reading.weights.shape == (3, 4)
    with pytest.raises(ShapeError, match=r"\(batch, cells, dim\); got \(3, 3, 64, 64\)"):
        model(torch.zeros(3, 3, 64, 64))
    with pytest.raises(ShapeError, match=r"\(batch, 3, height, width\); got \(3, 4, 12\)"):
        build()(torch.zeros(3, 4, 12))


def test_order_does_not_matter_beyond_what_a_description_tells() -> None:
    settings = PictureModelSettings.model_validate({"picture": {"height": 64, "width": 96}})
    model = build_picture_model(settings, build_describer(settings.picture), labels=2).eval()
    cells, order = torch.randn(2, 6, 1280), torch.randperm(6)
    torch.testing.assert_close(model(cells).logits, model(cells[:, order]).logits)
    torch.testing.assert_close(model(cells).weights[:, order], model(cells[:, order]).weights)


def test_settings_that_are_wrong() -> None:
    with pytest.raises(ValidationError, match="pooling"):
        PictureModelSettings.model_validate({"pooling": "sum"})
    with pytest.raises(MechanismError, match="at least two cells"):
        build(picture={**SMALL, "height": 16, "width": 16, "layers": 4})
