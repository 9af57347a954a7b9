from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.config import read_config
from regard.data.tokens import Tokenizer
from regard.errors import ConfigError, DataError
from regard.tasks.translation_job import TranslationJob, collate, encode_pairs, read_pairs
from regard.tasks.translation_settings import DataSettings, TranslationSettings
from regard.tasks.translation_training import build_job


@pytest.fixture
def job(reversal_run: Any) -> Any:
    """Make the job of the session's config, with some settings changed."""

    def make(*changes: str, root: Path | None = None) -> TranslationJob:
        settings = read_config(reversal_run.config, TranslationSettings, changes=changes)
        return build_job(settings, root=root or reversal_run.folder)

    return make


def test_a_batch_reads_from_the_start_mark_and_foretells_the_end_mark() -> None:
    batch = collate([(7, [5, 6], [8]), (3, [5], [9, 10])])
    assert batch.source.tolist() == [[5, 6], [5, 0]]
    assert batch.inputs.tolist() == [[1, 8, 0], [1, 9, 10]]
    assert batch.outputs.tolist() == [[8, 2, 0], [9, 10, 2]]
    assert batch.examples == [7, 3]


def test_batches_are_those_of_the_plan(job: Any) -> None:
    made = job()
    batches = list(made.batches(0, 0))
    assert len(batches) == made.steps(0)
    assert sorted(i for batch in batches for i in batch.examples) == list(range(300))
    assert all(batch.outputs.shape[1] * len(batch.examples) <= 100 for batch in batches)
    rest = list(made.batches(0, 4))
    assert [batch.examples for batch in rest] == [batch.examples for batch in batches[4:]]
    assert [b.examples for b in made.batches(1, 0)] != [b.examples for b in batches]


def test_the_loss_is_a_sum_over_tokens_and_halves_add_up(job: Any) -> None:
    made = job()
    made.model.eval()
    batch = next(made.batches(0, 0))
    whole = made.loss(batch).total
    halves = made.split(batch)
    assert made.size(batch) == sum(map(made.size, halves))
    torch.testing.assert_close(sum(made.loss(half).total for half in halves), whole)
    assert whole.item() == pytest.approx(
        made.size(batch) * math.log(made.translator.target.size), rel=0.1
    )
    single = collate([made.data[0]])
    assert made.split(single) is None


def test_a_batch_says_which_lines_it_holds(job: Any, reversal_run: Any) -> None:
    made = job()
    text = made.describe(collate([made.data[i] for i in range(7)]))
    assert text.startswith("7 pairs of at most ")
    assert f"{reversal_run.folder / 'train.tsv'}:1, " in text
    assert text.endswith(" and 2 more")


def test_evaluation_says_loss_perplexity_bleu_and_chrf(job: Any) -> None:
    polled: list[int] = []
    made = job('metric="bleu"')
    made.model.eval()
    metrics = made.evaluate(lambda: polled.append(1))
    assert set(metrics) == {"loss", "perplexity", "bleu", "chrf"}
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    assert len(polled) == 2
    assert made.higher_is_better
    loss_only = job()
    loss_only.model.eval()
    assert set(loss_only.evaluate(lambda: None)) == {"loss", "perplexity"}
    assert not loss_only.higher_is_better


def test_the_loss_of_evaluation_is_the_mean_over_all_tokens(job: Any) -> None:
    made = job()
    made.model.eval()
    total = count = 0.0
    for source, target in zip(made.dev_encoded.sources, made.dev_encoded.targets, strict=True):
        batch = collate([(0, source, target)])
        total, count = total + made._loss(batch, 0.0).item(), count + made.size(batch)
    assert made.evaluate(lambda: None)["loss"] == pytest.approx(total / count, rel=1e-5)


def test_what_changes_the_result_is_in_the_identity(job: Any) -> None:
    ours = job().identity
    assert job("training.workers=2", "training.keep=5").identity == ours
    for change in ("training.seed=2", "training.learning_rate=0.1", 'tokens.source.kind="bpe"'):
        assert job(change).identity != ours, change
    assert ours["torch"] == torch.__version__.partition("+")[0]


def test_d7_long_pairs_are_left_out_and_short_ones_must_remain(job: Any) -> None:
    made = job("data.max_tokens=4")
    assert 0 < len(made.data) < 300
    assert max(map(len, made.data.encoded.sources)) == 4
    assert max(map(len, made.dev_encoded.sources)) <= 4
    kept = made.data.encoded.indices
    for place in (0, len(kept) - 1):
        assert made.data.where(place).endswith(f"train.tsv:{kept[place] + 1}")
    with pytest.raises(DataError, match=r"at most 1 tokens; none has\. Raise data\.max_tokens"):
        job("data.max_tokens=1")


def test_t11_a_development_set_of_long_pairs_alone_is_refused(
    job: Any, reversal_run: Any, tmp_path: Path
) -> None:
    """A mean over nothing would be the best loss of all."""
    (tmp_path / "train.tsv").write_text((reversal_run.folder / "train.tsv").read_text())
    (tmp_path / "dev.tsv").write_text("a " * 20 + "\t" + "a " * 20 + "\n")
    with pytest.raises(DataError, match="none has") as caught:
        job(root=tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "dev.tsv"))


