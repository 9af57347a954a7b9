import math
import subprocess
import sys

import numpy as np
import pytest

from regard.errors import FileFormatError, ShapeError, UserError
from regard.pictures import Map, Record, Text, Token

ONE = Text("a", (Token("a", 0, 1),))


def test_importing_pictures_loads_neither_torch_nor_rich():
    code = (
        "import sys, regard.pictures, regard.pictures.records, regard.pictures.svg, "
        "regard.pictures.strip, regard.pictures.picture, regard.pictures.png, "
        "regard.pictures.html, regard.pictures.terminal\n"
        "sys.exit(bool({'torch', 'rich', 'PIL', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 2), (1, 0), (2, 2)])
def test_offsets_must_lie_within_the_text(start, end):
    with pytest.raises(UserError, match=r"tokens\[0\] must have 0 <= start <= end <= 1; got start"):
        Text("a", (Token("a", start, end),))


def test_weights_must_fit_the_tokens():
    with pytest.raises(ShapeError, match=r"must have shape \(1, 1\).*got \(2, 1\)"):
        Record("t", ONE, ONE, (Map("m", np.ones((2, 1))),))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_weights_must_be_finite(bad):
    with pytest.raises(UserError, match="must be finite"):
        Map("m", np.array([[bad]]))


def test_weights_must_not_be_negative():
    with pytest.raises(UserError, match=r"must be 0 or more; got -0\.5"):
        Map("m", np.array([[-0.5]]))


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((1, 1, 1)), 1.0])
def test_weights_must_be_a_matrix(bad):
    with pytest.raises(ShapeError, match="must have 2 axes"):
        Map("m", bad)


def test_weights_must_be_numbers():
    with pytest.raises(UserError, match="must be numbers"):
        Map("m", [["a"]])


def test_weights_are_a_read_only_copy():
    given = np.ones((1, 1), dtype=np.float32)
    kept = Map("m", given).weights
    given[0, 0] = 0
    assert kept[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 0


def test_maps_need_names_that_differ():
    with pytest.raises(UserError, match="must hold at least 1 map; got 0"):
        Record("t", ONE, ONE, ())
    with pytest.raises(UserError, match="2 different names; got 1"):
        Record("t", ONE, ONE, (Map("m", np.ones((1, 1))), Map("m", np.ones((1, 1)))))


@pytest.mark.parametrize("bad", [math.nan, [1], b"x", 2**64])
def test_details_are_plain(bad):
    with pytest.raises(UserError, match=r"details\['x'\] must be"):
        Record("t", ONE, ONE, (Map("m", np.ones((1, 1))),), {"x": bad})


def test_weights_are_the_mean_or_the_named_map():
    maps = (Map("head 1", [[0.0, 1.0]]), Map("head 2", [[0.5, 0.5]]))
    record = Record("t", Text("a b", (Token("a", 0, 1), Token("b", 2, 3))), ONE, maps)
    np.testing.assert_allclose(record.weights(), [[0.25, 0.75]])
    np.testing.assert_array_equal(record.weights("head 1"), [[0.0, 1.0]])
    with pytest.raises(UserError, match=r"got 'haed 1'; did you mean 'head 1'\?"):
        record.weights("haed 1")


def test_strongest_leaves_out_zeros_and_keeps_the_order_of_equals():
    read = Text("abc", tuple(Token(c, i, i + 1) for i, c in enumerate("abc")))
    written = Text("xy", (Token("x", 0, 1), Token("y", 1, 2)))
    record = Record("t", read, written, (Map("m", [[0.25, 0.5, 0.25], [0, 0, 0]]),))
    assert record.strongest(2) == [[(1, 0.5), (0, 0.25)], []]
    assert record.strongest() == [[(1, 0.5), (0, 0.25), (2, 0.25)], []]


@pytest.mark.parametrize("sizes", [(0, 0), (0, 2), (2, 0)])
def test_nothing_read_or_written_is_no_fault(sizes, record_of, tmp_path):
    record = record_of(["a"] * sizes[0], ["b"] * sizes[1])
    assert Record.from_json(record.to_json()).weights().shape == (sizes[1], sizes[0])
    assert len(record.merge_words().strongest()) == sizes[1]
    for ending in (".json", ".svg", ".html"):
        record.save(tmp_path / f"r{ending}")


@pytest.mark.parametrize(
    ("ending", "opening"), [(".json", "{"), (".svg", "<svg"), (".HTML", "<!doctype")]
)
def test_the_ending_chooses_the_format(chase, tmp_path, ending, opening):
    path = tmp_path / f"record{ending}"
    chase.save(path)
    assert path.read_text(encoding="utf-8").startswith(opening)
    with pytest.raises(UserError, match="exists already"):
        chase.save(path, overwrite=False)


@pytest.mark.parametrize("name", ["record.gif", "record", "record.json.gz"])
def test_an_unknown_ending_names_the_known_ones(chase, tmp_path, name):
    with pytest.raises(UserError, match=rf"must end in \.json, \.svg, \.html, \.png; got '{name}'"):
        chase.save(tmp_path / name)


def test_load_returns_what_was_saved(chase, tmp_path):
    chase.save(tmp_path / "r.json")
    loaded = Record.load(tmp_path / "r.json")
    assert (loaded.task, loaded.read, loaded.written) == (chase.task, chase.read, chase.written)
    assert loaded.details == chase.details
    np.testing.assert_allclose(loaded.weights(), chase.weights(), rtol=1e-6)


def test_load_says_which_file_is_wrong(tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(UserError, match=r"r\.json: cannot be read: No such file"):
        Record.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match=r"r\.json: must be UTF-8; .* offset 0"):
        Record.load(path)
    path.write_text("[]")
    with pytest.raises(FileFormatError, match=r"r\.json: record must be an object; got a list"):
        Record.load(path)


def test_a_notebook_gets_a_frame_with_the_page(chase):
    shown = chase._repr_html_()
    assert shown.startswith("<iframe")
    assert shown.count("<") == 2
    assert 'sandbox="allow-scripts"' in shown


def test_weights_must_fit_the_cells(picture_of):
    with pytest.raises(ShapeError, match=r"must have shape \(1, 7\).*got \(1, 6\)"):
        Record("t", picture_of(2, 3, sentinel=True), ONE, (Map("m", np.ones((1, 6))),))


def test_the_strongest_cells_are_listed(dog):
    assert dog.columns == 7
    assert [pairs[0][0] for pairs in dog.strongest(1)] == [0, 4, 6]
    assert [dog.read.place(pairs[0][0]) for pairs in dog.strongest(1)] == [
        "top left",
        "bottom",
        "not looking",
    ]


def test_what_needs_a_text_says_so(chase, dog):
    assert chase.read_text() is chase.read
    with pytest.raises(UserError, match="read must be a text here; got a picture"):
        dog.read_text()


@pytest.mark.parametrize("ending", [".json", ".svg", ".html"])
def test_a_picture_is_saved_by_ending_as_well(dog, tmp_path, ending):
    dog.save(tmp_path / f"r{ending}")
    assert (tmp_path / f"r{ending}").stat().st_size > 500
    assert dog._repr_html_().startswith("<iframe")


def test_a_picture_is_loaded_as_it_was_saved(dog, tmp_path):
    dog.save(tmp_path / "r.json")
    assert Record.load(tmp_path / "r.json").read == dog.read
