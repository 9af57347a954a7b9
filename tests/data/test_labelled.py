"""D1-D4, D8, D9: files of labelled documents as people have them."""

import json
from pathlib import Path

import pytest

from regard.data.labelled import (
    DocumentColumns,
    Documents,
    document_overlap,
    known_labels,
    label_places,
    read_documents,
    read_texts,
)
from regard.errors import DataError, UserError


def write(folder: Path, content: bytes | str, name: str = "a.jsonl") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def lines(*entries: object) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def test_tsv_by_number_and_by_name(tmp_path: Path) -> None:
    plain = write(tmp_path, '\ufeffgood\t"A fine film\r\n\r\nbad\tToo long.\r\n', "a.tsv")
    found = read_documents(plain)
    assert found.texts == ('"A fine film', "Too long.")
    assert found.labels == (("good",), ("bad",))
    assert (found.lines, found.where(1), found.several) == ((1, 3), f"{plain}:3", False)
    named = write(tmp_path, "id\ttext\tkind\n7\tA fine film\tgood\n", "b.tsv")
    columns = DocumentColumns(text="text", label="kind")
    assert read_documents(named, columns=columns).labels == (("good",),)
    assert read_documents(named, columns=DocumentColumns(1, 2, header=True)).texts == (
        "A fine film",
    )


def test_jsonl_of_texts_sentences_and_numbers(tmp_path: Path) -> None:
    file = write(tmp_path, lines(
        {"text": "One. Two.", "label": 1, "id": 5},
        {"sentences": ["One two", "", "三。"], "label": 0},
    ) + "\n")  # fmt: skip
    found = read_documents(file)
    assert found.labels == (("1",), ("0",))
    assert found.texts[1] == "One two\n\n三。"
    assert found.spans == (None, ((0, 7), (8, 8), (9, 11)))
    assert [found.texts[1][a:b] for a, b in found.spans[1]] == ["One two", "", "三。"]
    renamed = write(tmp_path, lines({"body": "x", "kind": "a"}), "b.ndjson")
    columns = DocumentColumns(text="body", label="kind")
    assert read_documents(renamed, columns=columns).texts == ("x",)


def test_any_number_of_labels(tmp_path: Path) -> None:
    file = write(tmp_path, lines(
        {"text": "x", "labels": ["b", "a", "b"]}, {"text": "y", "labels": []}
    ))  # fmt: skip
    found = read_documents(file)
    assert found.several
    assert found.labels == (("b", "a"), ())
    assert label_places(found, known_labels(found)) == [[0, 1], []]


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    one = read_documents(write(tmp_path, "a\tx\nb\ty\n", "a.tsv"))
    two = read_documents(write(tmp_path, "\ufeffa\tx\r\nb\ty", "b.tsv"))
    assert one.sha256 == two.sha256
    assert one.select([1, 0]).sha256 != one.sha256
    assert one.select([1]).texts == ("y",)


def test_blank_documents_are_kept_and_counted(tmp_path: Path) -> None:
    found = read_documents(write(tmp_path, "a\tx\nb\t \u200b\n", "a.tsv"))
    assert (len(found), found.blank, len(found.without_blank())) == (2, 1, 1)


def test_numbers_are_in_their_order(tmp_path: Path) -> None:
    file = write(tmp_path, "".join(f"{n}\tx\n" for n in (10, 9, -1, 10)), "a.tsv")
    assert known_labels(read_documents(file)) == ("-1", "9", "10")
    mixed = write(tmp_path, "10\tx\n9\tx\nb\tx\n", "b.tsv")
    assert known_labels(read_documents(mixed)) == ("10", "9", "b")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\tx\nb\n", r"a\.tsv:2: row must have 2 columns"),
        ("a.tsv", "", "must hold at least one row"),
        ("a.tsv", "\tx\n", r"a\.tsv:1: label must have 1 to 200 characters; got 0"),
        ("a.tsv", "a\tx\n \ty\n", r"a\.tsv:2: label must have"),
        ("a.jsonl", "", "must hold a document; got 0"),
        ("a.jsonl", "{}\n", r"a\.jsonl:1: line must have the key 'text'"),
        ("a.jsonl", '{"text": "x"}\n', r"a\.jsonl:1: line must have the key 'label'"),
        ("a.jsonl", '{"text": 3, "label": 1}\n', "text must be a text, or a list .*; got int"),
        ("a.jsonl", '{"text": "x", "label": 1.5}\n', "label must be .*; got float"),
        ("a.jsonl", '{"text": "x", "label": true}\n', "label must be .*; got bool"),
        ("a.jsonl", '{"sentences": ["x", 2], "label": 1}\n', "sentences must be a text, or a list"),
        ("a.jsonl", '\n{"text": "x", \n', r"a\.jsonl:2: line is not valid JSON"),
        ("a.jsonl", "[]\n", "line must be a JSON object; got list"),
        ("a.jsonl", '{"text": "x", "label": "a"}\n{"text": "x", "labels": ["a"]}\n',
         r"a\.jsonl:2: line must have one label, or a list .* got a list"),
        ("a.csv", "a,x\n", r"must end in \.jsonl, .*; got '\.csv'"),
        ("a.tsv", b"a\tx\nb\t\xe9\n", r"a\.tsv:2: text must be utf-8"),
    ],
)  # fmt: skip
def test_d9_what_is_wrong_is_named(
    tmp_path: Path, name: str, content: bytes | str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(write(tmp_path, content, name))


def test_a_key_of_jsonl_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="column must be a key in JSONL; got the number 1"):
        read_documents(write(tmp_path, "{}"), columns=DocumentColumns(text=1))


def made(labels: list[tuple[str, ...]], texts: list[str] | None = None) -> Documents:
    texts = texts or ["x"] * len(labels)
    spans = (None,) * len(labels)
    return Documents(tuple(texts), tuple(labels), spans, False, "f", tuple(range(1, 9)))


def test_d9_labels_that_are_not_known() -> None:
    with pytest.raises(DataError, match=r"f:2: label must be .*; got 'god'; did you mean 'good'"):
        label_places(made([("bad",), ("god",)]), ["bad", "good"])
    with pytest.raises(DataError, match=r"f: labels must be at least two; got 1 \(a\)"):
        known_labels(made([("a",), ("a",)]))


def test_d21_overlap_is_counted_after_normalisation() -> None:
    train = made([("a",)] * 2, ["cafe\u0301  noir", "b"])
    assert document_overlap(train, made([("a",)] * 3, ["caf\u00e9 noir", "c", " "])) == 1


def test_texts_without_labels(tmp_path: Path) -> None:
    assert read_texts(write(tmp_path, "One.\n\nTwo.\n", "a.txt")) == [
        ("One.", None), ("", None), ("Two.", None)
    ]  # fmt: skip
    file = write(tmp_path, lines({"text": "x"}, {"sentences": ["a", "b"]}))
    assert read_texts(file) == [("x", None), ("a\nb", ((0, 1), (2, 3)))]
