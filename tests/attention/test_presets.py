from __future__ import annotations

import itertools

import pytest
import torch

from regard.attention import (
    Additive,
    Attention,
    LocalMonotonic,
    LocalPredictive,
    MultiHead,
    Sampled,
    Softmax,
    unroll,
)
from regard.attention.presets import (
    PRESETS,
    bahdanau,
    location_sensitive,
    luong,
    scaled_dot_product,
    show_attend_tell,
)
from regard.errors import MechanismError
from regard.testing import check_attention

BUILT = [
    bahdanau(4, 5, 6),
    bahdanau(4, 5, 6, normalised=True),
    *(
        luong(kind, query_dim=4, key_dim=4, local=local, half_width=2)
        for kind, local in itertools.product(
            ("dot", "general", "concat", "location"), (None, "monotonic", "predictive")
        )
    ),
    show_attend_tell(4, 5, 6),
    show_attend_tell(4, 5, 6, hard=True),
    scaled_dot_product(),
    scaled_dot_product(8, num_heads=2, key_dim=6),
    location_sensitive(4, 5, 6, channels=3, kernel_size=5),
    location_sensitive(4, 5, 6, channels=3, kernel_size=5, cumulative=True, smoothing=True),
]


@pytest.mark.parametrize("attention", BUILT, ids=lambda attention: attention.name)
def test_presets_conform(attention):
    check_attention(attention)


def test_presets_are_made_of_the_papers_parts():
    assert isinstance(bahdanau(4, 5, 6).score, Additive)
    assert bahdanau(4, 5, 6, normalised=True).score.length is not None
    assert luong("concat", query_dim=4, key_dim=4).score.hidden_dim == 4
    local = luong(query_dim=4, key_dim=4, local="monotonic", half_width=3)
    assert isinstance(local.selection, LocalMonotonic)
    assert local.selection.half_width == 3
    predictive = luong(query_dim=4, key_dim=4, local="predictive")
    assert isinstance(predictive.selection, LocalPredictive)
    assert isinstance(show_attend_tell(4, 5, 6).selection, Softmax)
    assert isinstance(show_attend_tell(4, 5, 6, hard=True).selection, Sampled)
    assert isinstance(scaled_dot_product(), Attention)
    assert isinstance(scaled_dot_product(8, num_heads=2), MultiHead)
    assert location_sensitive(4, 5, 6, smoothing=True).selection.normalise


def test_scaled_dot_product_is_pytorchs():
    query, key, value = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 6)
    found = scaled_dot_product()(query, key, value).context
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    assert torch.allclose(found, expected, atol=1e-6)


def test_location_sensitivity_is_run_over_time():
    attention = location_sensitive(4, 5, 6, channels=3, kernel_size=5)
    attended = unroll(attention, torch.randn(2, 7, 4), attention.prepare(torch.randn(2, 9, 5)))
    assert attended.weights.shape == (2, 7, 9)
    assert attended.state.step == 7


@pytest.mark.usefixtures("without_shapes")
def test_mistyped_names_get_a_suggestion():
    with pytest.raises(MechanismError, match=r"kind must be known; got 'genral'.*'general'"):
        luong("genral", query_dim=4, key_dim=4)
    with pytest.raises(MechanismError, match="local must be None or known; got 'monotone'"):
        luong(query_dim=4, key_dim=4, local="monotone")
    with pytest.raises(MechanismError, match="query_dim must be given for heads; got None"):
        scaled_dot_product(num_heads=2)
    assert set(PRESETS) == {
        "bahdanau",
        "luong",
        "show_attend_tell",
        "scaled_dot_product",
        "location_sensitive",
    }
