"""The cache of features: whole or not at all, for any number of processes and any damage."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.features import FeatureCache
from regard.errors import DataError, EnvironmentFault, UserError

KEYS = [sha256(bytes([number])).hexdigest() for number in range(6)]


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    (tmp_path / "pictures").mkdir()
    paths = [tmp_path / "pictures" / f"{number}.jpg" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 10)
    return paths


class Encoder:
    """Gives each picture the numbers of its bytes, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, paths: Sequence[Path]) -> np.ndarray[Any, Any]:
        self.asked.append([path.name for path in paths])
        return np.stack([np.full((4, 3), path.read_bytes()[0] + 0.5) for path in paths])


def test_what_is_put_is_got(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((7, 5))
    for dtype, digits in (("float16", 1e-3), ("float32", 1e-7)):
        cache = FeatureCache(tmp_path, "encoder", dtype=dtype)
        assert cache.get(KEYS[0]) is None
        cache.put(KEYS[0], values)
        found = cache.get(KEYS[0])
        assert found is not None
        assert found.dtype == np.dtype(dtype)
        assert np.allclose(found, values, rtol=digits)
        assert cache.get(KEYS[1]) is None


def test_encoder_preprocessing_and_precision_are_part_of_the_key(tmp_path: Path) -> None:
    caches = [
        FeatureCache(tmp_path, "one"),
        FeatureCache(tmp_path, "two"),
        FeatureCache(tmp_path, "one", preprocessing="224"),
        FeatureCache(tmp_path, "one", dtype="float32"),
    ]
    for number, cache in enumerate(caches):
        assert cache.get(KEYS[0]) is None
        cache.put(KEYS[0], [number])
    assert [cache.get(KEYS[0]).tolist() for cache in caches] == [[0], [1], [2], [3]]  # type: ignore[union-attr]


def test_features_are_computed_once(tmp_path: Path, pictures: list[Path]) -> None:
    encoder, done = Encoder(), []
    for _ in range(2):
        cache = FeatureCache(tmp_path / "cache", "encoder")
        found = cache.features(
            pictures, encoder, batch_size=2, progress=lambda n, m: done.append((n, m))
        )
        assert len(found) == 5
        assert found.shapes == ((4, 3),) * 5
        assert found[3].tolist() == np.full((4, 3), 3.5).tolist()
        assert found.batch([4, 0, 4])[:, 0, 0].tolist() == [4.5, 0.5, 4.5]
    assert encoder.asked == [["0.jpg", "1.jpg"], ["2.jpg", "3.jpg"], ["4.jpg"]]
    assert done == [(2, 5), (4, 5), (5, 5)]


def test_the_bytes_count_and_not_the_name(tmp_path: Path, pictures: list[Path]) -> None:
    pictures[1].write_bytes(pictures[0].read_bytes())
    encoder = Encoder()
    cache = FeatureCache(tmp_path / "cache", "encoder")
    assert cache.features(pictures, encoder)[1][0, 0] == 0.5
    assert encoder.asked == [["0.jpg", "2.jpg", "3.jpg", "4.jpg"]]
    pictures[4].rename(tmp_path / "new name.jpg")
    pictures[0].write_bytes(b"changed")
    found = cache.features([tmp_path / "new name.jpg", pictures[0]], encoder)
    assert found.batch([0, 1])[:, 0, 0].tolist() == [4.5, ord("c") + 0.5]
    assert encoder.asked[1:] == [["0.jpg"]]


def test_digests_that_are_known_are_used(tmp_path: Path, pictures: list[Path]) -> None:
    cache = FeatureCache(tmp_path / "cache", "encoder")
    cache.features(pictures[:2], Encoder(), digests=KEYS[:2])
    assert cache.get(KEYS[1]) is not None
    with pytest.raises(UserError, match="digests must be as many as paths, which are 5; got 2"):
        cache.features(pictures, Encoder(), digests=KEYS[:2])


def files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.features"))


def test_what_is_damaged_is_computed_anew(tmp_path: Path, pictures: list[Path]) -> None:
    cache = FeatureCache(tmp_path / "cache", "encoder")
    wanted = cache.features(pictures, Encoder()).batch(range(5))
    file = files(tmp_path / "cache")[2]
    whole = file.read_bytes()
    generator = random.Random(0)
    spoiled = [whole[:size] for size in (0, 7, 8, 40, 43, 44, 100, len(whole) - 1)]
    spoiled += [whole + b"\0", bytes(len(whole)), files(tmp_path / "cache")[0].read_bytes()]
    for _ in range(40):
        place = generator.randrange(len(whole))
        spoiled.append(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
    for content in spoiled:
        file.write_bytes(content)
        assert cache.get(file.stem) is None
        encoder = Encoder()
        found = cache.features(pictures, encoder)
        assert sum(map(len, encoder.asked)) == 1
        assert (found.batch(range(5)) == wanted).all()
        assert file.read_bytes() == whole


def test_what_changes_in_use_is_never_read_silently(tmp_path: Path, pictures: list[Path]) -> None:
    cache = FeatureCache(tmp_path / "cache", "encoder")
    found = cache.features(pictures, Encoder())
    wanted = found.batch(range(5))
    for file in files(tmp_path / "cache"):  # another process wrote the same
        file.write_bytes(file.read_bytes())
    assert (found.batch(range(5)) == wanted).all()
    file = files(tmp_path / "cache")[0]
    whole = file.read_bytes()
    for content in (whole[:-1] + b"\1", whole[:-7], None):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(EnvironmentFault, match="removed or damaged while they were in use"):
            found.batch(range(5))
    assert cache.features(pictures, Encoder()).batch([0]).shape == (1, 4, 3)


def test_shapes_may_differ_but_not_in_a_batch(tmp_path: Path, pictures: list[Path]) -> None:
    def compute(paths: Sequence[Path]) -> list[np.ndarray[Any, Any]]:
        return [np.ones((1 + int(path.stem) % 2, 3)) for path in paths]

    found = FeatureCache(tmp_path / "cache", "encoder").features(pictures, compute)
    assert found.shapes[:2] == ((1, 3), (2, 3))
    assert found.batch([1, 3]).shape == (2, 2, 3)
    for indices in ([0, 1], []):
        with pytest.raises(UserError, match="features have one shape"):
            found.batch(indices)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan], "finite in float16; got nan"),
        ([1.0, -np.inf], "finite in float16; got inf"),
        ([70_000.0], "finite in float16; got 70000. Use float32"),
        ([], "at least one"),
        (["a"], "must be numbers"),
    ],
)
def test_numbers_that_cannot_be_kept(
    values: list[Any], message: str, tmp_path: Path, pictures: list[Path]
) -> None:
    cache = FeatureCache(tmp_path / "cache", "encoder")
    with pytest.raises(UserError, match=message):
        cache.put(KEYS[0], values)
    with pytest.raises(DataError, match=message) as caught:
        cache.features(pictures, lambda paths: [values] * len(paths))
    assert caught.value.where == str(pictures[0])
    assert files(tmp_path / "cache") == []


