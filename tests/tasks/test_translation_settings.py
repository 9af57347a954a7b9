from __future__ import annotations

from typing import Any

import pytest

from regard.config import checked
from regard.errors import ConfigError
from regard.tasks.settings import DecodingSettings
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
        (
            {"decoding": {"beam": 5, "groups": 2}},
            "groups must divide beam; got 2 and 5. Change one.",
        ),
        ({"decoding": {"temperature": 0.0}}, "decoding.temperature: must be greater than or equal"),
        ({"decoding": {"top_p": 0.0}}, "decoding.top_p: must be greater than or equal"),
        ({"decoding": {"block_ngrams": -1}}, "decoding.block_ngrams: must be greater than or"),
        (
            {
                "decoding": {"coverage_penalty": 0.2},
                "model": {"decoder": {"kind": "gru", "attention": "none"}},
            },
            "coverage_penalty must be 0 for a decoder of attention none; got 0.2. Leave it out.",
        ),
        (
            {"decoding": {"sample": True}, "model": {"rescoring": True}},
            "decoding.sample must be false for a pair of decoders",
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


def test_decoding_is_by_default_as_it_was_before_it_could_be_changed() -> None:
    own = DecodingSettings()
    assert (own.coverage_penalty, own.block_ngrams, own.groups, own.sample) == (0.0, 0, 1, False)
    assert (own.temperature, own.top_k, own.top_p) == (1.0, 0, 1.0)
