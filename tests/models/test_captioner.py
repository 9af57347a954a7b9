from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from regard.errors import MechanismError
from regard.models.captioner import CaptionerSettings, build_captioner
from regard.models.decoding import Search, Symbols, beam_search, forced, greedy_search
from regard.models.describers import build_describer
from regard.models.grids import GridEncoder, PartsDescriber, PictureEncoder
from regard.models.seq2seq import Seq2Seq, token_loss

DECODERS = [
    {"kind": "lstm", "order": "bahdanau", "gated": True},
    {"kind": "gru", "order": "luong", "selection": "sampled"},
    {"kind": "lstm", "order": "bahdanau", "attention": "none"},
    {"kind": "transformer", "num_heads": 2, "layers": 1},
]
SYMBOLS = Symbols(bos=1, eos=2, banned=(0, 1))


def made(decoder: dict[str, Any], **own: Any) -> tuple[Seq2Seq, CaptionerSettings]:
    torch.manual_seed(4)
    picture = {"network": "small", "height": 24, "width": 32, "dim": 6, "layers": 3}
    table = {"picture": picture, "item_dim": 10, "embedding_dim": 8, "dropout": 0.0, **own}
    table["decoder"] = {"hidden_dim": 9, **decoder}
    settings = CaptionerSettings.model_validate(table)
    describer = build_describer(settings.picture)
    return build_captioner(settings, describer, words=11, padding=0), settings


def pictures(count: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(count, 3, 24, 32) * 255, torch.ones(count, 12, dtype=torch.bool)


@pytest.mark.parametrize("sentinel", [False, True])
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_captioner_is_searched_as_a_translator_is(decoder, sentinel):
    model, _ = made(decoder, sentinel=sentinel)
    model.eval()
    source, mask = pictures()
    search = Search(beam=3, nbest=2, maximum_length=4)
    found = beam_search(model, model.begin(source, mask), 3, SYMBOLS, search)
    for row, hypotheses in enumerate(found):
        for one in hypotheses:
            tokens = torch.tensor([[*one.tokens, 2]])
            state = model.begin(source[row : row + 1], mask[row : row + 1])
            log_probs, weights = forced(model, state, tokens, SYMBOLS)
            assert log_probs.sum().item() == pytest.approx(one.log_prob, abs=1e-4)
            assert torch.allclose(weights[0], one.weights, atol=1e-5)
            if weights.shape[1]:
                assert one.weights.shape[-1] == 12 + sentinel
    assert len(greedy_search(model, model.begin(source, mask), 3, SYMBOLS, search)) == 3


@pytest.mark.parametrize("decoder", DECODERS)
def test_pixels_get_gradients_through_what_is_trained(decoder):
    model, _ = made(decoder)
    source, mask = pictures()
    tokens = torch.randint(3, 11, (3, 4))
    token_loss(model, model(source, mask, tokens).features, tokens, padding=0).backward()
    assert isinstance(model.encoder, PictureEncoder)
    for parameter in model.encoder.describer.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_what_is_not_trained_stays_out_of_the_model():
    settings = CaptionerSettings.model_validate({"picture": {"height": 64, "width": 64}})
    describer = build_describer(settings.picture)
    model = build_captioner(settings, describer, words=11, padding=0)
    assert isinstance(model.encoder, GridEncoder)
    assert not any("blocks" in name for name in model.state_dict())
    cells = describer(torch.rand(2, 3, 64, 64) * 255)
    decoded = model(cells, torch.ones(2, 4, dtype=torch.bool), torch.tensor([[1], [1]]))
    assert decoded.weights.shape == (2, 1, 1, 4)


def test_parts_are_one_line_of_the_settings():
    settings = CaptionerSettings.model_validate(
        {"picture": {"network": "small", "height": 24, "width": 32, "parts": {"rows": 2}}}
    )
    describer = build_describer(settings.picture)
    assert isinstance(describer, PartsDescriber)
    assert describer.grid(24, 32) == (2, 4)


def test_a_picture_has_cells_to_choose_from():
    with pytest.raises(MechanismError, match="at least two cells to choose from; got 1 x 1"):
        made(DECODERS[0], picture={"network": "small", "height": 32, "width": 32, "layers": 5})


def test_parts_divide_the_picture():
    picture = {"network": "small", "height": 24, "width": 32, "parts": {"rows": 5, "columns": 4}}
    with pytest.raises(MechanismError, match=r"must be divided .* got 24 x 32 and 5 x 4"):
        made(DECODERS[0], picture=picture)


def test_in_evaluation_no_picture_bears_on_another():
    model, _ = made(DECODERS[0])
    model.eval()
    pixels, mask = pictures()
    tokens = torch.tensor([[1, 4], [1, 5], [1, 6]])
    together = model(pixels, mask, tokens).features
    for row in range(3):
        alone = model(pixels[row : row + 1], mask[:1], tokens[row : row + 1]).features
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=1e-5)


def test_the_gate_says_how_much_the_context_counts():
    model, _ = made({"kind": "lstm", "order": "bahdanau", "gated": True})
    source, mask = pictures()
    tokens = torch.randint(3, 11, (3, 4))
    gate = model.decoder.reader.gate
    assert gate.out_features == 1
    nn.init.zeros_(gate.weight)
    nn.init.constant_(gate.bias, -60.0)  # shut: then no context reaches the words
    shut = model(source, mask, tokens)
    model.decoder.reader.attention.score.vector.data.mul_(50)
    other = model(source, mask, tokens)
    assert torch.allclose(shut.features, other.features, atol=1e-6)
    assert not torch.allclose(shut.weights, other.weights, atol=1e-3)
