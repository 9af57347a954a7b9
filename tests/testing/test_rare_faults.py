"""Faults that show only in many keys, in part of an item, in training, or on a second look."""

from __future__ import annotations

import pytest
import torch
from tests.test_testing import Plain

from regard.attention import Attention, Prepared, Sampled
from regard.errors import MechanismError
from regard.testing import check_attention


class CleansByTheKeyAlone(Plain):
    def forward(self, query, key, value=None, *, mask=None):
        value = key if value is None else value
        allowed = self.allowed(mask, query.unsqueeze(1) if query.dim() == 2 else query, key)
        seen = allowed.any(dim=1).unsqueeze(-1) & torch.isfinite(key).all(-1, keepdim=True)
        key = key.masked_fill(~seen, 0.0)
        _, weights = super().forward(query, key, key, mask=mask)
        return weights @ value.to(weights.dtype), weights


class CleansWholeItemsAlone(Plain):
    def clean(self, key, value, kept):
        some = torch.isfinite(key).any(-1, keepdim=True)
        return key.masked_fill(~some, 0.0), value.masked_fill(~some, 0.0)


class ForgetsFarKeys(Plain):
    def weights(self, scores, allowed):
        weights = super().weights(scores, allowed).clone()
        weights[..., 16:] = 0.0
        return weights


class LargeBatchesLeak(Plain):
    def scores(self, query, key):
        scores = super().scores(query, key)
        return scores + scores.mean(0, keepdim=True) if scores.shape[0] > 3 else scores


class ManyQueriesAreForgotten(Plain):
    def scores(self, query, key):
        scores = super().scores(query, key)
        return scores if scores.shape[1] <= 8 else 0.0 * scores


class OnlyKeysAreSeen(Plain):
    def weights(self, scores, allowed):
        weights = super().weights(scores, allowed)
        return torch.ones_like(weights) if weights.shape[-1] == 1 else weights


class TrainsOtherwise(Plain):
    def context(self, weights, value):
        return (2.0 if self.training else 1.0) * super().context(weights, value)


class UsesOneBuffer(Plain):
    def results(self, context, weights, lost):
        context, weights = super().results(context, weights, lost)
        kept = self.__dict__.setdefault("kept", {})
        buffer = kept.setdefault(tuple(weights.shape), weights.detach().clone())
        if weights.requires_grad:
            return context, weights
        return context, buffer.copy_(weights)


class HalfUnderMixedMasks(Plain):
    def weights(self, scores, allowed):
        mixed = bool((allowed != allowed[:, :1]).any())
        scores = 0.5 * scores + 0.5 * scores.detach() if mixed else scores
        return super().weights(scores, allowed)


class DropsTheMaskOfTheCall(Attention):
    def forward(self, query, key, value=None, *, mask=None, **own):
        mask = None if isinstance(key, Prepared) else mask
        return super().forward(query, key, value, mask=mask, **own)


class Detached(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        found = super().forward(scores, mask, generator=generator)
        log_prob = found.log_prob
        return found._replace(log_prob=None if log_prob is None else log_prob.detach())


class OneDrawForAll(Sampled):
    def forward(self, scores, mask, *, query=None, state=None, generator=None):
        found = super().forward(scores, mask, generator=generator)
        if not self.training or mask is not None:
            return found
        return found._replace(weights=found.weights[..., :1, :].expand_as(found.weights))


WRONG = [
    (CleansByTheKeyAlone(), "broken_items_under_the_mask_change_no_result"),
    (CleansWholeItemsAlone(), "broken_items_under_the_mask_change_no_result"),
    (ForgetsFarKeys(), "weights_are_shares"),
    (LargeBatchesLeak(), "batch_rows_are_independent"),
    (ManyQueriesAreForgotten(), "queries_are_independent"),
    (OnlyKeysAreSeen(), "empty_rows_give_zeros"),
    (TrainsOtherwise(), "weights_are_those_before_dropout"),
    (UsesOneBuffer(), "calls_leave_no_trace"),
    (HalfUnderMixedMasks(), "gradients_are_right"),
    (DropsTheMaskOfTheCall("dot"), "prepared_keys_agree"),
    (Attention("dot", Detached()), "samples_follow_the_distribution"),
    (Attention("dot", OneDrawForAll()), "generators_decide"),
]


@pytest.mark.parametrize(("wrong", "check"), WRONG)
def test_rare_faults_are_caught(wrong, check):
    assert check in check_attention(wrong, raises=False).failed


def test_nothing_asked_is_no_pass():
    for nothing in ({"dtypes": ()}, {"checks": []}):
        with pytest.raises(MechanismError, match="must name at least one"):
            check_attention(Plain(), **nothing)
