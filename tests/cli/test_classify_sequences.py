"""`regard classify` and its kin with a model of sequences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.planted_series import SeriesPlanter, write_planted_series
from regard.tasks import load
from regard.tasks.sequence_training import train_sequences
from regard.training import RunOptions

pytest.importorskip("pyarrow")

CONFIG = """
task = "sequences"
[data]
train = "train.csv"
dev = "dev.csv"
test = "test.csv"
order = "step"
features = ["first", "second"]
max_steps = 15
[model]
input_dim = 8
encoder = {kind = "embedding"}
[training]
epochs = 1
threads = 1
device = "cpu"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Series, and models of their labels and values that have hardly learnt anything."""
    made = tmp_path_factory.mktemp("series")
    planter = SeriesPlanter(shortest=8, longest=15)
    write_planted_series(made, {"train": 30, "dev": 6, "test": 5}, seed=1, planter=planter)
    (made / "config.toml").write_text(CONFIG)
    for name, changes in (("labels", []), ("values", ["target=value", "data.label=height"])):
        options = RunOptions(made / name, quiet=True)
        train_sequences(made / "config.toml", changes, options)
    return made


def test_a_line_for_each_sequence(regard: Any, folder: Path) -> None:
    result = regard("classify", "--model", folder / "labels", "--file", folder / "test.csv")
    assert result.code == 0, result
    rows = [line.split("\t") for line in result.out.splitlines()]
    expected = load(folder / "labels")(folder / "test.csv")
    assert [row[0] for row in rows] == [f"test-{n}" for n in range(5)]
    assert [row[1] for row in rows] == [one.label for one in expected]
    step, weight = expected[0].strongest(1)[0]
    assert rows[0][3].startswith(f"{step + 1}:{weight:.3f} ")
    result = regard("classify", "--model", folder / "values", "--file", folder / "test.csv")
    values = load(folder / "values")(folder / "test.csv")
    assert [line.split("\t")[1] for line in result.out.splitlines()] == [
        f"{one.value:.6g}" for one in values
    ]


def test_json_for_programs(regard: Any, folder: Path) -> None:
    call = ("classify", "--file", folder / "test.csv", "--json", "--model")
    first = json.loads(regard(*call, folder / "labels").out.splitlines()[0])
    assert first["sequence"] == "test-0"
    assert first["label"] == max(first["probabilities"], key=first["probabilities"].get)
    assert sum(first["weights"]) == pytest.approx(1.0, abs=1e-5)
    assert not first["truncated"]
    assert first["record"]["schema_version"] == 4
    first = json.loads(regard(*call, folder / "values").out.splitlines()[0])
    assert list(first["values"]) == ["height"]
    assert "label" not in first


def test_charts_are_drawn_where_they_are_asked_for(
    regard: Any, folder: Path, tmp_path: Path
) -> None:
    looks = tmp_path / "looks"
    looks.mkdir()
    call = ("classify", "--model", folder / "labels", "--file", folder / "test.csv")
    result = regard(*call, "--picture", looks / "look.html")
    assert result.code == 0, result
    assert len(result.out.splitlines()) == 5
    files = sorted(path.name for path in looks.iterdir())
    assert files == [f"look-{number}.html" for number in range(1, 6)]
    assert "weight " in regard(*call, "--show").out
    file = tmp_path / "one.csv"
    file.write_text("sequence,step,first,second\na,1,0,1\na,2,1,1\n")
    alone = regard("classify", "--model", folder / "labels", "--file", file)
    assert any(line.startswith("first ") for line in alone.out.splitlines())
    plain = regard("classify", "--model", folder / "labels", "--file", file, "--plain")
    assert len(plain.out.splitlines()) == 1


@pytest.mark.filterwarnings("always")
def test_d7_what_is_cut_is_said(regard: Any, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    rows = "".join(f"a,{n},0,1\n" for n in range(20))
    file.write_text("sequence,step,first,second\n" + rows)
    result = regard("classify", "--model", folder / "labels", "--file", file)
    assert result.code == 0
    assert "regard: warning: sequences are read up to 15 steps; 1 of 1 are longer" in result.err


def test_a_run_is_evaluated_and_checked_by_the_command(
    regard: Any, folder: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "said.txt"
    result = regard("evaluate", folder / "labels", "--save", saved)
    assert result.out.startswith("accuracy "), result
    assert len(saved.read_text().splitlines()) == 5
    table = json.loads(regard("evaluate", folder / "values", folder / "dev.csv", "--json").out)
    assert table["sequences"] == 6
    assert "r2" in table
    assert regard("check", folder / "config.toml").out.startswith("train: 30 sequences of ")


def test_what_is_wrong_is_one_line(refused: Any, folder: Path, tmp_path: Path) -> None:
    def refuse(*arguments: object) -> str:
        return refused("classify", "--model", folder / "labels", *arguments)

    table = folder / "test.csv"
    assert "needs --file, a table of sequences" in refuse()
    assert "TEXT: counts for models of texts" in refuse("x")
    assert "--whole: counts for" in refuse("--file", table, "--whole")
    assert "must end in .svg" in refuse("--file", table, "--picture", tmp_path / "a.gif")
    assert "none.csv: cannot be read" in refuse("--file", tmp_path / "none.csv")
    file = tmp_path / "a.csv"
    file.write_text("sequence,step,first,secnd\na,1,2,3\n")
    assert "did you mean 'secnd'" in refuse("--file", file)
    file.write_text("sequence,step,first,second\na,1,2,x\n")
    assert "a.csv:2: column 'second' must hold a number" in refuse("--file", file)
    assert "--header: must be left out" in refused("evaluate", folder / "labels", "--header")
