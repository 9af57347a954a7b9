"""The suite is tested itself: each wrong mechanism is caught by the check meant for it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard import testing
from regard.attention import Attention, MultiHead, Traits, functional
from regard.errors import MechanismError
from regard.testing import CHECKS, check_attention


class Plain(nn.Module):
    """Dot-product attention, one line to a method; each wrong mechanism breaks one of them."""

    def forward(self, query, key, value=None, *, mask=None):
        value = key if value is None else value
        single = query.dim() == 2
        query = query.unsqueeze(1) if single else query
        allowed = self.allowed(mask, query, key)
        finite = torch.isfinite(torch.cat([key, value], dim=-1)).all(dim=-1, keepdim=True)
        query = query.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)
        key, value = self.clean(key, value, finite & allowed.any(dim=1).unsqueeze(-1))
        scores = self.scores(query, key)
        weights = self.weights(scores, allowed)
        context = self.context(weights, value)
        lost = (allowed & ~finite.transpose(1, 2)).any(dim=-1, keepdim=True)
        context, weights = self.results(context, weights, lost)
        return (context[:, 0], weights[:, 0]) if single else (context, weights)

    def allowed(self, mask, query, key):
        shape = (query.shape[0], query.shape[1], key.shape[1])
        if mask is None:
            return torch.ones(shape, dtype=torch.bool)
        if mask.dtype != torch.bool:
            raise ValueError("mask must be bool")
        if mask.dim() == 3 and tuple(mask.shape) in (shape, (1, *shape[1:])):
            return mask.expand(shape)
        if tuple(mask.shape) == (shape[0], shape[2]):
            return mask.unsqueeze(1).expand(shape)
        raise ValueError("mask must have the right shape")

    def clean(self, key, value, kept):
        return key.masked_fill(~kept, 0.0), value.masked_fill(~kept, 0.0)

    def scores(self, query, key):
        return functional.widened(query) @ functional.widened(key).transpose(1, 2)

    def weights(self, scores, allowed):
        return functional.masked_softmax(scores, allowed)

    def context(self, weights, value):
        return functional.weighted_sum(weights, value)

    def results(self, context, weights, lost):
        return context.masked_fill(lost, torch.nan), weights.masked_fill(lost, torch.nan)


class MaskIgnored(Plain):
    def weights(self, scores, allowed):
        return scores.softmax(dim=-1)


class MaskInverted(Plain):
    def allowed(self, mask, query, key):
        return super().allowed(None if mask is None else ~mask, query, key)


class Unnormalised(Plain):
    def weights(self, scores, allowed):
        return scores.sigmoid().masked_fill(~allowed, 0.0)


class SoftmaxOverQueries(Plain):
    def weights(self, scores, allowed):
        return scores.masked_fill(~allowed, -1e30).softmax(dim=1).masked_fill(~allowed, 0.0)


class BatchLeaks(Plain):
    def scores(self, query, key):
        return super().scores(query, key - key.mean(dim=0, keepdim=True))


class QueriesLeak(Plain):
    def scores(self, query, key):
        return super().scores(query - query.mean(dim=1, keepdim=True), key)


class Detached(Plain):
    def weights(self, scores, allowed):
        return super().weights(scores, allowed).detach()


class GradientDoubled(Plain):
    def weights(self, scores, allowed):
        weights = super().weights(scores, allowed)
        return weights + (weights - weights.detach())


class OtherWeightsReturned(Plain):
    def results(self, context, weights, lost):
        thinned = weights.masked_fill(weights < weights.mean(dim=-1, keepdim=True), 0.0)
        return super().results(context, thinned / thinned.sum(-1, True).clamp(min=1e-9), lost)


class DroppedWeightsReturned(Plain):
    def weights(self, scores, allowed):
        return nn.functional.dropout(super().weights(scores, allowed), 0.5, self.training)


class UniformOverPadding(Plain):
    def weights(self, scores, allowed):
        return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)


class NanInEmptyRows(Plain):
    def weights(self, scores, allowed):
        return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)


class NanGradientInEmptyRows(Plain):
    def clean(self, key, value, kept):
        return key, value

    def weights(self, scores, allowed):
        # The forward is repaired, the backward multiplies NaN by zero.
        weights = torch.exp(scores) * allowed
        return torch.where(allowed.any(-1, True), weights / weights.sum(-1, True), 0.0)


class AdditiveMask(Plain):
    def weights(self, scores, allowed):
        weights = (scores + (~allowed) * -1e4).softmax(dim=-1)
        return weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)


class NanTimesZero(Plain):
    def clean(self, key, value, kept):
        return key.masked_fill(~kept, 0.0), value


class NanInGradientsAlone(Plain):
    def clean(self, key, value, kept):
        return key, value.masked_fill(~kept, 0.0)


class NanForEveryQuery(Plain):
    def results(self, context, weights, lost):
        return super().results(context, weights, lost.any(dim=1, keepdim=True))


class NanHidden(Plain):
    def results(self, context, weights, lost):
        return context, weights


class KeyOrderMatters(Plain):
    def scores(self, query, key):
        return super().scores(query, key) + 0.1 * torch.arange(key.shape[1])


class InputsChanged(Plain):
    def forward(self, query, key, value=None, *, mask=None):
        with torch.no_grad():
            query.mul_(1.5)
        return super().forward(query, key, value, mask=mask)


class HalfOverflows(Plain):
    def scores(self, query, key):
        return (8.0 * query @ key.transpose(1, 2)).float()


class ScaledByLength(Plain):
    def scores(self, query, key):
        return super().scores(query, key) / max(key.shape[1], 1) ** 0.5


class LowersFloat64(Plain):
    def weights(self, scores, allowed):
        return super().weights(scores.float(), allowed)


class BroadcastsMasks(Plain):
    def allowed(self, mask, query, key):
        mask = mask if mask is None or mask.dim() == 3 else mask.unsqueeze(1)
        shape = (query.shape[0], query.shape[1], key.shape[1])
        return super().allowed(None if mask is None else mask.expand(shape), query, key)


class TakesNumbers(Plain):
    def allowed(self, mask, query, key):
        return super().allowed(None if mask is None else mask.bool(), query, key)


class SquareMeansQueries(Plain):
    def allowed(self, mask, query, key):
        if mask is not None and mask.shape == (query.shape[1], key.shape[1]):
            mask = mask.unsqueeze(0)
        return super().allowed(mask, query, key)


class Remembers(Plain):
    calls = 0

    def scores(self, query, key):
        self.calls += 1
        return super().scores(query, key) / self.calls


class MaskedIsSharper(Plain):
    def forward(self, query, key, value=None, *, mask=None):
        return super().forward(query if mask is None else 2 * query, key, value, mask=mask)


class NeedsOnePiece(Plain):
    def forward(self, query, key, value=None, *, mask=None):
        return super().forward(query.view(-1).view(query.shape), key, value, mask=mask)


class WrongAboutTheBatchOfOne(Plain):
    def allowed(self, mask, query, key):
        if mask is not None and mask.dim() == 3 and mask.shape[0] == 1:
            mask = torch.cat([mask, ~mask.expand(query.shape[0] - 1, -1, -1)])
        return super().allowed(mask, query, key)


class LosesTheQueriesAxis(Plain):
    def forward(self, query, key, value=None, *, mask=None):
        context, weights = super().forward(query, key, value, mask=mask)
        return context.squeeze(1), weights


WRONG = {
    MaskIgnored: "masked_weights_are_zero",
    MaskInverted: "masked_weights_are_zero",
    Unnormalised: "weights_are_shares",
    SoftmaxOverQueries: "weights_are_shares",
    BatchLeaks: "batch_rows_are_independent",
    QueriesLeak: "queries_are_independent",
    Detached: "gradients_reach_the_inputs",
    GradientDoubled: "gradients_are_right",
    OtherWeightsReturned: "context_is_weights_times_values",
    DroppedWeightsReturned: "weights_are_those_before_dropout",
    UniformOverPadding: "empty_rows_give_zeros",
    NanInEmptyRows: "empty_rows_give_zeros",
    NanGradientInEmptyRows: "empty_rows_have_finite_gradients",
    AdditiveMask: "masks_hold_among_low_scores",
    NanTimesZero: "broken_items_under_the_mask_change_no_result",
    NanInGradientsAlone: "broken_items_under_the_mask_change_no_gradient",
    NanForEveryQuery: "broken_items_reach_only_their_readers",
    NanHidden: "broken_items_reach_only_their_readers",
    KeyOrderMatters: "permuting_keys_permutes_weights",
    InputsChanged: "inputs_are_not_changed",
    HalfOverflows: "half_precision_is_finite",
    ScaledByLength: "padding_changes_nothing",
    LowersFloat64: "float64_stays_float64",
    BroadcastsMasks: "misshapen_masks_are_refused",
    TakesNumbers: "masks_of_numbers_are_refused",
    SquareMeansQueries: "square_masks_mean_batch_and_keys",
    Remembers: "calls_leave_no_trace",
    MaskedIsSharper: "a_mask_of_ones_changes_nothing",
    NeedsOnePiece: "strides_do_not_matter",
    WrongAboutTheBatchOfOne: "one_mask_serves_the_batch",
    LosesTheQueriesAxis: "single_queries_need_no_axis",
}


def test_the_right_mechanism_passes_in_every_type():
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
    report = check_attention(Plain(), dtypes=dtypes)
    assert report.ok
    assert set(report.skipped) == {
        "prepared_keys_agree",
        "weights_may_be_left_out",
        "steps_hold_the_mask",
        "steps_ignore_padding",
        "hypotheses_are_independent",
        "whole_sequences_are_refused",
        "gradients_through_steps_are_right",
        "generators_decide",
        "samples_follow_the_distribution",
        "training_gradients_are_right",
    }


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_mechanism_is_caught_by_the_check_meant_for_it(wrong):
    report = check_attention(wrong(), raises=False)
    assert WRONG[wrong] in report.failed


@pytest.mark.parametrize("name", [name for name, check in CHECKS.items() if check.default])
def test_every_check_runs_alone_and_says_what_it_demands(name):
    attentions = (
        Attention("scaled_dot"),
        Attention("coverage", query_dim=4, key_dim=4, hidden_dim=3),
        Attention("scaled_dot", "sampled"),
        Attention("scaled_dot", "gumbel_softmax"),
    )
    passed = [check_attention(attention, checks=[name]).passed for attention in attentions]
    assert (name,) in passed
    meaning = CHECKS[name].meaning
    assert meaning.endswith(".")
    assert len(meaning) <= 80


def test_a_failure_lists_every_failed_check_with_its_reason():
    with pytest.raises(AssertionError) as caught:
        check_attention(MaskIgnored())
    message = str(caught.value)
    assert message.startswith("MaskIgnored: ")
    assert "masked_weights_are_zero (float32) failed: weights of hidden keys" in message
    assert "empty_rows_give_zeros" in message


def test_an_exception_inside_an_attention_is_a_failure_with_its_text():
    class Fails(Plain):
        def scores(self, query, key):
            raise KeyError("no such thing")

    report = check_attention(Fails(), checks=["padding_changes_nothing"], raises=False)
    assert report.outcomes[0].reason == "KeyError: 'no such thing'"


def test_a_plain_function_is_examined_too():
    def attend(query, key, value=None, *, mask=None):
        return Plain()(query, key, value, mask=mask)

    report = check_attention(attend, query_dim=6, key_dim=6)
    assert report.subject == "attend"
    assert "saved_parameters_agree" in report.skipped


def test_traits_excuse_what_they_state():
    excused = Traits(permutation_equivariant=False)
    assert (
        "permuting_keys_permutes_weights"
        in check_attention(KeyOrderMatters(), traits=excused).skipped
    )
    assert check_attention(
        Unnormalised(), traits=Traits(normalised=False), checks=["weights_are_shares"]
    ).ok


class Torch(nn.Module):
    """PyTorch's own layer behind the mask of regard."""

    query_dim = key_dim = 8

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor | None = None, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        value = key if value is None else value
        padding = None if mask is None or mask.dim() == 3 else ~mask
        pairs = None if mask is None or mask.dim() == 2 else ~mask.repeat_interleave(2, dim=0)
        return self.layer(
            query,
            key,
            value,
            key_padding_mask=padding,
            attn_mask=pairs,
            average_attn_weights=False,
        )


