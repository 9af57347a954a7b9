"""Files and folders that are written whole or not at all, and verified when read.

A folder (a model, a checkpoint) is filled under a temporary name beside its target; its manifest
is written last, with the SHA-256 of every file and of itself; one rename puts it in place.
Nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import EnvironmentFault, FileFormatError, UserError

if TYPE_CHECKING:
    from torch import Tensor

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_LARGEST_JSON = 64 << 20  # bytes
_LARGEST_HEADER = 16 << 20  # bytes
_ITEM_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8,
}  # fmt: skip
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_ALIAS = "alias of "


def write_file(path: Path, data: str | bytes, *, overwrite: bool = True) -> None:
    """Write a file under a temporary name beside it, then rename it.

    Args:
        path: The file to write.
        data: Its content; text is written as UTF-8 with the line ends it has.
        overwrite: Whether an existing file may be replaced.

    Raises:
        UserError: The file exists and may not be replaced, or its folder does not exist.
        EnvironmentFault: The disk is full, or the folder cannot be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError("must be a file; it is a folder. Add a file name.", where=str(path))
    if path.exists() and not overwrite:
        raise UserError("exists already. Choose another name, or use --force.", where=str(path))
    if not path.parent.is_dir():
        raise UserError("its folder does not exist. Make it first.", where=str(path))
    content = data.encode("utf-8", errors="surrogatepass") if isinstance(data, str) else data
    temporary = _beside(path)
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise EnvironmentFault(f"cannot be written: {error.strerror}.", where=str(path)) from error


