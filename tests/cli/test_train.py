"""From `regard new` to a model that translates: train, check, evaluate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

QUICK = ("training.epochs=1", "training.batch_tokens=400")


@pytest.fixture
def project(reversal_run: Any, tmp_path: Path) -> Path:
    """A folder with a config and its data."""
    for name in ("config.toml", "train.tsv", "dev.tsv", "test.tsv"):
        shutil.copy(reversal_run.folder / name, tmp_path)
    return tmp_path


def test_train_then_translate_then_evaluate(project: Path, regard: Any, refused: Any) -> None:
    config, run = project / "config.toml", project / "run"
    trained = regard("train", config, *QUICK, "--output", run, "--seed", 3, "--quiet")
    assert trained.code == 0
    assert trained.out == f"{run / 'model'}\n"
    assert " steps  loss " in trained.err
    assert regard("translate", "a b", "--plain", "--model", run).out.count("\n") == 1

    scored = regard("evaluate", run, "--json", "--save", project / "written.txt")
    assert scored.code == 0
    assert json.loads(scored.out)["pairs"] == 20
    assert (project / "written.txt").read_text().count("\n") == 20

    line = refused("train", config, *QUICK, "--output", run)
    assert "Add --resume, or choose another folder" in line
    line = refused("train", config, "--output", run, "--resume", *QUICK, "--seed", 4)
    assert "training.seed" in line
    assert "3" in line
    assert "4" in line
    assert regard("train", config, *QUICK, "--output", run, "--resume", "--seed", 3).code == 0


def test_train_json_and_the_default_folder(
    project: Path, regard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    result = regard("train", "config.toml", *QUICK, "--json", "--threads", 1, "--device", "cpu")
    assert result.code == 0
    table = json.loads(result.out)
    assert table["model"] == f"runs/{project.name}/model"
    assert table["steps"] > 0
    assert set(table["metrics"]) == {"loss", "perplexity"}
    assert (project / table["model"] / "manifest.json").is_file()
    assert "epoch 1" in result.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["training.epohcs=3"], "training.epohcs: must be a setting; it is none: did you mean"),
        (["training.learning_rate=nan"], "training.learning_rate: must be a finite number"),
        (["training.epochs=many"], "training.epochs: must be a valid integer; got 'many'"),
        (["training"], "a change must read key=value; got 'training'"),
        (["data.train=missing.tsv"], "missing.tsv: cannot be read"),
        (["training.device=gpu"], "device: must be auto"),
        (["model.decoder.kind=transformer"], "must be left out for this kind"),
    ],
)
@pytest.mark.parametrize("verb", ["train", "check"])
def test_c3_a_wrong_setting_is_one_line(
    verb: str, changes: list[str], message: str, project: Path, refused: Any
) -> None:
    output = ["--output", project / "run"] if verb == "train" else []
    assert message in refused(verb, project / "config.toml", *changes, *output)
    assert not (project / "run").exists()


def test_c3_a_config_that_is_no_toml(project: Path, refused: Any) -> None:
    (project / "config.toml").write_text("task = \n")
    line = refused("train", project / "config.toml")
    assert line.startswith(f"{project / 'config.toml'}: must be valid TOML; got: ")
    assert "line 1" in line
    assert "cannot be read" in refused("check", project / "none.toml")


def test_a_device_with_a_quote_in_it_stays_one_value(project: Path, refused: Any) -> None:
    line = refused("train", project / "config.toml", "--device", 'cpu"\nseed = 2', "--output", "x")
    assert "device: must be auto" in line


def test_d5_files_of_different_length_are_refused(project: Path, refused: Any) -> None:
    (project / "x").write_text("a b\nc\nd\n")
    (project / "y").write_text("b a\nc\n")
    line = refused("train", project / "config.toml", 'data.train=["x", "y"]', "--output", "run")
    assert "source and target must have equally many lines; got 3 and 2" in line


def test_check_says_what_is_there(project: Path, regard: Any) -> None:
    """Row D21: what the sets share is a warning, not an error."""
    shutil.copy(project / "dev.tsv", project / "test.tsv")
    with (project / "train.tsv").open("a") as stream:
        stream.write((project / "dev.tsv").read_text())
    result = regard("check", project / "config.toml")
    assert result.code == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0].startswith("train: 320 pairs")
    assert "warning: 20 of 20 pairs of dev are in train" in lines
    assert "warning: 20 of 20 pairs of test are in train" in lines


def test_new_writes_and_replaces_nothing_unasked(tmp_path: Path, regard: Any, refused: Any) -> None:
    folder = tmp_path / "first"
    result = regard("new", "translation", folder)
    assert result.code == 0
    assert Path(result.out.splitlines()[0]).name == "config.toml"
    assert all(Path(line).is_file() for line in result.out.splitlines())
    assert "exists already" in refused("new", "translation", folder)
    assert regard("new", "translation", folder, "--force").code == 0
    assert "task: must be known; got 'translate'; did you mean" in refused("new", "translate", "x")


def test_evaluate_says_its_scores_and_signatures(regard: Any, reversal_run: Any) -> None:
    result = regard("evaluate", reversal_run.run, "--beam", 1)
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["bleu", "chrf", "pairs"]
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in lines[0]
    again = json.loads(regard("evaluate", reversal_run.run, "--beam", 1, "--json").out)
    assert f"{again['bleu']['score']:.2f}" in lines[0]
    assert again["bleu"]["signature"] in lines[0]


def test_evaluate_refuses_what_is_wrong(refused: Any, reversal_run: Any, tmp_path: Path) -> None:
    """Rows C2 and C5, D5 and D9."""
    run = reversal_run.run
    (tmp_path / "x").write_text("a b\nc d\n")
    (tmp_path / "y").write_text("b a\n")
    assert "got 2 and 1" in refused("evaluate", run, tmp_path / "x", tmp_path / "y")
    assert "x:1: column must be from 0 to 0; got 1" in refused("evaluate", run, tmp_path / "x")
    assert "got 3" in refused("evaluate", run, *[tmp_path / "x"] * 3)
    assert "cannot be read" in refused("evaluate", run, tmp_path / "missing")
    assert "exists already" in refused("evaluate", run, "--save", tmp_path / "x")
    both = (tmp_path / "x", tmp_path / "y")
    line = refused("evaluate", run, *both, "--save", tmp_path / "y", "--force")
    assert "is the input too" in line
    assert (tmp_path / "y").read_text() == "b a\n"
    assert "must be a folder or a bundled name" in refused("evaluate", "no such run")
