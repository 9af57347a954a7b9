"""Settings within their bounds build; others are one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.config import checked
from regard.errors import ConfigError, MechanismError
from regard.models.settings import RecurrentDecoderSettings, Seq2SeqSettings, build_seq2seq

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"embedding_dim": 0}, "embedding_dim: must be greater than or equal to 1; got 0"),
    ({"embedding_dim": 9000}, "embedding_dim: must be less than or equal to 8192; got 9000"),
    ({"embedding_dim": "64"}, "embedding_dim: must be a valid integer; got '64'"),
    ({"embedding_dim": 1.5}, "embedding_dim: must be a valid integer"),
    ({"embedding_dim": True}, "embedding_dim: must be a valid integer; got True"),
    ({"dropout": 1.0}, "dropout: must be less than 1; got 1.0"),
    ({"dropout": -0.1}, "dropout: must be greater than or equal to 0; got -0.1"),
    ({"dropout": float("nan")}, "dropout: must be a finite number; got nan"),
    ({"encoder": {"kind": "gru", "layers": 49}}, "encoder.layers: must be less than or equal"),
    (
        {"encoder": {"kind": "gruu"}},
        "encoder.kind: must be one of embedding, convolution, rnn, gru",
    ),
    ({"encoder": {"kind": "convolution", "width": 4}}, "encoder: width must be odd; got 4"),
    ({"encoder": {"kind": "embedding", "layers": 2}}, "encoder.layers: must be left out for this"),
    ({"encoder": {"kind": "gru", "heads": 2}}, "encoder.heads: must be a setting; it is none"),
    ({"decoder": {"kind": "lstm", "order": "luon"}}, "decoder.order: must be"),
    (
        {"decoder": {"kind": "lstm", "attention": "aditive"}},
        "decoder.attention: must be the name of a score, or none; got 'aditive': did you mean "
        "'additive'?",
    ),
    (
        {"decoder": {"kind": "gru", "selection": "sofmax"}},
        "decoder.selection: must be the name of a selection; got 'sofmax': did you mean 'softmax'?",
    ),
    (
        {"decoder": {"kind": "transformer", "attention": "none"}},
        "decoder.attention: must be the name of a score; got 'none'",
    ),
    (
        {"decoder": {"kind": "rnn", "order": "none"}},
        "decoder: attention must be none for the order",
    ),
    (
        {"decoder": {"kind": "rnn", "hidden_dim": 10, "num_heads": 4}},
        "decoder: num_heads must divide hidden_dim; got 4 and 10",
    ),
    (
        {"decoder": {"kind": "convolution", "num_heads": 3}},
        "num_heads must divide embedding_dim; got 3 and 256",
    ),
    *(
        (
            {"decoder": {"kind": kind, "bidirectional": True}},
            "decoder: bidirectional must be left out for a decoder, which cannot read what is not "
            "yet written",
        )
        for kind in ("gru", "convolution", "transformer")
    ),
    ({"decoder": {"kind": "gru", "bidirectional": True}}, "set rescoring = true in [model]"),
    ({"decoder": {"kind": "transformer", "num_heads": 3}}, "num_heads must divide embedding_dim"),
    ({"tied": 1}, "tied: must be a valid boolean; got 1"),
    ({"embeding_dim": 8}, "embeding_dim: must be a setting; it is none: did you mean"),
]


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_c3_what_is_out_of_bounds_is_one_line(table: dict[str, Any], message: str) -> None:
    """Rows C3 and K8: refused before a model is built."""
    with pytest.raises(ConfigError) as caught:
        checked(table, Seq2SeqSettings, where="config.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_l5_a_dot_product_of_sizes_that_do_not_fit_is_refused() -> None:
    table = {
        "encoder": {"kind": "gru", "hidden_dim": 3},
        "decoder": {"kind": "gru", "hidden_dim": 5, "attention": "dot"},
    }
    settings = Seq2SeqSettings.model_validate(table)
    with pytest.raises(MechanismError, match="query_dim must equal key_dim for Dot; got 5 and 6"):
        build_seq2seq(settings, source_size=9, target_size=9, padding=0)


def test_the_defaults_build(tokens: Any) -> None:
    model = build_seq2seq(Seq2SeqSettings(), source_size=11, target_size=9, padding=0)
    source = tokens(4, 2)
    assert model(source, source != 0, torch.full((2, 3), 5)).features.shape == (2, 3, 256)


def test_the_embedding_of_padding_is_zero(build: Any) -> None:
    model = build({"kind": "gru", "hidden_dim": 3}, {"kind": "gru", "hidden_dim": 4})
    assert not model.encoder.embedding.weight[0].any()
    assert bool(model.encoder.embedding.weight[1:].any(dim=1).all())


def test_the_same_seed_gives_the_same_model(build: Any) -> None:
    parts = ({"kind": "lstm", "hidden_dim": 3}, {"kind": "gru", "hidden_dim": 4})
    models = []
    for _ in range(2):
        torch.manual_seed(3)
        models.append(build(*parts).state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_heads_and_selection_reach_the_attention(build: Any) -> None:
    encoder = {"kind": "gru", "hidden_dim": 3}
    for decoder, name in (
        ({"kind": "rnn", "hidden_dim": 4, "num_heads": 2}, "MultiHead(HeadScores, Softmax)"),
        ({"kind": "rnn", "hidden_dim": 4, "attention": "bilinear"}, "Attention(Bilinear, Softmax)"),
        ({"kind": "convolution", "num_heads": 5, "attention": "dot"}, "MultiHead(Dot, Softmax)"),
        (
            {"kind": "transformer", "num_heads": 5, "attention": "additive"},
            "MultiHead(HeadScores, Softmax)",
        ),
    ):
        model = build(encoder, decoder)
        assert {attention.name for attention in model.decoder.attentions()} == {name}


def test_an_old_config_builds_the_same_parameters(build: Any) -> None:
    """Names of parameters are a file format: the bundled model has these."""
    model = build({"kind": "gru", "hidden_dim": 3}, {"kind": "gru", "hidden_dim": 4})
    names = [name for name, _ in model.named_parameters() if not name.startswith("encoder.cells")]
    assert names == [
        "bias",
        "encoder.embedding.weight",
        "decoder.embedding.weight",
        "decoder.reader.attention.score.vector",
        "decoder.reader.attention.score.query_projection.weight",
        "decoder.reader.attention.score.key_projection.weight",
        "decoder.reader.attention.score.key_projection.bias",
        "decoder.core.cells.weight_ih_l0",
        "decoder.core.cells.weight_hh_l0",
        "decoder.core.cells.bias_ih_l0",
        "decoder.core.cells.bias_hh_l0",
        "decoder.bridge.projection.weight",
        "decoder.bridge.projection.bias",
        "decoder.readout.weight",
        "decoder.readout.bias",
    ]


@pytest.mark.parametrize("change", [{"num_heads": 2}, {"selection": "monotonic"}])
def test_what_looks_at_nothing_has_no_heads_and_no_selection(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be left out where attention is none"):
        RecurrentDecoderSettings.model_validate({"attention": "none", **change})
