"""Finding a model, verifying its folder, choosing a device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import ConfigError, EnvironmentFault, FileFormatError, RegardError, UserError
from regard.saving import write_folder
from regard.tasks import base, bundled_models, load
from regard.tasks.base import choose_device, config_kind, find_model, open_model, task_kind
from regard.tasks.translation import Translator


@pytest.fixture
def model(reversal_run: Any, tmp_path: Path) -> Path:
    """A copy of a model's folder, to be damaged."""
    folder = tmp_path / "model"
    shutil.copytree(reversal_run.run / "model", folder)
    return folder


def test_a_run_stands_for_its_model(reversal_run: Any) -> None:
    run = reversal_run.run
    assert find_model(run) == find_model(run / "model") == run / "model"
    assert open_model(str(run)).name == "run"
    assert load(run).name == "run"
    assert load(str(run / "model"), device="cpu")("a b").text == "b a"


def test_a_run_without_a_model_stands_for_its_newest_checkpoint(
    reversal_run: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    newest = sorted((reversal_run.run / "checkpoints").glob("step-*"))[-1]
    shutil.copytree(newest, run / "checkpoints" / newest.name)
    shutil.copytree(newest, run / "checkpoints" / "step-000000001")
    assert find_model(run) == run / "checkpoints" / newest.name
    assert isinstance(load(run), Translator)


@pytest.mark.skipif(not bundled_models(), reason="no model is bundled")
def test_a_bundled_name() -> None:
    for name in bundled_models():
        assert load(name).name == name


def test_an_unknown_name_says_which_one_it_resembles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "bundled_models", lambda: {"en-zh": Path("/nowhere")})
    with pytest.raises(UserError, match="model: must be a folder or a bundled name; got 'en-hz'; "):
        find_model("en-hz")
    with pytest.raises(UserError, match="did you mean 'en-zh'"):
        load("en-hz")


@pytest.mark.parametrize("name", ["", "no such model", "a\0b", "x" * 5000, "../../etc/passwd/x"])
def test_a_name_that_is_none_is_one_line(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load(name or str(tmp_path / "nothing"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_c2_a_file_or_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="must be a folder; it is a file"):
        load(tmp_path / "file")
    with pytest.raises(FileFormatError, match=r"there is no manifest\.json"):
        load(tmp_path)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.source.json", "manifest.json"]
)
@pytest.mark.parametrize("how", ["cut", "flipped", "missing", "empty"])
def test_k1_k2_a_damaged_model_is_refused(name: str, how: str, model: Path) -> None:
    path = model / name
    raw = path.read_bytes()
    middle = len(raw) // 2
    if how == "missing":
        path.unlink()
    else:
        flipped = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
        path.write_bytes({"cut": raw[:middle], "flipped": flipped, "empty": b""}[how])
    with pytest.raises(FileFormatError) as caught:
        load(model)
    assert "\n" not in str(caught.value)
    assert str(model) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"task": "captioning"},
        {"task": None},
        {"task": ["translation"]},
        {"max_tokens": 0},
        {"surprise": 1},
        {"model": {"embedding_dim": 10**9}},
        {"model": {"embedding_dim": 33}},
    ],
)
def test_k8_settings_that_are_wrong_are_refused(
    change: dict[str, Any], model: Path, tmp_path: Path
) -> None:
    """The manifest is right; what it vouches for is not a model of this library."""
    config = json.loads((model / "config.json").read_text())

    def fill(folder: Path) -> None:
        for path in model.iterdir():
            if path.name != "manifest.json":
                shutil.copy(path, folder)
        (folder / "config.json").write_text(json.dumps({**config, **change}))

    write_folder(tmp_path / "wrong", fill, versions={}, overwrite=False)
    with pytest.raises(UserError) as caught:
        load(tmp_path / "wrong")
    assert "\n" not in str(caught.value)


def test_devices() -> None:
    there = "cuda" if torch.cuda.is_available() else "cpu"
    assert choose_device("auto").type == there
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "cuda:x", "cuda:-1", "cpu cpu"])
def test_c1_a_device_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="device: must be auto, cpu, cuda, cuda:N or mps; got"):
        choose_device(name)


@pytest.mark.parametrize("name", ["cuda:99", "meta", "xpu"])
def test_a_device_that_is_not_there_is_the_machines_fault(name: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"device: must be there; got {name}"):
        choose_device(name)


def test_tasks_are_found_by_name() -> None:
    assert task_kind("translation").name == "translation"
    with pytest.raises(UserError, match="task: must be known; got 'translatoin'; did you mean"):
        task_kind("translatoin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "task: must name a task; got None; use one of: answering, captioning"),
        ('task = "translate"', "got 'translate'; did you mean 'translation'"),
        ("task = 3", "task: must name a task; got 3"),
        ("task = ", "must be valid TOML"),
    ],
)
def test_c3_a_config_must_name_its_task(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        config_kind(path)
    assert str(caught.value).startswith(str(path))


def test_d14_a_pickle_in_the_place_of_the_weights_is_refused(model: Path, tmp_path: Path) -> None:
    import pickle

    class Hostile:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "owned",))

    def fill(folder: Path) -> None:
        for path in model.iterdir():
            if path.name != "manifest.json":
                shutil.copy(path, folder)
        (folder / "model.safetensors").write_bytes(pickle.dumps(Hostile()) * 3000)

    write_folder(tmp_path / "hostile", fill, versions={}, overwrite=False)
    with pytest.raises(RegardError):
        load(tmp_path / "hostile")
    assert not (tmp_path / "owned").exists()
