"""D12, D14: a tokenizer file is data, read strictly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.vocabulary import Vocabulary
from regard.errors import FileFormatError

GOOD = Vocabulary("bpe", "nfc", False, ("▁", "a", "b", "ab", "▁ab"), (("a", "b"), ("▁", "ab")))


def test_round_trip() -> None:
    assert Vocabulary.from_json(GOOD.to_json()) == GOOD
    unigram = Vocabulary("unigram", "nfkc", True, ("▁", "a"), scores=(-1.5, -0.25))
    assert Vocabulary.from_json(unigram.to_json()) == unigram


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "other"),
        ("version", 2),
        ("version", True),
        ("kind", "os.system"),
        ("kind", ["bpe"]),
        ("normalisation", "nfd"),
        ("lowercase", 1),
        ("pieces", "▁ab"),
        ("pieces", ["▁", "a", "a"]),
        ("pieces", ["a"]),
        ("pieces", ["▁", ""]),
        ("pieces", ["▁", "a b"]),
        ("pieces", ["▁", "a▁"]),
        ("pieces", ["▁", "\ud800"]),
        ("pieces", ["▁", 7]),
        ("pieces", ["▁", "a" * 257]),
        ("merges", [["a"]]),
        ("merges", [["a", "z"]]),
        ("merges", ["a b"]),
        ("merges", {}),
        ("scores", [0.0]),
        ("scores", [True]),
        ("scores", ["1"]),
        ("scores", [1e999]),
    ],
)
def test_d14_every_field_is_checked(field: str, value: object) -> None:
    content = json.loads(GOOD.to_json())
    content[field] = value
    with pytest.raises(FileFormatError):
        Vocabulary.from_json(json.dumps(content))


@pytest.mark.parametrize("change", ["missing", "extra", "nan", "truncated", "list", "deep"])
def test_d14_damaged_files(change: str) -> None:
    content = json.loads(GOOD.to_json())
    texts = {
        "missing": json.dumps({k: v for k, v in content.items() if k != "pieces"}),
        "extra": json.dumps(content | {"class": "os.system"}),
        "nan": json.dumps(content | {"scores": [float("nan")]}),
        "truncated": GOOD.to_json()[:-9],
        "list": "[]",
        "deep": "[" * 100_000,
    }
    with pytest.raises(FileFormatError):
        Vocabulary.from_json(texts[change])


def test_a_long_value_is_not_repeated_whole() -> None:
    content = json.loads(GOOD.to_json()) | {"kind": "x" * 10_000}
    with pytest.raises(FileFormatError) as caught:
        Vocabulary.from_json(json.dumps(content))
    assert len(str(caught.value)) < 250


@given(st.text(max_size=50))
def test_d14_arbitrary_text_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        Vocabulary.from_json(text)
