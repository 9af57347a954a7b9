import pytest

from regard.data.labels import checked_label, label_shares
from regard.errors import DataError


def test_what_may_be_a_label() -> None:
    assert checked_label(" cafe\u0301 ", "here") == "caf\u00e9"
    assert checked_label(3, "here") == "3"
    for wrong in (True, 1.0, None, ["a"]):
        with pytest.raises(DataError, match="here: label must be a text or a whole number"):
            checked_label(wrong, "here")
    for wrong in ("", " \u200b", "a" * 201):
        with pytest.raises(DataError, match="label must have 1 to 200 characters"):
            checked_label(wrong, "here")


def test_shares_of_labels() -> None:
    assert label_shares([("a", "b"), ("a",), (), ("a",)]) == "a 75.0 %, b 25.0 %"
    many = label_shares([(str(number),) for number in range(12)])
    assert many.endswith("9 8.3 % and 2 more")
