"""D1-D4, D6-D9, D11, D15, D19: folders of pictures and captions as people have them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.captions import CaptionColumns, CaptionedImages, read_captions
from regard.errors import DataError, UserError

NAMES = ("a.jpg", "b.jpg", "images/c.png", "d.jpg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for name in NAMES:
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def write(folder: Path, content: str | bytes, name: str = "captions.tsv") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def jsonl(*rows: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_lists_of_captions(folder: Path) -> None:
    rows = (
        {"image": "b.jpg", "captions": ["a dog", "one dog"], "licence": ["x"], "size": [2, 3]},
        {"image": "images/c.png", "captions": ["汤姆"], "split": "train"},
    )
    file = write(folder, jsonl(*rows), "captions.jsonl")
    for path in (folder, file, str(file)):
        found = read_captions(path)
        assert found.names == ("b.jpg", "images/c.png")
        assert found.paths == (folder / "b.jpg", folder / "images/c.png")
        assert found.captions == (("a dog", "one dog"), ("汤姆",))
        assert found.splits == ("", "train")
        assert len(found) == 2
        assert (found.where(0, 1), found.where(1)) == (f"{file}:1", f"{file}:2")


def test_one_caption_a_line(folder: Path) -> None:
    rows = (
        {"image": "a.jpg", "caption": "a dog"},
        {"image": "b.jpg", "caption": "a cat"},
        {"image": "./a.jpg", "caption": "one dog"},
    )
    table = "a.jpg\ta dog\nb.jpg\ta cat\n\n./a.jpg\tone dog"
    for file, last in (
        (write(folder, jsonl(*rows), "x.jsonl"), 3),
        (write(folder, table, "x.tsv"), 4),
        (write(folder, table, "x.txt"), 4),
    ):
        found = read_captions(file)
        assert found.names == ("a.jpg", "b.jpg")
        assert found.captions == (("a dog", "one dog"), ("a cat",))
        assert found.where(0, 1) == f"{file}:{last}"


def test_columns_by_name_or_number(folder: Path) -> None:
    table = write(folder, "id\tsplit\ttext\tfile\n1\tdev\ta dog\ta.jpg\n2\ttrain\ta cat\tb.jpg\n")
    for columns in (
        CaptionColumns(image="file", caption="text", split="split"),
        CaptionColumns(image=3, caption=2, split=1, header=True),
    ):
        found = read_captions(table, columns=columns)
        assert found.names == ("a.jpg", "b.jpg")
        assert found.splits == ("dev", "train")
    row = {"file": "a.jpg", "zh": ["狗"], "en": ["dog"], "part": "dev"}
    file = write(folder, jsonl(row), "x.jsonl")
    columns = CaptionColumns(image="file", caption="zh", split="part")
    assert read_captions(file, columns=columns, split="dev").captions == (("狗",),)


def test_a_split_is_chosen(folder: Path) -> None:
    rows = (
        {"image": "a.jpg", "caption": "a dog", "split": "train"},
        {"image": "gone.jpg", "caption": "a cat", "split": "test"},
        {"image": "b.jpg", "caption": "a cat", "split": None},
    )
    file = write(folder, jsonl(*rows), "x.jsonl")
    found = read_captions(file, split="train")
    assert found.names == ("a.jpg",)
    assert found.known == {"a.jpg", "gone.jpg", "b.jpg"}
    with pytest.raises(DataError, match=r"got 'trian'; did you mean 'train'"):
        read_captions(file, split="trian")
    with pytest.raises(DataError, match=r"must stand in the lines; got none, 'dev' is wanted"):
        read_captions(write(folder, "a.jpg\ta dog\n"), split="dev")


def test_parts_of_a_set(folder: Path) -> None:
    lines = ("a.jpg\ta dog\ttrain", "b.jpg\ta cat\tdev", "d.jpg\ta cow\ttrain", "a.jpg\tdog\ttrain")
    file = write(folder, "\n".join(lines))
    found = read_captions(file, columns=CaptionColumns(split=2))
    train = found.split("train")
    assert train.names == ("a.jpg", "d.jpg")
    assert train.sha256 == found.select([0, 2]).sha256 != found.select([2, 0]).sha256
    alone = read_captions(file, columns=CaptionColumns(split=2), split="train")
    assert alone.sha256 == train.sha256
    assert train.where(1) == f"{file}:3"
    with pytest.raises(DataError, match="use one of: dev, train"):
        found.split("zzz")


def test_a_folder_must_hold_one_file_of_captions(folder: Path) -> None:
    with pytest.raises(DataError, match=r"one of captions.jsonl and captions.tsv; got 0\."):
        read_captions(folder)
    write(folder, "a.jpg\ta dog")
    assert read_captions(folder).names == ("a.jpg",)
    write(folder, jsonl({"image": "a.jpg", "caption": "a dog"}), "captions.jsonl")
    with pytest.raises(DataError, match=r"got 2\. Name the file"):
        read_captions(folder)
    with pytest.raises(DataError, match=r"must end in .*got '\.csv'"):
        read_captions(write(folder, "a.jpg\ta dog", "x.csv"))
    for missing in ("none.tsv", "a\0b.tsv"):
        with pytest.raises(DataError, match="cannot be read"):
            read_captions(folder / missing)


def test_images_may_lie_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = write(tmp_path_factory.mktemp("elsewhere"), "c.png\ta dog")
    assert read_captions(file, root=folder / "images").paths == (folder / "images" / "c.png",)
    with pytest.raises(DataError, match="must be a file in"):
        read_captions(file)


def test_d1_d3_d4_the_hash_is_that_of_the_content(folder: Path) -> None:
    text = "a.jpg\ta\u2028b\u0085c\nb.jpg\tcat\n"
    texts = (
        text,
        "\ufeff" + text,
        text.replace("\n", "\r\n"),
        text[:-1],
        text.replace("\n", "\n\n"),
    )
    found = [read_captions(write(folder, one)) for one in texts]
    assert {one.captions for one in found} == {(("a\u2028b\u0085c",), ("cat",))}
    assert len({one.sha256 for one in found}) == 1
    (folder / "a.jpg").write_bytes(b"changed")
    assert read_captions(folder).sha256 != found[0].sha256


def test_d2_another_encoding_is_named(folder: Path) -> None:
    file = write(folder, "a.jpg\t狗\n".encode("gb18030"))
    with pytest.raises(DataError, match=r"captions\.tsv:1: text must be utf-8"):
        read_captions(file)
    assert read_captions(file, encoding="gb18030").captions == (("狗",),)


def test_d6_d7_blank_and_overlong_captions_are_counted(folder: Path) -> None:
    file = write(folder, "a.jpg\ta dog\na.jpg\t \na.jpg\t\u200b\na.jpg\tlong caption\n")
    found = read_captions(file, max_characters=5)
    assert found.captions == (("a dog",),)
    assert (found.dropped_empty, found.dropped_long) == (2, 1)
    with pytest.raises(UserError, match="max_characters must be at least 1; got 0"):
        read_captions(file, max_characters=0)


def test_d8_quotes_are_text(folder: Path) -> None:
    file = write(folder, 'a.jpg\t"a dog\nb.jpg\ta "cat"\nb.jpg\t' + "x" * 140_000)
    found = read_captions(file, max_characters=200_000)
    assert found.captions[0] == ('"a dog',)
    assert found.captions[1] == ('a "cat"', "x" * 140_000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"captions\.tsv: file must hold at least one row"),
        ("\n\n", "must be from 0 to 0; got 1"),
        ("a.jpg\ta dog\nb.jpg\n", r":2: row must have 2 columns .* got 1\."),
        ("a.jpg\ta dog\nb.jpg\tx\ty\n", r":2: row must have 2 columns .* got 3\."),
        ("a.jpg\ta dog\n\ta cat\n", r":2: image must be named relative"),
        ("a.jpg\t\n", r":1: image must have a caption with text.*got none for 'a\.jpg'"),
        ("a.jpg\ta dog\nb.jpg\t \n", r":2: image must have a caption with text"),
        ("a.jpg\ta dog\nnone.jpg\ta cat\n", r":2: image must be a file in .*none\.jpg"),  # D19
        ("a.jpg\ta\0dog\n", r":1: text must hold no NUL"),
    ],
)
def test_d9_wrong_rows_are_named(folder: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_captions(write(folder, content))
    assert len(str(caught.value).splitlines()) == 1


GOOD = '{"image": "a.jpg", "captions": ["a dog"]}\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", r":2: line must be a JSON object; got list"),
        ("{", r":2: line is not valid JSON"),
        ('{"image": "b.jpg", "image": "a.jpg", "caption": "x"}', ":2: .*a name stands twice"),
        ('{"image": "b.jpg", "caption": NaN}', ":2: .*NaN is not a number"),
        ("[" * 100_000, r":2: line is not valid JSON"),
        ('{"imgae": "b.jpg", "caption": "x"}', r":2: .*key 'image'; did you mean 'imgae'"),
        ('{"image": "b.jpg"}', r":2: line must have the key 'caption'"),
        ('{"image": 7, "caption": "x"}', r":2: image must be a text; got int"),
        ('{"image": "b.jpg", "caption": 7}', r":2: caption must be a text; got int"),
        ('{"image": "b.jpg", "captions": ["x", null]}', ":2: caption must be a text; got None"),
        ('{"image": "b.jpg", "caption": "x", "split": 0}', ":2: split must be a text; got int"),
        ('{"image": "b.jpg", "captions": []}', r":2: image must have a caption with text"),
        ('{"image": "a.jpg", "captions": ["x"]}', r":2: image must stand once.*in line 1 too"),
        ('{"image": "./a.jpg", "caption": "x"}', r":2: image must stand once"),
        ('{"image": "../a.jpg", "caption": "x"}', r":2: .*without '\.\.'"),  # D19
        ('{"image": "/etc/passwd", "caption": "x"}', r":2: .*relative to the folder"),
        ('{"image": "http://a.org/b.jpg", "caption": "x"}', ":2: .*relative to the folder"),
        ('{"image": "\\ud800.jpg", "caption": "x"}', r":2: .*no file can have this name"),
        ('{"image": "a\\u0000.jpg", "caption": "x"}', r":2: .*relative to the folder"),
    ],
)
def test_d9_d19_wrong_lines_are_named(folder: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_captions(write(folder, GOOD + line + "\n", "captions.jsonl"))
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 1000


def test_d19_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "images" / "out.jpg").symlink_to(folder / "a.jpg")
    file = write(folder, "out.jpg\ta dog\n")
    with pytest.raises(DataError, match=r"captions\.tsv:1: .*a link that leads out"):
        read_captions(file, root=folder / "images")


def test_d11_a_surrogate_in_a_caption_is_read_and_hashed(folder: Path) -> None:
    found = read_captions(write(folder, jsonl({"image": "a.jpg", "caption": "x\ud800"}), "x.jsonl"))
    assert found.captions == (("x\ud800",),)
    assert len(found.sha256) == 64


def test_an_image_in_two_splits_is_refused(folder: Path) -> None:
    file = write(folder, "a.jpg\ta dog\ttrain\na.jpg\tdog\ttest\n")
    with pytest.raises(
        DataError, match=r":2: image must be in one split; .*'test', and in 'train'"
    ):
        read_captions(file, columns=CaptionColumns(split=2))


def test_columns_that_are_none(folder: Path) -> None:
    file = write(folder, GOOD, "captions.jsonl")
    with pytest.raises(UserError, match="must be a key in JSONL; got the number 1"):
        read_captions(file, columns=CaptionColumns(caption=1))
    table = write(folder, "file\ttext\na.jpg\ta dog\n", "x.tsv")
    with pytest.raises(DataError, match=r"column 'txt' .*did you mean 'text'"):
        read_captions(table, columns=CaptionColumns(image="file", caption="txt"))
    with pytest.raises(DataError, match="columns must differ"):
        read_captions(table, columns=CaptionColumns(image=1))


CAPTION = st.text(st.characters(codec="utf-8"), min_size=1).map(lambda text: f"x{text}")


@given(captions=st.lists(st.lists(CAPTION, min_size=1), min_size=1, max_size=4))
def test_any_captions_come_back(
    captions: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    rows = []
    for number, texts in enumerate(captions):
        (folder / f"{number}.jpg").write_bytes(b"")
        rows.append({"image": f"{number}.jpg", "captions": texts})
    found: CaptionedImages = read_captions(write(folder, jsonl(*rows), "captions.jsonl"))
    assert [list(texts) for texts in found.captions] == captions
