"""A translator takes any text a person may type, and shows where it looked."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.tokens import Tokenizer
from regard.errors import FileFormatError, UserError
from regard.models.settings import Seq2SeqSettings, build_seq2seq
from regard.pictures.records import Record
from regard.tasks import load
from regard.tasks.settings import DecodingSettings
from regard.tasks.translation import Translation, Translator
from regard.tasks.translation_settings import ModelSettings


@pytest.fixture(scope="module")
def translator(reversal_run: Any) -> Translator:
    found = load(reversal_run.run, device="cpu")
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def untrained() -> Any:
    """Make a translator that has learnt nothing, with a decoder of any kind."""

    def make(decoder: dict[str, Any], **own: Any) -> Translator:
        torch.manual_seed(1)
        source = Tokenizer.train(["café crème, 猫 a b", "naïve"], kind="words")
        target = Tokenizer.train(["猫追狗 ab"], kind="characters")
        encoder = {"kind": "gru", "hidden_dim": 6}
        table = {"embedding_dim": 8, "encoder": encoder, "decoder": decoder}
        sizes = Seq2SeqSettings.model_validate(table)
        model = build_seq2seq(sizes, source_size=source.size, target_size=target.size, padding=0)
        settings = ModelSettings(
            task="translation",
            source_language="fr",
            target_language=None,
            max_tokens=own.pop("max_tokens", 40),
            model=sizes,
            decoding=DecodingSettings(maximum_length=6, **own),
        )
        return Translator(model, source, target, settings, name="untrained")

    return make


def test_it_has_learnt_and_looks_at_the_other_diagonal(translator: Translator) -> None:
    """The attention itself is right: the first word came from the last, and so on."""
    result = translator("a b c d e")
    assert result.text == "e d c b a"
    assert result.tokens == ("e", "d", "c", "b", "a")
    weights = result.record.weights("additive")
    assert weights.argmax(axis=1).tolist() == [4, 3, 2, 1, 0]
    assert bool((weights[range(5), [4, 3, 2, 1, 0]] > 0.5).all())
    assert not result.truncated
    assert -1.0 < result.log_prob < 0.0
    assert result.score == pytest.approx(result.log_prob / ((5 + 6) / 6))


def test_a_text_gives_one_and_a_list_gives_a_list(translator: Translator) -> None:
    single, several = translator("a b"), translator(["a b", "c d", "a b"])
    assert isinstance(single, Translation)
    assert [one.text for one in several] == ["b a", "d c", "b a"]
    assert several[0].text == single.text
    np.testing.assert_allclose(
        several[0].record.weights(), single.record.weights(), atol=1e-5, rtol=0
    )
    assert translator([]) == []


@pytest.mark.parametrize("blank", ["", " ", "\t \u3000\n", "\u200b"])
def test_d6_a_blank_text_gives_an_empty_translation(blank: str, translator: Translator) -> None:
    result = translator(["a b", blank, "c"])[1]
    assert (result.source, result.text, result.tokens) == (blank, "", ())
    assert (result.score, result.log_prob, result.alternatives) == (0.0, 0.0, ())
    assert result.record.weights().shape == (0, len(result.record.read.tokens))


@pytest.mark.parametrize("ending", ["json", "svg", "html"])
def test_what_a_blank_text_looked_at_can_be_drawn(
    ending: str, translator: Translator, tmp_path: Path
) -> None:
    translator("").save(tmp_path / f"blank.{ending}")
    assert (tmp_path / f"blank.{ending}").stat().st_size > 0


@pytest.mark.parametrize(
    "text",
    [
        "<eos>",
        "<pad> <bos>",
        "a <eos> b",
        "日本語",
        "👩‍👩‍👧 a",
        "zzz",
        "\ud800",
        "\0",
        "ａ",
        "x" * 9,
    ],
)
def test_d12_any_text_is_read_and_no_typed_mark_becomes_a_control(
    text: str, translator: Translator
) -> None:
    """Rows D10, D11 and D12."""
    result = translator(text)
    ids = translator.source.encode(text).ids
    assert not {Tokenizer.PAD, Tokenizer.BOS, Tokenizer.EOS} & set(ids)
    assert result.source == text
    assert result.record.read.text == text
    assert json.loads(result.record.to_json())["task"] == "translation"


def test_d10_offsets_are_those_of_the_text_as_it_was_typed(untrained: Any) -> None:
    """The tokenizer reads NFC; the text came decomposed, with a word that is not known."""
    decoder = {"kind": "gru", "hidden_dim": 5, "attention_dim": 5}
    text = "cafe\u0301  cre\u0300me, \U0001f468\u200d\U0001f469 nai\u0308ve"
    record = untrained(decoder)(text).record
    assert record.read.text == text
    shown = [text[start:end] for _, start, end in record.read.tokens]
    assert "cafe\u0301" in shown
    assert "cre\u0300me" in shown
    assert shown[-1] == "nai\u0308ve"
    assert "".join(shown).replace(" ", "") == text.replace(" ", "")


def test_d7_a_long_text_is_cut_with_one_warning(translator: Translator) -> None:
    """Rows D7 and L7: read up to 12 tokens, and said so."""
    texts = ["a " * 12, "b " * 13, "c " * 50]
    with pytest.warns(UserWarning, match="12 tokens; 2 of 3 are longer and were cut") as caught:
        whole, cut, long = translator(texts)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (whole.truncated, cut.truncated, long.truncated) == (False, True, True)
    assert len(cut.record.read.tokens) == len(long.record.read.tokens) == 12
    assert long.source == texts[2]


def test_d7_a_text_of_ten_megabytes_is_cut_before_it_is_taken_apart(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    encode = Tokenizer.encode
    monkeypatch.setattr(
        Tokenizer, "encode", lambda self, text: seen.append(len(text)) or encode(self, text)
    )
    with pytest.warns(UserWarning, match="1 of 1 are longer"):
        result = translator("ab" * 5_000_000)
    assert max(seen) <= 10_000
    assert result.truncated


def test_spaces_behind_a_text_are_not_cut_from_it(translator: Translator) -> None:
    assert not translator("a b" + " " * 20_000).truncated


def test_an_output_that_was_made_to_end_is_flagged(untrained: Any) -> None:
    result = untrained({"kind": "gru", "hidden_dim": 5}, minimum_length=6)("a b")
    assert result.truncated
    assert len(result.tokens) == 6


def test_nbest_and_alternatives(translator: Translator) -> None:
    result = translator("a b c", nbest=3)
    every = [result, *result.alternatives]
    assert len(every) == 3
    assert len({one.text for one in every}) == 3
    scores = [one.score for one in every]
    assert scores == sorted(scores, reverse=True)
    assert all(one.alternatives == () for one in result.alternatives)
    assert translator("a b c").alternatives == ()


def test_more_translations_than_the_beam_of_the_model_widen_it(translator: Translator) -> None:
    assert translator.search(None, 8).beam == 8
    assert translator.search(None, 2).beam == 3
    assert len(translator("a b c", nbest=8).alternatives) == 7
    with pytest.raises(UserError, match="nbest must be from 1 to 2; got 3"):
        translator("a", beam=2, nbest=3)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a", {"beam": 0}, "beam must be from 1 to 1000; got 0"),
        ("a", {"beam": 1001}, "beam must be from 1 to 1000; got 1001"),
        ("a", {"nbest": 0}, "nbest must be from 1 to 3; got 0"),
        ("a", {"batch_size": 0}, "batch_size must be at least 1; got 0"),
        (["a", None], {}, "text must be a string, or a list of strings; got NoneType"),
        (b"a b", {}, "text must be a string, or a list of strings; got int"),
    ],
)
def test_s10_what_is_out_of_range_is_refused(
    text: Any, settings: dict[str, int], message: str, translator: Translator
) -> None:
    with pytest.raises(UserError, match=message):
        translator(text, **settings)


@pytest.mark.parametrize("beam", [1, 3])
def test_how_many_at_once_does_not_matter(beam: int, translator: Translator) -> None:
    texts = ["a b c", "", "d", "e f a b c d", "b b", "zz"]
    one, many = (translator(texts, beam=beam, batch_size=size) for size in (1, 64))
    assert [r.text for r in one] == [r.text for r in many]
    for ours, theirs in zip(one, many, strict=True):
        np.testing.assert_allclose(ours.record.weights(), theirs.record.weights(), atol=1e-4)


def test_the_weights_shown_are_those_of_the_given_translation(translator: Translator) -> None:
    """To align what the model wrote gives what it said itself."""
    results = translator(["a b c", "d e"])
    aligned = translator.align([r.source for r in results], [r.text for r in results])
    for result, again in zip(results, aligned, strict=True):
        assert again.tokens == result.tokens
        assert again.log_prob == pytest.approx(result.log_prob, abs=1e-4)
        assert again.score == pytest.approx(result.score, abs=1e-4)
        np.testing.assert_allclose(again.record.weights(), result.record.weights(), atol=1e-4)


def test_a_given_translation_is_shown_as_it_was_given(translator: Translator) -> None:
    right, wrong = translator.align(["a b", "a b"], ["b  a", "<eos> \u00e9"])
    assert right.text == "b  a"
    assert [right.text[s:e] for _, s, e in right.record.written.tokens] == ["b", "a"]
    assert wrong.record.written.text == "<eos> \u00e9"
    assert wrong.log_prob < right.log_prob
    assert math.isfinite(wrong.log_prob)


def test_blank_sides_can_be_aligned(translator: Translator) -> None:
    nothing, empty, both = translator.align(["", "a b", ""], ["a b", "", " "])
    assert nothing.tokens == ("a", "b")
    assert nothing.record.weights().shape == (2, 0)
    assert empty.tokens == ()
    assert empty.log_prob < 0
    assert both.record.weights().shape == (0, 0)


@pytest.mark.parametrize(("sources", "targets"), [(["a"], []), ("ab", "ba"), (["a"], "a")])
def test_align_needs_equally_many(sources: Any, targets: Any, translator: Translator) -> None:
    with pytest.raises(UserError, match="sources and targets must be lists of one length"):
        translator.align(sources, targets)


@pytest.mark.parametrize("ending", ["json", "svg", "html"])
def test_a_result_is_saved_by_its_ending(
    ending: str, translator: Translator, tmp_path: Path
) -> None:
    result = translator("a b c")
    path = tmp_path / f"alignment.{ending}"
    result.save(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith({"json": "{", "svg": "<svg", "html": "<!doctype html>"}[ending])
    with pytest.raises(UserError, match="exists already"):
        result.save(path, overwrite=False)
    if ending == "json":
        np.testing.assert_allclose(Record.load(path).weights(), result.record.weights(), rtol=1e-5)


def test_another_ending_is_refused(translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"path must end in \.json, \.svg, \.html"):
        translator("a").save(tmp_path / "a.gif")


def test_it_shows_itself_in_a_notebook(translator: Translator) -> None:
    assert "<iframe" in translator("a b")._repr_html_()


def test_l11_a_model_without_attention_translates_but_shows_nothing(
    untrained: Any, tmp_path: Path
) -> None:
    """Never zeros in place of weights that there are not."""
    translator = untrained({"kind": "gru", "hidden_dim": 5, "attention": "none"})
    for result in (*translator(["a b", ""]), *translator.align(["a"], ["b"])):
        assert result.looked is None
        assert result._repr_html_() == result.text
        for refused in (lambda r=result: r.record, lambda r=result: r.save(tmp_path / "a.svg")):
            with pytest.raises(
                UserError, match='model with attention; got one of attention "none"'
            ):
                refused()


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        ({"kind": "gru", "hidden_dim": 6, "num_heads": 2}, ["head 1", "head 2"]),
        ({"kind": "rnn", "hidden_dim": 6, "attention": "coverage"}, ["coverage"]),
        ({"kind": "convolution", "hidden_dim": 6, "layers": 2}, ["layer 1", "layer 2"]),
        (
            {"kind": "convolution", "hidden_dim": 6, "layers": 1, "num_heads": 2},
            ["layer 1, head 1", "layer 1, head 2"],
        ),
    ],
)
def test_maps_are_named_after_what_looked(
    untrained: Any, decoder: dict[str, Any], expected: list[str]
) -> None:
    for text in ("a b", ""):
        assert [one.name for one in untrained(decoder)(text).record.maps] == expected


def test_a_map_for_each_layer_and_head(untrained: Any) -> None:
    decoder = {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 5}
    for text in ("a b", ""):
        record = untrained(decoder)(text).record
        names = [one.name for one in record.maps]
        expected = [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2)]
        assert names == expected


def test_the_record_says_what_made_it(translator: Translator) -> None:
    record = translator("a b").record
    assert record.task == "translation"
    assert record.read.language == record.written.language == "en"
    assert record.details["model"] == "run"
    assert record.details["score"] == translator("a b").score


def test_no_warning_without_a_reason(translator: Translator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator(["a b", ""])


def test_k8_a_model_whose_settings_ask_for_too_much_is_refused(
    reversal_run: Any, tmp_path: Path
) -> None:
    """Within the bounds, but a terabyte: nothing is allocated."""
    from regard.tasks.base import Opened, open_model
    from regard.tasks.translation import load_translator

    opened = open_model(reversal_run.run)
    decoder = {"kind": "lstm", "hidden_dim": 8192, "layers": 48}
    config = {**opened.config, "model": {**opened.config["model"], "decoder": decoder}}
    with pytest.raises(FileFormatError, match="must hold the weights of this model"):
        load_translator(Opened("big", opened.folder, config), torch.device("cpu"))
