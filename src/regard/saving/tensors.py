"""Tensors in safetensors files: the same tensors always give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.errors import FileFormatError, UserError
from regard.saving.files import parse_json, reason

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_HEADER = 2 << 20  # bytes, some 20,000 tensors; parsing takes up to twenty times as many
_MOST_AXES = 64
_ITEM_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2,
    "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8, "C64": 8,
}  # fmt: skip
_DTYPES = {
    "torch.bool": "BOOL", "torch.uint8": "U8", "torch.int8": "I8",
    "torch.float8_e4m3fn": "F8_E4M3", "torch.float8_e5m2": "F8_E5M2", "torch.int16": "I16",
    "torch.uint16": "U16", "torch.float16": "F16", "torch.bfloat16": "BF16",
    "torch.int32": "I32", "torch.uint32": "U32", "torch.float32": "F32",
    "torch.float64": "F64", "torch.int64": "I64", "torch.uint64": "U64", "torch.complex64": "C64",
}  # fmt: skip
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_ALIAS = "alias of "


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Save tensors in safetensors' format; those that share memory are stored once.

    The file is written here, as the library orders its metadata at random.

    Args:
        path: The file.
        tensors: Names and tensors, of any layout and on any device.

    Raises:
        UserError: A name or a type cannot be stored.
        OSError: The disk is full or cannot be written to.
    """
    stored, aliases = _without_aliases(tensors)
    header: dict[str, Any] = {"__metadata__": aliases} if aliases else {}
    place = 0
    for name, tensor in stored:
        kind = _DTYPES[str(tensor.dtype)]
        end = place + tensor.numel() * _ITEM_SIZES[kind]
        header[name] = {
            "dtype": kind,
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LARGEST_HEADER:
        raise UserError(f"must have fewer tensors; got {len(tensors):,}.", where=str(path))
    with Path(path).open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in stored:
            _write_tensor(stream, tensor)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Load tensors to the CPU, after checking the file's header.

    Args:
        path: The file.

    Returns:
        Names and tensors; those that shared memory when saved share it again.

    Raises:
        FileFormatError: The file is no sound safetensors file.
    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - it loads torch

    aliases = check_safetensors(path)
    try:
        with safe_open(str(path), framework="pt", device="cpu") as opened:
            # Cloned: the library maps the file, which may be removed while the tensors live.
            tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, AttributeError) as error:
        raise FileFormatError(f"cannot be read: {error}.", where=str(path)) from None
    for name, original in aliases.items():
        if original not in tensors or name in tensors:
            raise FileFormatError(f"{name[:80]!r} is an alias of nothing.", where=str(path))
        tensors[name] = tensors[original]
    return tensors


def check_safetensors(path: Path) -> dict[str, str]:
    """Check a safetensors file before anything of its size is allocated.

    Args:
        path: The file.

    Returns:
        The names that are aliases of other tensors.

    Raises:
        FileFormatError: The header is too long, no JSON, or does not describe the file.
    """
    where = str(path)
    raw, size = _read_header(Path(path), where)
    header = parse_json(raw, where)
    if not isinstance(header, dict):
        raise FileFormatError("its header must be a table.", where=where)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError("its metadata must be a table of texts.", where=where)
    _check_entries(header, size - 8 - len(raw), where)
    return {n: v.removeprefix(_ALIAS) for n, v in metadata.items() if v.startswith(_ALIAS)}


def _without_aliases(
    tensors: Mapping[str, Tensor],
) -> tuple[list[tuple[str, Tensor]], dict[str, str]]:
    stored, aliases = [], {}
    seen: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        _check_tensor(name, tensor)
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if tensor.numel() and key in seen:
            aliases[name] = _ALIAS + seen[key]
            continue
        seen[key] = name
        stored.append((name, tensor))
    # The widest items first, so that every tensor is aligned in the file.
    stored.sort(key=lambda pair: (-pair[1].element_size(), pair[0]))
    return stored, dict(sorted(aliases.items()))


def _check_tensor(name: str, tensor: Tensor) -> None:
    if str(tensor.dtype) not in _DTYPES:
        raise UserError(f"{name} must have a type that can be stored; got {tensor.dtype}.")
    if not _is_sound_name(name):
        raise UserError(f"{name!r} must not hold '..' or begin with '/'. Rename it.")


def _is_sound_name(name: str) -> bool:
    return ".." not in name and not name.startswith(("/", "__metadata__"))


def _write_tensor(stream: BinaryIO, tensor: Tensor) -> None:
    import torch  # noqa: PLC0415 - this module loads no torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.numel():
        stream.write(flat.view(torch.uint8).numpy().data)


def _read_header(path: Path, where: str) -> tuple[bytes, int]:
    try:
        if path.exists() and not path.is_file():
            raise FileFormatError("must be a file. Name a file.", where=where)
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(8)
            if start.startswith(_PICKLES):
                raise FileFormatError(
                    "must be a safetensors file; it is a pickle. regard never loads pickles.",
                    where=where,
                )
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > min(size - 8, _LARGEST_HEADER):
                raise FileFormatError(
                    f"its header must fit into the file and {_LARGEST_HEADER:,} bytes; got "
                    f"{length:,} in {size:,}.",
                    where=where,
                )
            return stream.read(length), size
    except OSError as error:
        raise FileFormatError(f"cannot be read: {reason(error)}.", where=where) from None


def _check_entries(header: dict[str, Any], available: int, where: str) -> None:
    spans = sorted(_checked_entry(name, entry, where) for name, entry in header.items())
    place = 0
    for begin, end in spans:
        if begin != place:
            raise FileFormatError("its tensors must lie end to end.", where=where)
        place = end
    if place != available:
        raise FileFormatError(
            f"its tensors must fill the file; got {place:,} of {available:,} bytes.", where=where
        )


def _checked_entry(name: str, entry: Any, where: str) -> tuple[int, int]:
    try:
        count = _ITEM_SIZES[entry["dtype"]]
        (begin, end), shape = entry["data_offsets"], entry["shape"]
        sound = all(type(n) is int and 0 <= n < 1 << 40 for n in (begin, end, *shape))
        sound = sound and len(shape) <= _MOST_AXES
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound or not _is_sound_name(name):
        raise FileFormatError(f"tensor {name[:80]!r} is not described soundly.", where=where)
    for size in shape:
        count *= size
    if end - begin != count:
        raise FileFormatError(
            f"tensor {name[:80]!r} must be {count:,} bytes; got {end - begin:,}.", where=where
        )
    return begin, end
