"""A checkpoint of format 1, frozen: it must load for ever (row K9); and hostile ones (row K8).

It was trained to reverse up to three letters. Never write it anew: add format-2 beside it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.errors import FileFormatError, RegardError
from regard.saving import MANIFEST, load_tensors, verify_folder
from regard.saving.folders import _manifest_text
from regard.training.checkpoint import Checkpoints, read_progress

FROZEN = Path(__file__).parent / "format-1"
STEP = 480


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The checkpoint, in a place where it may be changed."""
    shutil.copytree(FROZEN, tmp_path / "run")
    return Checkpoints(tmp_path / "run").path(STEP)


@pytest.fixture
def forged(copied: Path) -> Callable[[str, Any], Path]:
    """Change a file and give it a sound manifest, as one who means harm would."""

    def change(name: str, content: bytes) -> Path:
        (copied / name).write_bytes(content)
        (copied / MANIFEST).unlink()
        (copied / MANIFEST).write_text(_manifest_text(copied, {}))
        return copied

    return change


def test_k9_it_is_small_and_whole() -> None:
    folder = Checkpoints(FROZEN).path(STEP)
    assert verify_folder(folder)["format_version"] == 1
    assert sum(path.stat().st_size for path in folder.iterdir()) < 50_000


def test_k9_it_translates(without_shapes: None) -> None:
    translator = regard.load(Checkpoints(FROZEN).path(STEP), device="cpu")
    assert [one.text for one in translator(["a b c", "d a", "b"])] == ["c b a", "a d", "b"]


def test_k9_its_state_is_read() -> None:
    folder = Checkpoints(FROZEN).path(STEP)
    progress = read_progress(folder)
    assert (progress.step, progress.epoch, progress.best_step) == (STEP, 30, STEP)
    state = load_tensors(folder / "training.safetensors")
    steps = {float(tensor) for name, tensor in state.items() if name.endswith(".step")}
    assert steps == {float(STEP)}
    torch.set_rng_state(state["random.cpu"])


def _config(**changes: Any) -> bytes:
    folder = Checkpoints(FROZEN).path(STEP)
    table = json.loads((folder / "config.json").read_text())
    for name, value in changes.items():
        place = table
        *parents, last = name.split("__")
        for parent in parents:
            place = place[parent]
        place[last] = value
    return json.dumps(table).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_config(model__encoder__layers=10**9), "model.encoder.layers: must be less than or equal"),
        (_config(model__encoder__hidden_dim=-8), "model.encoder.hidden_dim: must be greater"),
        (_config(model__embedding_dim=10**12), "model.embedding_dim: must be less than or equal"),
        (_config(model__dropout=float("nan")), "is not valid JSON: NaN is not a number"),
        (_config(model__dropout="0.1"), "model.dropout: must be a valid number"),
        (_config(model__extra=1), "model.extra: must be a setting; it is none"),
        (_config(**{"os.system": "ls"}), "os.system: must be a setting"),
        (_config(max_tokens=0), "max_tokens: must be greater than or equal to 1"),
        (
            _config(model__encoder__kind="os.system"),
            "model.encoder.kind: must be one of embedding, ",
        ),
        (_config(model={}), "must hold the weights of this model"),
        (
            # Every number within its bounds, and 200 GB together.
            _config(
                model__embedding_dim=8192,
                model__encoder={"kind": "lstm", "hidden_dim": 8192, "layers": 48},
            ),
            "numbers; got 10,",
        ),
        (b'{"task": "translation", "task": "translation"}', "a name stands twice"),
        (b'{"task": "os.system"}', "task must be one of"),
        (b'{"task": ["translation"]}', "task must be one of"),
        (b"[" * 100_000 + b"]" * 100_000, "is not valid JSON"),
        (b'{"task": "translation", "model": ' + b'{"a":' * 500 + b"1" + b"}" * 501, "must be"),
        (b"\x80\x04K\x01.", "is not valid JSON"),
    ],
)
def test_k8_hostile_settings(forged: Any, content: bytes, message: str) -> None:
    folder = forged("config.json", content)
    with pytest.raises(RegardError) as caught:
        regard.load(folder, device="cpu")
    assert caught.value.exit_code == 2
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_k6_a_pickle_in_the_place_of_weights(forged: Any, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "model.pt")
    folder = forged("model.safetensors", (tmp_path / "model.pt").read_bytes())
    with pytest.raises(FileFormatError, match="regard never loads pickles"):
        regard.load(folder, device="cpu")


def test_k11_a_link_to_it_works(without_shapes: None, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copied)
    assert regard.load(tmp_path / "link", device="cpu")("b").text == "b"
