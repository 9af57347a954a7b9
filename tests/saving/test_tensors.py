"""Tensors in files: what is saved comes back, and hostile files are refused (K6, K7, K12)."""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from regard.errors import FileFormatError, UserError
from regard.saving import check_safetensors, load_tensors, save_tensors

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.float8_e5m2, torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
]  # fmt: skip


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def _raw(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def _entry(begin: int = 0, end: int = 8, shape: Any = (2,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_k12_every_type_comes_back_to_the_bit(tmp_path: Path) -> None:
    raw = torch.randint(0, 2, (48,), dtype=torch.uint8)
    tensors = {str(dtype): raw.clone().view(dtype) for dtype in DTYPES}
    save_tensors(tmp_path / "a", tensors)
    loaded = load_tensors(tmp_path / "a")
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert _bytes(loaded[name]) == _bytes(tensor)
    assert set(load_file(tmp_path / "a")) == set(tensors)  # a safetensors file to others, too


def test_k12_shapes_layouts_and_sharing(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "base": base,
        "same": base,
        "again": base,
        "turned": base.t(),
        "every other": base[:, ::2],
        "row": base[1],
        "broadcast": torch.ones(1).expand(5),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "also empty": torch.zeros(0, 3),
        "名": torch.tensor([float("nan"), float("inf"), -0.0]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    save_tensors(tmp_path / "a", tensors)
    loaded = load_tensors(tmp_path / "a")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].shape == tensor.shape
        torch.testing.assert_close(loaded[name], tensor.detach(), rtol=0, atol=0, equal_nan=True)
    assert loaded["same"].data_ptr() == loaded["base"].data_ptr() == loaded["again"].data_ptr()
    assert loaded["row"].data_ptr() != loaded["base"].data_ptr()
    assert (tmp_path / "a").stat().st_size < 8 + 2000 + 4 * (24 * 3 + 30)


SAME = """
import sys, torch
from regard.saving import save_tensors
x = torch.ones(3)
save_tensors(sys.argv[1], {f"n{i}": x for i in range(9)} | {"b": torch.zeros(2, dtype=torch.int8)})
"""


def test_the_same_tensors_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SAME, str(tmp_path / "a")], check=True, timeout=60)
    shared = torch.ones(3)
    tensors = {"b": torch.zeros(2, dtype=torch.int8)} | {f"n{i}": shared for i in range(9)}
    save_tensors(tmp_path / "b", tensors)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_safetensors_wrote_is_read(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2, 3)}, tmp_path / "a", metadata={"format": "pt"})
    assert torch.equal(load_tensors(tmp_path / "a")["a"], torch.ones(2, 3))
    save_file({}, tmp_path / "b")
    assert load_tensors(tmp_path / "b") == {}


