"""Bounds of the settings."""

from typing import Any

import pytest

from regard.config import checked
from regard.errors import ConfigError
from regard.training import TrainingSettings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("keep", 0),
        ("max_nan", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("beta2", 1.0),
        ("seed", -1),
        ("seed", 2**63),
        ("workers", 1000),
        ("schedule", "exponential"),
        ("select", "first"),
        ("epochs", "3"),
        ("epochs", True),
        ("epochs", 10**400),
    ],
)
def test_c3_k13_out_of_range(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^config.toml: {name}: ") as caught:
        checked({name: value}, TrainingSettings, where="config.toml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_whole_number_is_a_number() -> None:
    assert checked({"learning_rate": 1}, TrainingSettings, where="").learning_rate == 1.0
