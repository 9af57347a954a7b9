"""Configs: read strictly, wrong ones explained in a line (rows C3 and K8)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, field_validator

from regard.config import Strict, checked, read_config, read_table
from regard.errors import ConfigError


class Round(Strict):
    kind: Literal["round"]
    radius: float = 1.0


class Square(Strict):
    kind: Literal["square"]
    side: Annotated[int, Field(ge=1, le=48)] = 1


class Inner(Strict):
    lr: float = 0.1
    epochs: Annotated[int, Field(ge=1, le=10**9)] = 3


class Outer(Strict):
    name: str | None = None
    files: str | list[str] = "a"
    training: Inner = Inner()
    shape: Annotated[Round | Square, Field(discriminator="kind")] = Square(kind="square")

    @field_validator("name")
    @classmethod
    def _lower(cls, value: str | None) -> str | None:
        if value is not None and value != value.lower():
            raise ValueError(f"must be in lower case; got {value!r}. Lower it")
        return value


def _message(tmp_path: Path, text: str | bytes, *changes: str) -> str:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        read_config(path, Outer, changes=changes)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training.lr = nan", "training.lr: must be a finite number; got nan."),
        ("training.lr = -inf", "training.lr: must be a finite number; got -inf."),
        ("training.lr = 1e999", "training.lr: must be a finite number; got inf."),
        ("training.epochs = '5'", "training.epochs: must be a valid integer; got '5'."),
        ("training.epochs = 1.5", "training.epochs: must be a valid integer; got 1.5."),
        (
            "training.epoch = 5",
            "training.epoch: must be a setting; it is none: did you mean 'epochs'?",
        ),
        (
            "zzz = 5",
            "zzz: must be a setting; it is none: use one of: files, name, shape, training",
        ),
        (
            "shape = {kind = 'square', sid = 5}",
            "shape.sid: must be a setting; it is none: did you mean 'side'?",
        ),
        (
            "shape = {kind = 'squar'}",
            "shape.kind: must be one of round, square; got 'squar': did you mean 'square'?",
        ),
        ("shape = {side = 2}", "shape.kind: must be given; it is missing. Add it."),
        (
            "shape = {kind = 'square', side = 1000000000}",
            "shape.side: must be less than or equal to 48; got 1000000000.",
        ),
        (
            "shape = {kind = 'square', side = -2}",
            "shape.side: must be greater than or equal to 1; got -2.",
        ),
        ("files = 3", "files: must be a valid string; got 3."),
        ("name = 'Tom'", "name: must be in lower case; got 'Tom'. Lower it."),
        (
            "training = 3",
            "training: must be a valid dictionary or instance of Inner; got 3.",
        ),
    ],
)
def test_c3_wrong_fields(tmp_path: Path, text: str, message: str) -> None:
    assert _message(tmp_path, text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = = 2", "must be valid TOML; got: Invalid value (at line 2, column 5)."),
        (
            "a = 1\na = 2",
            "must be valid TOML; got: Cannot overwrite a value (at ",
        ),
        (f"a = {'[' * 5000}", "must be valid TOML; got: "),
        (f"training.epochs = {'9' * 5000}", "must be valid TOML; got: "),
        (b"name = '\xff'", "must be UTF-8; byte 8 is not."),
        (b"\x80\x04K\x01.", "must be UTF-8; byte 0 is not."),
        ("#" * (2 << 20), "must be smaller than 1 MiB."),
        (f"training.epochs = 0x{'f' * 9000}", "training.epochs: "),
        (f"{'a' * 5000} = 1", "aaaa"),
    ],
)
def test_c3_k8_no_toml_or_hostile(tmp_path: Path, text: str | bytes, message: str) -> None:
    got = _message(tmp_path, text)
    assert got.startswith(message)


def test_k8_deep_nesting_of_tables() -> None:
    deep: object = 1
    for _ in range(20_000):
        deep = [deep]
    for field in ("files", "training", "zzz"):
        with pytest.raises(ConfigError, match=f"^x: {field}|deeply"):
            checked({field: deep}, Outer, where="x")
    while isinstance(deep, list):  # taken apart here: freeing it whole would nest as deeply
        deep = deep.pop()


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbfname = 'tom'\r\n")
    assert read_config(tmp_path / "c.toml", Outer).name == "tom"


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ("training.epochs=7", "training.epochs", 7),
        ("training.epochs = 7", "training.epochs", 7),
        ("training.lr=1e-3", "training.lr", 1e-3),
        ("name=tom", "name", "tom"),
        ("name='tom'", "name", "tom"),
        ('files=["a", "b"]', "files", ["a", "b"]),
        ("files=C:\\data\\new", "files", "C:\\data\\new"),
        ("name=a=b", "name", "a=b"),
        ("shape.kind=round", "shape.kind", "round"),
        (f"name={'[' * 5000}", "name", "[" * 5000),
    ],
)
def test_changes(tmp_path: Path, change: str, field: str, value: object) -> None:
    (tmp_path / "c.toml").write_text("name = 'jerry'\n")
    settings = read_config(tmp_path / "c.toml", Outer, changes=[change])
    for part in field.split("."):
        settings = getattr(settings, part)
    assert settings == value


def test_a_later_change_wins_and_wrong_ones_are_named(tmp_path: Path) -> None:
    changes = ["training.epochs=7", "training.epochs=8"]
    (tmp_path / "c.toml").write_text("")
    assert read_config(tmp_path / "c.toml", Outer, changes=changes).training.epochs == 8
    path = tmp_path / "c.toml"
    for change, message in {
        "training": "arguments: a change must read key=value; got 'training'.",
        "=3": "arguments: a change must read key=value; got '=3'.",
        "name.first=x": "arguments: name must be a table to hold first; it is a value.",
    }.items():
        with pytest.raises(ConfigError) as caught:
            read_config(path, Outer, changes=["name=tom", change])
        assert str(caught.value) == message


def test_c2_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "missing.toml": "cannot be read: No such file",
        ".": "must be a file",
        "pipe": "must be a file",
    }
    for name, message in cases.items():
        with pytest.raises(ConfigError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(ConfigError, match="must be a file"):
        read_table(Path("/dev/zero"))


@given(st.text(max_size=200), st.text(max_size=50))
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, change: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode("utf-8", errors="replace"))
    with contextlib.suppress(ConfigError):
        read_config(path, Outer, changes=[change])
