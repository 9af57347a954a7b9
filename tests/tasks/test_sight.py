"""What the tasks that read pictures share; their own tests read with it."""

from pathlib import Path

import pytest
from PIL import Image

from regard.errors import DataError, UserError
from regard.tasks.sight import root_of_images, see


def test_a_picture_is_opened_by_its_name_or_as_it_is(tmp_path: Path) -> None:
    Image.new("LA", (3, 2), (0, 0)).save(tmp_path / "a.png")
    for shown in (tmp_path / "a.png", str(tmp_path / "a.png")):
        seen = see(shown)
        assert (seen.name, seen.image.mode, seen.image.getpixel((0, 0))) == (
            "a.png",
            "RGB",
            (255, 255, 255),
        )
    assert see(Image.new("L", (3, 2))).name == ""
    with pytest.raises(UserError, match="image must be a file or a PIL image; got int"):
        see(3)
    with pytest.raises(DataError, match="cannot be read"):
        see(tmp_path / "no.png")


def test_pictures_of_another_file_lie_beside_it(tmp_path: Path) -> None:
    own, other = tmp_path / "labels.tsv", tmp_path / "other.tsv"
    for file in (own, other):
        file.write_text("")
    known = ("labels.tsv", None, "gone.tsv")
    assert root_of_images(own, "photos", known, root=tmp_path) == str(tmp_path / "photos")
    assert root_of_images(other, "photos", known, root=tmp_path) is None
    assert root_of_images(own, None, known, root=tmp_path) is None
