"""A model as graphs of tensors alone: its encoder, and one step of its decoder.

What a step hands on is a list of tensors with fixed places, so that a program in another
language can keep the loop. Sequences stay padded and masked; nothing is packed.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from regard.errors import MechanismError
from regard.models.decoder import DecoderState
from regard.models.decoders import RecurrentDecoder
from regard.models.encoders import Encoded
from regard.models.seq2seq import Seq2Seq

Tensors = tuple[Tensor, ...]


class StateLayout:
    """Where the tensors of a decoder's state stand, by names such as `memory_0_key`.

    Args:
        state: A state before the first token. Masks in it must be that of the source, which a
            step is given beside the state.
    """

    def __init__(self, state: DecoderState) -> None:
        paths, self._spec = pytree.tree_flatten_with_path(state)
        names = ["_".join(_name(part) for part in path) for path, _ in paths]
        tensors = [isinstance(leaf, Tensor) for _, leaf in paths]
        self._fixed = [
            None if there else leaf for there, (_, leaf) in zip(tensors, paths, strict=True)
        ]
        self._names = [name if there else "" for name, there in zip(names, tensors, strict=True)]

    @property
    def names(self) -> tuple[str, ...]:
        """What a step is given beside token and mask: the items made ready, and what changes."""
        return tuple(name for name in self._names if name and not name.endswith("_mask"))

    @property
    def changing(self) -> tuple[str, ...]:
        """What a step hands on."""
        return tuple(name for name in self.names if not name.startswith("memory_"))

    def tensors(self, state: DecoderState, names: tuple[str, ...]) -> Tensors:
        """List the tensors of a state that have some names."""
        leaves = dict(zip(self._names, pytree.tree_leaves(state), strict=True))
        return tuple(leaves[name] for name in names)

    def state(self, tensors: Tensors, mask: Tensor) -> DecoderState:
        """Make a state of its tensors; where it stands in the sentence is not kept."""
        given = dict(zip(self.names, tensors, strict=True))
        leaves = [
            given.get(name, mask) if name else fixed
            for name, fixed in zip(self._names, self._fixed, strict=True)
        ]
        made: DecoderState = pytree.tree_unflatten(leaves, self._spec)
        return made


def _name(part: Any) -> str:
    return str(getattr(part, "name", getattr(part, "idx", "")))


class EncoderGraph(nn.Module):
    """From source tokens to what a decoder begins with.

    Args:
        model: The model.
        layout: Where the tensors of its state stand; None for a decoder that reads all tokens
            again at each step, which is given the items and the final vector.
    """

    def __init__(self, model: Seq2Seq, layout: StateLayout | None) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    @property
    def names(self) -> tuple[str, ...]:
        """Name what it returns."""
        return ("memory", "final") if self.layout is None else self.layout.names

    def forward(
        self, source: Int[Tensor, "batch keys"], mask: Bool[Tensor, "batch keys"]
    ) -> Tensors:
        """Encode, and return the tensors before the first token."""
        encoded = self.model.encoder(source, mask)
        if self.layout is None:
            return encoded.memory, encoded.final
        return self.layout.tensors(self.model.decoder.start(encoded), self.layout.names)


class StepGraph(nn.Module):
    """One more token for each sentence: what comes next, where was looked, and what changes.

    Args:
        model: A model whose decoder is recurrent.
        layout: Where the tensors of its state stand.
    """

    def __init__(self, model: Seq2Seq, layout: StateLayout) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    def forward(
        self, token: Int[Tensor, " batch"], mask: Bool[Tensor, "batch keys"], *state: Tensor
    ) -> Tensors:
        """Return log-probabilities `(batch, vocabulary)`, weights `(batch, maps, keys)`, state."""
        step = self.model.step(token.unsqueeze(1), self.layout.state(state, mask))
        after = self.layout.tensors(step.state, self.layout.changing)
        return step.log_probs.squeeze(1), step.weights.squeeze(2), *after


class PrefixGraph(nn.Module):
    """The next token from all tokens so far, for decoders whose caches would grow.

    Args:
        model: A model whose decoder is a Transformer or a network of convolutions.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Int[Tensor, "batch tokens"],
        mask: Bool[Tensor, "batch keys"],
        memory: Float[Tensor, "batch keys dim"],
        final: Float[Tensor, "batch final_dim"],
    ) -> Tensors:
        """Return log-probabilities `(batch, vocabulary)` and weights `(batch, maps, keys)`."""
        decoded = self.model.decoder(tokens, Encoded(memory, mask, final))
        logits = self.model.logits(decoded.features[:, -1]).float()
        return logits.log_softmax(dim=-1), decoded.weights[:, :, -1]


def graphs(
    model: Seq2Seq, source: Tensor, mask: Tensor
) -> tuple[EncoderGraph, StepGraph | PrefixGraph]:
    """Make the graphs of a model.

    Args:
        model: The model, in evaluation.
        source: Some source tokens, to see what a state is made of.
        mask: Their mask.

    Returns:
        The encoder, and a step of the decoder.

    Raises:
        MechanismError: The decoder's attention depends on where earlier steps looked, or draws.
    """
    for attention in model.decoder.attentions():
        if attention.traits.stateful or attention.traits.stochastic:
            raise MechanismError(
                f"attention must neither depend on earlier steps nor draw to be exported; got "
                f"{attention.name}. Train a model with another score and selection."
            )
    if not isinstance(model.decoder, RecurrentDecoder):
        return EncoderGraph(model, None), PrefixGraph(model)
    with torch.no_grad():
        layout = StateLayout(model.begin(source, mask))
    return EncoderGraph(model, layout), StepGraph(model, layout)
