import pytest

from regard.data.generated import copy, reversal, sorting
from regard.errors import UserError


def test_reversal_and_copy_are_what_they_say() -> None:
    for source, target in reversal(200, minimum_length=1, maximum_length=6, symbols=40, seed=3):
        assert target.split() == source.split()[::-1]
        assert 1 <= len(source.split()) <= 6
    assert all(s == t for s, t in copy(50, minimum_length=2, maximum_length=9, seed=1))


def test_sorting_is_of_distinct_symbols_in_the_order_of_the_alphabet() -> None:
    pairs = sorting(300, minimum_length=2, maximum_length=5, symbols=28, seed=3)
    order = [*"abcdefghijklmnopqrstuvwxyz", "0", "1"]
    for source, target in pairs:
        symbols = source.split()
        assert target.split() == sorted(symbols, key=order.index)
        assert 2 <= len(symbols) == len(set(symbols)) <= 5
    assert {len(source.split()) for source, _ in pairs} == {2, 3, 4, 5}
    assert {symbol for source, _ in pairs for symbol in source.split()} == set(order)
    assert any(source != target for source, target in pairs)


def test_no_more_distinct_symbols_than_there_are() -> None:
    assert len(sorting(1, minimum_length=4, maximum_length=4, symbols=4, seed=1)[0][0]) == 7
    with pytest.raises(UserError, match=r"maximum_length must be at most symbols=4 .*; got 5"):
        sorting(1, minimum_length=1, maximum_length=5, symbols=4, seed=0)


def test_the_seed_decides() -> None:
    def draw(seed: int) -> list[tuple[str, str]]:
        return reversal(20, minimum_length=4, maximum_length=8, seed=seed)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    sources = reversal(500, minimum_length=5, maximum_length=5, symbols=30, seed=0)
    assert {symbol for source, _ in sources for symbol in source.split()} == {
        *"abcdefghijklmnopqrstuvwxyz",
        *"0123",
    }


@pytest.mark.parametrize(
    ("count", "low", "high", "symbols", "name"),
    [
        (-1, 1, 2, 3, "count"),
        (1, 0, 2, 3, "minimum_length"),
        (1, 3, 2, 3, "minimum_length"),
        (1, 1, 1, 0, "symbols"),
    ],
)
def test_ranges(count: int, low: int, high: int, symbols: int, name: str) -> None:
    with pytest.raises(UserError, match=f"{name} must"):
        reversal(count, minimum_length=low, maximum_length=high, symbols=symbols, seed=0)
    with pytest.raises(UserError, match=f"{name} must"):
        sorting(count, minimum_length=low, maximum_length=high, symbols=symbols, seed=0)
