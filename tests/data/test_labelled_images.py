"""D1, D9, D15, D19, D21: folders of pictures and labels as people have them."""

import json
from pathlib import Path

import pytest
from PIL import Image

from regard.data.checking import check_images, leave_out_bad, shared_images
from regard.data.labelled import known_labels, label_places
from regard.data.labelled_images import (
    LabelColumns,
    holds_labels,
    is_folder_of_labels,
    read_labelled_images,
)
from regard.errors import DataError, UserError


def draw(path: Path, red: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (red, 0, 0)).save(path)
    return path


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Three labels with a folder each, and what is left alone."""
    folder = tmp_path / "pictures"
    for number, name in enumerate(("dog/b.png", "dog/a.PNG", "cat/a.png", "10/a.png", "9/a.png")):
        draw(folder / name, number)
    (folder / "dog" / "notes.txt").write_text("x")
    draw(folder / ".thumbs" / "a.png", 9)
    draw(folder / "dog" / ".hidden.png", 9)
    (folder / "runs").mkdir()
    (folder / "config.toml").write_text("")
    return folder


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    for number, name in enumerate("abcd"):
        draw(tmp_path / "images" / f"{name}.png", number)
    return tmp_path


def write(folder: Path, *rows: object, name: str = "labels.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / name


def test_a_folder_for_each_label(classes: Path) -> None:
    found = read_labelled_images(classes)
    assert found.names == ("10/a.png", "9/a.png", "cat/a.png", "dog/a.PNG", "dog/b.png")
    assert [label for (label,) in found.labels] == ["10", "9", "cat", "dog", "dog"]
    assert not found.several
    assert found.paths[2] == classes / "cat/a.png"
    assert found.where(2) == str(classes / "cat/a.png")
    assert found.summary == "4 labels (dog 40.0 %, 10 20.0 %, 9 20.0 %, cat 20.0 %)"
    assert known_labels(found) == ("10", "9", "cat", "dog")
    assert label_places(found, ["dog", "cat", "9", "10"]) == [[3], [2], [1], [0], [0]]
    with pytest.raises(DataError, match=r"cat/a\.png: label must be one of .* got 'cat'; did you"):
        label_places(found, ["cats", "dog", "9", "10"])
    with pytest.raises(UserError, match=r"named splits must be left out .* splits = \"content\""):
        read_labelled_images(classes, split="train")


def test_the_hash_is_that_of_bytes_names_and_labels(classes: Path) -> None:
    first = read_labelled_images(classes).sha256
    assert read_labelled_images(classes).sha256 == first
    (classes / "cat").rename(classes / "kitten")
    second = read_labelled_images(classes).sha256
    assert second != first
    draw(classes / "kitten" / "a.png", 77)
    assert read_labelled_images(classes).sha256 not in (first, second)


def test_content_decides_the_split(tmp_path: Path) -> None:
    for number in range(120):
        draw(tmp_path / ("odd" if number % 2 else "even") / f"{number}.png", number)
    whole = read_labelled_images(tmp_path).split_by_content()
    parts = {name: whole.split(name) for name in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 120
    assert len(parts["train"]) > 80
    assert min(len(parts["dev"]), len(parts["test"])) > 3
    assert shared_images(parts["train"], parts["test"]) == 0
    (tmp_path / "odd" / "copy.png").write_bytes((tmp_path / parts["dev"].names[0]).read_bytes())
    draw(tmp_path / "even" / "more.png", 200)
    again = read_labelled_images(tmp_path).split_by_content()
    split_of = dict(zip(again.names, again.splits, strict=True))
    assert all(split_of[name] == part for part, own in parts.items() for name in own.names)
    assert split_of["odd/copy.png"] == "dev"


def test_lists_of_labels_and_single_ones(listed: Path) -> None:
    file = write(
        listed,
        {"image": "images/a.png", "labels": ["cat", "dog", "cat"], "split": "train"},
        {"image": "./images/b.png", "labels": [], "split": "dev"},
    )
    for path in (file, listed):
        found = read_labelled_images(path)
        assert found.labels == (("cat", "dog"), ())
        assert found.several
        assert found.names == ("images/a.png", "images/b.png")
        assert found.where(1) == f"{file}:2"
    assert read_labelled_images(file, split="dev").names == ("images/b.png",)
    assert read_labelled_images(file, split="dev").known == {"images/a.png", "images/b.png"}
    with pytest.raises(DataError, match=r"split must be one of the file's; got 'dve'; did you"):
        read_labelled_images(file, split="dve")
    write(listed, {"image": "images/a.png", "label": 3}, {"image": "images/b.png", "label": "x"})
    assert read_labelled_images(listed).labels == (("3",), ("x",))
    assert not read_labelled_images(listed).several


def test_d1_tables(listed: Path) -> None:
    table = listed / "labels.tsv"
    table.write_bytes(b"\xef\xbb\xbfimages/a.png\tcat\r\n\r\nimages/b.png\tdog\r\n")
    assert read_labelled_images(listed).labels == (("cat",), ("dog",))
    table.write_text("kind\tfile\tpart\ncat\ta.png\ttrain\ndog\tb.png\tdev\n")
    columns = LabelColumns(image="file", label="kind", split="part")
    found = read_labelled_images(table, root=listed / "images", columns=columns, split="dev")
    assert (found.names, found.labels) == (("b.png",), (("dog",),))


def test_d9_lines_that_are_wrong_are_named(listed: Path) -> None:
    one = {"image": "images/a.png", "label": "cat"}
    wrong = {
        "label must be a text or a whole number; got float": {
            "image": "images/b.png",
            "label": 1.5,
        },
        "label must have 1 to 200 characters; got 0": {"image": "images/b.png", "label": " "},
        "line must have the key 'label'": {"image": "images/a.png", "lable": "x"},
        "line must have one label, or a list of them": {"image": "images/b.png", "labels": ["x"]},
        "image must stand once; got './images/a.png' in line 1 too": {
            "image": "./images/a.png",
            "label": "dog",
        },
        "image must be a text; got int": {"image": 1, "label": "x"},
        "line must be a JSON object; got list": [1],
    }
    for message, row in wrong.items():
        file = write(listed, one, row)
        with pytest.raises(DataError, match=f"labels.jsonl:2: .*{message}"):
            read_labelled_images(file)
    with pytest.raises(DataError, match="file must hold at least one label; got 0"):
        read_labelled_images(write(listed))


def test_d19_names_that_leave_the_folder(listed: Path, classes: Path, tmp_path: Path) -> None:
    for name in ("../x.png", "/etc/passwd", "images/no.png", "images"):
        with pytest.raises(DataError, match=r"labels\.jsonl:1: image must be"):
            read_labelled_images(write(listed, {"image": name, "label": "x"}))
    draw(tmp_path / "outside" / "a.png")
    (classes / "linked").symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match="a link that leads out of it"):
        read_labelled_images(classes)


def test_what_holds_no_labels(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"or a folder of pictures .* for each label; it holds none"
    ):
        read_labelled_images(tmp_path)
    draw(tmp_path / "train" / "cat" / "a.png")  # one folder too deep
    with pytest.raises(DataError, match="it holds none"):
        read_labelled_images(tmp_path)
    with pytest.raises(DataError, match="must be a file or a folder; there is none"):
        read_labelled_images(tmp_path / "no")
    with pytest.raises(DataError, match="must be a file or a folder"):
        read_labelled_images("a\0b")


def test_labels_are_told_from_captions(classes: Path, listed: Path) -> None:
    assert is_folder_of_labels(classes)
    assert holds_labels(classes)
    assert not holds_labels(listed / "no")
    row = {"image": "images/a.png", "labels": ["x"]}
    assert holds_labels(write(listed, row, name="own.jsonl"))
    assert not holds_labels(write(listed, {**row, "caption": "x"}, name="own.jsonl"))
    assert not holds_labels(write(listed, {"image": "a", "captions": ["x"]}, name="own.jsonl"))
    (listed / "own.jsonl").write_text("{")
    assert not holds_labels(listed / "own.jsonl")
    for name in ("labels.tsv", "labels.jsonl"):
        (listed / name).write_text("")
        assert holds_labels(listed / name)
    assert holds_labels(listed)
    (classes / "captions.tsv").write_text("")
    assert not holds_labels(classes)


def test_d15_d21_bad_pictures_and_twins(classes: Path) -> None:
    (classes / "dog" / "b.png").write_bytes(b"<html>")
    (classes / "cat" / "twin.png").write_bytes((classes / "dog" / "a.PNG").read_bytes())
    draw(classes / "stray.png")
    images = read_labelled_images(classes)
    report = check_images(images, max_bad=0.2)
    assert [bad.name for bad in report.bad] == ["dog/b.png"]
    lines = report.lines()
    assert lines[0].startswith(f"{classes}: 6 images, 4 labels (")
    assert lines[1].startswith(f"bad: {classes / 'dog/b.png'}: must be a picture")
    assert "warning: 1 images have the same bytes as another of another label" in lines
    assert "warning: 3 images in the folder have no label" in lines
    assert len(leave_out_bad(images, report)) == 5
    with pytest.raises(DataError, match=rf"got 1 of 6, the first in {classes}/dog/b\.png: must be"):
        leave_out_bad(images, check_images(images))
