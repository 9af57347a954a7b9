"""Two models that write in opposite directions, and judge each other's outputs."""

from __future__ import annotations

import io
import itertools
import math
from typing import Any

import pytest
import torch

from regard.errors import DivergedError, UserError
from regard.models.decoding import Search, Symbols, beam_search, forced, greedy_search
from regard.models.rescoring import (
    Seq2SeqPair,
    build_model,
    pair_search,
    rescored,
    reversed_outputs,
    sequence_loss,
)
from regard.models.seq2seq import Seq2Seq, token_loss
from regard.models.settings import Seq2SeqSettings

GRU = ({"kind": "gru", "hidden_dim": 6}, {"kind": "gru", "hidden_dim": 6, "attention_dim": 5})
KINDS = {
    "gru": GRU,
    "fixed": ({"kind": "gru", "hidden_dim": 3}, {"kind": "lstm", "attention": "none"}),
    "transformer": (
        {"kind": "transformer", "num_heads": 5, "layers": 1, "hidden_dim": 7},
        {"kind": "transformer", "num_heads": 5, "layers": 2, "hidden_dim": 7},
    ),
}
TARGET = Symbols(bos=1, eos=2, banned=(0, 1, 3, 6, 7, 8))  # tokens 4 and 5 are written
LENGTHS = (4, 1, 3)


def made(kind: str, **own: Any) -> Any:
    encoder, decoder = KINDS[kind]
    table = {"embedding_dim": 5, "dropout": 0.0, "encoder": encoder, "decoder": decoder, **own}
    settings = Seq2SeqSettings.model_validate({"rescoring": True, **table})
    model = build_model(settings, source_size=11, target_size=9, padding=0).eval()
    for parameter in model.parameters():
        parameter.data *= 2
    return model


def log_prob(model: Seq2Seq, source: torch.Tensor, output: tuple[int, ...]) -> float:
    """What a model says of an output, by reading it whole."""
    read, wanted = torch.tensor([[1, *output]]), torch.tensor([[*output, 2]])
    with torch.no_grad():
        logits = model.logits(model(source, source != 0, read).features)
    return -float(torch.nn.functional.cross_entropy(logits[0], wanted[0], reduction="sum"))


