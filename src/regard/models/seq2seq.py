"""Encoder and decoder joined: from one sequence to another."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from regard.attention.losses import Reinforce
from regard.errors import MechanismError
from regard.models.decoder import Decoded, Decoder, DecoderState
from regard.models.encoders import Encoder
from regard.models.mechanisms import check_order


class Step(NamedTuple):
    """One step of decoding, for every hypothesis.

    Args:
        log_probs: Logarithms of the probabilities of the next token.
        weights: Where the decoder looked, `(batch, maps, hypotheses, keys)`.
        state: The state after the step.
    """

    log_probs: Float[Tensor, "batch hypotheses vocabulary"]
    weights: Float[Tensor, "batch maps hypotheses keys"]
    state: DecoderState


class Seq2Seq(nn.Module):
    """An encoder and a decoder that looks at the encoder's items.

    Args:
        encoder: From tokens to items.
        decoder: From tokens written so far, with a look at the items, to features.
        tied: Whether the output layer shares its matrix with the decoder's embedding.
        reinforce: What trains the choices of a decoder that draws where it looks; its baseline is
            saved with the model. See `regard.models.choices`.

    Raises:
        MechanismError: Tied, and the features have another size than the embedding; or an
            attention goes by the places of items that the encoder makes a set.

    References:
        Bahdanau, Cho and Bengio 2015; Press and Wolf 2017 (tied embeddings).
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        *,
        tied: bool = True,
        reinforce: Reinforce | None = None,
    ) -> None:
        super().__init__()
        vocabulary, dim = decoder.embedding.weight.shape
        if tied and dim != decoder.out_dim:
            raise MechanismError(
                f"features must have the size of the embedding to be tied; got {decoder.out_dim} "
                f"and {dim}. Use tied=False."
            )
        for attention in decoder.attentions():
            check_order(attention, ordered=encoder.ordered)
        self.encoder, self.decoder, self.tied = encoder, decoder, tied
        self.output = None if tied else nn.Linear(decoder.out_dim, vocabulary, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.reinforce = reinforce

    def forward(
        self,
        source: Shaped[Tensor, "batch size *rest"],
        source_mask: Bool[Tensor, "batch keys"],
        tokens: Int[Tensor, "batch tokens"],
    ) -> Decoded:
        """Read source sequences, and target sequences that begin with the start token.

        Args:
            source: Source tokens, or what else the encoder reads.
            source_mask: True where a source token, or a cell, is real.
            tokens: Target tokens, each of which foretells the next.

        Returns:
            Features and weights for every target token read.
        """
        decoded: Decoded = self.decoder(tokens, self.encoder(source, source_mask))
        return decoded

    def logits(self, features: Float[Tensor, "*lead dim"]) -> Float[Tensor, "*lead vocabulary"]:
        """Score every token of the vocabulary as the next one."""
        matrix = self.decoder.embedding.weight if self.output is None else self.output.weight
        return nn.functional.linear(features, matrix, self.bias)

    def begin(
        self, source: Shaped[Tensor, "batch size *rest"], source_mask: Bool[Tensor, "batch keys"]
    ) -> DecoderState:
        """Encode a batch and return the state before the first token."""
        return self.decoder.start(self.encoder(source, source_mask))

    def step(self, tokens: Int[Tensor, "batch hypotheses"], state: DecoderState) -> Step:
        """Read one more token of every hypothesis and foretell the next."""
        decoded, after = self.decoder.step(tokens.to(self.bias.device), state)
        log_probs = self.logits(decoded.features).float().log_softmax(dim=-1)
        return Step(log_probs, decoded.weights, after)


def token_loss(
    model: Seq2Seq,
    features: Float[Tensor, "batch tokens dim"],
    targets: Int[Tensor, "batch tokens"],
    *,
    padding: int,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Sum the cross-entropy over all target tokens that are not padding.

    Args:
        model: The model that made the features.
        features: One vector for each token to foretell.
        targets: The tokens to foretell.
        padding: The token that counts for nothing.
        smoothing: Share of the probability that is spread over the vocabulary.

    Returns:
        The sum, zero where all is padding.
    """
    real = targets != padding
    logits = model.logits(features[real])  # (real tokens, vocabulary): no work on padding
    return nn.functional.cross_entropy(
        logits.float(), targets[real], reduction="sum", label_smoothing=smoothing
    )
