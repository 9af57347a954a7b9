"""A classifier of pictures as a person uses it: results, records, several labels, bad files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from regard.errors import DataError, UserError
from regard.models.describers import build_describer
from regard.models.picture_classifier import build_picture_model
from regard.models.poolings import Pooled
from regard.pictures.picture import Picture
from regard.pictures.records import Record
from regard.tasks.image_classification import ImageClassifier
from regard.tasks.image_classification_settings import ImageClassifierSettings

SMALL = {"network": "small", "height": 32, "width": 48, "dim": 8, "layers": 3}


def classifier(*, several: bool = False, **own: Any) -> ImageClassifier:
    torch.manual_seed(0)
    settings = ImageClassifierSettings.model_validate(
        {
            "task": "image_classification",
            "labels": ["bird", "cat", "dog"],
            "several": several,
            "model": {"picture": SMALL, **own},
        }
    )
    describer = build_describer(settings.model.picture)
    model = build_picture_model(settings.model, describer, labels=3)
    for parameter in model.parameters():
        parameter.data.mul_(2.0)  # so that weights differ
    return ImageClassifier(model, describer, settings, name="small")


def picture(seed: int = 0, size: tuple[int, int] = (60, 40)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3))
    return Image.fromarray(noise.astype(np.uint8))


@pytest.mark.parametrize("own", [{}, {"pooling": "mean"}, {"selection": "sparsemax"}], ids=str)
def test_a_result_and_its_record(own: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "tom.png"
    picture().save(path)
    model = classifier(**own)
    result = model(path)
    assert result.image == "tom.png"
    assert list(result.probabilities) == ["bird", "cat", "dog"]
    assert sum(result.probabilities.values()) == pytest.approx(1.0)
    assert result.probability == max(result.probabilities.values())
    assert result.labels == (result.label,)
    record = result.record
    assert isinstance(record.read, Picture)
    assert (record.read.rows, record.read.columns, record.read.name) == (4, 6, "tom.png")
    assert record.written.text == result.label
    assert record.details["probability"] == pytest.approx(result.probability, abs=1e-6)
    assert record.weights().shape == (1, 24)
    assert record.weights().sum() == pytest.approx(1.0, abs=1e-5)
    result.save(tmp_path / "look.json")
    assert Record.load(tmp_path / "look.json").read == record.read


def test_every_head_has_a_map() -> None:
    model = classifier(pooling="multihead", num_heads=2)
    record = model(picture()).record
    reading = model.reading(model.sources([picture()]))
    assert [one.name for one in record.maps] == ["head 1", "head 2"]
    for head, one in enumerate(record.maps):
        assert np.allclose(one.weights[0], reading.weights[0, head], atol=1e-6)


def test_the_record_has_the_weights_that_were_used() -> None:
    model = classifier()
    result = model(picture())
    reading = model.reading(model.sources([picture()]))
    assert np.allclose(result.record.weights()[0], reading.weights[0])
    assert list(result.probabilities.values()) == pytest.approx(
        reading.logits[0].double().softmax(0).tolist()
    )


def test_heads_have_a_map_each() -> None:
    class TwoHeads(torch.nn.Module):
        def forward(self, items: torch.Tensor, mask: torch.Tensor) -> Pooled:
            count = items.shape[1]
            heads = torch.stack([torch.eye(count)[0], torch.full((count,), 1 / count)])
            return Pooled(items.mean(dim=1), heads.expand(len(items), -1, -1))

    model = classifier(several=True)
    model.model.pool = TwoHeads()
    with torch.no_grad():
        model.model.output.bias.fill_(100.0)  # every label holds
    record = model([picture(), picture(1)])[1].record
    assert [one.name for one in record.maps] == ["head 1", "head 2"]
    assert record.weights("head 1").shape == (3, 24)
    assert record.weights("head 1")[2].tolist() == [1.0, *[0.0] * 23]
    assert np.allclose(record.weights("head 2"), 1 / 24)


def test_many_at_once_are_as_one_by_one() -> None:
    model = classifier()
    pictures = [picture(seed, (30 + seed, 40)) for seed in range(5)]
    for batch_size in (1, 2, 32):
        for one, result in zip(pictures, model(pictures, batch_size=batch_size), strict=True):
            alone = model(one)
            assert result.label == alone.label
            assert result.probability == pytest.approx(alone.probability, abs=1e-5)
        rated = model.rate(pictures, batch_size=batch_size)
        each = [list(one.probabilities.values()) for one in model(pictures)]
        assert np.allclose(rated, each, atol=1e-5)
    assert model([]) == []
    assert model.rate([]).shape == (0, 3)


def test_any_number_of_labels() -> None:
    model = classifier(several=True)
    with torch.no_grad():
        model.model.output.weight.zero_()
        model.model.output.bias.copy_(torch.tensor([2.0, -1.0, 0.5]))
    result = model(picture())
    assert result.labels == ("bird", "dog")
    assert result.probabilities["cat"] == pytest.approx(1 / (1 + math.e))
    assert result.record.written.text == "bird, dog"
    assert result.record.weights().shape == (2, 24)
    with torch.no_grad():
        model.model.output.bias.fill_(-1.0)
    nothing = model(picture())
    assert nothing.labels == ()
    assert nothing.record.written.text == nothing.label


def test_d17_a_picture_is_seen_upright(tmp_path: Path) -> None:
    upright = picture()
    turned = upright.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.png", exif=exif)
    model = classifier()
    seen, plain = model(tmp_path / "turned.png"), model(upright)
    assert seen.probabilities == pytest.approx(plain.probabilities)
    assert (seen.record.read.width, seen.record.read.height) == (60, 40)


def test_d15_d16_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    model = classifier()
    with pytest.raises(UserError, match="batch_size must be at least 1; got 0"):
        model([], batch_size=0)
    with pytest.raises(UserError, match="image must be a file or a PIL image; got bytes"):
        model(b"x")
    (tmp_path / "page.jpg").write_text("<html>")
    with pytest.raises(DataError, match=r"page\.jpg: must be a picture"):
        model([tmp_path / "page.jpg"])
    Image.new("1", (12_000, 12_000)).save(tmp_path / "bomb.png")
    with pytest.raises(DataError, match=r"bomb\.png: picture must have at most 40,000,000 pixels"):
        model(tmp_path / "bomb.png")
