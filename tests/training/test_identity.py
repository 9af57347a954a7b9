"""Saying what has changed (row T6)."""

import pytest

from regard.errors import ResumeError
from regard.training.identity import compare


def test_t6_nothing_changed() -> None:
    compare({"a": {"b": [1, 2]}, "c": None}, {"a": {"b": (1, 2)}}, allowed=())


def test_t6_a_value_that_becomes_a_table() -> None:
    with pytest.raises(ResumeError, match=r"a was 1, is None; a\.b was None, is 2"):
        compare({"a": 1}, {"a": {"b": 2}}, allowed=())


@pytest.mark.parametrize(
    ("allowed", "passes"), [("a", True), ("a.b", True), ("a.", False), ("", False), ("a.bc", False)]
)
def test_t6_allowed_is_a_whole_name(allowed: str, passes: bool) -> None:
    before, now = {"a": {"b": 1}}, {"a": {"b": 2}}
    if passes:
        compare(before, now, allowed=(allowed,))
        return
    with pytest.raises(ResumeError, match=r"--allow-change: must name a field; got .*a\.b"):
        compare(before, now, allowed=(allowed,))


def test_t6_a_hash_is_shown_by_its_beginning() -> None:
    with pytest.raises(ResumeError, match=r"a was 0{12}, is 1{12}\. .* --allow-change a\."):
        compare({"a": "0" * 64}, {"a": "1" * 64}, allowed=())
