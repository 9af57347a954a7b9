"""Files that list pictures, whatever is said of them; captions and labels test the rest."""

import json
from pathlib import Path

import pytest

from regard.data.captions import CAPTIONS
from regard.data.labelled_images import LABELS
from regard.data.listed import Columns, check_text, find_list, read_list
from regard.errors import DataError, UserError


@pytest.mark.parametrize("kind", [CAPTIONS, LABELS], ids=lambda kind: kind.one)
def test_both_kinds_are_read_alike(tmp_path: Path, kind) -> None:
    rows = [
        {"image": "a.png", kind.one: "x", "split": "dev"},
        {"image": "./b.png", kind.several: ["x", "y"]},
    ]
    file = tmp_path / f"{kind.several}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    assert find_list(tmp_path, kind) == find_list(file, kind) == file
    found, known = read_list(file, kind, Columns(), split=None, encoding="utf-8")
    assert known == {"a.png", "b.png"}
    assert [(row.line, row.name, row.said, row.split, row.whole) for row in found] == [
        (1, "a.png", ["x"], "dev", False),
        (3, "b.png", ["x", "y"], "", True),
    ]
    (one,), known = read_list(file, kind, Columns(), split="dev", encoding="utf-8")
    assert (one.image, known) == ("a.png", {"a.png", "b.png"})
    (tmp_path / f"{kind.several}.tsv").write_text("")
    with pytest.raises(DataError, match=f"{kind.several}.tsv; got 2. Name the file"):
        find_list(tmp_path, kind)
    file.write_text("\n")
    with pytest.raises(DataError, match=f"file must hold at least one {kind.one}; got 0"):
        read_list(file, kind, Columns(), split=None, encoding="utf-8")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be a file or a folder; there is none"):
        find_list(tmp_path / "no", LABELS)
    with pytest.raises(DataError, match=r"name must end in .*; got '\.csv'"):
        read_list(tmp_path / "a.csv", LABELS, Columns(), split=None, encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(UserError, match="column must be a key in JSONL; got the number 2"):
        read_list(tmp_path / "a.jsonl", LABELS, Columns(said=2), split=None, encoding="utf-8")
    with pytest.raises(DataError, match="here: name must be a text; got list"):
        check_text("name", [], "here")