@pytest.mark.parametrize("names", [[], ["a", "b", "c"]])
def test_neither_one_nor_two_files_are_refused(names: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"two parallel files; got {len(names)}"):
        read_pairs(names, DataSettings(train="", dev=""), root=tmp_path)


def test_d1_d3_the_same_pairs_have_the_same_hash(tmp_path: Path) -> None:
    """Rows D1 and D3: a byte order mark and other line ends change nothing."""
    (tmp_path / "a.tsv").write_bytes(b"a b\tc\nd\te\n")
    (tmp_path / "b.tsv").write_bytes(b"\xef\xbb\xbfa b\tc\r\nd\te\r\n")
    (tmp_path / "x").write_bytes(b"a b\nd\n")
    (tmp_path / "y").write_bytes(b"c\ne")
    own = DataSettings(train="", dev="")
    found = [read_pairs(f, own, root=tmp_path) for f in ("a.tsv", ["b.tsv"], ["x", "y"])]
    assert len({pairs.sha256 for pairs in found}) == 1


def test_a_limit_counts_the_longer_side(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\ta a a\na a\ta\n")
    pairs = read_pairs("a.tsv", DataSettings(train="", dev=""), root=tmp_path)
    tokenizer = Tokenizer.train(["a a"], kind="words")
    both: Any = SimpleNamespace(source=tokenizer, target=tokenizer)
    assert encode_pairs(pairs, both, limit=2).indices == [1]
    assert encode_pairs(pairs, both, limit=None).indices == [0, 1]


def test_what_is_written_beside_the_weights(job: Any, tmp_path: Path) -> None:
    made = job()
    made.write(tmp_path)
    names = ["card.md", "config.json", "tokenizer.source.json", "tokenizer.target.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    card = (tmp_path / "card.md").read_text()
    assert "on 300 sentence pairs" in card
    assert made.identity["data"]["train"] in card


def test_runs_begun_before_a_setting_was_there_go_on(job: Any) -> None:
    """What is at its default is not in the identity; what is not, is."""
    plain = job().identity
    assert set(plain["decoding"]) == {
        "beam",
        "length_penalty",
        "minimum_length",
        "maximum_length",
    }
    assert not {"rescoring", "reinforce"} & set(plain["model"])
    assert not {"selection", "num_heads", "attentional"} & set(plain["model"]["decoder"])
    sparse = job("model.decoder.selection=entmax", "model.reinforce.decay=0.5").identity["model"]
    assert sparse["decoder"]["selection"] == "entmax"
    assert sparse["reinforce"]["decay"] == 0.5
    changed = job("decoding.block_ngrams=2", "decoding.coverage_penalty=0.1").identity["decoding"]
    assert (changed["block_ngrams"], changed["coverage_penalty"]) == (2, 0.1)
    assert job("model.rescoring=true").identity["model"]["rescoring"] is True


def test_a_pair_of_decoders_foretells_every_token_twice(job: Any) -> None:
    made, single = job("model.rescoring=true"), job()
    batch = next(made.batches(0, 0))
    assert made.size(batch) == 2 * single.size(batch)
    made.model.eval()
    loss = made.loss(batch).total.item() / made.size(batch)
    assert loss == pytest.approx(math.log(made.translator.target.size), rel=0.1)
    metrics = made.evaluate(lambda: None)
    assert metrics["perplexity"] == pytest.approx(made.translator.target.size, rel=0.1)


def test_evaluation_searches_greedily_where_translations_are_drawn(job: Any) -> None:
    plain = job('metric="bleu"')
    drawn = job('metric="bleu"', "decoding.sample=true", "decoding.groups=3")
    drawn.model.load_state_dict(plain.model.state_dict())
    for made in (plain, drawn):
        made.model.eval()
    assert drawn.evaluate(lambda: None) == plain.evaluate(lambda: None)


def test_decoding_that_does_not_fit_the_model_continued_from(
    job: Any, reversal_run: Any, tmp_path: Path
) -> None:
    """`init` brings its own model, which is not the config's."""
    from regard.tasks.translation_training import train_translation
    from regard.training import RunOptions

    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_bytes((reversal_run.folder / f"{name}.tsv").read_bytes())
    text = reversal_run.config.read_text()
    (tmp_path / "config.toml").write_text(text)
    changes = ["training.epochs=1", "model.decoder.attention=none"]
    options = RunOptions(tmp_path / "run", quiet=True)
    train_translation(tmp_path / "config.toml", changes, options)
    again = text.replace("[model]", "[unused]").partition("[unused]")
    kept = again[0] + "[training]" + text.partition("[training]")[2]
    (tmp_path / "again.toml").write_text('init = "run"\n' + kept)
    settings = read_config(
        tmp_path / "again.toml", TranslationSettings, changes=["decoding.coverage_penalty=0.5"]
    )
    with pytest.raises(ConfigError, match="coverage_penalty must be 0 for a decoder"):
        build_job(settings, root=tmp_path)
