"""Every encoder with every decoder: trained, stepped, searched, padded, saved.

The sizes are uneven on purpose, so that two that were mixed up would not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.attention import SCORES, SELECTIONS
from regard.errors import MechanismError
from regard.models.decoders import Decoded
from regard.models.decoding import Hypothesis, Search, Symbols, beam_search, forced, greedy_search
from regard.models.mechanisms import build_mechanism
from regard.models.seq2seq import Seq2Seq, token_loss
from regard.models.settings import Seq2SeqSettings, build_seq2seq
from regard.saving import load_tensors, save_tensors

SOURCES, TARGETS = 11, 9
SYMBOLS = Symbols(bos=1, eos=2, banned=(0, 1))

ENCODERS: dict[str, dict[str, Any]] = {
    "embedding": {"kind": "embedding"},
    "convolution": {"kind": "convolution", "hidden_dim": 6, "layers": 2, "width": 3},
    "transformer": {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 6},
}
for _cell, _layers in (("rnn", 1), ("gru", 2), ("lstm", 1)):
    for _both in (False, True):
        ENCODERS[f"{'bi' if _both else ''}{_cell}"] = {
            "kind": _cell,
            "hidden_dim": 6,
            "layers": _layers + _both if _cell == "lstm" else _layers,
            "bidirectional": _both,
        }

# Order and look: None is the constant context, "none" the order that never looks.
_LOOKS: dict[str, dict[str, Any]] = {
    "bahdanau": {"order": "bahdanau", "attention": "additive", "attention_dim": 7},
    "luong": {"order": "luong", "attention": "bilinear"},
    "input_feeding": {"order": "input_feeding", "num_heads": 2, "attention": "scaled_dot"},
    "constant": {"order": "bahdanau", "attention": "none"},
    "none": {"order": "none", "attention": "none"},
}
DECODERS: dict[str, dict[str, Any]] = {
    f"{cell} {look}": {
        "kind": cell,
        "hidden_dim": 10,
        "layers": 2 if cell == "lstm" else 1,
        "attentional": cell != "gru",
        **own,
    }
    for cell in ("rnn", "gru", "lstm")
    for look, own in _LOOKS.items()
}
DECODERS["convolution"] = {"kind": "convolution", "hidden_dim": 10, "layers": 2, "width": 3}
DECODERS["transformer"] = {"kind": "transformer", "num_heads": 4, "layers": 2, "hidden_dim": 10}

MAPS = {"convolution": 2, "transformer": 8}
MAPS |= {name: 0 for name in DECODERS if name.endswith((" constant", " none"))}
MAPS |= {name: 2 for name in DECODERS if name.endswith(" input_feeding")}
# A bias that adds the same to the score of every key changes no softmax of dot products.
WITHOUT_EFFECT = ("attention.key_projection.bias",)

every_pair = pytest.mark.parametrize("decoder", DECODERS)
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def pair(encoder: str, decoder: str, **changes: Any) -> Seq2Seq:
    parts = {"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder]}
    table = {"embedding_dim": 8, "dropout": 0.0, **parts, **changes}
    settings = Seq2SeqSettings.model_validate(table)
    model = build_seq2seq(settings, source_size=SOURCES, target_size=TARGETS, padding=0)
    return model.eval()


@every_encoder
@every_pair
def test_a_gradient_reaches_every_parameter(encoder: str, decoder: str, tokens: Any) -> None:
    model = pair(encoder, decoder, dropout=0.1).train()
    source, target = tokens(5, 3, 0), tokens(4, 2, 3, size=TARGETS)
    decoded = model(source, source != 0, target)
    maps = MAPS.get(decoder, 1)
    assert decoded.features.shape == (3, 4, 8)
    assert decoded.weights.shape == (3, maps, 4, 5 if maps else 0)
    token_loss(model, decoded.features, target.roll(-1, dims=1), padding=0).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name
        assert bool(parameter.grad.any()) or name.endswith(WITHOUT_EFFECT), name


@every_encoder
@every_pair
def test_step_by_step_as_at_once(encoder: str, decoder: str, tokens: Any) -> None:
    model = pair(encoder, decoder)
    source, target = tokens(5, 3, 0), tokens(6, 6, 6, size=TARGETS)
    whole = model(source, source != 0, target)
    state, steps = model.begin(source, source != 0), []
    for token in target.unbind(1):
        decoded, state = model.decoder.step(token.unsqueeze(1), state)
        steps.append(decoded)
    stepped = Decoded.joined(steps)
    torch.testing.assert_close(stepped.features, whole.features, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(stepped.weights, whole.weights, atol=1e-6, rtol=1e-5)
    assert whole.log_prob is stepped.log_prob is None


@every_encoder
@every_pair
def test_padding_a_batch_changes_nothing(encoder: str, decoder: str, tokens: Any) -> None:
    model = pair(encoder, decoder)
    source, target = tokens(3, 7, 1, 0), tokens(4, 4, 4, 4, size=TARGETS)
    together = model(source, source != 0, target)
    for row, length in enumerate((3, 7, 1, 0)):
        own = source[row : row + 1, :length]
        alone = model(own, own != 0, target[row : row + 1])
        torch.testing.assert_close(
            together.features[row : row + 1], alone.features, atol=1e-5, rtol=1e-5
        )
        weights = together.weights[row : row + 1]
        if MAPS.get(decoder, 1):
            torch.testing.assert_close(weights[..., :length], alone.weights, atol=1e-5, rtol=1e-5)
            assert not weights[..., length:].any()


@every_encoder
@every_pair
def test_searches_find_what_forced_decoding_says(encoder: str, decoder: str, tokens: Any) -> None:
    model = pair(encoder, decoder)
    nn.init.normal_(model.bias)  # so that outputs end at different lengths
    source = tokens(5, 3, 1)
    state = model.begin(source, source != 0)
    search = Search(beam=3, nbest=3, maximum_length=4)
    best = beam_search(model, state, 3, SYMBOLS, search)
    greedy = greedy_search(model, state, 3, SYMBOLS, search)
    for row in range(3):
        own = source[row : row + 1]
        assert [found.score for found in best[row]] == sorted(
            (found.score for found in best[row]), reverse=True
        )
        for found in (*best[row], greedy[row]):
            _as_forced(model, own, found)


def _as_forced(model: Seq2Seq, source: torch.Tensor, found: Hypothesis) -> None:
    written = torch.tensor([[*found.tokens, SYMBOLS.eos]])
    log_probs, weights = forced(model, model.begin(source, source != 0), written, SYMBOLS)
    torch.testing.assert_close(log_probs.sum().item(), found.log_prob, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(weights[0], found.weights, atol=1e-5, rtol=1e-4)


@every_encoder
@every_pair
def test_saved_and_loaded_it_says_the_same(
    encoder: str, decoder: str, tokens: Any, tmp_path: Path
) -> None:
    model, other = pair(encoder, decoder, tied=False), pair(encoder, decoder, tied=False)
    source, target = tokens(5, 3, 0), tokens(4, 4, 4, size=TARGETS)
    save_tensors(tmp_path / "model.safetensors", model.state_dict())
    before = other.logits(other(source, source != 0, target).features)
    other.load_state_dict(load_tensors(tmp_path / "model.safetensors"))
    ours, theirs = (m(source, source != 0, target) for m in (model, other))
    assert torch.equal(model.logits(ours.features), other.logits(theirs.features))
    assert torch.equal(ours.weights, theirs.weights)
    assert not torch.equal(model.logits(ours.features), before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@every_encoder
@pytest.mark.parametrize("decoder", ["rnn none", "gru bahdanau", "convolution", "transformer"])
def test_precision_is_kept(encoder: str, decoder: str, dtype: torch.dtype, tokens: Any) -> None:
    model = pair(encoder, decoder).to(dtype)
    source, target = tokens(5, 3, 0), tokens(4, 4, 4, size=TARGETS)
    decoded = model(source, source != 0, target)
    assert decoded.features.dtype == dtype
    assert bool(torch.isfinite(decoded.features).all())
    step = model.step(target[:, :1], model.begin(source, source != 0))
    assert bool(torch.isfinite(step.log_probs).all())


LOOKING = {
    "recurrent": {"kind": "gru", "hidden_dim": 8, "attention_dim": 7},
    "heads": {"kind": "lstm", "hidden_dim": 8, "attention_dim": 7, "num_heads": 2},
    "convolution": {"kind": "convolution", "hidden_dim": 6, "layers": 2, "attention_dim": 7},
    "transformer": {"kind": "transformer", "num_heads": 2, "layers": 2, "hidden_dim": 6},
}


def fits(decoder: str, score: str, selection: str) -> bool:
    """Tell whether two parts go together, and into this decoder, by what they state."""
    sizes = {"query_dim": 8, "key_dim": 8, "hidden_dim": 7}
    own = build_mechanism(score, "softmax", **sizes).score
    chosen = build_mechanism("dot", selection, **sizes).selection
    traits = own.traits.joined(chosen.traits)
    if traits.positional_queries or (own.constant and chosen.needs_preference):
        return False
    return decoder in ("recurrent", "heads") or not traits.stateful


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("decoder", LOOKING)
def test_every_look_in_every_decoder(decoder: str, selection: str, score: str, tokens: Any) -> None:
    look = {"attention": score, "selection": selection}
    table = {
        "embedding_dim": 8,
        "dropout": 0.0,
        "encoder": {"kind": "gru", "hidden_dim": 4},
        "decoder": {**LOOKING[decoder], **look},
    }
    settings = Seq2SeqSettings.model_validate(table)
    if not fits(decoder, score, selection):
        with pytest.raises(MechanismError):
            build_seq2seq(settings, source_size=SOURCES, target_size=TARGETS, padding=0)
        return
    model = build_seq2seq(settings, source_size=SOURCES, target_size=TARGETS, padding=0).eval()
    source, target = tokens(5, 3, 0), tokens(4, 4, 4, size=TARGETS)
    whole = model(source, source != 0, target)
    state, steps = model.begin(source, source != 0), []
    for place, token in enumerate(target.unbind(1)):
        decoded, state = model.decoder.step(token.unsqueeze(1), state)
        steps.append(decoded)
        if place == 1:  # sentences dropped and kept, hypotheses moved about
            state = state.keep(torch.arange(3), 1).select(torch.zeros(3, 1, dtype=torch.long))
    stepped = Decoded.joined(steps)
    torch.testing.assert_close(stepped.features, whole.features, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(stepped.weights, whole.weights, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(stepped.distribution, whole.distribution, atol=1e-5, rtol=1e-4)
    assert not whole.weights.masked_select((source == 0)[:, None, None]).any()
