from __future__ import annotations

import json

import pytest

from regard.data.labelled import read_documents
from regard.data.planted import Planted, read_evidence, write_planted
from regard.data.rationales import read_rationales
from regard.errors import DataError


def written(folder, rows, name="a.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_marked_places_are_read_in_the_order_of_the_documents(tmp_path):
    base = {"text": "A fine film.", "label": "good"}
    rows = [
        {**base, "evidence": [[2, 6], [7, 11]]},
        base,
        {**base, "evidence": None},
        {**base, "evidence": {"sentence": [0, 12], "words": [[2, 6]]}},
        {**base, "evidence": []},
    ]
    path = written(tmp_path, rows)
    path.write_text("\n" + path.read_text().replace("\n", "\n\n"))  # blank lines count nowhere
    found = read_rationales(path)
    assert found == [((2, 6), (7, 11)), None, None, ((2, 6),), ()]
    assert len(found) == len(read_documents(path))


def test_generated_letters_have_them(tmp_path):
    (path,) = write_planted(tmp_path, {"test": 20}, seed=1, planted=Planted("en"))
    expected = [None if one is None else one.words for one in read_evidence(path)]
    assert read_rationales(path) == expected


def test_tables_have_none(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("good\tA fine film.\n")
    assert read_rationales(path) == []


@pytest.mark.parametrize(
    "wrong",
    ["2-6", 7, [3], [[2]], [[6, 2]], [[2, 2]], [[-1, 2]], [["2", 6]], [[2.0, 6]], {"word": []}],
)
def test_a_wrong_line_is_named(tmp_path, wrong):
    path = written(tmp_path, [{"text": "a"}, {"text": "a", "evidence": wrong}])
    with pytest.raises(DataError, match=r"a\.jsonl:2: evidence must be null"):
        read_rationales(path)


def test_what_is_no_object_is_refused(tmp_path):
    with pytest.raises(DataError, match="evidence must be"):
        read_rationales(written(tmp_path, [[1, 2]]))
