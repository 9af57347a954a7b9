"""Scores by a small layer with tanh, and what may be added inside it."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import functional, kernels
from regard.attention.parts import Score, State, Traits
from regard.attention.scores.sizes import check_positive
from regard.errors import MechanismError


class Additive(Score):
    """Score by a small layer: `e_ij = w · tanh(W_q q_i + W_k k_j + b)`.

    The relevance of the first attention models; query and key may differ in size. It is not
    the dot product of two projections: the tanh comes before the sum over the hidden layer.
    With weight normalisation `w` is replaced by `g · v / ‖v‖`, whose length `g`, learned apart
    from its direction, begins at `1/√hidden_dim`.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.
        bias: Whether the layer has the bias `b`.
        weight_norm: Whether the vector's length is learned apart.

    Raises:
        MechanismError: A size is below 1.

    Example:
        >>> score = Additive(query_dim=4, key_dim=3, hidden_dim=5)
        >>> prepared = score.prepare(torch.zeros(2, 6, 3))
        >>> score(torch.zeros(2, 1, 4), prepared).shape
        torch.Size([2, 1, 6])

    References:
        Bahdanau, Cho and Bengio, Neural machine translation by jointly learning to align and
        translate, 2015; Raffel et al. 2017 (weight normalisation).
    """

    query_dim: int
    key_dim: int

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        *,
        hidden_dim: int,
        bias: bool = True,
        weight_norm: bool = False,
    ) -> None:
        super().__init__()
        check_positive(query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden_dim)
        self.query_dim, self.key_dim, self.hidden_dim = query_dim, key_dim, hidden_dim
        self.query_projection = nn.Linear(query_dim, hidden_dim, bias=False)
        self.key_projection = nn.Linear(key_dim, hidden_dim, bias=bias)
        self.vector = nn.Parameter(torch.empty(hidden_dim))
        self.length = nn.Parameter(torch.empty(())) if weight_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.query_projection.reset_parameters()
        self.key_projection.reset_parameters()
        bound = 1.0 / math.sqrt(self.hidden_dim)
        nn.init.uniform_(self.vector, -bound, bound)
        if self.length is not None:
            nn.init.constant_(self.length, bound)

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Project the keys: `W_k k_j + b`."""
        projected: Tensor = self.key_projection(key)
        return projected

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        return kernels.additive_scores(self.query_projection(query), prepared_key, self._vector())

    def read(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        value: Float[Tensor, "*lead keys value_dim"],
        mask: Bool[Tensor, "..."] | None,
        *,
        temperature: float = 1.0,
    ) -> Float[Tensor, "*lead queries value_dim"] | None:
        """Read values by the softmax of the scores, with neither scores nor weights in memory."""
        vector = self._vector() if temperature == 1.0 else self._vector() / temperature
        projected = self.query_projection(query)
        return kernels.additive_attention(projected, prepared_key, vector, value, mask=mask)

    def _vector(self) -> Tensor:
        if self.length is None:
            return self.vector
        return functional.unit(self.vector) * self.length

    def extra_repr(self) -> str:
        """Name the sizes."""
        return f"query_dim={self.query_dim}, key_dim={self.key_dim}, hidden_dim={self.hidden_dim}"


class Coverage(Score):
    """Score with a look at what has been read: `e_ij = w · tanh(W_q q_i + W_k k_j + u c_ij + b)`.

    `c_ij` is the sum of the weights that item `j` got at all earlier steps, zero at the first.
    Use it where every item must be read about once, and nothing twice: translation, summaries.
    It looks at how much was read, LocationSensitive at where.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.

    Raises:
        MechanismError: A size is below 1.

    References:
        Tu et al., Modeling coverage for neural machine translation, 2016; See, Liu and Manning,
        Get to the point: summarization with pointer-generator networks, 2017.
    """

    traits = Traits(stateful=True)
    query_dim: int
    key_dim: int

    def __init__(self, query_dim: int, key_dim: int, *, hidden_dim: int) -> None:
        super().__init__()
        self.additive = Additive(query_dim, key_dim, hidden_dim=hidden_dim)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.coverage_projection = nn.Linear(1, hidden_dim, bias=False)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.additive.reset_parameters()
        self.coverage_projection.reset_parameters()

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Project the keys: `W_k k_j + b`."""
        return self.additive.prepare(key)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        if state is None:
            return self.additive(query, prepared_key)  # type: ignore[no-any-return]
        return kernels.additive_scores(
            self.additive.query_projection(query),
            prepared_key,
            self.additive.vector,
            features=state.total.to(query.dtype).unsqueeze(-1),  # (..., queries, keys, 1)
            matrix=self.coverage_projection.weight.t(),
        )


class LocationSensitive(Score):
    """Score with a look at where it was: `e_ij = w · tanh(W_q q_i + W_k k_j + U f_ij + b)`.

    `f_i = F * α_{i-1}` are features that a convolution along the items makes of the weights of
    the step before (zeros at the first), so that the score can learn to move on. For sequences
    read in order, such as speech. `cumulative` convolves the sum of all earlier weights instead.

    Args:
        query_dim: Size of the queries.
        key_dim: Size of the keys.
        hidden_dim: Size of the layer in between.
        channels: How many features the convolution makes.
        kernel_size: How many items each looks at, odd.
        cumulative: Whether the sum of all earlier weights is convolved.

    Raises:
        MechanismError: A size is below 1, or the kernel is even.

    References:
        Chorowski et al., Attention-based models for speech recognition, 2015; Shen et al.,
        Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions, 2018
        (cumulative).
    """

    traits = Traits(permutation_equivariant=False, stateful=True)
    query_dim: int
    key_dim: int

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        *,
        hidden_dim: int,
        channels: int = 32,
        kernel_size: int = 31,
        cumulative: bool = False,
    ) -> None:
        super().__init__()
        check_positive(channels=channels, kernel_size=kernel_size)
        if kernel_size % 2 == 0:
            raise MechanismError(
                f"kernel_size must be odd; got {kernel_size}. It is centred on an item."
            )
        self.additive = Additive(query_dim, key_dim, hidden_dim=hidden_dim)
        self.query_dim, self.key_dim = query_dim, key_dim
        self.cumulative = cumulative
        self.convolution = nn.Conv1d(1, channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.location_projection = nn.Linear(channels, hidden_dim, bias=False)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.additive.reset_parameters()
        self.convolution.reset_parameters()
        self.location_projection.reset_parameters()

    def prepare(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys dim"]:
        """Project the keys: `W_k k_j + b`."""
        return self.additive.prepare(key)

    def forward(
        self,
        query: Float[Tensor, "*lead queries query_dim"],
        prepared_key: Float[Tensor, "*lead keys dim"],
        state: State | None = None,
    ) -> Float[Tensor, "*lead queries keys"]:
        """Score every prepared key for every query."""
        if state is None or state.weights.numel() == 0:
            return self.additive(query, prepared_key)  # type: ignore[no-any-return]
        seen = (state.total if self.cumulative else state.weights).to(query.dtype)
        features = self.convolution(seen.flatten(0, -2).unsqueeze(1))  # (rows, channels, keys)
        located = features.transpose(1, 2)  # (rows, keys, channels)
        return kernels.additive_scores(
            self.additive.query_projection(query),
            prepared_key,
            self.additive.vector,
            features=located.unflatten(0, seen.shape[:-1]),
            matrix=self.location_projection.weight.t(),
        )
