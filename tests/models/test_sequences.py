"""Attention over sequences of numbers: alone and in a batch, under masks, with nothing to read."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from regard.errors import ShapeError, UserError
from regard.models.poolings import POOLS
from regard.models.sequences import (
    SequenceModel,
    SequenceModelSettings,
    Standardisation,
    build_sequence_model,
)

ENCODERS: dict[str, dict[str, Any]] = {
    "embedding": {"kind": "embedding"},
    "convolution": {"kind": "convolution", "hidden_dim": 8, "layers": 2},
    "rnn": {"kind": "rnn", "hidden_dim": 4},
    "gru": {"kind": "gru", "hidden_dim": 4},
    "lstm": {"kind": "lstm", "hidden_dim": 8, "bidirectional": False},
    "transformer": {"kind": "transformer", "num_heads": 2, "layers": 1, "hidden_dim": 8},
}
LENGTHS = (7, 0, 3, 1, 7)


def model_of(encoder: str = "gru", pooling: str = "attention", **own: Any) -> SequenceModel:
    torch.manual_seed(0)
    part = dict(ENCODERS[encoder])
    if pooling == "last" and encoder in ("rnn", "gru"):
        part |= {"bidirectional": False, "hidden_dim": 8}
    settings = SequenceModelSettings.model_validate({
        "input_dim": 8, "encoder": part, "pooling": pooling, "steps": 9,
        "num_heads": 2, "dropout": 0.0, **own,
    })  # fmt: skip
    return build_sequence_model(settings, features=3, outputs=2).eval()


def batch(lengths: tuple[int, ...] = LENGTHS) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    longest = max(lengths, default=0)
    values = torch.randn(len(lengths), longest, 3, generator=generator)
    mask = torch.arange(longest) < torch.tensor(lengths, dtype=torch.int64).unsqueeze(1)
    return values, mask


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_l1_a_sequence_alone_is_itself_in_a_batch(encoder: str, pooling: str) -> None:
    model = model_of(encoder, pooling)
    values, mask = batch()
    dirty = values.masked_fill(~mask.unsqueeze(-1), float("nan"))
    together = model(dirty, mask)
    for row, length in enumerate(LENGTHS):
        alone = model(values[[row], :length], mask[[row], :length])
        torch.testing.assert_close(alone.outputs[0], together.outputs[row], rtol=1e-4, atol=1e-5)
        own = together.weights[row]
        torch.testing.assert_close(alone.weights[0], own[..., :length], rtol=1e-4, atol=1e-5)
        assert not own[..., length:].any()
        expected = torch.full(own.shape[:-1], float(length > 0))
        torch.testing.assert_close(own.sum(dim=-1), expected)
    torch.testing.assert_close(together.outputs[1], model.output.bias)
    heads = (2,) if pooling == "multihead" else ()
    assert together.weights.shape == (5, *heads, 7)


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_l1_gradients_are_finite_and_reach_every_parameter(encoder: str, pooling: str) -> None:
    model = model_of(encoder, pooling).train()
    values, mask = batch()
    dirty = values.masked_fill(~mask.unsqueeze(-1), float("inf"))
    model(dirty, mask).outputs.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # The bias of what is the same for all steps moves no softmax.
        silent = name.endswith(("key_projection.bias", "dense.bias"))
        assert silent or parameter.grad.any(), name


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_l2_nothing_but_nothing(encoder: str, pooling: str) -> None:
    model = model_of(encoder, pooling)
    found = model(*batch((0, 0)))
    torch.testing.assert_close(found.outputs, model.output.bias.expand(2, 2))
    assert found.weights.shape[-1] == 0
    assert model(*batch(())).outputs.shape == (0, 2)
    none = model(torch.zeros(0, 4, 3), torch.zeros(0, 4, dtype=torch.bool))
    assert none.weights.shape[0] == 0


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_l10_other_precisions(encoder: str, pooling: str) -> None:
    model = model_of(encoder, pooling).train()
    own = batch()
    single = model(*own)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model(*own)
    torch.testing.assert_close(half.outputs.float(), single.outputs, rtol=0.1, atol=0.1)
    half.outputs.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    given = model(own[0].double(), own[1]).outputs  # numbers in 64 bits, a model in 32
    torch.testing.assert_close(given, single.outputs)
    double = model.double()(own[0].double(), own[1])
    assert double.outputs.dtype == double.weights.dtype == torch.float64
    torch.testing.assert_close(double.outputs.float(), single.outputs, rtol=1e-4, atol=1e-5)


def test_it_is_the_formula_where_nothing_reads_in_order() -> None:
    model = model_of("embedding", "feed_forward")
    values, mask = batch((4,))
    items = values[0] @ model.projection.weight.T + model.projection.bias
    score = model.pooling.attention.attention.score.projection
    weights = torch.softmax(torch.tanh(score(items)).squeeze(-1), dim=0)
    found = model(values, mask)
    torch.testing.assert_close(found.weights[0], weights)
    torch.testing.assert_close(found.outputs[0], model.output(weights @ items))


def test_order_counts_where_steps_are_read_in_order() -> None:
    values, mask = batch((6,))
    turned = values.flip(1)
    pairs = [("embedding", "attention", True), ("gru", "mean", False), ("embedding", "step", False)]
    for encoder, pooling, same in pairs:
        model = model_of(encoder, pooling)
        first, second = model(values, mask).outputs, model(turned, mask).outputs
        assert torch.allclose(first, second, atol=1e-5) == same, (encoder, pooling)


def test_features_are_standardised_and_constant_ones_say_nothing() -> None:
    part = Standardisation(3)
    values = torch.tensor([[1.0, 0.1, 10.0], [3.0, 0.1, 20.0], [5.0, 0.1, float("nan")]])
    part.fit(values.double())
    found = part(values.unsqueeze(0))[0]
    expected = torch.tensor([-1.5, 0.0, 1.5]) * (2 / 3) ** 0.5
    torch.testing.assert_close(found[:, 0], expected)
    assert not found[:, 1].any()
    torch.testing.assert_close(found[:2, 2], torch.tensor([-1.0, 1.0]))
    assert found[2, 2].isnan()
    assert part(torch.full((1, 1, 3), 1e9))[0, 0, 1] == 0
    torch.testing.assert_close(part.back(found[:2]), values[:2])


def test_large_numbers_keep_what_they_differ_in() -> None:
    part = Standardisation(1)
    seconds = 1.7e9 + torch.arange(10, dtype=torch.float64).reshape(1, -1, 1)
    part.fit(seconds[0])
    found = part(seconds)[0, :, 0]
    plain = torch.arange(10, dtype=torch.float64)
    expected = (plain - 4.5) / plain.std(correction=0)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("value", [float("inf"), 1e200, 1e40, 1e-35])
def test_numbers_that_no_model_can_read_are_refused(value: float) -> None:
    values = torch.zeros(4, 2, dtype=torch.float64)
    values[1, 1] = value
    with pytest.raises(UserError, match=r"values must be finite.* feature 1 differ by"):
        Standardisation(2).fit(values)


def test_what_is_missing_is_the_mean_and_said_so() -> None:
    model = model_of("embedding", missing="mean")
    model.inputs.fit(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]))
    assert model.projection.in_features == 6
    values, mask = torch.full((1, 2, 3), 2.0), torch.ones(1, 2, dtype=torch.bool)
    values[0, 1, 0] = float("nan")
    found = model(values, mask)
    filled = values.nan_to_num(2.0)
    assert found.outputs.isfinite().all()
    assert not torch.allclose(found.outputs, model(filled, mask).outputs)
    with torch.no_grad():
        model.projection.weight[:, 3:] = 0.0
    torch.testing.assert_close(model(values, mask).outputs, model(filled, mask).outputs)


def test_what_it_was_standardised_by_is_saved_with_it() -> None:
    model = model_of()
    model.inputs.fit(torch.randn(10, 3) * 4 + 2)
    model.targets.fit(torch.randn(10, 2) * 9 - 3)
    other = model_of()
    other.load_state_dict(model.state_dict())
    own = batch()
    torch.testing.assert_close(other(*own).outputs, model(*own).outputs)
    torch.testing.assert_close(
        other.targets.back(torch.ones(1, 2)), model.targets.back(torch.ones(1, 2))
    )


@pytest.mark.usefixtures("without_shapes")
def test_l7_sizes_that_do_not_fit() -> None:
    values, mask = batch()
    with pytest.raises(ShapeError, match=r"features=3.* got \(5, 7, 2\) and \(5, 7\)"):
        model_of()(values[..., :2], mask)
    with pytest.raises(ShapeError, match=r"got \(5, 7, 3\) and \(5, 6\)"):
        model_of()(values, mask[:, :6])
    with pytest.raises(ShapeError, match="at most the steps of the pooling, 9; got 10"):
        model_of(pooling="step")(*batch((10, 2)))


def test_l8_settings_that_do_not_go_together() -> None:
    with pytest.raises(ValidationError, match="steps must be given for pooling"):
        SequenceModelSettings(pooling="step")
    with pytest.raises(ValidationError, match=r"num_heads must divide .* got 3 and 128"):
        SequenceModelSettings(pooling="multihead", num_heads=3)
    with pytest.raises(ValidationError, match=r"num_heads must divide .* got 4 and 6"):
        SequenceModelSettings(input_dim=6, encoder={"kind": "transformer", "num_heads": 4})
    with pytest.raises(ValidationError, match=r"bidirectional must be false for pooling"):
        SequenceModelSettings(pooling="last")
    assert SequenceModelSettings().out_dim == 128
