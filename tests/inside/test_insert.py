"""Attention put into models that were not written for it."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard import Attention, MultiHead
from regard.attention.pooling import AttentionPooling, MultiHeadPooling, StepAttention
from regard.errors import MechanismError, ShapeError
from regard.inside import Placement, insert


class Lstm(nn.Module):
    """A classifier that goes by the last step of an LSTM."""

    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, batch_first=batch_first)
        self.output = nn.Linear(6, 3)
        self.batch_first = batch_first

    def forward(self, ids: Tensor) -> Tensor:
        embedded = self.embedding(ids)
        states, _ = self.lstm(embedded if self.batch_first else embedded.transpose(0, 1))
        return self.output(states[:, -1] if self.batch_first else states[-1])


class Packed(nn.Module):
    """The same over packed sequences, and the mean of the states."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
        self.output = nn.Linear(12, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, counts = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.output(states.sum(1) / counts[:, None])


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.relu(self.norm(self.conv(x)))


class Residual(nn.Module):
    """A small network as ResNets are: stages of blocks, a mean over the grid, a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.layer1 = nn.Sequential(Block(8), Block(8))
        self.layer2 = nn.Sequential(nn.Conv2d(8, 12, 3, stride=2, padding=1), Block(12))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.output = nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        grid = self.layer2(self.layer1(self.stem(x)))
        return self.output(self.pool(grid).flatten(1))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.output = nn.Linear(8, 2)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.output(self.encoder(x, src_key_padding_mask=padding)[:, 0])


IDS = torch.arange(12).reshape(2, 6)


def seeded(make: Any, *args: Any, **kwargs: Any) -> Any:
    torch.manual_seed(0)
    return make(*args, **kwargs)


def test_a_pooling_reads_all_steps_where_the_last_was_read() -> None:
    model = seeded(Lstm)
    insertion = insert(model, "lstm", sample=IDS)
    states = model.lstm.forward(model.embedding(IDS))[0]  # past the hooks
    attended = insertion.module.attention(states)
    assert torch.equal(model(IDS), model.output(attended.context))
    assert attended.weights.shape == (2, 6)
    assert not torch.allclose(model(IDS), model.output(states[:, -1]))


@pytest.mark.parametrize("name", ["attention_pooling", "feed_forward", "multihead", "self", "step"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_every_name_goes_into_an_lstm_and_learns(name: str, batch_first: bool) -> None:
    model = seeded(Lstm, batch_first=batch_first)
    before = model(IDS)
    insertion = insert(model, "lstm", name, sample=IDS, placement=Placement(gated=False))
    assert insertion.module.layout == ("sequence" if batch_first else "time_first")
    assert model(IDS).shape == before.shape
    model(IDS).square().sum().backward()
    for key, parameter in insertion.module.named_parameters():
        assert parameter.grad is not None, key
    assert any(bool(one.grad.abs().sum() > 0) for one in insertion.module.parameters())


def test_batch_first_and_time_first_say_the_same() -> None:
    first, last = seeded(Lstm), seeded(Lstm, batch_first=False)
    pooling = seeded(AttentionPooling, 6)
    insert(first, "lstm", pooling, sample=IDS)
    insert(last, "lstm", copy.deepcopy(pooling), sample=IDS)
    assert torch.allclose(first(IDS), last(IDS))


def test_gated_self_attention_changes_nothing_at_first_and_then_learns() -> None:
    model = seeded(Lstm)
    before = model(IDS)
    insertion = insert(model, "lstm", "self", sample=IDS)
    assert torch.equal(model(IDS), before)
    optimizer = torch.optim.SGD(insertion.train_alone(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(IDS), torch.tensor([0, 1])).backward()
        optimizer.step()
    assert not torch.allclose(model(IDS), before)
    assert insertion.module.gate.item() != 0.0


def test_a_grid_is_pooled_into_one_cell_that_the_mean_reads() -> None:
    model, x = seeded(Residual).eval(), torch.randn(2, 3, 16, 24)
    insertion = insert(model, "layer2", sample=x)
    assert insertion.path == "layer2.1.inserted"  # a Sequential's own list does not grow
    assert len(model.layer2) == 2
    grid = model.layer2[1].forward(model.layer2[0](model.layer1(model.stem(x))))
    attended = insertion.module.attention(grid.flatten(2).transpose(1, 2))
    assert attended.weights.shape == (2, 4 * 6)
    assert torch.allclose(model(x), model.output(attended.context), atol=1e-6)


def test_self_attention_over_a_grid_keeps_the_grid() -> None:
    model, x = seeded(Residual).eval(), torch.randn(2, 3, 16, 24)
    insertion = insert(
        model, "layer1", lambda sizes: MultiHead(2, sizes.features), sample=x,
        placement=Placement(gated=False),
    )  # fmt: skip
    grid = model.layer1[1].forward(model.layer1[0](model.stem(x)))
    items = grid.flatten(2).transpose(1, 2)
    own = items + insertion.module.attention(items, items).context
    expected = model.output(
        model.pool(model.layer2(own.transpose(1, 2).reshape(grid.shape))).flatten(1)
    )
    assert torch.allclose(model(x), expected, atol=1e-6)


def test_statistics_and_draws_stay_as_they_were() -> None:
    model, x = seeded(Residual), torch.randn(2, 3, 16, 16)
    before = copy.deepcopy(model.state_dict())
    pooling, state = AttentionPooling(8), torch.get_rng_state()
    insertion = insert(model, "layer1", pooling, sample=x)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert model.layer1[0].norm.training
    for name, value in before.items():
        assert torch.equal(model.state_dict()[name], value), name
    added = set(model.state_dict()) - set(before)
    assert added
    assert all(name.startswith(insertion.path + ".") for name in added)


def test_removing_leaves_nothing_behind() -> None:
    model = seeded(Lstm)
    before, keys = model(IDS), list(model.state_dict())
    insertion = insert(model, "lstm", sample=IDS)
    other = insert(model, "lstm", "step", sample=IDS[:, :1])  # of one pooled step
    assert (insertion.path, other.path) == ("lstm.inserted", "lstm.inserted_2")
    other.remove()
    insertion.remove()
    assert torch.equal(model(IDS), before)
    assert list(model.state_dict()) == keys
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_packed_sequences_bring_their_mask_along() -> None:
    x, lengths = torch.randn(3, 7, 5), torch.tensor([7, 3, 5])
    model = seeded(Packed)
    insertion = insert(model, "lstm", sample=(x, lengths))
    said = model(x, lengths)
    spoilt = x.clone()
    spoilt[1, 3:] = 100.0
    assert torch.allclose(model(spoilt, lengths), said)
    alone = model(x[1:2, :3], lengths[1:2])
    assert torch.allclose(alone, said[1:2], atol=1e-6)
    insertion.remove()
    insert(model, "lstm", "self", sample=(x, lengths), placement=Placement(gated=False))
    said = model(x, lengths)
    assert torch.allclose(model(x[1:2, :3], lengths[1:2]), said[1:2], atol=1e-6)


def test_a_mask_comes_from_the_arguments_of_the_model() -> None:
    model = seeded(Lstm)
    insertion = insert(model, "lstm", sample=IDS, mask=lambda given: given["ids"] != 0)
    ids = torch.tensor([[4, 5, 0, 0]])
    states = model.lstm.forward(model.embedding(ids))[0]
    expected = model.output(insertion.module.attention(states, mask=ids != 0).context)
    assert torch.allclose(model(ids), expected)
    assert torch.allclose(model(ids=ids), expected)
    assert not torch.allclose(model(ids), model.output(insertion.module.attention(states).context))


class Asked(nn.Module):
    """Reads a question and a story apart."""

    def __init__(self) -> None:
        super().__init__()
        self.question = nn.GRU(5, 6, batch_first=True)
        self.summary = nn.Linear(6, 7)
        self.story = nn.GRU(5, 8, batch_first=True)
        self.output = nn.Linear(8, 2)

    def forward(self, question: Tensor, story: Tensor) -> Tensor:
        self.summary(self.question(question)[0][:, -1])
        return self.output(self.story(story)[0][:, -1])


def test_another_layer_asks() -> None:
    model, sample = seeded(Asked), (torch.randn(2, 3, 5), torch.randn(2, 9, 5))
    insertion = insert(model, "story", "context", sample=sample, context="summary")
    asked = model.summary(model.question(sample[0])[0][:, -1])
    items = model.story.forward(sample[1])[0]
    expected = model.output(insertion.module.attention(asked, items).context)
    assert torch.allclose(model(*sample), expected)
    insertion.remove()
    insertion = insert(model, "story", "context", sample=sample, context="question")
    asked = model.question(sample[0])[0]  # each of its steps asks; the model reads the last answer
    expected = model.output(insertion.module.attention(asked, items).context[:, -1])
    assert torch.allclose(model(*sample), expected)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_encoder_in_evaluation_with_padding_stays_right() -> None:
    model, x = seeded(Encoder).eval(), torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([5, 3, 4])[:, None]
    insertion = insert(
        model, "encoder.layers.0", "self", sample=(x, padding),
        mask=lambda given: ~given["padding"], placement=Placement(gated=False),
    )  # fmt: skip
    with torch.no_grad():
        said = model(x, padding)
        alone = model(x[1:2, :3], padding[1:2, :3])
    assert torch.allclose(alone, said[1:2], atol=1e-5)
    assert torch.allclose(said, model(x, padding), atol=1e-5)  # with gradients, no fast path
    insertion.remove()


class Outcome(NamedTuple):
    states: Tensor
    note: str


class Structured(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.inner = kind, nn.Identity()
        self.layer = Wrap(kind)

    def forward(self, x: Tensor) -> Tensor:
        said = self.layer(x)
        if self.kind == "dict":
            assert said["rest"] == "kept"
            return said["last_hidden_state"]
        assert said[1] == "kept"
        return said[0]


class Wrap(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> Any:
        if self.kind == "dict":
            return OrderedDict(rest="kept", last_hidden_state=x)
        return {"named": Outcome, "tuple": lambda *a: a, "list": lambda *a: list(a)}[self.kind](
            x, "kept"
        )


@pytest.mark.parametrize("kind", ["named", "tuple", "list", "dict"])
def test_what_else_a_layer_says_goes_on(kind: str) -> None:
    model, x = Structured(kind), torch.randn(2, 4, 3)
    insertion = insert(model, "layer", sample=x)
    assert torch.equal(model(x).squeeze(1), insertion.module.attention(x).context)


def test_channels_first_over_time_is_seen() -> None:
    model = seeded(nn.Sequential, nn.Conv1d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1))
    x = torch.randn(2, 3, 9)
    insertion = insert(model, "0", sample=x)
    items = model[0].forward(x).transpose(1, 2)
    expected = torch.relu(insertion.module.attention(items).context)
    assert torch.allclose(model(x).squeeze(2), expected)
    insertion.remove()
    insertion = insert(model, "1", sample=x, placement=Placement(layout="channels_first"))
    assert insertion.module.attention.key_dim == 6


def test_without_axes_the_vector_alone_goes_on() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Identity(), nn.Linear(6, 2))
    insert(model, "0", sample=torch.zeros(3, 5, 4), placement=Placement(keep_axes=False))
    assert model(torch.randn(3, 5, 4)).shape == (3, 2)


def test_copies_and_pickles_attend_by_themselves() -> None:
    model = seeded(Asked)
    sample = (torch.randn(2, 3, 5), torch.randn(2, 9, 5))
    insertion = insert(model, "story", "context", sample=sample, context="summary")
    said = model(*sample)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(*sample), said)
        with torch.no_grad():
            for parameter in other.story.inserted.parameters():
                parameter.add_(1.0)
            other.output.bias.add_(1.0)
        assert not torch.allclose(other(*sample), said)
        assert torch.equal(model(*sample), said)
    insertion.remove()


def test_weights_are_saved_and_loaded_with_the_model() -> None:
    model, fresh = seeded(Lstm), Lstm()
    old = copy.deepcopy(model.state_dict())
    insert(model, "lstm", sample=IDS)
    insert(fresh, "lstm", sample=IDS)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(IDS), model(IDS))
    missing = fresh.load_state_dict(old, strict=False)
    assert all(key.startswith("lstm.inserted.") for key in missing.missing_keys)
    assert not missing.unexpected_keys


def test_trained_alone_nothing_else_moves() -> None:
    model = seeded(Lstm)
    model.embedding.weight.requires_grad_(False)
    insertion = insert(model, "lstm", sample=IDS)
    own = {id(one) for one in insertion.train_alone()}
    model(IDS).sum().backward()
    for parameter in model.parameters():
        assert (parameter.grad is not None) == (id(parameter) in own)
    insertion.train_all()
    assert not model.embedding.weight.requires_grad
    assert model.output.weight.requires_grad


def test_what_it_forgets_after_a_pass() -> None:
    model, sample = seeded(Asked), (torch.randn(2, 3, 5), torch.randn(2, 9, 5))
    insert(model, "story", "context", sample=sample, context="summary")
    with pytest.raises(ShapeError, match="context must be said before"):
        model.story(sample[1])  # by itself, after a whole pass: nothing is left from that
    with pytest.raises(RuntimeError):
        model(sample[0], torch.randn(2, 9, 4))  # the story fails after the question was asked
    with pytest.raises(ShapeError, match="context must be said before"):
        model.story(sample[1])


@pytest.mark.parametrize(
    ("after", "attention", "more", "match"),
    [
        ("lsmt", "self", {}, "did you mean 'lstm'"),
        ("lstm", "sefl", {}, "did you mean 'self'"),
        ("lstm", "context", {}, "where a context is named"),
        ("lstm", "self", {"context": "embedding"}, "where a context is named"),
        ("lstm", AttentionPooling(6), {"context": "embedding"}, "must have a query"),
        ("lstm", nn.Linear(6, 6), {}, "must be a pooling"),
        ("lstm", "context", {"context": "output"}, "a context before"),
        ("lstm", "context", {"context": "embeding"}, "did you mean 'embedding'"),
    ],
)
def test_wrong_names_are_named(after: str, attention: Any, more: Any, match: str) -> None:
    model = Lstm()
    with pytest.raises(MechanismError, match=match):
        insert(model, after, attention, sample=IDS, **more)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert "inserted" not in dict(model.lstm.named_children())


def test_what_does_not_fit_is_undone() -> None:
    model = seeded(Lstm)
    before = model(IDS)
    with pytest.raises(ShapeError, match="must read what the attention makes of 'lstm'"):
        insert(model, "lstm", AttentionPooling(5), sample=IDS)
    with pytest.raises(ShapeError, match="3 axes"):
        insert(model, "output", sample=IDS)
    with pytest.raises(ShapeError, match="layout 'grid'"):
        insert(model, "lstm", sample=IDS, placement=Placement(layout="grid"))
    assert torch.equal(model(IDS), before)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_layer_that_says_no_tensor() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = Words()

        def forward(self, x: Tensor) -> Tensor:
            self.words(x)
            return x

    class Words(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "no tensor"

    with pytest.raises(ShapeError, match="got str"):
        insert(Odd(), "words", sample=torch.zeros(2, 3, 4))


def test_steps_of_another_length_are_an_error() -> None:
    model = seeded(Lstm)
    insert(model, "lstm", "step", sample=IDS)
    with pytest.raises(ShapeError, match="steps=6"):
        model(IDS[:, :4])


def test_half_precision_models_stay_so() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2)).to(torch.bfloat16)
    x = torch.randn(2, 5, 4, dtype=torch.bfloat16)
    insertion = insert(model, "0", lambda sizes: MultiHeadPooling(sizes.features, 2), sample=x)
    assert {one.dtype for one in insertion.module.parameters()} == {torch.bfloat16}
    assert model(x).dtype == torch.bfloat16


def test_export_of_a_model_with_an_insertion() -> None:
    model, x = seeded(Residual).eval(), torch.randn(2, 3, 16, 16)
    insert(model, "layer2", sample=x)
    exported = torch.export.export(model, (x,), strict=False)
    assert torch.allclose(exported.module()(x), model(x), atol=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["attention_pooling", "self"])
def test_compiled_models_attend(name: str) -> None:
    model, x = seeded(Residual).eval(), torch.randn(2, 3, 16, 16)
    insert(model, "layer2", name, sample=x, placement=Placement(gated=False))
    compiled = torch.compile(model, backend="aot_eager")
    assert torch.allclose(compiled(x), model(x), atol=1e-5)


@pytest.mark.compiled
@torch.no_grad()
def test_compiled_models_are_asked_by_another_layer() -> None:
    model, sample = seeded(Asked), (torch.randn(2, 3, 5), torch.randn(2, 9, 5))
    insert(model, "story", "context", sample=sample, context="summary")
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        assert torch.allclose(compiled(*sample), model(*sample), atol=1e-5)


def test_step_attention_summed_is_a_pooling() -> None:
    model = seeded(Lstm)
    insertion = insert(model, "lstm", StepAttention(6, reduce="sum", shared=True), sample=IDS)
    assert insertion.module.role == "pooling"
    assert model(IDS).shape == (2, 3)


def test_an_attention_of_ones_own_is_asked_by_the_items() -> None:
    model = seeded(Lstm)
    own = Attention("additive", query_dim=6, key_dim=6, hidden_dim=4)
    insertion = insert(model, "lstm", own, sample=IDS)
    assert insertion.module.attention is own
    assert insertion.module.role == "self"


def test_an_encoder_of_hugging_face() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = seeded(transformers.BertForSequenceClassification, config).eval()
    ids = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
    given = {"input_ids": ids, "attention_mask": (ids != 0).long()}
    before = model(**given).logits
    insertion = insert(
        model, "bert.encoder.layer.0", "self", sample=given,
        mask=lambda given: given["attention_mask"].bool(),
    )  # fmt: skip
    assert torch.equal(model(**given).logits, before)
    insertion.remove()
    insertion = insert(
        model, "bert.encoder", sample=given, mask=lambda given: given["attention_mask"].bool()
    )  # the pooler reads the first item: now what the attention pooled
    states = model.bert.encoder.forward(
        model.bert.embeddings(ids), attention_mask=(ids != 0)[:, None, None]
    ).last_hidden_state
    pooled = insertion.module.attention(states, mask=ids != 0).context
    expected = model.classifier(model.bert.pooler(pooled.unsqueeze(1)))
    assert torch.allclose(model(**given).logits, expected, atol=1e-5)
    alone = {name: value[1:, :2] for name, value in given.items()}
    assert torch.allclose(model(**alone).logits, model(**given).logits[1:], atol=1e-5)
