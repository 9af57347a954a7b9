"""D15, D21: what is wrong with a folder of pictures, before a training."""

from pathlib import Path

import pytest
from PIL import Image

from regard.data.captions import CaptionColumns, CaptionedImages, read_captions
from regard.data.checking import check_images, image_overlap, leave_out_bad
from regard.errors import DataError, UserError


def folder_of(folder: Path, rows: dict[str, str], spoiled: dict[str, bytes]) -> CaptionedImages:
    for number, name in enumerate(rows):
        Image.new("RGB", (16, 16), (number, 0, 0)).save(folder / name)
    for name, content in spoiled.items():
        (folder / name).write_bytes(content)
    lines = "".join(f"{name}\t{caption}\n" for name, caption in rows.items())
    (folder / "captions.tsv").write_text(lines)
    return read_captions(folder)


def test_a_sound_folder(tmp_path: Path) -> None:
    report = check_images(folder_of(tmp_path, {"a.png": "a dog", "b.png": "a cat"}, {}))
    assert report.ok
    assert report.bad == report.leaks == report.twins == ()
    assert report.lines() == [
        f"{tmp_path / 'captions.tsv'}: 2 images, 2 captions, 0 blank and 0 overlong captions left "
        f"out, SHA-256 {report.sha256[:16]}"
    ]


def test_d15_bad_pictures_are_listed_with_their_lines(tmp_path: Path) -> None:
    rows = {f"{name}.png": "a dog" for name in "abcde"}
    Image.effect_noise((64, 64), 50).save(tmp_path / "whole.png")
    half = (tmp_path / "whole.png").read_bytes()[:2000]
    spoiled = {"b.png": b"", "c.png": b"<html>404</html>", "e.png": half}
    captioned = folder_of(tmp_path, rows, spoiled)
    report = check_images(captioned)
    file = tmp_path / "captions.tsv"
    assert [(bad.name, bad.where) for bad in report.bad] == [
        ("b.png", f"{file}:2"),
        ("c.png", f"{file}:3"),
        ("e.png", f"{file}:5"),
    ]
    assert not report.ok
    lines = report.lines()
    assert lines[1].startswith(f"bad: {file}:2: b.png: must be a picture; it is empty")
    assert "warning: 1 images in the folder have no caption" in lines
    with pytest.raises(DataError, match=r"at most 0\.10% .* got 3 of 5, the first in .*:2: b\.png"):
        leave_out_bad(captioned, report)


def test_d15_a_few_bad_pictures_are_left_out(tmp_path: Path) -> None:
    rows = {f"{name}.png": f"a {name}" for name in "abcd"}
    captioned = folder_of(tmp_path, rows, {"c.png": b"no picture"})
    report = check_images(captioned, max_bad=0.25)
    assert report.ok
    left = leave_out_bad(captioned, report)
    assert left.names == ("a.png", "b.png", "d.png")
    assert left.captions[2] == ("a d",)
    assert left.where(2).endswith(":4")
    assert not check_images(captioned, max_bad=0.24).ok
    alone = captioned.select([2])
    with pytest.raises(DataError, match="got 1 of 1"):
        leave_out_bad(alone, check_images(alone, max_bad=1.0))
    with pytest.raises(UserError, match="max_bad must be from 0 to 1; got 2"):
        check_images(captioned, max_bad=2)


def test_d21_pictures_in_two_splits_are_found_by_their_bytes(tmp_path: Path) -> None:
    for name, colour in (("a", 1), ("b", 2), ("copy", 1), ("again", 1), ("c", 3), ("d", 2)):
        Image.new("RGB", (8, 8), (colour, 0, 0)).save(tmp_path / f"{name}.png")
    lines = ("a\ttrain", "b\ttrain", "copy\tdev", "again\tdev", "c\tdev", "d\ttest")
    rows = (line.split("\t") for line in lines)
    text = "".join(f"{name}.png\ta dog\t{split}\n" for name, split in rows)
    (tmp_path / "captions.tsv").write_text(text + "c.png\ta dog\tdev\n")
    captioned = read_captions(tmp_path, columns=CaptionColumns(split=2))
    report = check_images(captioned)
    assert [(t.first, t.second, t.splits) for t in report.leaks] == [
        ("a.png", "copy.png", ("train", "dev")),
        ("b.png", "d.png", ("train", "test")),
    ]
    assert [(t.first, t.second) for t in report.twins] == [("copy.png", "again.png")]
    assert report.splits == {"train": 2, "dev": 3, "test": 1}
    lines = report.lines()[1:]
    assert lines == [
        "dev: 3 images",
        "test: 1 images",
        "train: 2 images",
        "warning: 1 images stand in dev and in train (a.png is copy.png)",
        "warning: 1 images stand in test and in train (b.png is d.png)",
        "warning: 1 images have the same bytes as another of their split",
        "warning: 1 captions repeat another of the same image",
    ]
    shared = image_overlap(captioned.split("train"), captioned.split("dev"))
    assert (shared.images, shared.captions, shared.total) == (2, 4, 3)
    assert image_overlap(captioned.split("dev"), captioned.split("test")).images == 0
