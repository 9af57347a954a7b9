from __future__ import annotations

from typing import Any

import pytest

from regard.config import checked
from regard.errors import ConfigError
from regard.tasks.translation_settings import TranslationSettings

DATA = {"train": "train.tsv", "dev": "dev.tsv"}


def settings(**changes: Any) -> TranslationSettings:
    table = {"task": "translation", "data": DATA, **changes}
    return checked(table, TranslationSettings, where="config.toml")


def test_the_defaults_are_settings() -> None:
    assert settings().tokens.source.kind == "words"
    assert settings(data={**DATA, "train": ["a.en", "a.zh"]}).data.train == ["a.en", "a.zh"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"train": "a"}}, "data.dev: must be given; it is missing. Add it."),
        ({"data": {**DATA, "max_tokens": 0}}, "data.max_tokens: must be greater than or equal"),
        ({"metric": "belu"}, "metric: must be"),
        ({"tokens": {"source": {"kind": "word"}}}, "tokens.source.kind: must be"),
        ({"tokens": {"sourse": {}}}, "tokens.sourse: must be a setting; it is none"),
        ({"decoding": {"beam": 1001}}, "decoding.beam: must be less than or equal to 1000"),
        (
            {"decoding": {"minimum_length": 9, "maximum_length": 8}},
            "minimum_length must be at most maximum_length; got 9 and 8. Exchange them.",
        ),
        ({"training": {"learning_rate": float("nan")}}, "learning_rate: must be a finite number"),
        ({"task": "captioning"}, "task: must be 'translation'; got 'captioning'"),
    ],
)
def test_c3_a_wrong_field_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**changes)
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.toml: ")
    assert "\n" not in str(caught.value)
