"""Generated documents: the evidence is where it is said to be, and nowhere else."""

import itertools
import json
import re
from pathlib import Path

import pytest

from regard.data.labelled import read_documents
from regard.data.planted import OTHER, Evidence, Planted, read_evidence, write_planted
from regard.data.sentences import by_marks
from regard.data.splits import SPLITS
from regard.errors import DataError, UserError

LANGUAGES = ["en", "zh"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_and_evidence_are_where_they_are_said_to_be(language: str) -> None:
    for document in Planted(language).sample(300, seed=1):
        assert tuple(by_marks(document.text)) == document.sentences
        assert "{" not in document.text
        assert 4 <= len(document.sentences) <= 12
        assert (document.label == OTHER) == (document.evidence is None) == (document.place is None)
        if document.evidence is None:
            continue
        assert document.evidence.sentence == document.sentences[document.place]
        start, end = document.evidence.sentence
        assert document.evidence.words
        assert all(start <= first < last <= end for first, last in document.evidence.words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_decides_stands_nowhere_else(language: str) -> None:
    documents = Planted(language).sample(400, seed=2)
    meaning: dict[str, str] = {}
    for document in documents:
        for start, end in document.evidence.words if document.evidence else ():
            assert meaning.setdefault(document.text[start:end], document.label) == document.label
    assert set(meaning.values()) == {"delivery", "payment", "quality", "praise"}
    for document in documents:
        first, last = document.evidence.sentence if document.evidence else (0, 0)
        rest = document.text[:first] + document.text[last:]
        words = rest if language == "zh" else re.findall(r"\w+", rest)
        assert not [word for word in meaning if word in words]


def test_every_label_is_as_frequent_as_another() -> None:
    labels = [document.label for document in Planted().sample(1_000, seed=4)]
    assert {labels.count(label) // 50 for label in set(labels)} <= {3, 4}
    assert len(set(labels)) == 5


def test_frames_do_not_tell() -> None:
    """The deciding sentence, its words taken out, is one that decides nothing elsewhere."""
    frames: dict[bool, set[str]] = {True: set(), False: set()}
    for document in Planted().sample(300, seed=3):
        for place, (start, end) in enumerate(document.sentences):
            frames[place == document.place].add(document.text[start:end].split(" ")[0])
    assert frames[True] <= frames[False]


def test_a_document_is_a_function_of_seed_split_and_index() -> None:
    planted = Planted()
    one = planted.document(7, seed=4, split="dev")
    assert one == Planted().document(7, seed=4, split="dev")
    assert one == planted.sample(8, seed=4, split="dev")[7]
    assert one != planted.document(7, seed=5, split="dev")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_document_stands_in_two_splits(language: str) -> None:
    short = Planted(language, shortest=1, longest=2)
    texts = {
        split: {one.text for seed in (1, 2) for one in short.sample(150, seed=seed, split=split)}
        for split in SPLITS
    }
    for one, two in itertools.combinations(SPLITS, 2):
        assert not texts[one] & texts[two]


def test_files_as_a_person_has_them(tmp_path: Path) -> None:
    counts = {"train": 12, "test": 3}
    files = write_planted(tmp_path / "letters", counts, seed=1, planted=Planted("zh"))
    assert [file.name for file in files] == ["train.jsonl", "test.jsonl"]
    documents = read_documents(files[0])
    expected = Planted("zh").sample(12, seed=1)
    assert documents.texts == tuple(one.text for one in expected)
    assert documents.labels == tuple((one.label,) for one in expected)
    assert read_evidence(files[0]) == [one.evidence for one in expected]
    with pytest.raises(UserError, match=r"train\.jsonl: exists already"):
        write_planted(tmp_path / "letters", counts, seed=1)
    write_planted(tmp_path / "letters", counts, seed=2, overwrite=True)


@pytest.mark.parametrize(
    "row", [{}, {"evidence": 3}, {"evidence": {"sentence": [1, 2], "words": [[1]]}}]
)
def test_evidence_that_is_wrong_is_named(tmp_path: Path, row: object) -> None:
    good = {"evidence": Evidence((0, 5), ((0, 1),))._asdict()}
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(good)}\n{json.dumps(row)}\n")
    with pytest.raises(DataError, match=r"a\.jsonl:2: evidence must be"):
        read_evidence(path)


def test_what_is_out_of_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"language must be known; got 'fr'"):
        Planted("fr")
    with pytest.raises(UserError, match=r"shortest and longest must be .* got 5 and 4"):
        Planted(shortest=5, longest=4)
    with pytest.raises(UserError, match="count must not be negative; got -1"):
        Planted().sample(-1, seed=1)
    with pytest.raises(UserError, match="split must be known; got 'valid'"):
        Planted().document(0, seed=1, split="valid")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="must be a folder; it is a file"):
        write_planted(tmp_path / "file", {"train": 1}, seed=1)
