"""Reading a memory several times: what was read decides what is looked for next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import Attention
from regard.attention.functional import widened
from regard.attention.parts import Selected, Selection, State, Traits
from regard.errors import MechanismError, ShapeError

Update = Literal["sum", "matrix", "matrices"]
Rectified = Literal["none", "half", "all"]

DEVIATION = 0.1
"""Standard deviation of the normal distribution that weights are drawn from."""


class Linear(Selection):
    """Weights that are the scores themselves: `s_ij = e_ij`.

    For the linear start of a memory network: without the softmax there is nothing that saturates
    while the embeddings are still random. Weights may be negative, and sum to anything.

    References:
        Sukhbaatar et al., End-to-end memory networks, 2015.
    """

    traits = Traits(normalised=False)

    def forward(
        self,
        scores: Float[Tensor, "*lead queries keys"],
        mask: Bool[Tensor, "..."] | None,
        *,
        query: Float[Tensor, "*lead queries query_dim"] | None = None,
        state: State | None = None,
        generator: torch.Generator | None = None,
    ) -> Selected:
        """Return the scores, zero wherever the mask is False."""
        weights = widened(scores)
        weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
        return Selected(weights, weights, None)


class HopReading(NamedTuple):
    """What was read from a memory.

    Args:
        state: What the last hop made of the query.
        weights: The weight of every slot in every hop.
    """

    state: Float[Tensor, "restarts batch dim"]
    weights: Float[Tensor, "restarts batch hops slots"]


class Hops(nn.Module):
    """Several readings of a memory, one after the other: `u_{k+1} = u_k + o_k`.

    `p_ki = softmax_i(u_k · m_ki)` over the slots `i`, `o_k = Σ_i p_ki c_ki`, with the keys `m_k`
    and the values `c_k` of hop `k`. All restarts of a model are read at once: they have a leading
    axis, and parameters of their own. Slots that the mask hides have no weight, and a memory
    without any slot leaves the query as it is (under `sum`).

    Args:
        dim: Size of query, keys and values.
        hops: How many times the memory is read.
        update: How the next query is made: "sum" is `u + o`; "matrix" is `H u + o`, with one `H`
            for all hops; "matrices" is `R_k (u + o)`, as in key-value memory networks.
        rectified: Whether a ReLU follows each hop: for "none", "half" or "all" of the features.
        restarts: How many models are read at once.

    Raises:
        MechanismError: A number is below 1.

    References:
        Sukhbaatar et al., End-to-end memory networks, 2015; Miller et al., Key-value memory
        networks for directly reading documents, 2016.
    """

    def __init__(
        self,
        dim: int,
        *,
        hops: int = 3,
        update: Update = "sum",
        rectified: Rectified = "none",
        restarts: int = 1,
    ) -> None:
        super().__init__()
        for name, value in {"dim": dim, "hops": hops, "restarts": restarts}.items():
            if value < 1:
                raise MechanismError(f"{name} must be at least 1; got {value}. Raise it.")
        self.dim, self.hops, self.update, self.rectified = dim, hops, update, rectified
        count = {"sum": 0, "matrix": 1, "matrices": hops}[update]
        self.transforms = nn.ParameterList(
            nn.Parameter(torch.empty(restarts, dim, dim)) for _ in range(count)
        )
        self.attention = Attention("dot", "softmax")
        self.linear_attention = Attention("dot", Linear())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrices anew."""
        for matrix in self.transforms:
            nn.init.normal_(matrix, std=DEVIATION)

    def forward(
        self,
        query: Float[Tensor, "restarts batch dim"],
        keys: Sequence[Float[Tensor, "restarts batch slots dim"]],
        values: Sequence[Float[Tensor, "restarts batch slots dim"]],
        mask: Bool[Tensor, "batch slots"],
        *,
        linear: bool = False,
    ) -> HopReading:
        """Read the memory.

        Args:
            query: What is asked, of each restart.
            keys: The keys of each hop.
            values: The values of each hop.
            mask: True = may attend: where there is something in a slot.
            linear: Whether the softmax is left out.

        Returns:
            The last state, and the weights of all hops.

        Raises:
            ShapeError: There are not as many keys and values as hops, or a shape is wrong.
        """
        self._check(query, keys, values)
        attention = self.linear_attention if linear else self.attention
        restarts, batch, dim = query.shape
        allowed = mask.expand(restarts, *mask.shape).flatten(0, 1)  # (restarts * batch, slots)
        state, weights = query, []
        for hop, (key, value) in enumerate(zip(keys, values, strict=True)):
            read = attention(
                state.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1), mask=allowed
            )
            state = self._next(state, read.context.view(restarts, batch, dim), hop)
            weights.append(read.weights.view(restarts, batch, mask.shape[1]))
        return HopReading(state, torch.stack(weights, dim=2))

    def _next(self, state: Tensor, read: Tensor, hop: int) -> Tensor:
        if self.update == "sum":
            state = state + read
        elif self.update == "matrix":
            state = state @ self.transforms[0] + read
        else:
            state = (state + read) @ self.transforms[hop]
        if self.rectified == "none":
            return state
        if self.rectified == "all":
            return state.relu()
        kept = self.dim - self.dim // 2
        return torch.cat([state[..., :kept], state[..., kept:].relu()], dim=-1)

    def _check(self, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        if len(keys) != self.hops or len(values) != self.hops:
            raise ShapeError(
                f"keys and values must be given for each of the {self.hops} hops; got {len(keys)} "
                f"and {len(values)}. Repeat them where hops share them."
            )
        if query.dim() != 3 or query.shape[-1] != self.dim:
            raise ShapeError(
                f"query must have shape (restarts, batch, {self.dim}); got {tuple(query.shape)}. "
                "Put an axis of 1 before a single model's."
            )
        lead = (*query.shape[:2],)
        for name, parts in (("key", keys), ("value", values)):
            for part in parts:
                if part.dim() != 4 or part.shape[:2] != lead or part.shape[-1] != self.dim:
                    raise ShapeError(
                        f"{name} must have shape ({lead[0]}, {lead[1]}, slots, {self.dim}); got "
                        f"{tuple(part.shape)}. Embed the memory with the size of the query."
                    )
