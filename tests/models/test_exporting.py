"""The graphs of a model say what the model says, step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.errors import MechanismError
from regard.models.exporting import PrefixGraph, StepGraph, graphs
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import Seq2SeqSettings, build_seq2seq

DECODERS: dict[str, dict[str, Any]] = {
    "bahdanau": {"kind": "gru", "hidden_dim": 6, "order": "bahdanau"},
    "luong": {"kind": "lstm", "hidden_dim": 6, "layers": 2, "order": "luong"},
    "input_feeding": {"kind": "rnn", "hidden_dim": 6, "order": "input_feeding"},
    "fixed vector": {"kind": "gru", "hidden_dim": 6, "order": "none", "attention": "none"},
    "transformer": {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 12},
    "convolution": {"kind": "convolution", "hidden_dim": 6, "layers": 2},
}


def made(decoder: dict[str, Any]) -> Seq2Seq:
    torch.manual_seed(0)
    table = {
        "embedding_dim": 8,
        "encoder": {"kind": "gru", "hidden_dim": 5},
        "decoder": decoder,
    }
    settings = Seq2SeqSettings.model_validate(table)
    return build_seq2seq(settings, source_size=11, target_size=9, padding=0).eval()


@pytest.mark.parametrize("name", DECODERS)
@torch.no_grad()
def test_a_loop_over_the_graphs_is_the_models_own(name: str) -> None:
    model = made(DECODERS[name])
    sample = torch.full((2, 7), 4), torch.arange(7) < torch.tensor([[7], [4]])
    encoder, step = graphs(model, *sample)
    source = torch.randint(4, 11, (3, 5))
    mask = torch.arange(5) < torch.tensor([[5], [2], [1]])
    tensors, state = encoder(source, mask), model.begin(source, mask)
    tokens = torch.tensor([[1, 4, 5], [1, 6, 4], [1, 8, 7]])
    for place in range(3):
        expected = model.step(tokens[:, place : place + 1], state)
        state = expected.state
        if isinstance(step, PrefixGraph):
            log_probs, weights = step(tokens[:, : place + 1], mask, *tensors)
        else:
            log_probs, weights, *after = step(tokens[:, place], mask, *tensors)
            kept = dict(zip(step.layout.changing, after, strict=True))
            given = zip(step.layout.names, tensors, strict=True)
            tensors = tuple(kept.get(name, old) for name, old in given)
        assert torch.allclose(log_probs, expected.log_probs.squeeze(1), atol=1e-5)
        assert torch.allclose(weights, expected.weights.squeeze(2), atol=1e-5)
    assert isinstance(step, PrefixGraph) == (name in ("transformer", "convolution"))


def test_what_a_step_is_given_has_names() -> None:
    encoder, step = graphs(made(DECODERS["bahdanau"]), *sample_of())
    assert isinstance(step, StepGraph)
    assert encoder.names == step.layout.names
    assert "memory_0_key" in encoder.names
    assert not any(name.startswith("memory") for name in step.layout.changing)
    assert not any("mask" in name for name in encoder.names)


def sample_of() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full((2, 7), 4), torch.arange(7) < torch.tensor([[7], [4]])


@pytest.mark.parametrize(
    "look",
    [{"attention": "coverage"}, {"selection": "sampled"}, {"attention": "location_sensitive"}],
)
def test_what_depends_on_steps_or_draws_is_refused(look: dict[str, str]) -> None:
    model = made({"kind": "gru", "hidden_dim": 6, "order": "bahdanau", **look})
    with pytest.raises(MechanismError, match="to be exported"):
        graphs(model, *sample_of())
