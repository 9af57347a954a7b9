"""Problems of symbols whose right attention is known: reversing, copying and sorting."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from regard.errors import UserError

Pair = tuple[str, str]


def reversal(
    count: int, *, minimum_length: int, maximum_length: int, symbols: int = 10, seed: int
) -> list[Pair]:
    """Sequences and their reverse: the right attention is the other diagonal.

    Args:
        count: How many pairs.
        minimum_length: Fewest symbols in a sequence.
        maximum_length: Most symbols in a sequence.
        symbols: How many different symbols there are: letters, then numbers.
        seed: The same seed gives the same pairs.

    Returns:
        Pairs of symbols separated by spaces; a pair may occur more than once.

    Raises:
        UserError: A number is out of range.

    Example:
        >>> reversal(1, minimum_length=3, maximum_length=3, seed=0)
        [('h e c', 'c e h')]
    """
    lengths = (minimum_length, maximum_length)
    return _pairs(count, lengths, symbols=symbols, seed=seed, change=lambda s: s[::-1])


def copy(
    count: int, *, minimum_length: int, maximum_length: int, symbols: int = 10, seed: int
) -> list[Pair]:
    """Sequences and themselves: the right attention is the diagonal.

    Args:
        count: How many pairs.
        minimum_length: Fewest symbols in a sequence.
        maximum_length: Most symbols in a sequence.
        symbols: How many different symbols there are: letters, then numbers.
        seed: The same seed gives the same pairs.

    Returns:
        Pairs of symbols separated by spaces; a pair may occur more than once.

    Raises:
        UserError: A number is out of range.

    Example:
        >>> copy(1, minimum_length=3, maximum_length=3, seed=0)
        [('h e c', 'h e c')]
    """
    lengths = (minimum_length, maximum_length)
    return _pairs(count, lengths, symbols=symbols, seed=seed, change=lambda s: s)


def sorting(
    count: int, *, minimum_length: int, maximum_length: int, symbols: int = 10, seed: int
) -> list[Pair]:
    """Distinct symbols in any order, and the same in the order of the alphabet.

    The answer does not depend on the order of the input, so that an encoder of sets can solve it.
    The right attention is the place of each symbol.

    Args:
        count: How many pairs.
        minimum_length: Fewest symbols in a sequence.
        maximum_length: Most symbols in a sequence; no more than there are.
        symbols: How many different symbols there are: letters, then numbers.
        seed: The same seed gives the same pairs.

    Returns:
        Pairs of symbols separated by spaces; a pair may occur more than once.

    Raises:
        UserError: A number is out of range.

    Example:
        >>> sorting(1, minimum_length=3, maximum_length=3, seed=0)
        [('g a e', 'a e g')]
    """
    lengths = (minimum_length, maximum_length)
    _check(count, lengths, symbols=symbols)
    if maximum_length > symbols:
        raise UserError(
            f"maximum_length must be at most symbols={symbols} where they are distinct; got "
            f"{maximum_length}. Lower it, or use more symbols."
        )
    names = _names(symbols)
    generator = random.Random(seed)  # noqa: S311 - no secret
    pairs = []
    for _ in range(count):
        drawn = generator.sample(range(symbols), generator.randint(*lengths))
        sides = ([names[place] for place in places] for places in (drawn, sorted(drawn)))
        source, target = map(" ".join, sides)
        pairs.append((source, target))
    return pairs


def _pairs(
    count: int,
    lengths: tuple[int, int],
    *,
    symbols: int,
    seed: int,
    change: Callable[[list[str]], list[str]],
) -> list[Pair]:
    _check(count, lengths, symbols=symbols)
    names = _names(symbols)
    generator = random.Random(seed)  # noqa: S311 - no secret
    pairs = []
    for _ in range(count):
        sequence = generator.choices(names, k=generator.randint(*lengths))
        pairs.append((" ".join(sequence), " ".join(change(sequence))))
    return pairs


def _names(symbols: int) -> list[str]:
    return [*string.ascii_lowercase, *map(str, range(max(0, symbols - 26)))][:symbols]


def _check(count: int, lengths: tuple[int, int], *, symbols: int) -> None:
    if count < 0:
        raise UserError(f"count must not be negative; got {count}. Use 0 or more.")
    if symbols < 1:
        raise UserError(f"symbols must be at least 1; got {symbols}. Use 10.")
    if not 1 <= lengths[0] <= lengths[1]:
        raise UserError(
            f"minimum_length must be from 1 to maximum_length, which is {lengths[1]}; "
            f"got {lengths[0]}. Exchange or raise them."
        )