def test_settings_say_whether_there_are_two() -> None:
    assert isinstance(made("gru"), Seq2SeqPair)
    assert isinstance(made("gru", rescoring=False), Seq2Seq)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_search_finds_what_trying_everything_finds(kind: str, tokens: Any) -> None:
    pair, source = made(kind), tokens(*LENGTHS)
    search = Search(beam=16, nbest=4, maximum_length=3, length_penalty=0.8)
    found = pair_search(pair, source, source != 0, TARGET, search)
    outputs = [o for length in range(4) for o in itertools.product((4, 5), repeat=length)]
    for row, length in enumerate(LENGTHS):
        alone = source[row : row + 1, :length]
        both = {
            output: log_prob(pair.left_to_right, alone, output)
            + log_prob(pair.right_to_left, alone, output[::-1])
            for output in outputs
        }
        best = sorted(both, key=lambda o: -search.normalised(both[o], len(o) + 1))[:4]
        assert [one.tokens for one in found[row]] == best
        for one in found[row]:
            assert one.log_prob == pytest.approx(both[one.tokens], abs=1e-4)
            score = search.normalised(both[one.tokens], len(one.tokens) + 1)
            assert one.score == pytest.approx(score, abs=1e-4)
            assert one.ended == (len(one.tokens) < 3)
            read = torch.tensor([[*one.tokens, 2]])
            left = pair.left_to_right
            with torch.no_grad():
                _, weights = forced(left, left.begin(alone, alone != 0), read, TARGET)
            torch.testing.assert_close(one.weights[..., :length], weights[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("beam", [1, 2])
def test_the_union_of_what_both_propose_is_rescored(beam: int, tokens: Any) -> None:
    pair, source = made("gru"), tokens(*LENGTHS)
    search = Search(beam=beam, nbest=beam, maximum_length=6)
    found = pair_search(pair, source, source != 0, TARGET, search)
    for row, length in enumerate(LENGTHS):
        alone = source[row : row + 1, :length]
        proposals: set[tuple[int, ...]] = set()
        for model, turn in ((pair.left_to_right, 1), (pair.right_to_left, -1)):
            with torch.no_grad():
                state = model.begin(alone, alone != 0)
                several = (
                    [greedy_search(model, state, 1, TARGET, search)]
                    if beam == 1
                    else beam_search(model, state, 1, TARGET, search)
                )[0]
            proposals |= {one.tokens[::turn] for one in several}
        scores = {
            output: search.normalised(
                log_prob(pair.left_to_right, alone, output)
                + log_prob(pair.right_to_left, alone, output[::-1]),
                len(output) + 1,
            )
            for output in proposals
        }
        expected = sorted(scores, key=lambda output: -scores[output])[:beam]
        assert [one.tokens for one in found[row]] == expected


def test_by_hand_with_models_that_look_at_nothing() -> None:
    """Each token has one probability in each model, whatever came before."""
    pair = made("gru")
    rows = {"left_to_right": (0.6, 0.1, 0.3), "right_to_left": (0.1, 0.5, 0.4)}
    for name, probabilities in rows.items():
        model = getattr(pair, name)
        for parameter in model.parameters():
            parameter.data.zero_()
        model.bias.data.fill_(-1e4)
        model.bias.data[[4, 5, 2]] = torch.tensor(probabilities).log()
    source = torch.tensor([[4, 5]])
    search = Search(beam=1, maximum_length=2, length_penalty=0.0)
    found = pair_search(pair, source, source != 0, TARGET, search)[0]
    # Left proposes 4 4 and right 5 5. Tokens and end mark, in the one and in the other:
    # 4 4: 0.6 0.6 0.3 and 0.1 0.1 0.4; 5 5: 0.1 0.1 0.3 and 0.5 0.5 0.4.
    assert [one.tokens for one in found] == [(4, 4)]
    assert found[0].log_prob == pytest.approx(math.log(0.36 * 0.3 * 0.01 * 0.4), abs=1e-5)
    source_mask = source != 0
    said = rescored(pair, pair.begin(source, source_mask), [[(5, 5), (4,), ()]], TARGET)[0]
    expected = [0.01 * 0.3 * 0.25 * 0.4, 0.6 * 0.3 * 0.1 * 0.4, 0.3 * 0.4]
    assert [one.log_prob for one in said] == pytest.approx(list(map(math.log, expected)), abs=1e-4)


def test_the_coverage_penalty_counts_for_real_items(tokens: Any) -> None:
    pair, source = made("gru"), tokens(*LENGTHS)
    search = Search(beam=4, nbest=2, maximum_length=4, coverage_penalty=0.5)
    together = pair_search(pair, source, source != 0, TARGET, search)
    for row, length in enumerate(LENGTHS):
        alone = source[row : row + 1, :length]
        found = pair_search(pair, alone, alone != 0, TARGET, search)[0]
        assert [one.tokens for one in found] == [one.tokens for one in together[row]]
        for ours, theirs in zip(found, together[row], strict=True):
            assert ours.score == pytest.approx(theirs.score, abs=1e-4)
            total = ours.weights.mean(0).sum(0).clamp(max=1).log().sum()
            bare = search.normalised(ours.log_prob, len(ours.tokens) + 1)
            assert ours.score == pytest.approx(bare + 0.5 * float(total), abs=1e-4)


def test_coverage_needs_models_that_look(tokens: Any) -> None:
    pair, source = made("fixed"), tokens(2)
    with pytest.raises(UserError, match="coverage_penalty must be 0"):
        pair_search(pair, source, source != 0, TARGET, Search(coverage_penalty=0.5))


def test_outputs_are_turned_round_before_their_end_mark() -> None:
    outputs = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])
    expected = [[6, 5, 4, 2], [7, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    assert reversed_outputs(outputs, 0).tolist() == expected
    assert reversed_outputs(outputs[:0], 0).shape == (0, 4)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_sum_of_both(kind: str, smoothing: float, tokens: Any) -> None:
    pair, source = made(kind), tokens(4, 2)
    inputs = torch.tensor([[1, 4, 5, 6], [1, 7, 0, 0]])
    outputs = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
    loss = sequence_loss(pair, source, inputs, outputs, padding=0, smoothing=smoothing)
    expected = torch.zeros(())
    for row, (length, output) in enumerate(((4, (4, 5, 6)), (2, (7,)))):
        alone = source[row : row + 1, :length]
        for model, turn in ((pair.left_to_right, 1), (pair.right_to_left, -1)):
            wanted = output[::turn]
            features = model(alone, alone != 0, torch.tensor([[1, *wanted]])).features
            own = torch.tensor([[*wanted, 2]])
            expected = expected + token_loss(model, features, own, padding=0, smoothing=smoothing)
    torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pair.parameters())


def test_the_loss_of_one_model_is_its_own(tokens: Any) -> None:
    model, source = made("gru", rescoring=False), tokens(3)
    inputs, outputs = torch.tensor([[1, 4]]), torch.tensor([[4, 2]])
    expected = token_loss(model, model(source, source != 0, inputs).features, outputs, padding=0)
    found = sequence_loss(model, source, inputs, outputs, padding=0)
    assert torch.equal(found, expected)


def test_a_state_dict_goes_out_and_back(tokens: Any) -> None:
    pair, other, source = made("gru"), made("gru"), tokens(3, 2)
    stream = io.BytesIO()
    torch.save(pair.state_dict(), stream)
    stream.seek(0)
    search = Search(beam=3, nbest=3, maximum_length=4)
    other.load_state_dict(torch.load(stream, weights_only=True))
    ours, theirs = (pair_search(p, source, source != 0, TARGET, search) for p in (pair, other))
    assert [[one.log_prob for one in own] for own in ours] == [
        [one.log_prob for one in own] for own in theirs
    ]
    names = {name.partition(".")[0] for name in pair.state_dict()}
    assert names == {"left_to_right", "right_to_left"}


def test_l4_a_model_that_says_nan_is_refused(tokens: Any) -> None:
    pair, source = made("gru"), tokens(3)
    pair.right_to_left.bias.data[4] = torch.nan
    with pytest.raises(DivergedError):
        pair_search(pair, source, source != 0, TARGET, Search())


def test_nothing_to_search() -> None:
    source = torch.zeros(0, 3, dtype=torch.long)
    assert pair_search(made("gru"), source, source != 0, TARGET, Search()) == []


def test_a_pair_learns_to_reverse() -> None:
    """Both directions learn, and the left-to-right weights lie on the other diagonal."""
    encoder = {"kind": "gru", "hidden_dim": 24}
    decoder = {"kind": "gru", "hidden_dim": 24, "attention_dim": 24, "order": "bahdanau"}
    table = {"embedding_dim": 24, "dropout": 0.0, "encoder": encoder, "decoder": decoder}
    settings = Seq2SeqSettings.model_validate({**table, "rescoring": True})
    pair = build_model(settings, source_size=9, target_size=9, padding=0)
    optimizer = torch.optim.Adam(pair.parameters(), lr=0.01)
    for _ in range(150):
        source = torch.randint(4, 9, (32, 5))
        turned = source.flip(1)
        outputs = torch.cat([turned, torch.full((32, 1), 2)], dim=1)
        inputs = torch.cat([torch.full((32, 1), 1), turned], dim=1)
        optimizer.zero_grad()
        (sequence_loss(pair, source, inputs, outputs, padding=0) / 384).backward()
        optimizer.step()
    source = torch.randint(4, 9, (32, 5))
    assert isinstance(pair, Seq2SeqPair)
    symbols = Symbols(1, 2, (0, 1, 3))
    found = pair_search(pair.eval(), source, source != 0, symbols, Search(beam=3))
    right = [
        own[0].tokens == tuple(row) for own, row in zip(found, source.flip(1).tolist(), strict=True)
    ]
    assert sum(right) >= 30
    looked = torch.stack(
        [own[0].weights[0, :5] for own, ok in zip(found, right, strict=True) if ok]
    )
    assert torch.equal(looked.mean(0).argmax(-1), torch.tensor([4, 3, 2, 1, 0]))