def test_pixels_are_kept_as_bytes_or_not_at_all(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, "pixels", dtype="uint8")
    values = np.arange(256, dtype=np.float32).reshape(1, 16, 16)
    cache.put(KEYS[0], values)
    found = cache.get(KEYS[0])
    assert found is not None
    assert found.dtype == np.uint8
    assert (found == values).all()
    for wrong in ([0.5], [256.0], [-1.0], [np.nan]):
        with pytest.raises(UserError, match="whole numbers from 0 to 255"):
            cache.put(KEYS[1], wrong)


def test_calls_that_mean_nothing(tmp_path: Path, pictures: list[Path]) -> None:
    with pytest.raises(UserError, match="dtype must be known; got 'float61'; did you mean"):
        FeatureCache(tmp_path, "encoder", dtype="float61")
    cache = FeatureCache(tmp_path / "cache", "encoder")
    for key in ("", "../../x", KEYS[0].upper(), KEYS[0] + "0"):
        with pytest.raises(UserError, match="key must be a SHA-256"):
            cache.get(key)
    with pytest.raises(UserError, match="batch_size must be at least 1; got 0"):
        cache.features(pictures, Encoder(), batch_size=0)
    with pytest.raises(UserError, match="array for each picture; got 1 for 5"):
        cache.features(pictures, lambda paths: [[1.0]])
    with pytest.raises(DataError, match=r"gone\.jpg: .*cannot be read: No such file"):
        cache.features([tmp_path / "gone.jpg"], Encoder())
    assert len(cache.features([], Encoder())) == 0


