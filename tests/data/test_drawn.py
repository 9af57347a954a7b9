import json
from pathlib import Path

import pytest
from PIL import Image

from regard.data.drawn import Drawn, picture_name, write_drawn
from regard.errors import EnvironmentFault, UserError


def some(count: int = 2) -> list[Drawn]:
    image = Image.new("RGB", (4, 4), "red")
    return [Drawn(picture_name("dev", index), image, {"label": "红"}) for index in range(count)]


def test_pictures_and_their_list(tmp_path: Path) -> None:
    file = tmp_path / "new" / "labels.jsonl"
    paths = write_drawn(file, some())
    assert paths == [file, *(tmp_path / "new" / f"images/dev-0000{i}.png" for i in range(2))]
    with Image.open(paths[1]) as written:
        assert written.size == (4, 4)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows[1] == {"image": "images/dev-00001.png", "label": "红"}
    with pytest.raises(UserError, match=r"labels\.jsonl: exists already"):
        write_drawn(file, some())
    assert len(write_drawn(file, some(3), overwrite=True)) == 4


def test_there_is_no_list_before_all_pictures_are_there(tmp_path: Path) -> None:
    file = write_drawn(tmp_path / "labels.jsonl", some())[0]

    def broken():
        yield some()[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(EnvironmentFault, match="cannot be written: No space left"):
        write_drawn(file, broken(), overwrite=True)
    assert not file.exists()
