"""Training the choices of a decoder that draws where it looks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import Attention
from regard.attention.losses import marginal_log_likelihood, reward_to_go
from regard.attention.selections import Sampled
from regard.errors import MechanismError
from regard.models.decoder import Decoded
from regard.models.decoders import RecurrentDecoder
from regard.models.seq2seq import Seq2Seq

_Batch = TypeVar("_Batch")


def choice_loss(
    model: Seq2Seq, decoded: Decoded, targets: Int[Tensor, "batch tokens"], *, padding: int
) -> Float[Tensor, ""]:
    """Sum what REINFORCE makes of the places that were drawn; zero where none was.

    A choice is rewarded by the logarithm of the probability of its own token. Where later tokens
    depend on what was read for this one, it is rewarded by the mean over its own and all later
    tokens, so that one baseline serves long remainders and short ones.

    Args:
        model: The model, with its `reinforce`.
        decoded: What its decoder made of the tokens, in training.
        targets: The tokens to foretell.
        padding: The token that counts for nothing.

    Returns:
        The sum over all choices, times the model's weight for it.
    """
    if model.reinforce is None or decoded.log_prob is None:
        return decoded.features.new_zeros(())
    real = targets != padding
    with torch.no_grad():
        logits = model.logits(decoded.features).float().transpose(1, 2)
        reward = -nn.functional.cross_entropy(logits, targets, reduction="none")
        if not _reads_apart(model):
            remaining = reward_to_go(torch.ones_like(reward), real).clamp(min=1.0)
            reward = reward_to_go(reward, real) / remaining
    found = model.reinforce(
        decoded.log_prob,
        reward,
        distribution=decoded.distribution,
        query=decoded.query,
        mask=real,
    )
    loss: Tensor = found.loss
    return loss


def set_share(model: nn.Module, share: float) -> None:
    """Set the share of steps that draw where to look: see `regard.selections.Sampled`.

    Args:
        model: The model; selections that draw nothing are left alone.
        share: The probability that a step draws, from 0 to 1.

    Raises:
        MechanismError: The share does not lie in [0, 1].
    """
    if not 0.0 <= share <= 1.0:
        raise MechanismError(f"share must lie in [0, 1]; got {share}. 1.0 always draws.")
    for module in model.modules():
        if isinstance(module, Sampled):
            module.share = share


def annealed(
    model: nn.Module, batches: Generator[_Batch, None, None], share: Callable[[int], float]
) -> Generator[_Batch, None, None]:
    """Set the share of steps that draw before each batch is handed on.

    Args:
        model: The model.
        batches: What is handed on; closed at the end.
        share: From a batch's number to the share.

    Yields:
        The batches.
    """
    with contextlib.closing(batches):
        for number, batch in enumerate(batches):
            set_share(model, share(number))
            yield batch


def _reads_apart(model: Seq2Seq) -> bool:
    """Whether what is read for a token bears on that token alone."""
    decoder = model.decoder
    return isinstance(decoder, RecurrentDecoder) and decoder.order == "luong"


def marginal_loss(
    model: Seq2Seq,
    source: Int[Tensor, "batch keys"],
    source_mask: Bool[Tensor, "batch keys"],
    tokens: Int[Tensor, "batch tokens"],
    targets: Int[Tensor, "batch tokens"],
    *,
    padding: int,
) -> Float[Tensor, ""]:
    """Sum the exact loss over all places that could be chosen: `- log Σ_j s_tj p(y_t | z_t = v_j)`.

    What REINFORCE estimates by drawing, computed by reading out every item, for decoders in which
    a token is a function of one context alone: recurrent ones of the order "luong", with one map
    and no state. It costs the readout once for every item. It must not be confused with the loss
    of soft attention, `- log p(y_t | Σ_j s_tj v_j)`, which mixes items before they are read out.

    Args:
        model: The model.
        source: Source tokens.
        source_mask: True where a source token is real.
        tokens: Target tokens, each of which foretells the next.
        targets: The tokens to foretell.
        padding: The token that counts for nothing.

    Returns:
        The sum over all target tokens that are not padding.

    Raises:
        MechanismError: The decoder is of another kind.

    References:
        Deng et al., Latent alignment and variational attention, 2018.
    """
    decoder = model.decoder
    attention = decoder.reader.attention if isinstance(decoder, RecurrentDecoder) else None
    simple = isinstance(attention, Attention) and not attention.traits.stateful
    if not (isinstance(decoder, RecurrentDecoder) and simple and _reads_apart(model)):
        raise MechanismError(
            "model must foretell each token from one context for its exact loss; got "
            f"{type(decoder).__name__}. Use a recurrent decoder of the order 'luong', with one "
            "head and no state."
        )
    encoded = model.encoder(source, source_mask)
    outputs, look, values = decoder.read(tokens, encoded)
    shares = Decoded.having_seen(outputs, [look]).distribution[:, 0]  # (batch, tokens, keys)
    log_likelihoods = [
        _log_likelihood(model, decoder.features(outputs, value), targets)
        for value in values.unbind(dim=1)
    ]
    found = marginal_log_likelihood(shares, torch.stack(log_likelihoods, dim=-1))
    real = (targets != padding) & source_mask.any(dim=1, keepdim=True)
    return -found.masked_fill(~real, 0.0).sum()


def _log_likelihood(model: Seq2Seq, features: Tensor, targets: Tensor) -> Tensor:
    logits = model.logits(features).float().transpose(1, 2)
    return -nn.functional.cross_entropy(logits, targets, reduction="none")
