"""What an encoder makes of pictures, kept on disk, so that it is computed once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.data.files import file_sha256
from regard.errors import DataError, EnvironmentFault, UserError, did_you_mean
from regard.saving import check_writable, write_file

DTYPES = {"float16": "<f2", "float32": "<f4", "uint8": "|u1"}
"""The precisions in which features are kept; bytes are for pixels."""

Compute = Callable[[Sequence[Path]], Sequence[ArrayLike]]
"""Makes an array of each picture; all arrays of a call may be one, with the pictures first."""

_MAGIC = b"regardF1"
_DIGEST = 32  # bytes of a SHA-256
_LARGEST_HEADER = 4096
_ALIGNMENT = 64
_KEY = re.compile("[0-9a-f]{64}")
_DAY = 86_400  # seconds


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the cache that was verified, and how to know it again."""

    path: Path
    shape: tuple[int, ...]
    offset: int
    stamp: tuple[int, int, int]


class Features:
    """The features of pictures, read from the cache when they are touched.

    Every file was verified when this was made; one that has changed since is verified again.

    Args:
        cache: The cache that holds them.
        keys: The SHA-256 of each picture.
        entries: What is known of the file of each key.
    """

    def __init__(
        self, cache: FeatureCache, keys: Sequence[str], entries: dict[str, _Entry]
    ) -> None:
        self._cache = cache
        self._keys = tuple(keys)
        self._entries = entries

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each picture's features."""
        return tuple(self._entries[key].shape for key in self._keys)

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Read the features of one picture.

        Args:
            index: Which.

        Returns:
            Its features, in the cache's precision.

        Raises:
            EnvironmentFault: They have been removed or damaged since they were verified.
        """
        key = self._keys[index]
        result = np.empty(self._entries[key].shape, dtype=self._cache.dtype)
        self._read(key, result)
        return result

    def batch(self, indices: Sequence[int]) -> NDArray[Any]:
        """Read the features of several pictures into one array.

        Args:
            indices: Which.

        Returns:
            Their features, with the pictures first.

        Raises:
            UserError: Their shapes differ, or none is asked for.
            EnvironmentFault: They have been removed or damaged since they were verified.
        """
        keys = [self._keys[index] for index in indices]
        shapes = {self._entries[key].shape for key in keys}
        if len(shapes) != 1:
            raise UserError(
                f"indices must name pictures whose features have one shape; got {sorted(shapes)}. "
                "Read them one by one, and pad."
            )
        result = np.empty((len(keys), *shapes.pop()), dtype=self._cache.dtype)
        for row, key in enumerate(keys):
            self._read(key, result[row])
        return result

    def _read(self, key: str, target: NDArray[Any]) -> None:
        entry = self._entries[key]
        if not _fill(entry, target):  # rewritten, perhaps by another process with the same content
            fresh = self._cache._verified(key)
            if fresh is None or fresh.shape != entry.shape or not _fill(fresh, target):
                raise EnvironmentFault(
                    "features were removed or damaged while they were in use. Start again: they "
                    "are computed anew.",
                    where=str(entry.path),
                )
            self._entries[key] = fresh


class FeatureCache:
    """Arrays on disk, keyed by the encoder, the preprocessing and the bytes of the picture.

    A file for each picture, written whole under a temporary name and renamed, with a SHA-256: two
    processes may fill one cache at once, a kill at any moment leaves no half file that is taken
    for a whole one, and what is damaged is computed anew. A cache that lacks nothing may lie in a
    folder that cannot be written to; one that lacks something there is refused before any work.

    Args:
        folder: Where it lies; made when something is put there.
        identity: What names the encoder with its weights, such as its SHA-256.
        preprocessing: What names how pictures are brought to it.
        dtype: `float16` halves the space, and keeps three digits; `float32`; or `uint8`, for whole
            numbers from 0 to 255.

    Raises:
        UserError: There is no such precision.
    """

    def __init__(
        self, folder: str | Path, identity: str, *, preprocessing: str = "", dtype: str = "float16"
    ) -> None:
        if dtype not in DTYPES:
            raise UserError(f"dtype must be known; got {dtype!r}; {did_you_mean(dtype, DTYPES)}.")
        self.folder = Path(folder)
        self.dtype = np.dtype(DTYPES[dtype])
        self._about = json.dumps(
            {"identity": identity, "preprocessing": preprocessing, "dtype": dtype}, sort_keys=True
        )
        self._space = hashlib.sha256(_MAGIC + self._about.encode()).hexdigest()
        self._root = self.folder / self._space[:32]

    def get(self, key: str) -> NDArray[Any] | None:
        """Return what is kept of a picture.

        Args:
            key: The SHA-256 of its bytes, in hexadecimal.

        Returns:
            Its features; None where there are none, or they are damaged.

        Raises:
            UserError: This is no SHA-256.
        """
        entry = self._verified(key)
        if entry is None:
            return None
        result = np.empty(entry.shape, dtype=self.dtype)
        return result if _fill(entry, result) else None

    def put(self, key: str, features: ArrayLike) -> None:
        """Keep the features of a picture.

        Args:
            key: The SHA-256 of its bytes, in hexadecimal.
            features: Its features: finite numbers.

        Raises:
            UserError: This is no SHA-256, or a number is not finite in the cache's precision.
            EnvironmentFault: They cannot be written.
        """
        path = self._path(key)
        data = self._narrow(np.asarray(features))
        header = json.dumps({"space": self._space, "key": key, "shape": data.shape}).encode()
        start = len(_MAGIC) + _DIGEST + 4 + len(header)
        body = len(header).to_bytes(4, "little") + header + bytes(-start % _ALIGNMENT)
        body += data.tobytes()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not (about := self._root / "about.json").exists():  # for people who look
                write_file(about, self._about + "\n")
        except OSError as error:
            raise EnvironmentFault(
                f"must be writable; got: {error.strerror or error}. Choose another folder.",
                where=str(self.folder),
            ) from error
        write_file(path, _MAGIC + hashlib.sha256(body).digest() + body)

    def features(
        self,
        paths: Sequence[Path],
        compute: Compute,
        *,
        batch_size: int = 32,
        digests: Sequence[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Features:
        """Return the features of pictures, and compute those that are not kept yet.

        Args:
            paths: The pictures; those with the same bytes are computed once.
            compute: Makes an array of each picture.
            batch_size: Most pictures of a call of it.
            digests: The SHA-256 of each, where it is known.
            progress: Is told how many of how many missing ones are done.

        Returns:
            The features, in the order of `paths`.

        Raises:
            UserError: A number is out of range, or `compute` gives another count of arrays.
            DataError: A picture cannot be read.
            EnvironmentFault: Something is missing and the folder cannot be written to.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1; got {batch_size}. Raise it.")
        keys = digests or [file_sha256(Path(path), where=str(path)) for path in paths]
        if len(keys) != len(paths):
            raise UserError(
                f"digests must be as many as paths, which are {len(paths)}; got {len(keys)}. "
                "Give one for each."
            )
        by_key: dict[str, Path] = {}
        for key, path in zip(keys, paths, strict=True):
            by_key.setdefault(key, path)
        entries = {key: entry for key in by_key if (entry := self._verified(key))}
        missing = [key for key in by_key if key not in entries]
        if missing:
            check_writable(self._root)
            self._sweep()
        for start in range(0, len(missing), batch_size):
            batch = missing[start : start + batch_size]
            self._compute({key: by_key[key] for key in batch}, compute)
            entries.update((key, self._must_be(key)) for key in batch)
            if progress:
                progress(start + len(batch), len(missing))
        return Features(self, keys, entries)

    def _compute(self, pictures: dict[str, Path], compute: Compute) -> None:
        keys = [key for key in pictures if self._verified(key) is None]  # or another did it
        if not keys:
            return
        arrays = compute([pictures[key] for key in keys])
        if len(arrays) != len(keys):
            raise UserError(
                f"compute must return an array for each picture; got {len(arrays)} for "
                f"{len(keys)}. Correct it."
            )
        for key, array in zip(keys, arrays, strict=True):
            try:
                self.put(key, array)
            except UserError as error:
                raise DataError(error.message, where=str(pictures[key])) from error

    def _must_be(self, key: str) -> _Entry:
        entry = self._verified(key)
        if entry is None:
            raise EnvironmentFault(
                "features must be there after they were written; they are not. Is another "
                "program removing files, or the disk failing?",
                where=str(self._path(key)),
            )
        return entry

    def _narrow(self, values: NDArray[Any]) -> NDArray[Any]:
        if values.dtype.kind not in "fiu" or not values.size:
            raise UserError(
                f"features must be numbers, at least one; got {values.dtype} {values.shape}. "
                "Correct the encoder."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            result = np.ascontiguousarray(values, dtype=self.dtype)
        if self.dtype.kind == "u" and not (result == values).all():
            raise UserError(
                "features must be whole numbers from 0 to 255 to be kept in uint8; some are not. "
                "Use float16, or correct the encoder."
            )
        if not np.isfinite(result).all():
            largest = float(np.abs(values.astype(np.float64)).max())
            raise UserError(
                f"features must be finite in {self.dtype.name}; got {largest:g}. Use float32, or "
                "correct the encoder."
            )
        return result

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise UserError(f"key must be a SHA-256 in hexadecimal; got {key!r}. Hash the file.")
        return self._root / key[:2] / f"{key}.features"

    def _verified(self, key: str) -> _Entry | None:
        """Look at a file of the cache from its first to its last byte."""
        path = self._path(key)
        try:
            with path.open("rb", buffering=0) as stream:
                stamp = _stamp(stream.fileno())
                raw = stream.read()
        except OSError:
            return None
        body = memoryview(raw)[len(_MAGIC) + _DIGEST :]
        beginning = _MAGIC + hashlib.sha256(body).digest()
        if not raw.startswith(beginning) or len(body) < 4:
            return None
        return self._entry(path, key, raw, stamp)

    def _entry(
        self, path: Path, key: str, raw: bytes, stamp: tuple[int, int, int]
    ) -> _Entry | None:
        start = len(_MAGIC) + _DIGEST + 4
        length = min(int.from_bytes(raw[start - 4 : start], "little"), _LARGEST_HEADER)
        try:
            header = json.loads(raw[start : start + length])
            shape = tuple(map(int, header["shape"]))
            known = (header["space"], header["key"]) == (self._space, key)
        except (ValueError, TypeError, KeyError):
            return None
        offset = start + length + -(start + length) % _ALIGNMENT
        if not known or len(raw) - offset != math.prod(shape) * self.dtype.itemsize:
            return None
        return _Entry(path, shape, offset, stamp)

    def _sweep(self) -> None:
        """Remove what killed processes left a day ago; younger files may be another's."""
        for path in self._root.glob("*/.*.tmp"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _DAY:
                    path.unlink()


def _stamp(descriptor: int) -> tuple[int, int, int]:
    status = os.fstat(descriptor)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _fill(entry: _Entry, target: NDArray[Any]) -> bool:
    """Read a verified file into an array, unless it is another file by now."""
    try:
        with entry.path.open("rb", buffering=0) as stream:
            if _stamp(stream.fileno()) != entry.stamp:
                return False
            stream.seek(entry.offset)
            return stream.readinto(target.reshape(-1).view(np.uint8).data) == target.nbytes
    except OSError:
        return False
