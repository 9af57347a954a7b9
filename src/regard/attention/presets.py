"""Attentions of the papers, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from regard.attention.core import Attention
from regard.attention.multihead import MultiHead
from regard.attention.parts import Mechanism, Score, Selection
from regard.attention.scores import (
    Additive,
    Bilinear,
    Dot,
    Location,
    LocationSensitive,
    ScaledDot,
)
from regard.attention.selections import (
    LocalMonotonic,
    LocalPredictive,
    Sampled,
    Sigmoid,
    Softmax,
)
from regard.errors import MechanismError, did_you_mean


def bahdanau(
    query_dim: int, key_dim: int, hidden_dim: int, *, normalised: bool = False
) -> Attention:
    """Return additive attention with the softmax, as translation first used it.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.
        normalised: Whether the vector's length is learned apart (weight normalisation).

    Returns:
        The attention.

    References:
        Bahdanau, Cho and Bengio 2015.
    """
    return Attention(Additive(query_dim, key_dim, hidden_dim=hidden_dim, weight_norm=normalised))


def luong(
    kind: Literal["dot", "general", "concat", "location"] = "general",
    *,
    query_dim: int,
    key_dim: int,
    hidden_dim: int | None = None,
    local: Literal["monotonic", "predictive"] | None = None,
    half_width: int = 10,
    max_keys: int = 512,
) -> Attention:
    """Return one of Luong's attentions: four scores, over all items or near a place.

    Args:
        kind: The score: "dot", "general" (Bilinear), "concat" (Additive without a bias) or
            "location".
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer of "concat"; by default that of the queries.
        local: "monotonic" (local-m), "predictive" (local-p), or None for all items.
        half_width: `D` of the local ones.
        max_keys: How many places "location" has.

    Returns:
        The attention.

    Raises:
        MechanismError: A name is unknown, or the sizes of "dot" differ.

    References:
        Luong, Pham and Manning 2015.
    """
    hidden = query_dim if hidden_dim is None else hidden_dim
    scores: dict[str, Callable[[], Score]] = {
        "dot": lambda: Dot(query_dim, key_dim),
        "general": lambda: Bilinear(query_dim, key_dim),
        "concat": lambda: Additive(query_dim, key_dim, hidden_dim=hidden, bias=False),
        "location": lambda: Location(query_dim, key_dim, max_keys=max_keys),
    }
    selections: dict[str | None, Callable[[], Selection]] = {
        None: Softmax,
        "monotonic": lambda: LocalMonotonic(half_width),
        "predictive": lambda: LocalPredictive(query_dim, half_width=half_width),
    }
    if kind not in scores:
        raise MechanismError(f"kind must be known; got {kind!r}: {did_you_mean(kind, scores)}")
    if local not in selections:
        known = did_you_mean(str(local), ["monotonic", "predictive"])
        raise MechanismError(f"local must be None or known; got {local!r}: {known}")
    return Attention(scores[kind](), selections[local]())


def show_attend_tell(
    query_dim: int, key_dim: int, hidden_dim: int, *, hard: bool = False
) -> Attention:
    """Return the attention over parts of a picture, soft or hard.

    Args:
        query_dim: Size of the decoder's state.
        key_dim: Size of the features of a part.
        hidden_dim: Size of the layer in between.
        hard: Whether one part is drawn instead of all being weighed; train it with
            `regard.losses.Reinforce`.

    Returns:
        The attention.

    References:
        Xu et al., Show, attend and tell, 2015.
    """
    score = Additive(query_dim, key_dim, hidden_dim=hidden_dim)
    return Attention(score, Sampled() if hard else Softmax())


def scaled_dot_product(
    query_dim: int | None = None, *, num_heads: int | None = None, key_dim: int | None = None
) -> Mechanism:
    """Return the attention of the Transformer, plain or in heads with projections.

    Args:
        query_dim: Size of the queries; needed for heads.
        num_heads: How many heads; None for plain attention without a parameter.
        key_dim: Size of the keys, for heads; by default that of the queries.

    Returns:
        An `Attention`, or a `MultiHead`.

    Raises:
        MechanismError: Heads are asked for without a size, or do not divide it.

    References:
        Vaswani et al., Attention is all you need, 2017.
    """
    if num_heads is None:
        return Attention(ScaledDot(query_dim, key_dim))
    if query_dim is None:
        raise MechanismError(f"query_dim must be given for heads; got None for {num_heads} heads.")
    return MultiHead(num_heads, query_dim, key_dim=key_dim)


def location_sensitive(
    query_dim: int,
    key_dim: int,
    hidden_dim: int,
    *,
    channels: int = 32,
    kernel_size: int = 31,
    cumulative: bool = False,
    smoothing: bool = False,
) -> Attention:
    """Return the attention of speech recognition, which sees where it was.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.
        channels: How many features the convolution over earlier weights makes.
        kernel_size: How many items each looks at, odd.
        cumulative: Whether the sum of all earlier weights is convolved (Tacotron 2).
        smoothing: Whether sigmoids over their sum take the place of the softmax.

    Returns:
        The attention.

    References:
        Chorowski et al. 2015; Shen et al. 2018.
    """
    score = LocationSensitive(
        query_dim,
        key_dim,
        hidden_dim=hidden_dim,
        channels=channels,
        kernel_size=kernel_size,
        cumulative=cumulative,
    )
    return Attention(score, Sigmoid(normalise=True) if smoothing else Softmax())


PRESETS: dict[str, Callable[..., Mechanism]] = {
    "bahdanau": bahdanau,
    "luong": luong,
    "show_attend_tell": show_attend_tell,
    "scaled_dot_product": scaled_dot_product,
    "location_sensitive": location_sensitive,
}