def write_folder(
    target: Path, fill: Callable[[Path], None], *, versions: Mapping[str, str], overwrite: bool
) -> None:
    """Write a folder whole, with its manifest, or leave everything as it was.

    Args:
        target: The folder to be.
        fill: Writes the files into the folder it is given.
        versions: Versions of libraries, for the manifest.
        overwrite: Whether an existing folder may be replaced; it is removed only after the new
            one is in place.

    Raises:
        UserError: The folder exists and may not be replaced.
        EnvironmentFault: The disk is full, or the place cannot be written to.
    """
    target = Path(target)
    if target.exists() and not overwrite:
        raise UserError("exists already. Choose another name, or use --force.", where=str(target))
    temporary = _beside(target)
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        _sync_files(temporary)
        manifest = _manifest_text(temporary, versions)
        write_file(temporary / MANIFEST, manifest)
        _swap(temporary, target)
        _sync_path(target.parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = error.strerror or str(error)
        raise EnvironmentFault(f"cannot be written: {reason}.", where=str(target)) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def verify_folder(folder: Path) -> dict[str, Any]:
    """Check a folder against its manifest: every file whole and unchanged.

    Args:
        folder: The folder.

    Returns:
        The manifest.

    Raises:
        FileFormatError: A file is missing, too short, too long or changed; the message names it.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder)
    for name, entry in manifest["files"].items():
        _verify_file(folder, name, entry)
    return manifest


def remove_leftovers(folder: Path) -> None:
    """Remove what interrupted writes left in a folder: names that end in `.tmp`."""
    for leftover in Path(folder).glob(".*.tmp"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read a JSON file strictly: no NaN, no double names, nothing huge.

    Args:
        path: The file.

    Returns:
        Its content.

    Raises:
        FileFormatError: It cannot be read or is not such a file.
    """
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(_LARGEST_JSON + 1)
    except OSError as error:
        raise FileFormatError(f"cannot be read: {error.strerror}.", where=str(path)) from None
    if len(raw) > _LARGEST_JSON:
        raise FileFormatError("must be smaller than 64 MiB.", where=str(path))
    return _parse_json(raw, str(path))


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Save tensors with safetensors; those that share memory are stored once.

    Args:
        path: The file.
        tensors: Names and tensors, of any layout and on any device.
    """
    from safetensors.torch import save_file  # noqa: PLC0415 - this module loads no torch

    stored: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    seen: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if tensor.numel() and key in seen:
            aliases[name] = _ALIAS + seen[key]
            continue
        seen[key] = name
        stored[name] = tensor.detach().cpu().clone().contiguous()
    save_file(stored, str(path), metadata=aliases or None)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Load tensors to the CPU, after checking the file's header.

    Args:
        path: The file.

    Returns:
        Names and tensors; those that shared memory when saved share it again.

    Raises:
        FileFormatError: The file is no sound safetensors file.
    """
    from safetensors import safe_open  # noqa: PLC0415 - this module loads no torch

    aliases = check_safetensors(path)
    with safe_open(str(path), framework="pt", device="cpu") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    for name, original in aliases.items():
        if original not in tensors or name in tensors:
            raise FileFormatError(f"{name} is an alias of nothing.", where=str(path))
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
    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as stream:
            start = stream.read(8)
            if start.startswith(_PICKLES):
                raise FileFormatError("is a pickle; regard never loads pickles.", where=where)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > min(size - 8, _LARGEST_HEADER):
                raise FileFormatError(
                    f"its header must fit into the file; got {length:,} bytes in {size:,}.",
                    where=where,
                )
            header = _parse_json(stream.read(length), where)
    except OSError as error:
        raise FileFormatError(f"cannot be read: {error.strerror}.", where=where) from None
    if not isinstance(header, dict):
        raise FileFormatError("its header must be a table.", where=where)
    metadata = header.pop("__metadata__", {})
    _check_entries(header, size - 8 - length, where)
    return {n: v.removeprefix(_ALIAS) for n, v in metadata.items() if v.startswith(_ALIAS)}


def _check_entries(header: dict[str, Any], available: int, where: str) -> None:
    spans = []
    for name, entry in header.items():
        begin, end = _checked_entry(name, entry, where)
        spans.append((begin, end))
    place = 0
    for begin, end in sorted(spans):
        if begin != place:
            raise FileFormatError("its tensors must lie end to end.", where=where)
        place = end
    if place != available:
        raise FileFormatError(
            f"its tensors must fill the file; got {place:,} of {available:,} bytes.", where=where
        )


def _checked_entry(name: str, entry: Any, where: str) -> tuple[int, int]:
    try:
        item = _ITEM_SIZES[entry["dtype"]]
        (begin, end), shape = entry["data_offsets"], entry["shape"]
        sound = all(type(n) is int and 0 <= n < 1 << 40 for n in (begin, end, *shape))
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound or ".." in name or name.startswith("/"):
        raise FileFormatError(f"tensor {name[:80]!r} is not described soundly.", where=where)
    count = item
    for size in shape:
        count *= size
    if end - begin != count:
        raise FileFormatError(
            f"tensor {name[:80]!r} must be {count:,} bytes; got {end - begin:,}.", where=where
        )
    return begin, end


def _parse_json(raw: bytes, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise ValueError("a name stands twice")
        return table

    def never(text: str) -> float:
        raise ValueError(f"{text} is not a number")

    try:
        return json.loads(raw, object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"is not valid JSON: {error}.", where=where) from None


def _beside(path: Path) -> Path:
    # Beside its target: a rename is atomic only within one filesystem.
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _swap(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    old = _beside(target)
    target.rename(old)
    temporary.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _sync_files(folder: Path) -> None:
    for path in folder.iterdir():
        _sync_path(path)


def _sync_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # pragma: no cover - some filesystems cannot sync folders
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _manifest_text(folder: Path, versions: Mapping[str, str]) -> str:
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.iterdir())
    }
    content = {"format_version": FORMAT_VERSION, "versions": dict(versions), "files": files}
    return _canonical(content)


def _canonical(content: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": digest}, indent=1, sort_keys=True) + "\n"


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    where = str(path)
    if not path.is_file():
        raise FileFormatError("has no manifest.json; it is no model of regard.", where=str(folder))
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FileFormatError("is no manifest.", where=where)
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    if path.read_text(encoding="utf-8", errors="replace") != _canonical(content):
        raise FileFormatError("is damaged: its SHA-256 is not its own.", where=where)
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise FileFormatError(
            f"format_version must be at most {FORMAT_VERSION}; got {version}. Update regard.",
            where=where,
        )
    return manifest


def _verify_file(folder: Path, name: str, entry: Any) -> None:
    path = folder / name
    if Path(name).name != name:
        raise FileFormatError(f"names a file elsewhere: {name!r}.", where=str(folder / MANIFEST))
    if not path.is_file():
        raise FileFormatError(f"{name} is missing.", where=str(folder))
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise FileFormatError(
            f"{name} is {size:,} of {entry['bytes']:,} bytes. Copy it again.", where=str(folder)
        )
    if _sha256(path) != entry["sha256"]:
        raise FileFormatError(
            f"{name} is damaged: its SHA-256 is not the manifest's. Copy it again.",
            where=str(folder),
        )
