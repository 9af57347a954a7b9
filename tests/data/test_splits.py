import pytest

from regard.data.splits import SPLITS, check_split, split_of_content
from regard.errors import UserError


def test_shares_are_those_that_are_stated() -> None:
    found = [split_of_content(str(number)) for number in range(4_000)]
    for name, share in SPLITS.items():
        assert found.count(name) / 400 == pytest.approx(share, abs=0.4)


def test_a_split_must_be_known() -> None:
    check_split("dev")
    with pytest.raises(UserError, match=r"split must be known; got 'tset'; did you mean 'test'"):
        check_split("tset")
