"""Any encoder with any decoder: step by step as at once, padded as not padded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.attention import (
    Additive,
    Attention,
    MultiHead,
    Sampled,
)
from regard.errors import MechanismError
from regard.models.decoders import DecoderState, RecurrentDecoder
from regard.models.encoders import Encoded
from regard.models.seq2seq import Seq2Seq

ENCODERS: dict[str, dict[str, Any]] = {
    f"{cell} {layers} {'both' if both else 'one'}": {
        "kind": cell,
        "hidden_dim": 3,
        "layers": layers,
        "bidirectional": both,
    }
    for cell in ("gru", "lstm")
    for layers in (1, 2)
    for both in (True, False)
}
ENCODERS["rnn 1 both"] = {**ENCODERS["gru 1 both"], "kind": "rnn"}
ENCODERS["embedding"] = {"kind": "embedding"}
ENCODERS["convolution"] = {"kind": "convolution", "hidden_dim": 3, "layers": 2, "width": 3}
ENCODERS["transformer"] = {"kind": "transformer", "num_heads": 5, "layers": 2, "hidden_dim": 7}

LOOKS = ("additive", "dot", "scaled_dot", "bilinear", "uniform", "none")
DECODERS: dict[str, dict[str, Any]] = {
    f"{cell} {layers} {order} {look}": {
        "kind": cell,
        "hidden_dim": 4,
        "layers": layers,
        "order": order,
        "attention": look,
        "attention_dim": 3,
    }
    for cell, layers in (("rnn", 2), ("gru", 1), ("gru", 2), ("lstm", 1), ("lstm", 2))
    for order in RecurrentDecoder.ORDERS
    for look in (LOOKS if order != "none" else ("none",))
}
DECODERS["gru 1 luong 2 heads"] = {**DECODERS["gru 1 luong additive"], "num_heads": 2}
DECODERS["lstm 1 luong linear"] = {**DECODERS["lstm 1 luong dot"], "attentional": False}
DECODERS |= {
    f"convolution {width} {look}": {
        "kind": "convolution",
        "hidden_dim": 4,
        "layers": 2,
        "width": width,
        "attention": look,
        "attention_dim": 3,
    }
    for width, look in ((1, "bilinear"), (2, "additive"), (3, "bilinear"), (3, "none"))
}
DECODERS["transformer additive"] = {
    "kind": "transformer",
    "num_heads": 1,
    "layers": 2,
    "hidden_dim": 3,
    "attention": "additive",
}
DECODERS["transformer"] = {"kind": "transformer", "num_heads": 1, "layers": 2, "hidden_dim": 3}

# One of each sort, for what need not be tried with all of them.
SOME = [
    ("gru 1 both", "gru 1 bahdanau additive"),
    ("lstm 2 both", "lstm 2 luong bilinear"),
    ("gru 2 one", "gru 2 input_feeding additive"),
    ("lstm 1 one", "lstm 1 luong none"),
    ("gru 1 one", "gru 1 luong uniform"),
    ("transformer", "transformer"),
    ("transformer", "lstm 1 bahdanau dot"),
    ("lstm 1 both", "transformer"),
    ("convolution", "convolution 3 bilinear"),
    ("embedding", "convolution 2 additive"),
    ("rnn 1 both", "convolution 3 none"),
    ("convolution", "rnn 2 bahdanau additive"),
    ("embedding", "lstm 1 none none"),
    ("gru 1 both", "gru 1 luong 2 heads"),
]
# How many maps a decoder draws where it looks; 1 where it is not named here.
MAPS = {"transformer": 2, "transformer additive": 2, "gru 1 luong 2 heads": 2}
MAPS |= {name: 2 for name in DECODERS if name.startswith("convolution")}


def fitting(encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """Give a dot product queries of the size of the items."""
    if "dot" not in decoder.get("attention", ""):
        return decoder
    if encoder["kind"] in ("transformer", "embedding"):
        return {**decoder, "hidden_dim": 5}
    items = 3 * (1 + encoder.get("bidirectional", False))
    return {**decoder, "hidden_dim": items}


@pytest.fixture
def pair(build: Any) -> Any:
    def make(encoder: str, decoder: str, **own: Any) -> Seq2Seq:
        first, second = ENCODERS[encoder], DECODERS[decoder]
        model: Seq2Seq = build(first, fitting(first, second), **own)
        return model.eval()

    return make


def stepped(model: Seq2Seq, source: torch.Tensor, target: torch.Tensor) -> Any:
    """Read a target token by token."""
    state = model.begin(source, source != 0)
    features, weights = [], []
    for token in target.unbind(1):
        decoded, state = model.decoder.step(token.unsqueeze(1), state)
        features.append(decoded.features)
        weights.append(decoded.weights)
    assert state.position == target.shape[1]
    return torch.cat(features, dim=1), torch.cat(weights, dim=2)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_with_every_decoder(encoder: str, pair: Any, tokens: Any) -> None:
    source, target = tokens(4, 1, 0), tokens(3, 3, 3, size=9)
    for place, decoder in enumerate(DECODERS):
        model = pair(encoder, decoder, tied=place % 2 == 0)
        features, weights, *_ = model(source, source != 0, target)
        assert features.shape == (3, 3, 5), decoder
        if decoder.endswith("none"):
            assert weights.shape == (3, 0, 3, 0)
        else:
            assert weights.shape == (3, MAPS.get(decoder, 1), 3, 4), decoder
            expected = torch.tensor([1.0, 1.0, 0.0])  # an empty sentence is not looked at
            sums = weights.sum(dim=-1).amin(dim=(1, 2))
            torch.testing.assert_close(sums, expected, msg=decoder)
            assert not weights.masked_select((source == 0)[:, None, None]).any(), decoder
        model.logits(features).sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or bool(torch.isfinite(parameter.grad).all()), name


@pytest.mark.parametrize("decoder", DECODERS)
def test_step_by_step_is_teacher_forcing(decoder: str, pair: Any, tokens: Any) -> None:
    model = pair("gru 1 both", decoder)
    source, target = tokens(5, 2, 0), tokens(6, 6, 6, size=9)
    whole = model(source, source != 0, target)
    features, weights = stepped(model, source, target)
    torch.testing.assert_close(features, whole.features, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights, whole.weights, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("encoder", "decoder"), SOME)
def test_a_sentence_alone_is_as_in_a_batch_of_64(
    encoder: str, decoder: str, pair: Any, tokens: Any
) -> None:
    model = pair(encoder, decoder)
    source, target = tokens(3, *[i % 9 for i in range(63)]), tokens(*[4] * 64, size=9)
    together = model(source, source != 0, target)
    alone = model(source[:1, :3], source[:1, :3] != 0, target[:1])
    torch.testing.assert_close(together.features[:1], alone.features, atol=1e-5, rtol=1e-5)
    keys = alone.weights.shape[-1]
    torch.testing.assert_close(together.weights[:1, ..., :keys], alone.weights, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("encoder", "decoder"), SOME)
def test_what_stands_in_the_padding_does_not_matter(
    encoder: str, decoder: str, pair: Any, tokens: Any
) -> None:
    model = pair(encoder, decoder)
    source, target = tokens(5, 2, 0), tokens(4, 4, 4, size=9)
    mask = source != 0
    ours = model(source, mask, target)
    theirs = model(torch.where(mask, source, 7), mask, target)
    assert torch.equal(ours.features, theirs.features)
    assert torch.equal(ours.weights, theirs.weights)


@pytest.mark.parametrize(("encoder", "decoder"), SOME)
def test_later_tokens_change_nothing_before_them(
    encoder: str, decoder: str, pair: Any, tokens: Any
) -> None:
    model = pair(encoder, decoder)
    source, target = tokens(5, 2), tokens(4, 4, size=9)
    other = torch.cat([target[:, :2], target[:, 2:] * 0 + 5], dim=1)
    ours, theirs = (model(source, source != 0, t).features[:, :2] for t in (target, other))
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("encoder", "decoder"), SOME)
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_l2_no_sentence_no_item_or_no_token(
    encoder: str, decoder: str, shape: tuple[int, int, int], pair: Any
) -> None:
    batch, keys, length = shape
    model = pair(encoder, decoder)
    source = torch.full((batch, keys), 5)
    features, weights, *_ = model(source, source != 0, torch.full((batch, length), 5))
    assert features.shape == (batch, length, 5)
    if not decoder.endswith("none"):
        assert weights.shape[2:] == (length, keys)
    assert bool(torch.isfinite(features).all())


@pytest.mark.parametrize(("encoder", "decoder"), SOME)
def test_hypotheses_are_reordered_and_sentences_dropped(
    encoder: str, decoder: str, pair: Any, tokens: Any
) -> None:
    """Each hypothesis goes on as if it were alone, wherever it was moved to."""
    model = pair(encoder, decoder)
    source = tokens(5, 3, 1)
    first, second = torch.tensor([[4], [5], [6]]), torch.tensor([[4, 7, 8]] * 3)
    third = torch.tensor([[5, 6], [7, 4], [8, 5]])
    parents = torch.tensor([[2, 0], [1, 1], [0, 2]])
    _, state = model.decoder.step(first, model.begin(source, source != 0))
    state = state.select(torch.zeros(3, 3, dtype=torch.long))  # one hypothesis becomes three
    _, state = model.decoder.step(second, state)
    state = state.select(parents).keep(torch.tensor([2, 0]), 2)
    decoded, _ = model.decoder.step(third[[2, 0]], state)
    for row, sentence in enumerate((2, 0)):
        for place in range(2):
            path = [first[sentence, 0], second[sentence, parents[sentence, place]]]
            target = torch.stack([*path, third[sentence, place]]).unsqueeze(0)
            alone = source[sentence : sentence + 1]
            features, weights = stepped(model, alone, target)
            torch.testing.assert_close(
                decoded.features[row, place], features[0, -1], atol=1e-6, rtol=1e-5
            )
            torch.testing.assert_close(
                decoded.weights[row, :, place], weights[0, :, -1], atol=1e-6, rtol=1e-5
            )


def test_the_fixed_vector_says_the_same_whatever_the_items_are(pair: Any, tokens: Any) -> None:
    model = pair("gru 1 both", "gru 1 luong none")
    source, target = tokens(4, 2), tokens(3, 3, size=9)
    encoded = model.encoder(source, source != 0)
    ours = model.decoder(target, encoded)
    theirs = model.decoder(target, encoded._replace(memory=torch.randn(2, 4, 6)))
    assert torch.equal(ours.features, theirs.features)
    assert isinstance(model.decoder.start(encoded), DecoderState)
    assert model.decoder.start(encoded).memory == ()


def test_bahdanau_looks_before_it_advances(pair: Any, tokens: Any) -> None:
    """The first look depends on the sentence alone; in the other orders on the first token too."""
    source = tokens(5)
    for decoder, same in (
        ("gru 1 bahdanau additive", True),
        ("gru 1 luong additive", False),
        ("gru 1 input_feeding additive", False),
    ):
        model = pair("gru 1 both", decoder)
        ours, theirs = (
            model(source, source != 0, torch.tensor([[token]])).weights for token in (4, 8)
        )
        assert torch.equal(ours, theirs) is same, decoder


def test_a_transformer_names_its_maps_layer_by_layer(build: Any, tokens: Any) -> None:
    encoder = ENCODERS["gru 1 both"]
    model = build(encoder, {"kind": "transformer", "num_heads": 5, "layers": 3, "hidden_dim": 3})
    source = tokens(4, 2)
    model.eval()
    decoded = model(source, source != 0, torch.full((2, 3), 5))
    assert decoded.weights.shape == (2, 15, 3, 4)
    state = model.begin(source, source != 0)
    layer = model.decoder.layers[0]
    items = model.decoder._embed(torch.full((2, 1), 5), 0).unsqueeze(1)
    _, look, _ = layer.step(items, state.memory[0], None)
    torch.testing.assert_close(decoded.weights[:, :5, :1], look.weights)


def built(attention: Any, **changes: Any) -> RecurrentDecoder:
    choices = {"hidden_dim": 4, "attention": attention, **changes}
    return RecurrentDecoder(torch.nn.Embedding(9, 5), (6, 7), **choices)


def test_the_plain_decoder_sees_the_source_through_its_first_state_alone(
    pair: Any, tokens: Any
) -> None:
    model = pair("gru 1 both", "gru 1 none none")
    source, target = tokens(4, 2), tokens(3, 3, size=9)
    encoded = model.encoder(source, source != 0)
    ours = model.decoder(target, encoded)
    theirs = model.decoder(target, encoded._replace(memory=torch.randn(2, 4, 6)))
    assert torch.equal(ours.features, theirs.features)
    state = model.decoder.start(encoded)
    first, _, fixed = state.hidden
    changed = state._replace(hidden=(first, state.hidden[1], fixed + 1))
    features = [model.decoder.step(target[:, :1], s)[0].features for s in (state, changed)]
    assert torch.equal(*features)
    other = state._replace(hidden=(first + 1, state.hidden[1], fixed))
    assert not torch.equal(features[0], model.decoder.step(target[:, :1], other)[0].features)


def test_the_attentional_state_by_hand(tokens: Any) -> None:
    """Luong's equation 5, and the same without its tanh."""
    look = Attention("bilinear", query_dim=4, key_dim=6)
    for attentional in (True, False):
        decoder = built(look, attentional=attentional).eval()
        mask = torch.tensor([[True, True, False]])
        encoded = Encoded(torch.randn(1, 3, 6), mask, torch.randn(1, 7))
        target = tokens(2, size=9)
        states, _ = decoder.core.run(decoder.embedding(target), decoder.bridge(encoded.final))
        context = look(states, encoded.memory, mask=mask).context
        linear = decoder.readout(torch.cat([states, context], dim=-1))
        expected = torch.tanh(linear) if attentional else linear
        torch.testing.assert_close(decoder(target, encoded).features, expected)


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(MechanismError, match="order must be known; got 'luon': did you mean"):
        built(None, order="luon")


