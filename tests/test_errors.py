"""The tree of errors: what is drawn is what there is."""

from __future__ import annotations

import inspect
import re

import pytest

from regard import errors
from regard.errors import Interrupted, RegardError, UserError, did_you_mean

KINDS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RegardError)
]


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = re.findall(r"^[│ ├└─]*([A-Z]\w+)", errors.__doc__ or "", flags=re.MULTILINE)
    assert set(drawn) - {"Every"} == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_exit_codes_follow_the_tree(kind: type[RegardError]) -> None:
    codes = {"UserError": 2, "EnvironmentFault": 3, "DivergedError": 4, "Interrupted": 1}
    expected = next((codes[k.__name__] for k in kind.__mro__ if k.__name__ in codes), 1)
    assert kind.exit_code == expected


def test_builtin_bases_let_callers_catch_what_they_know() -> None:
    assert issubclass(UserError, ValueError)
    assert issubclass(errors.MissingExtraError, ImportError)


def test_an_error_names_its_place() -> None:
    assert (
        str(UserError("must be 1; got 2.", where="config.toml")) == "config.toml: must be 1; got 2."
    )
    assert str(UserError("must be 1; got 2.")) == "must be 1; got 2."


@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
def test_an_interruption_has_the_signal_in_its_code(number: int, code: int) -> None:
    assert Interrupted("stopped", signal_number=number).exit_code == code


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("adam", ["adamw", "sgd"], "did you mean 'adamw'?"),
        ("zzz", ["b", "a"], "use one of: a, b"),
        ("", {"x": 1}, "use one of: x"),
        ("汤母", ["汤姆", "杰瑞"], "use one of: 杰瑞, 汤姆"),
    ],
)
def test_did_you_mean(name: str, known: list[str], said: str) -> None:
    assert did_you_mean(name, known) == said
