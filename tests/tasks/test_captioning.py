from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from regard.data.tokens import Tokenizer
from regard.errors import DataError, UserError
from regard.models.captioner import build_captioner
from regard.models.describers import build_describer
from regard.pictures.picture import Picture
from regard.tasks.captioning import Captioner
from regard.tasks.captioning_settings import CaptioningModelSettings
from regard.tasks.settings import DecodingSettings


def made(**own: Any) -> Captioner:
    torch.manual_seed(3)
    picture = {"network": "small", "height": 24, "width": 32, "dim": 6, "layers": 3}
    model = {"picture": picture, "item_dim": 10, "embedding_dim": 8, "dropout": 0.0, **own}
    model.setdefault("decoder", {"kind": "lstm", "hidden_dim": 9, "order": "bahdanau"})
    table = {"task": "captioning", "language": "en", "model": model}
    table["decoding"] = {"beam": 2, "maximum_length": 5}
    settings = CaptioningModelSettings.model_validate(table)
    tokenizer = Tokenizer.train(["a red dog", "a blue cat runs"], kind="words")
    describer = build_describer(settings.model.picture)
    built = build_captioner(settings.model, describer, words=tokenizer.size, padding=0)
    return Captioner(built, describer, tokenizer, settings, name="test")


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = []
    for number, colour in enumerate(["red", "blue", "green"]):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (60 + 20 * number, 40), colour).save(path)
        paths.append(path)
    return paths


def test_a_picture_gets_a_caption_and_a_record(pictures: list[Path]) -> None:
    result = made()(pictures[1])
    assert result.image == "1.png"
    record = result.record
    assert isinstance(record.read, Picture)
    assert (record.read.width, record.read.height) == (80, 40)
    assert (record.read.rows, record.read.columns) == (3, 4)
    assert record.maps[0].weights.shape == (len(result.tokens), 12)
    assert record.task == "captioning"
    assert record.written.text == result.text


def test_files_images_and_lists_agree(pictures: list[Path]) -> None:
    captioner = made()
    listed = captioner(pictures, batch_size=2)
    assert [one.image for one in listed] == ["0.png", "1.png", "2.png"]
    for path, one in zip(pictures, listed, strict=True):
        assert captioner(str(path)).text == one.text
        with Image.open(path) as image:
            assert captioner(image).tokens == one.tokens
        assert captioner(path).log_prob == pytest.approx(one.log_prob, abs=1e-4)
    assert captioner([]) == []


def test_d17_an_image_is_seen_as_its_file_is(tmp_path: Path) -> None:
    captioner = made()
    drawn = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    drawn.paste((200, 30, 30, 255), (5, 5, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned, clear, deep = (tmp_path / name for name in ("turned.jpg", "clear.png", "deep.png"))
    drawn.convert("RGB").save(turned, exif=exif)
    drawn.save(clear)
    Image.new("I;16", (60, 40), 40_000).save(deep)
    for path in (turned, clear, deep):
        file, image = captioner(path), captioner(Image.open(path))
        assert (file.text, file.score) == (image.text, image.score)
        assert (file.record.read.width, file.record.read.height) == (
            image.record.read.width,
            image.record.read.height,
        )
    assert (captioner(Image.open(turned)).record.read.width, 60) == (40, 60)
    clear.write_bytes(clear.read_bytes()[:-30])
    broken = pytest.raises(DataError, match="image: must be a whole picture")
    with Image.open(clear) as opened, broken:
        captioner(opened)
    with pytest.raises(DataError, match="at most 40,000,000 pixels"):
        captioner(Image.new("L", (8000, 8000)))


def test_nbest_and_sampling_are_those_of_the_translator(pictures: list[Path]) -> None:
    captioner = made()
    result = captioner(pictures[0], beam=3, nbest=3)
    scores = [result.score, *(one.score for one in result.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3
    drawing = captioner.searching(DecodingSettings(sample=True, maximum_length=5))
    drawn = [
        drawing(pictures, generator=torch.Generator().manual_seed(4))[1].tokens for _ in range(2)
    ]
    assert drawn[0] == drawn[1]


def test_a_sentinel_is_one_more_weight(pictures: list[Path]) -> None:
    record = made(sentinel=True)(pictures[0]).record
    assert record.read.sentinel
    assert record.maps[0].weights.shape[1] == 13


@pytest.mark.parametrize(
    ("decoder", "names"),
    [
        ({"kind": "gru", "hidden_dim": 6, "num_heads": 2}, ["head 1", "head 2"]),
        (
            {"kind": "transformer", "num_heads": 2, "layers": 1},
            ["layer 1, head 1", "layer 1, head 2"],
        ),
        ({"kind": "lstm", "hidden_dim": 6, "selection": "sparsemax"}, ["additive"]),
    ],
)
def test_other_decoders_serve(decoder: Any, names: list[str], pictures: list[Path]) -> None:
    record = made(decoder=decoder)(pictures[0]).record
    assert [one.name for one in record.maps] == names


def test_l11_without_attention_there_is_nothing_to_show(pictures: list[Path]) -> None:
    result = made(decoder={"kind": "lstm", "hidden_dim": 6, "attention": "none"})(pictures[0])
    assert result.looked is None
    assert result._repr_html_() == result.text
    with pytest.raises(UserError, match="model with attention"):
        result.save("a.svg")


def test_records_are_saved_by_ending(pictures: list[Path], tmp_path: Path) -> None:
    result = made()(pictures[0])
    for ending in ("svg", "html", "json"):
        path = tmp_path / f"look.{ending}"
        result.save(path)
        assert path.stat().st_size > 500
    assert "<iframe" in result._repr_html_()


def test_d15_what_is_no_picture_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "a.jpg"
    broken.write_text("<html>")
    with pytest.raises(DataError, match=r"a\.jpg"):
        made()(broken)
    for wrong in (3, None):
        with pytest.raises(UserError, match="image must be a file or a PIL image"):
            made()(wrong)
    with pytest.raises(UserError, match="batch_size must be at least 1; got 0"):
        made()([], batch_size=0)
