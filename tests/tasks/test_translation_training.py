"""Training, scoring and checking from a config and a person's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import read_config
from regard.errors import ConfigError, DataError, FileFormatError, UserError
from regard.tasks import load
from regard.tasks.translation_settings import TranslationSettings
from regard.tasks.translation_training import (
    build_job,
    check_translation,
    evaluate_translation,
    new_translation,
    train_translation,
)
from regard.training import RunOptions


@pytest.fixture
def project(reversal_run: Any, tmp_path: Path) -> Path:
    """A config with data of its own, to be changed."""
    for name in ("config.toml", "train.tsv", "dev.tsv", "test.tsv"):
        shutil.copy(reversal_run.folder / name, tmp_path)
    return tmp_path / "config.toml"


def test_a_run_is_scored_on_the_test_files_of_its_config(reversal_run: Any) -> None:
    result = evaluate_translation(str(reversal_run.run), [], device="cpu")
    table = result.table()
    assert table["bleu"]["score"] > 60
    assert table["bleu"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert table["pairs"] == len(result.written) == 20
    assert len(table["sha256"]) == 64
    lines = result.lines()
    assert lines[0].startswith("bleu ")
    assert lines[1].startswith("chrf ")
    assert lines[2].startswith("pairs     20   SHA-256 ")
    inside = evaluate_translation(str(reversal_run.run / "model"), [], beam=1, device="cpu")
    assert inside.pairs.sha256 == result.pairs.sha256


def test_a_run_is_scored_on_other_files(reversal_run: Any, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a b\nc d\n")
    (tmp_path / "y").write_text("b a\nd c\n")
    files = [str(tmp_path / "x"), str(tmp_path / "y")]
    assert evaluate_translation(str(reversal_run.run), files).written == ["b a", "d c"]


def test_a_model_that_names_no_test_files_needs_some(reversal_run: Any, tmp_path: Path) -> None:
    shutil.copytree(reversal_run.run / "model", tmp_path / "model")
    with pytest.raises(UserError, match="this model names no test files"):
        evaluate_translation(str(tmp_path / "model"), [])


@pytest.mark.parametrize("notes", ["[]", "{}", '{"root": 3}', '{"root": "."}', "{"])
def test_notes_of_a_run_that_are_none_are_one_line(
    notes: str, reversal_run: Any, tmp_path: Path
) -> None:
    shutil.copytree(reversal_run.run / "model", tmp_path / "model")
    (tmp_path / "run.json").write_text(notes)
    with pytest.raises((FileFormatError, ConfigError)) as caught:
        evaluate_translation(str(tmp_path), [])
    assert "\n" not in str(caught.value)


def test_a_training_can_continue_from_a_model(project: Path, reversal_run: Any) -> None:
    """`init` brings tokenizers, sizes and weights; languages and search are the config's own."""
    changes = [f"init={json.dumps(str(reversal_run.run))}", "data.max_tokens=9", "decoding.beam=2"]
    changes += ["model.embedding_dim=8", "training.epochs=1", "training.learning_rate=1e-7"]
    options = RunOptions(project.parent / "again", quiet=True)
    with pytest.warns(UserWarning, match="init: .*model of the config are not used"):
        outcome = train_translation(project, changes, options)
    assert "It went on from" in (outcome.folder / "card.md").read_text()
    again = load(outcome.folder)
    assert again.settings.model.embedding_dim == 32
    assert (again.settings.max_tokens, again.settings.decoding.beam) == (9, 2)
    assert again("a b c d").text == "d c b a"


def test_drawn_attention_is_trained_and_saved_with_its_baseline(
    project: Path, tmp_path: Path
) -> None:
    """A gradient reaches the scores though nothing drawn lets one through."""
    changes = ["model.decoder.selection=sampled", "model.decoder.order=luong", "training.epochs=1"]
    outcome = train_translation(project, changes, RunOptions(tmp_path / "drawn", quiet=True))
    model = load(outcome.folder).model
    assert model.reinforce.mean < 0  # the mean of earlier rewards, which are logarithms
    settings = read_config(project, TranslationSettings, changes=changes)
    first = build_job(settings, root=project.parent).model
    name = "decoder.reader.attention.score.query_projection.weight"
    before, after = first.state_dict()[name], model.state_dict()[name]
    assert not torch.allclose(before, after, atol=1e-4)


def test_the_share_of_steps_that_draw_grows(project: Path) -> None:
    changes = ["model.decoder.selection=sampled", "training.epochs=2", "training.workers=0"]
    changes += ["model.reinforce.share=0.8", "model.reinforce.annealed=0.5"]
    job = build_job(read_config(project, TranslationSettings, changes=changes), root=project.parent)
    selection = job.model.decoder.reader.attention.selection

    def shares(epoch: int, start: int = 0) -> list[float]:
        return [selection.share for _ in job.batches(epoch, start)]

    steps = job.steps(0)
    first = [0.8 * step / steps for step in range(steps)]
    assert shares(0) == pytest.approx(first)
    assert shares(0, 2) == pytest.approx(first[2:])  # going on finds the same
    assert shares(1) == [0.8] * steps
    late = job.settings.model.reinforce.model_copy(update={"soft": 0.25, "annealed": 0.75})
    assert [late.drawn(done / 8) for done in range(8)] == pytest.approx(
        [0.0, 0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 0.8]
    )
    assert late.model_copy(update={"soft": 0.75, "annealed": 0.0}).drawn(0.5) == 0.0