def test_what_pytorchs_own_layer_does_not_do_is_found():
    report = check_attention(Torch(), raises=False)
    assert {
        "empty_rows_give_zeros",
        "empty_rows_have_finite_gradients",
        "broken_items_under_the_mask_change_no_result",
    } <= set(report.failed)
    assert {"padding_changes_nothing", "masked_weights_are_zero"} <= set(report.passed)


def test_the_attention_and_the_random_state_are_left_alone():
    attention = MultiHead(2, 8, dropout=0.5)
    before = {name: tensor.clone() for name, tensor in attention.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    check_attention(attention)
    assert torch.equal(torch.get_rng_state(), state)
    assert attention.training
    assert all(torch.equal(before[n], t) for n, t in attention.state_dict().items())
    assert all(p.grad is None for p in attention.parameters())


def test_types_and_sizes_are_those_asked_for():
    report = check_attention(
        Plain(), key_dim=6, dtypes=[torch.float64, torch.float32], checks=["weights_are_shares"]
    )
    assert [outcome.dtype for outcome in report.outcomes] == ["float64", "float32"]
    with pytest.raises(MechanismError, match="query_dim must be what the attention says, 8; got 6"):
        check_attention(MultiHead(2, 8), query_dim=6)


def test_a_mistyped_check_is_named():
    with pytest.raises(MechanismError, match="did you mean 'weights_are_shares'"):
        check_attention(Plain(), checks=["weights_are_share"])


def test_public_names_exist():
    assert all(hasattr(testing, name) for name in testing.__all__)


@pytest.mark.compiled
def test_the_compiled_check_passes_and_catches():
    class OnlyEager(Plain):
        def scores(self, query, key):
            scale = 2.0 if torch.compiler.is_compiling() else 1.0
            return scale * super().scores(query, key)

    assert check_attention(Plain(), checks=["compiled_agrees"]).passed == ("compiled_agrees",)
    report = check_attention(OnlyEager(), checks=["compiled_agrees"], raises=False)
    assert report.failed == ("compiled_agrees",)