def test_loaded_tensors_outlive_their_file(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", {"a": torch.ones(1000)})
    loaded = load_tensors(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"")
    assert float(loaded["a"].sum()) == 1000


def test_what_cannot_be_stored_is_refused_when_saving(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a must have a type .* got torch\.complex128"):
        save_tensors(tmp_path / "a", {"a": torch.zeros(1, dtype=torch.complex128)})
    for name in ("../a", "/a", "__metadata__"):
        with pytest.raises(UserError, match="must not hold"):
            save_tensors(tmp_path / "a", {name: torch.zeros(1)})
    with pytest.raises(UserError, match="must have fewer tensors"):
        save_tensors(tmp_path / "a", {f"{n:0>200}": torch.zeros(1) for n in range(9000)})
    assert not (tmp_path / "a").exists()


def test_k6_pickles_and_zips_are_refused_by_their_first_bytes(tmp_path: Path) -> None:
    bomb = {"a": print}  # were it unpickled, a name would be looked up
    for protocol in range(6):
        (tmp_path / f"{protocol}").write_bytes(pickle.dumps(bomb, protocol=protocol))
    torch.save({"a": torch.ones(2)}, tmp_path / "new.pt")
    torch.save({"a": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a", "b")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(FileFormatError) as caught:
            load_tensors(path)
        if path.name not in "01":  # those two look like any text
            assert "regard never loads pickles" in str(caught.value)


BIG = 1 << 40
HOSTILE = {
    "empty file": b"",
    "short": b"\x01\x00",
    "huge length": _raw({}, length=(1 << 63) + 5),
    "length of the largest": _raw({}, length=(1 << 64) - 1),
    "length beyond the file": _raw({}, length=3),
    "header of 100 MB announced": _raw({}, length=100_000_000),
    "no JSON": _raw(b"{abc"),
    "not a table": _raw(b"[1]"),
    "deep": _raw(b"[" * 100_000),
    "not UTF-8": _raw(b'{"\xff": 1}'),
    "NaN": _raw(b'{"a": NaN}'),
    "duplicate": _raw(b'{"a": 1, "a": 1}'),
    "duplicate tensors": _raw(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        b"\0" * 8,
    ),
    "overlap": _raw({"a": _entry(0, 8), "b": _entry(4, 12)}, b"\0" * 12),
    "same place": _raw({"a": _entry(), "b": _entry()}, b"\0" * 8),
    "hole": _raw({"a": _entry(0, 8), "b": _entry(12, 20)}, b"\0" * 20),
    "negative offset": _raw({"a": _entry(-8, 0)}, b"\0" * 8),
    "negative size": _raw({"a": _entry(0, 8, [-2])}, b"\0" * 8),
    "two negative sizes": _raw({"a": _entry(0, 8, [-1, -2])}, b"\0" * 8),
    "backwards": _raw({"a": _entry(8, 0)}, b"\0" * 8),
    "overflow to the right number": _raw({"a": _entry(0, 8, [1 << 62, 4, 2])}, b"\0" * 8),
    "2^40": _raw({"a": _entry(0, 4 * BIG, [BIG])}, b"\0" * 8),
    "just below 2^40": _raw({"a": _entry(0, 8, [BIG - 1])}, b"\0" * 8),
    "very many axes": _raw({"a": _entry(0, 4, [1] * 9999)}, b"\0" * 4),
    "huge axes": _raw({"a": _entry(0, 4, [BIG - 1] * 9999)}, b"\0" * 4),
    "floats": _raw({"a": _entry(0, 8, [2.0])}, b"\0" * 8),
    "booleans": _raw({"a": _entry(0, 4, [True])}, b"\0" * 4),
    "huge integer": _raw(b'{"a": ' + b"9" * 5000 + b"}"),
    "unknown type": _raw({"a": _entry(dtype="F31")}, b"\0" * 8),
    "type is a list": _raw({"a": _entry(dtype=["F32"])}, b"\0" * 8),
    "wrong size for its type": _raw({"a": _entry(dtype="F64")}, b"\0" * 8),
    "up": _raw({"../a": _entry()}, b"\0" * 8),
    "absolute": _raw({"/etc/a": _entry()}, b"\0" * 8),
    "entry is a text": _raw({"a": "F32"}, b"\0" * 8),
    "entry is nothing": _raw({"a": None}, b"\0" * 8),
    "no offsets": _raw({"a": {"dtype": "F32", "shape": [2]}}, b"\0" * 8),
    "three offsets": _raw({"a": {**_entry(), "data_offsets": [0, 4, 8]}}, b"\0" * 8),
    "shape is a text": _raw({"a": _entry(shape="2")}, b"\0" * 8),
    "shape is nothing": _raw({"a": _entry(shape=None)}, b"\0" * 8),
    "data missing": _raw({"a": _entry()}, b"\0" * 7),
    "data left over": _raw({"a": _entry()}, b"\0" * 9),
    "metadata is a list": _raw({"__metadata__": [], "a": _entry()}, b"\0" * 8),
    "metadata of numbers": _raw({"__metadata__": {"b": 1}, "a": _entry()}, b"\0" * 8),
    "alias of nothing": _raw({"__metadata__": {"b": "alias of c"}, "a": _entry()}, b"\0" * 8),
    "alias of itself": _raw({"__metadata__": {"a": "alias of a"}, "a": _entry()}, b"\0" * 8),
    "alias of an alias": _raw(
        {"__metadata__": {"b": "alias of c", "c": "alias of b"}, "a": _entry()}, b"\0" * 8
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_k7_hostile_headers(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(HOSTILE[name])
    with pytest.raises(FileFormatError) as caught:
        load_tensors(tmp_path / "a.safetensors")
    assert "\n" not in str(caught.value)
    assert len(caught.value.message) < 300


GROWTH = """
import resource, sys
from pathlib import Path
from regard.errors import FileFormatError
from regard.saving import check_safetensors
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        check_safetensors(path)
    except FileFormatError:
        continue
    sys.exit(f"{path.name} was accepted")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_k7_memory_stays_bounded(tmp_path: Path) -> None:
    """In a process of its own, whose peak is exactly that of the checks."""
    for name, raw in HOSTILE.items():
        if "alias" not in name:  # those are refused later
            (tmp_path / name.replace(" ", "-")).write_bytes(raw)
    largest = 2 << 20
    for name, piece in {"lists": b"[],", "tables": b"{},", "numbers": b"9999999999,"}.items():
        body = piece * ((largest - 20) // len(piece))
        (tmp_path / name).write_bytes(_raw(b'{"a":[' + body + b"0]}"))
    (tmp_path / "over").write_bytes(_raw(b" " * (largest + 1)))
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000  # KiB


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, header: bytes, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(_raw(header, data))
    with contextlib.suppress(FileFormatError):
        check_safetensors(path)


def test_k2_without_a_manifest_a_flip_in_the_data_is_not_seen(tmp_path: Path) -> None:
    """Why there is a manifest."""
    save_tensors(tmp_path / "a", {"a": torch.ones(8)})
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[-1] ^= 64
    (tmp_path / "a").write_bytes(raw)
    assert not torch.equal(load_tensors(tmp_path / "a")["a"], torch.ones(8))