def test_a_job_searches_as_its_config_says(project: Path, reversal_run: Any) -> None:
    changes = [f"init={json.dumps(str(reversal_run.run))}", "decoding.maximum_length=3"]
    settings = read_config(project, TranslationSettings, changes=changes)
    with pytest.warns(UserWarning, match="init: "):
        job = build_job(settings, root=project.parent)
    assert job.translator.search(None, 1).maximum_length == 3


def test_the_same_seed_builds_the_same_model(project: Path) -> None:
    weights = []
    for seed in (1, 1, 2):
        settings = read_config(project, TranslationSettings, changes=[f"training.seed={seed}"])
        weights.append(build_job(settings, root=project.parent).model.encoder.embedding.weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_check_says_what_is_there(project: Path) -> None:
    lines = check_translation(project, [])
    assert lines[0].startswith("train: 300 pairs, 0 blank and 0 overlong pairs left out, SHA-256 ")
    assert any(line.startswith("test: 20 pairs") for line in lines)
    assert "source and" in lines[-1]
    assert "steps an epoch" in lines[-1]


def test_d21_check_reports_pairs_that_are_in_training_too(project: Path) -> None:
    train = (project.parent / "train.tsv").read_text().splitlines(keepends=True)
    (project.parent / "dev.tsv").write_text("".join(train[:3]) + "c c c c c\tc c c c c\n")
    (project.parent / "test.tsv").write_text("".join(train[:1]))
    lines = check_translation(project, [])
    assert "warning: 3 of 4 pairs of dev are in train" in lines
    assert "warning: 1 of 1 sources of test are in train" in lines


def test_d6_d7_check_counts_what_is_left_out(project: Path) -> None:
    """Rows D6 and D7: blank sides, too many characters, too many tokens."""
    with (project.parent / "train.tsv").open("a") as stream:
        stream.write("a\t \n\t\n" + "a" * 10_001 + "\tb\n" + "a " * 13 + "\tb\n")
    lines = check_translation(project, [])
    assert lines[0].startswith("train: 301 pairs, 2 blank and 1 overlong pairs left out")
    assert "warning: 1 pairs of train have more than 12 tokens" in lines


@pytest.mark.parametrize("content", ["", "\n\n", "a\t\n", "\tb\n \t \n"])
def test_t11_an_empty_development_set_is_refused(content: str, project: Path) -> None:
    (project.parent / "dev.tsv").write_text(content)
    for act in (
        lambda: check_translation(project, []),
        lambda: train_translation(project, [], RunOptions(project.parent / "run", quiet=True)),
    ):
        with pytest.raises(DataError) as caught:
            act()
        assert "dev.tsv" in str(caught.value)
    assert not (project.parent / "run").exists()


def test_d5_parallel_files_of_different_length_are_refused(project: Path) -> None:
    (project.parent / "x").write_text("a\nb\nc\n")
    (project.parent / "y").write_text("a\nb\n")
    with pytest.raises(DataError, match="equally many lines; got 3 and 2"):
        check_translation(project, ['data.train=["x", "y"]'])


def test_new_writes_a_config_that_check_likes(tmp_path: Path) -> None:
    written = new_translation(tmp_path / "a b" / "first")
    assert [path.name for path in written] == [
        "config.toml",
        "train.tsv",
        "dev.tsv",
        "test.tsv",
        "test.alignment.txt",
    ]
    lines = check_translation(written[0], [])
    assert not any("pairs of" in line for line in lines if line.startswith("warning"))
    links = written[-1].read_text().splitlines()
    pairs = written[3].read_text().splitlines()
    assert len(links) == len(pairs) == 200
    source, target = pairs[0].split("\t")
    for link in links[0].split():
        first, second = map(int, link.replace("p", "-").split("-"))
        assert first <= len(source.split()) + source.count(".")
        assert second < len(target)


def test_c5_new_replaces_nothing_unasked(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("mine")
    with pytest.raises(UserError, match="Choose another folder, or use --force"):
        new_translation(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.tsv"]
    new_translation(tmp_path, overwrite=True)
    assert (tmp_path / "dev.tsv").read_text() != "mine"


def test_c2_new_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/inside"):
        with pytest.raises(UserError, match="must be a folder; it is a file"):
            new_translation(tmp_path / place)


def test_a_folder_of_any_name_makes_a_config_that_can_be_read(tmp_path: Path) -> None:
    written = new_translation(tmp_path / 'x\n[data]\ntrain = "y"\n')
    assert read_config(written[0], TranslationSettings).data.train == "train.tsv"
