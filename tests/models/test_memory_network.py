"""Memory networks: the formula in plain loops, restarts together and apart, noise, clipping."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.errors import MechanismError, ShapeError
from regard.models.memory_network import (
    Asked,
    Clipping,
    MemoryNetwork,
    MemoryNetworkSettings,
    noised,
)

SENTENCES = torch.tensor([[0, 0, 0], [1, 2, 3], [3, 4, 0], [5, 0, 0], [1, 1, 6]])
ASKED = Asked(SENTENCES, torch.tensor([[1, 2, 3], [2, 0, 0], [0, 0, 0]]), torch.tensor([4, 3, 4]))


def network(restarts: int = 1, **changes: Any) -> MemoryNetwork:
    torch.manual_seed(3)
    settings = MemoryNetworkSettings(embedding_dim=4, memory=6, **changes)
    return MemoryNetwork(settings, words=8, answers=(2, 5, 7), restarts=restarts).eval()


def embedded(table: Tensor, ids: list[int], encoding: str) -> Tensor:
    words = [i for i in ids if i]
    d, count = table.shape[1], len(words)
    total = torch.zeros(d)
    for j, word in enumerate(words, start=1):
        for k in range(1, d + 1):
            place = 4 * (k - (d + 1) / 2) * (j - (count + 1) / 2) / (d * count)
            total[k - 1] += table[word, k - 1] * (1 + (place if encoding == "position" else 0))
    return total


@torch.no_grad()
def by_hand(model: MemoryNetwork, asked: Asked, row: int) -> tuple[Tensor, Tensor]:
    own = model.settings
    tables = [table[0] for table in model.embeddings]
    pairs = {
        "adjacent": [(k, k + 1) for k in range(own.hops)],
        "layerwise": [(0, 1)] * own.hops,
        "untied": [(2 * k, 2 * k + 1) for k in range(own.hops)],
    }[own.tying]
    first = tables[0] if model.question is None else model.question[0]
    output = tables[-1][[2, 5, 7]] if model.output is None else model.output[0]
    u = embedded(first, asked.sentences[asked.questions[row]].tolist(), own.encoding)
    weights = torch.zeros(own.hops, asked.memory.shape[1])
    slots = [i for i in range(asked.memory.shape[1]) if asked.memory[row, i]]
    values = asked.memory if asked.values is None else asked.values
    for hop, (a, c) in enumerate(pairs):
        key = {}
        read = torch.zeros(own.embedding_dim)
        for i in slots:
            told = model.places[a][0, i] if own.temporal else 0
            words = asked.sentences[asked.memory[row, i]].tolist()
            key[i] = float(u @ (embedded(tables[a], words, own.encoding) + told))
        p = torch.tensor([*key.values()]).softmax(dim=0) if key else []
        for i, share in zip(slots, p, strict=True):
            told = model.places[c][0, i] if own.temporal else 0
            words = asked.sentences[values[row, i]].tolist()
            read = read + share * (embedded(tables[c], words, own.encoding) + told)
            weights[hop, i] = share
        matrices = [matrix[0] for matrix in model.hops.transforms]
        if own.update == "sum":
            u = u + read
        elif own.update == "matrix":
            u = u @ matrices[0] + read
        else:
            u = (u + read) @ matrices[hop]
    return output @ u, weights


@pytest.mark.parametrize("tying", ["adjacent", "layerwise", "untied"])
@pytest.mark.parametrize("encoding", ["bag", "position"])
@pytest.mark.parametrize("temporal", [True, False])
def test_it_is_the_formula(tying: str, encoding: str, temporal: bool) -> None:
    model = network(tying=tying, encoding=encoding, temporal=temporal, hops=2)
    for key_values in (None, torch.tensor([[2, 3, 1], [4, 0, 0], [0, 0, 0]])):
        asked = ASKED._replace(values=key_values)
        found = model(asked)
        for row in range(3):
            logits, weights = by_hand(model, asked, row)
            torch.testing.assert_close(found.logits[0, row], logits)
            torch.testing.assert_close(found.weights[0, row], weights)


def test_key_value_memories_have_a_matrix_each_hop() -> None:
    model = network(key_value=True, tying="untied", hops=2)
    asked = ASKED._replace(values=torch.tensor([[2, 3, 1], [4, 0, 0], [0, 0, 0]]))
    assert len(model.hops.transforms) == 2
    torch.testing.assert_close(model(asked).logits[0, 0], by_hand(model, asked, 0)[0])
    assert not torch.equal(model(asked).logits, model(ASKED).logits)
    torch.testing.assert_close(model(asked).weights[0, :, 0], model(ASKED).weights[0, :, 0])


def test_padding_of_words_and_slots_changes_nothing() -> None:
    model = network()
    sentences = nn.functional.pad(SENTENCES, (0, 4))
    memory = nn.functional.pad(ASKED.memory, (0, 2))
    found, padded = model(ASKED), model(Asked(sentences, memory, ASKED.questions))
    torch.testing.assert_close(padded.logits, found.logits)
    torch.testing.assert_close(padded.weights[..., :3], found.weights)
    assert not padded.weights[..., 3:].any()
    assert not found.weights[0, 2].any()  # an empty story


@pytest.mark.parametrize("tying", ["adjacent", "layerwise", "untied"])
def test_restarts_together_are_models_apart(tying: str) -> None:
    """Some steps of training: losses, clipped gradients and weights stay those of single models."""
    model = network(restarts=3, tying=tying, rectified="half", noise=0.3)
    singles = [model.restart(index) for index in range(3)]
    answers = torch.tensor([0, 1, 2])
    together = [model, *singles]
    for one in together:
        Clipping(one, 0.05)
    for step in range(3):
        for one in together:
            torch.manual_seed(step)  # the same noise
            logits = one.train()(ASKED, linear=step == 0).logits
            targets = answers.expand(one.restarts, 3).flatten()
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets, reduction="sum")
            one.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in one.parameters():
                    parameter.sub_(0.5 * parameter.grad)
    for index, single in enumerate(singles):
        for own, every in zip(single.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(own[0], every[index])
            assert not torch.equal(every[0], every[1])
    taken = model.eval().restart(1)
    torch.testing.assert_close(taken(ASKED).logits[0], model(ASKED).logits[1])


def test_gradients_reach_every_parameter_and_are_right() -> None:
    model = network(tying="layerwise", hops=2).double()
    names = [name for name, _ in model.named_parameters()]

    def read(*parameters: Tensor) -> Tensor:
        table = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(model, table, (ASKED,)).logits

    assert torch.autograd.gradcheck(read, tuple(model.parameters()), eps=1e-6, atol=1e-5)


def test_a_linear_start_leaves_the_softmax_out() -> None:
    model = network(hops=1)
    linear = model(ASKED, linear=True).weights[0, 0, 0]
    torch.testing.assert_close(linear.softmax(dim=0), model(ASKED).weights[0, 0, 0])


def test_noise_comes_in_training_only() -> None:
    model = network(noise=0.9)
    assert torch.equal(model(ASKED).logits, model(ASKED).logits)
    model.train()
    drawn = {float(model(ASKED).logits[0, 0, 0].detach()) for _ in range(20)}
    assert len(drawn) > 1
    quiet = network(noise=0.0)
    torch.testing.assert_close(quiet.train()(ASKED).logits, quiet.eval()(ASKED).logits)


def test_noise_inserts_at_most_its_share_and_keeps_the_order() -> None:
    torch.manual_seed(0)
    counts = torch.tensor([10, 3, 0, 1])
    seen: set[int] = set()
    for _ in range(200):
        places = noised(counts, 10, 0.2)
        for count, row in zip(counts.tolist(), places.tolist(), strict=True):
            own = row[:count]
            assert all(a < b for a, b in itertools.pairwise(own))
            assert not own or own[-1] < count + -(-count // 5)
        seen.add(int(places[0, 9]))
    assert seen == {9, 10, 11}


def test_clipping_is_by_restart_and_by_matrix_and_survives_one_that_diverges() -> None:
    model = network(restarts=2)
    clipping = Clipping(model, 1.0)
    table = model.embeddings[0]
    weight = torch.ones_like(table)
    weight[1] *= 1e-3
    (table * weight).sum().backward()
    assert float(table.grad[0].norm()) == pytest.approx(1.0)
    torch.testing.assert_close(table.grad[1], weight[1])
    clipping.factor = 0.5
    table.grad = None
    weight[0, 0, 0] = torch.nan
    (table * weight).sum().backward()
    assert not table.grad[0].any()
    torch.testing.assert_close(table.grad[1], 0.5 * weight[1])


def test_what_cannot_be_is_refused(without_shapes: None) -> None:
    model = network()
    with pytest.raises(ShapeError, match="at most 6 slots; got 9"):
        model(ASKED._replace(memory=torch.zeros(3, 9, dtype=torch.int64)))
    with pytest.raises(ShapeError, match="sentences, memory and questions"):
        model(ASKED._replace(questions=torch.zeros(2, dtype=torch.int64)))
    with pytest.raises(ShapeError, match="values must have the shape of memory"):
        model(ASKED._replace(values=torch.zeros(3, 2, dtype=torch.int64)))
    with pytest.raises(MechanismError, match="index must be from 0 to 0; got 1"):
        model.restart(1)
    with pytest.raises(MechanismError, match="answers must be ids from 1 to 7"):
        MemoryNetwork(MemoryNetworkSettings(), words=8, answers=(8,))


def test_it_can_be_copied_and_saved() -> None:
    model = network(restarts=2)
    again = copy.deepcopy(model)
    other = network(restarts=2)
    other.load_state_dict(model.state_dict())
    assert torch.equal(again(ASKED).logits, other(ASKED).logits)
    assert "answers" not in model.state_dict()  # they belong to the settings
