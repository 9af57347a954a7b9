"""A series that was read: what it holds, and the charts of it in every kind of picture."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.errors import FileFormatError, ShapeError, UserError
from regard.pictures import Map, Record, Series, Text, Token, render_html, render_svg
from regard.pictures.colours import shade, to_hex
from regard.pictures.lettering import cells
from regard.pictures.series import MOST_FEATURES, chart
from regard.pictures.terminal import render as render_terminal

SVG = "{http://www.w3.org/2000/svg}"


def make(values: Any, weights: Any = None, *, label: str = "bump", names: Any = None) -> Record:
    array = np.asarray(values, dtype=float)
    features = names or [f"f{n}" for n in range(array.shape[1])]
    heads = np.full((1, len(array)), 1 / max(len(array), 1)) if weights is None else weights
    heads = np.atleast_2d(heads)
    return Record(
        "sequences",
        Series.of(array, features),
        Text(label, (Token(label, 0, len(label)),)),
        tuple(Map(f"head {n}", row[np.newaxis]) for n, row in enumerate(heads, start=1)),
        {"sequence": "pump 7", "probability": 0.98},
    )


@pytest.fixture
def short() -> Record:
    """Four steps of two features, one number missing, weights that are easy to check by eye."""
    values = [[0.0, 5.0], [1.0, math.nan], [4.0, 5.0], [2.0, 5.0]]
    return make(values, [0.0, 0.1, 0.7, 0.2], names=["speed", "heat"])


def test_it_is_a_text_of_steps(short: Record) -> None:
    read = short.read
    assert [token.text for token in read.tokens] == ["1", "2", "3", "4"]
    assert read.values[1] == (1.0, None)
    assert short.columns == 4
    assert short.strongest(1) == [[(2, pytest.approx(0.7))]]
    assert short.merge_words().read == read
    assert Series.of(np.zeros((0, 1)), ["x"]).tokens == ()
    assert Series.of([[1 / 3]], ["x"]).values == ((0.333333,),)


@pytest.mark.parametrize(
    ("make_it", "error", "message"),
    [
        (lambda: Series.of([1.0], ["x"]), ShapeError, "must have 2 axes"),
        (lambda: Series.of([[1.0]], ["x", "y"]), UserError, r"values\[0\] must be 2 finite"),
        (lambda: Series.of([[math.inf]], ["x"]), UserError, r"values\[0\] must be 1 finite"),
        (lambda: Series.of([[1.0]], []), UserError, "1 to 64 features"),
        (
            lambda: Series.of(np.zeros((1, 65)), [str(n) for n in range(65)]),
            UserError,
            "got 65 and 1",
        ),
        (
            lambda: Series("1 2", (Token("1", 0, 1),), None, ("x",), ((1.0,), (2.0,))),
            UserError,
            "one row for each of 1 tokens; got 2",
        ),
    ],
)
def test_what_is_no_series(make_it: Any, error: type[Exception], message: str) -> None:
    assert MOST_FEATURES == 64
    with pytest.raises(error, match=message):
        make_it()


def test_a_record_survives_json(short: Record) -> None:
    text = short.to_json()
    data = json.loads(text)
    assert data["schema_version"] == 4
    assert data["read"]["type"] == "series"
    assert data["read"]["values"][1] == [1.0, None]
    again = Record.from_json(text)
    assert again.read == short.read
    assert again.to_json() == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["read"].pop("values"), "read must have the key 'values'"),
        (lambda d: d["read"].update(more=1), "read must have no key besides its 6"),
        (lambda d: d["read"].update(features=["a", 1]), r"read.features\[1\] must be str"),
        (lambda d: d["read"].update(features=[]), "read.values must have 1 to 64 features"),
        (lambda d: d["read"]["values"].pop(), "one row for each of 4 tokens; got 3"),
        (lambda d: d["read"]["values"][0].append(1), r"read.values\[0\] must be 2 finite"),
        (lambda d: d["read"]["values"][0].__setitem__(0, "x"), r"values\[0\] must hold numbers"),
        (lambda d: d["read"]["values"][0].__setitem__(0, True), r"values\[0\] must hold numbers"),
        (lambda d: d["read"]["values"].__setitem__(0, 3), r"read.values\[0\] must be a list"),
        (lambda d: d.update(schema_version=3), "record must have the key 'sentence_maps'"),
        (lambda d: d.update(schema_version=2), "read must have no key besides|'text'"),
    ],
)
def test_k8_a_hostile_record_is_refused(short: Record, change: Any, message: str) -> None:
    data = json.loads(short.to_json())
    change(data)
    with pytest.raises(FileFormatError, match=message):
        Record.from_json(json.dumps(data))


def test_a_chart_shows_what_was_read(short: Record) -> None:
    found = chart(short, columns=100)
    assert found.heading == "pump 7: bump 0.98"
    assert (found.steps, found.count, found.top) == (1, 4, 1.0)
    assert found.weights == pytest.approx([0.0, 0.1, 0.7, 0.2], abs=1e-6)
    speed, heat = found.traces
    assert (speed.low, speed.high) == (0.0, 4.0)
    assert [speed.height(value) for value in (0, 1, 4)] == [0.0, 0.25, 1.0]
    assert heat.ranges == ((5, 5), None, (5, 5), (5, 5))
    assert heat.height(5.0) == 0.5
    assert found.named == "step 3 0.70, step 4 0.20, step 2 0.10"
    assert found.said(2) == "step 3: 0.70"
    assert found.remark == ""


def test_many_steps_share_columns() -> None:
    values = np.arange(10.0)[:, np.newaxis]
    found = chart(make(values, np.arange(10) / 45), columns=4)
    assert found.steps == 3
    assert found.weights == pytest.approx([3 / 45, 12 / 45, 21 / 45, 9 / 45], abs=1e-6)
    assert found.traces[0].ranges == ((0, 2), (3, 5), (6, 8), (9, 9))
    assert found.said(0).startswith("steps 1 to 3: ")
    assert found.said(3).startswith("step 10: ")


def test_what_cannot_be_seen_is_said() -> None:
    assert "All steps weigh about the same" in chart(make(np.zeros((5, 1))), columns=9).remark
    many = chart(make(np.zeros((2, 9)), [0.1, 0.9]), columns=9)
    assert many.remark == "Features that are not drawn: 3."
    assert len(many.traces) == 6
    nothing = chart(make(np.zeros((5, 1)), np.zeros(5)), columns=9)
    assert (nothing.remark, nothing.named) == ("No step has any weight.", "")
    empty = chart(make(np.zeros((0, 1))), columns=9)
    assert (empty.count, empty.weights) == (0, ())


def test_heads_are_meant_or_named(short: Record) -> None:
    two = make(np.zeros((2, 1)), [[1.0, 0.0], [0.5, 0.5]])
    assert chart(two, columns=9).weights == (0.75, 0.25)
    assert "mean of 2 maps" in chart(two, columns=9).heading
    assert chart(two, columns=9, name="head 1").weights == (1.0, 0.0)
    with pytest.raises(UserError, match="did you mean 'head 2'"):
        chart(two, columns=9, name="head2")
    text = Text("a", (Token("a", 0, 1),))
    other = Record("x", text, text, (Map("m", [[1.0]]),))
    with pytest.raises(UserError, match="read must be a series here; got Text"):
        chart(other, columns=9)


def test_the_svg_is_the_chart(short: Record) -> None:
    root = ElementTree.fromstring(render_svg(short))
    said = [element.text for element in root.iter(f"{SVG}text")]
    for text in ("pump 7: bump 0.98", "speed", "heat", "4", "0"):
        assert text in said
    shades = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert len(shades) == 8  # four steps of two features
    assert shades[2].find(f"{SVG}title").text == "step 3: 0.70"
    assert shades[2].get("fill") == to_hex(shade(0.7 * 0.7, "light"))
    assert shades[0].get("fill") == to_hex(shade(0.0))
    lines = [line.get("points").split() for line in root.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines] == [4, 2]  # the second is broken where a number lacks
    heights = [float(point.split(",")[1]) for point in lines[0]]
    assert heights[2] == min(heights)
    assert heights[0] == max(heights)
    assert len(list(root.iter(f"{SVG}circle"))) == 1  # heat at the first step, alone


def test_a_long_series_stays_small() -> None:
    values = np.random.default_rng(0).normal(size=(20_000, 2))
    assert len(render_svg(make(values))) < 400_000


def test_the_page_runs_nothing_and_holds_the_numbers(short: Record) -> None:
    page = render_html(short)
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert page.count("<svg") == 1
    assert "<td>3</td><td>4</td><td>5</td><td>0.70</td>" in page
    assert "<td>2</td><td>1</td><td></td><td>0.10</td>" in page
    assert render_html(make(np.zeros((2, 1)), [[1, 0], [0, 1]])).count("<svg") == 3
    assert "… 500 more" in render_html(make(np.zeros((2500, 1))))
    assert short._repr_html_().startswith("<iframe")


@pytest.mark.parametrize("width", [20, 47, 80])
@pytest.mark.parametrize("colour", ["none", "256", "truecolor"])
def test_the_terminal_shows_it_in_its_width(short: Record, width: int, colour: Any) -> None:
    long = make(np.random.default_rng(0).normal(size=(300, 2)), np.eye(300)[7])
    for record in (short, long):
        drawn = render_terminal(record, width=width, colour=colour)
        plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in drawn.splitlines()]
        assert all(cells(line) <= width for line in plain)
        assert ("\x1b" in drawn) == (colour != "none")
    assert any("step 8 1.00" in line for line in plain)


def test_blocks_rise_with_the_numbers(short: Record) -> None:
    lines = render_terminal(short, width=60, colour="none").splitlines()
    speed, heat, weight = (line.split(maxsplit=1)[1] for line in lines[2:5])
    assert speed == "▁▃█▅"
    assert heat[0] + heat[2:] == "▅▅▅"
    assert heat[1] == " "
    assert lines[4][lines[2].index("▁") :] == " ░▓░".ljust(4)
    assert weight.strip() == "░▓░"
    assert "no steps" in render_terminal(make(np.zeros((0, 1))), width=60)


def test_s7_hostile_names_stay_text(hostile: Any) -> None:
    for text in hostile:
        record = make(np.zeros((3, 1)), names=[text], label=text)
        ElementTree.fromstring(render_svg(record))
        page = render_html(record)
        assert "<script" not in page
        assert not re.search("<(img|iframe|svg/)", page)
        assert "\x1b[31m" not in render_terminal(record, width=60, colour="none")
        assert Record.from_json(record.to_json()).to_json() == record.to_json()
