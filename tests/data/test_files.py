"""D19: names in data that must not lead out of its folder. (Reading is tested with text.)"""

from pathlib import Path

import pytest

from regard.data.files import resolve_inside
from regard.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    (root / "a.jpg").write_bytes(b"a")
    (root / "images" / "b c.jpg").write_bytes(b"b")
    (tmp_path / "secret.jpg").write_bytes(b"s")
    return root


def test_d19_names_in_the_folder_are_found(root: Path) -> None:
    (root / "link.jpg").symlink_to("images/b c.jpg")
    (root.parent / "other").symlink_to(root)
    for name in ("a.jpg", "./a.jpg", "images/b c.jpg", "link.jpg", "images//b c.jpg"):
        assert resolve_inside(root, name, where="x:1").read_bytes() in (b"a", b"b")
        assert resolve_inside(root.parent / "other", name, where="x:1").is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.jpg", r"without '\.\.'; got '\.\./secret\.jpg'\. Put"),
        ("images/../a.jpg", r"without '\.\.'"),
        ("images\\..\\..\\secret.jpg", r"without '\.\.'"),
        ("/etc/passwd", "relative to the folder"),
        ("C:\\a.jpg", "relative to the folder"),
        ("c:a.jpg", "relative to the folder"),
        ("\\\\host\\a.jpg", "relative to the folder"),
        ("~/a.jpg", "relative to the folder"),
        ("https://example.org/a.jpg", "relative to the folder"),
        ("file:///etc/passwd", "relative to the folder"),
        ("", "relative to the folder"),
        ("  ", "relative to the folder"),
        ("a.jpg\0.png", "relative to the folder"),
        ("none.jpg", r"must be a file in .*got 'none\.jpg': No such file"),
        ("\ud800.jpg", "no file can have this name"),
        ("a.jpg/b", "Not a directory"),
        ("images", "must be a file; got 'images', which is a folder"),
        (".", "which is a folder"),
        ("x" * 5000, "got 'x{200}': File name too long"),
    ],
)
def test_d19_other_names_are_refused(root: Path, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        resolve_inside(root, name, where="captions.tsv:7")
    assert str(caught.value).startswith("captions.tsv:7: image must ")
    assert len(str(caught.value).splitlines()) == 1


def test_d19_links_that_lead_out_are_refused(root: Path) -> None:
    (root / "out.jpg").symlink_to("../secret.jpg")
    (root / "far").symlink_to(root.parent)
    (root / "loop.jpg").symlink_to("loop.jpg")
    (root / "dangling.jpg").symlink_to("nothing.jpg")
    for name in ("out.jpg", "far/secret.jpg"):
        with pytest.raises(DataError, match="a link that leads out"):
            resolve_inside(root, name, where="x:1")
    for name in ("loop.jpg", "dangling.jpg"):
        with pytest.raises(DataError, match="must be a file in"):
            resolve_inside(root, name, where="x:1")


def test_d19_a_neighbour_whose_name_begins_alike_is_outside(root: Path) -> None:
    other = root.parent / "data-private"
    other.mkdir()
    (other / "a.jpg").write_bytes(b"p")
    (root / "alike").symlink_to(other)
    with pytest.raises(DataError, match="leads out"):
        resolve_inside(root, "alike/a.jpg", where="x:1")