def test_t9_a_folder_that_cannot_be_written_to(tmp_path: Path, pictures: list[Path]) -> None:
    (tmp_path / "file").write_text("")
    encoder = Encoder()
    cache = FeatureCache(tmp_path / "file", "encoder")
    with pytest.raises(EnvironmentFault, match="must be writable") as caught:
        cache.features(pictures, encoder)
    assert encoder.asked == []
    assert caught.value.exit_code == 3
    with pytest.raises(EnvironmentFault, match="must be writable"):
        cache.put(KEYS[0], [1.0])


def test_t9_a_full_cache_is_only_read(
    tmp_path: Path, pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    FeatureCache(tmp_path, "encoder").features(pictures, Encoder())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    monkeypatch.setattr("regard.data.features.check_writable", lambda _: pytest.fail("written to"))
    FeatureCache(tmp_path, "encoder").features(pictures, Encoder()).batch(range(5))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_k5_leftovers_of_yesterday_go_and_those_of_now_stay(
    tmp_path: Path, pictures: list[Path]
) -> None:
    cache = FeatureCache(tmp_path, "encoder")
    cache.features(pictures[:1], Encoder())
    folder = files(tmp_path)[0].parent
    old, new = folder / ".x.features.01234567.tmp", folder / ".y.features.01234567.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 100_000,) * 2)
    cache.features(pictures, Encoder())
    assert (old.exists(), new.exists()) == (False, True)


def test_k3_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FeatureCache(tmp_path, "encoder")
    cache.put(KEYS[0], [1.0])

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(EnvironmentFault, match="No space left on device"):
        cache.put(KEYS[0], [2.0])
    assert cache.get(KEYS[0]).tolist() == [1.0]  # type: ignore[union-attr]
    assert list(tmp_path.rglob("*.tmp")) == []


FILL = """
import sys, time
from pathlib import Path
import numpy as np
from regard.data.features import FeatureCache

def compute(paths):
    time.sleep(0.002)
    return [np.full((49, 1280), float(path.stem)) for path in paths]

folder, pictures = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob("*.jpg"))
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    cache = FeatureCache(folder, f"encoder {number}")
    found = cache.features(pictures, compute, batch_size=2).batch(range(len(pictures)))
    assert found[:, 0, 0].tolist() == [float(path.stem) for path in pictures]
"""


def fill(cache: Path, pictures: Path, rounds: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", FILL, str(cache), str(pictures), str(rounds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_processes_fill_one_cache(tmp_path: Path, pictures: list[Path]) -> None:
    both = [fill(tmp_path / "cache", pictures[0].parent, 8) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert len(files(tmp_path / "cache")) == 8 * 5
    assert list((tmp_path / "cache").rglob(".*")) == []


def test_t4_a_kill_at_any_moment_leaves_whole_files(tmp_path: Path, pictures: list[Path]) -> None:
    generator = random.Random(0)
    for _ in range(6):
        process = fill(tmp_path / "cache", pictures[0].parent, 10_000)
        time.sleep(generator.uniform(0.02, 0.2))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    found = files(tmp_path / "cache")
    assert found
    for number in range(10_000):
        cache = FeatureCache(tmp_path / "cache", f"encoder {number}")
        kept = [path for path in found if path.parent.parent == cache._root]
        if not kept:
            break
        assert all(cache.get(path.stem) is not None for path in kept)
        found = [path for path in found if path not in kept]
    assert found == []
