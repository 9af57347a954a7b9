"""The names that a person may use, and that they load nothing before they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import regard

PACKAGES = [
    "regard.attention",
    "regard.data",
    "regard.memory",
    "regard.models.decoding",
    "regard.pictures",
    "regard.saving",
    "regard.tasks",
    "regard.testing",
    "regard.training",
]


@pytest.mark.parametrize("name", regard.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(regard, name) is not None
    assert name in dir(regard)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'Attentoin'"):
        regard.Attentoin  # noqa: B018


def test_public_names_are_sorted_and_documented() -> None:
    assert list(regard.__all__) == sorted(regard.__all__)
    for name in regard.__all__:
        assert name.startswith("__") or getattr(regard, name).__doc__, name


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import regard", "torch numpy click rich PIL tokenizers numba pydantic entmax"),
        ("import regard; regard.errors", "torch numpy click rich PIL tokenizers numba"),
        ("import regard; regard.Record; regard.pictures", "torch click PIL tokenizers numba"),
        ("import regard.cli", "torch numpy rich PIL tokenizers numba pydantic"),
        ("import regard.config", "torch numpy click rich PIL tokenizers numba"),
        ("import regard; regard.Attention", "click rich PIL tokenizers sacrebleu"),
    ],
)
def test_c7_nothing_loads_before_it_is_used(code: str, forbidden: str) -> None:
    line = f"import sys; {code}; sys.exit(str(sorted(set({forbidden.split()}) & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, check=False, text=True)
    assert done.stderr.strip() == "[]"