def test_the_plain_order_with_an_attention_is_refused() -> None:
    with pytest.raises(MechanismError, match=r"attention must be None for the order 'none'.*Dot"):
        built(Attention("dot"), order="none")


def test_l5_an_attention_of_other_sizes_is_refused_when_the_decoder_is_built() -> None:
    with pytest.raises(MechanismError, match=r"query_dim must be 4, .*Bilinear.*; got 3"):
        built(Attention("bilinear", query_dim=3, key_dim=6))
    with pytest.raises(MechanismError, match=r"key_dim must be 6, .*MultiHead.*; got 4"):
        built(MultiHead(2, 4))


@pytest.mark.parametrize("decoder", ["rnn 2 bahdanau dot", "lstm 1 luong dot", "transformer"])
def test_nothing_sampled_has_no_probability(decoder: str, pair: Any, tokens: Any) -> None:
    model = pair("gru 1 both", decoder)
    source = tokens(4, 2)
    decoded = model(source, source != 0, tokens(3, 3, size=9))
    assert decoded.distribution is decoded.weights
    assert decoded.log_prob is None


@pytest.mark.parametrize("order", ["bahdanau", "luong", "input_feeding"])
@pytest.mark.parametrize("heads", [None, 2])
def test_what_was_drawn_comes_with_what_it_was_drawn_from(
    order: str, heads: int | None, tokens: Any
) -> None:
    """REINFORCE needs the logarithm of the choice, with a gradient to the scores."""
    score = Additive(4, 6, hidden_dim=3) if heads is None else Additive(2, 2, hidden_dim=3)
    look: Any = Attention(score, Sampled())
    if heads is not None:
        look = MultiHead(heads, 4, key_dim=6, score=score, selection=Sampled())
    decoder = built(look, order=order)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    encoded = Encoded(torch.randn(2, 3, 6), mask, torch.randn(2, 7))
    decoded = decoder(tokens(4, 4, size=9), encoded)
    assert decoded.weights.shape == decoded.distribution.shape == (2, heads or 1, 4, 3)
    assert bool(((decoded.weights == 0) | (decoded.weights == 1)).all())
    chosen = (decoded.weights * decoded.distribution).sum(dim=-1)
    torch.testing.assert_close(decoded.log_prob, chosen.log().sum(dim=1))
    decoded.log_prob.sum().backward()
    gradients = [parameter.grad for parameter in look.score.parameters()]
    assert all(gradient is not None and bool(gradient.any()) for gradient in gradients)
