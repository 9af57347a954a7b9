"""A left-to-right and a right-to-left decoder that rescore each other's n-best lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.models.choices import choice_loss
from regard.models.decoder import Decoded, DecoderState
from regard.models.decoding import (
    Hypothesis,
    Said,
    Search,
    Symbols,
    beam_search,
    forced_each,
    greedy_search,
)
from regard.models.seq2seq import Seq2Seq, token_loss
from regard.models.settings import Seq2SeqSettings, build_seq2seq


class PairState(NamedTuple):
    """The states of both models before the first token."""

    left_to_right: DecoderState
    right_to_left: DecoderState


class Seq2SeqPair(nn.Module):
    """Two models of one task: one writes from left to right, the other from right to left.

    A decoder cannot read what is not yet written, so none is bidirectional; but two decoders that
    write in opposite directions can judge each other's outputs:
    `score(y) = (log P→(y | x) + log P←(reversed y | x)) / penalty`. A decoder that is led astray
    is so mostly towards the end of what it writes, which is where the other began. Use it where
    quality counts more than time: it costs two searches and two readings. It must not be confused
    with a bidirectional encoder, which reads an input that is all there.

    The models share nothing, as in the papers: what one has learnt wrongly the other must not
    have learnt with it, and each alone is an ordinary `Seq2Seq`. An encoder of its own costs
    little beside the decoder and its vocabulary.

    Args:
        left_to_right: The model that writes from left to right; its weights are shown.
        right_to_left: The model that writes from right to left.

    References:
        Liu et al., Agreement on target-bidirectional neural machine translation, 2016; Sennrich
        et al., The University of Edinburgh's neural MT systems for WMT17, 2017.
    """

    def __init__(self, left_to_right: Seq2Seq, right_to_left: Seq2Seq) -> None:
        super().__init__()
        self.left_to_right, self.right_to_left = left_to_right, right_to_left

    def forward(
        self,
        source: Int[Tensor, "batch keys"],
        source_mask: Bool[Tensor, "batch keys"],
        tokens: Int[Tensor, "batch tokens"],
        reversed_tokens: Int[Tensor, "batch tokens"],
    ) -> tuple[Decoded, Decoded]:
        """Read source sequences, and target sequences in both directions, as in training.

        Args:
            source: Source tokens.
            source_mask: True where a source token is real.
            tokens: Target tokens that begin with the start token.
            reversed_tokens: The same in the other order, with the start token first again.

        Returns:
            What each model makes of them.
        """
        return (
            self.left_to_right(source, source_mask, tokens),
            self.right_to_left(source, source_mask, reversed_tokens),
        )

    def begin(
        self, source: Int[Tensor, "batch keys"], source_mask: Bool[Tensor, "batch keys"]
    ) -> PairState:
        """Encode a batch and return the states before the first token."""
        return PairState(
            self.left_to_right.begin(source, source_mask),
            self.right_to_left.begin(source, source_mask),
        )


AnySeq2Seq = Seq2Seq | Seq2SeqPair


def build_model(
    settings: Seq2SeqSettings, *, source_size: int, target_size: int, padding: int
) -> AnySeq2Seq:
    """Build a model, or a pair of them where the settings say `rescoring`.

    Args:
        settings: What it is made of.
        source_size: How many source tokens there are.
        target_size: How many target tokens there are.
        padding: The token whose embedding stays zero.

    Returns:
        The model, its parameters drawn from PyTorch's global generator.

    Raises:
        MechanismError: Sizes do not go together.
    """

    def build() -> Seq2Seq:
        return build_seq2seq(
            settings, source_size=source_size, target_size=target_size, padding=padding
        )

    return Seq2SeqPair(build(), build()) if settings.rescoring else build()


def reversed_outputs(
    outputs: Int[Tensor, "batch tokens"], padding: int
) -> Int[Tensor, "batch tokens"]:
    """Turn outputs round; the end mark stays behind them, and the padding behind it.

    Args:
        outputs: Target tokens, the end mark, and padding.
        padding: The token that counts for nothing.

    Returns:
        The same outputs in the other order.
    """
    counts = (outputs != padding).sum(dim=1, keepdim=True) - 1  # without the end mark
    places = torch.arange(outputs.shape[1], device=outputs.device).expand_as(outputs)
    return outputs.gather(1, torch.where(places < counts, counts - 1 - places, places))


def sequence_loss(
    model: AnySeq2Seq,
    source: Int[Tensor, "batch keys"],
    inputs: Int[Tensor, "batch tokens"],
    outputs: Int[Tensor, "batch tokens"],
    *,
    padding: int,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Sum the loss over all target tokens, for a pair over both directions.

    That is the cross-entropy and, where a decoder draws where it looks, what trains its choices.

    Args:
        model: A model, or a pair.
        source: Source tokens.
        inputs: Target tokens that are read, the start token first.
        outputs: Target tokens that are foretold, the end mark last.
        padding: The token that counts for nothing, on either side.
        smoothing: Share of the probability that is spread over the vocabulary.

    Returns:
        The sum; a pair foretells every token twice.
    """
    mask = source != padding
    if isinstance(model, Seq2Seq):
        decoded = model(source, mask, inputs)
        return _loss(model, decoded, outputs, padding=padding, smoothing=smoothing)
    turned = reversed_outputs(outputs, padding)
    read = torch.cat([inputs[:, :1], turned[:, :-1]], dim=1)
    ours, theirs = model(source, mask, inputs, read.masked_fill(inputs == padding, padding))
    return _loss(model.left_to_right, ours, outputs, padding=padding, smoothing=smoothing) + _loss(
        model.right_to_left, theirs, turned, padding=padding, smoothing=smoothing
    )


def _loss(
    model: Seq2Seq, decoded: Decoded, outputs: Tensor, *, padding: int, smoothing: float
) -> Tensor:
    features = decoded.features
    loss = token_loss(model, features, outputs, padding=padding, smoothing=smoothing)
    return loss + choice_loss(model, decoded, outputs, padding=padding)


@torch.no_grad()
def rescored(
    pair: Seq2SeqPair,
    state: PairState,
    outputs: Sequence[Sequence[tuple[int, ...]]],
    symbols: Symbols,
) -> list[list[Said]]:
    """Let both models read outputs that they are given.

    Args:
        pair: The models.
        state: Their states before the first token.
        outputs: For each sentence its outputs, from left to right, without the end mark.
        symbols: The control tokens.

    Returns:
        For each output the sum of both logarithms, and where the left-to-right model looked.
    """
    turned = [[output[::-1] for output in several] for several in outputs]
    ours = forced_each(pair.left_to_right, state.left_to_right, outputs, symbols)
    theirs = forced_each(pair.right_to_left, state.right_to_left, turned, symbols)
    return [
        [Said(a.log_prob + b.log_prob, a.weights) for a, b in zip(*both, strict=True)]
        for both in zip(ours, theirs, strict=True)
    ]


@torch.no_grad()
def pair_search(
    pair: Seq2SeqPair,
    source: Int[Tensor, "batch keys"],
    source_mask: Bool[Tensor, "batch keys"],
    symbols: Symbols,
    search: Search,
) -> list[list[Hypothesis]]:
    """Search with both models, and let each score what either has found.

    Each model proposes the `beam` best outputs of its own search (greedy with a beam of 1). Both
    read all of them, and the sum of both logarithms over the length penalty, with the coverage
    penalty of the left-to-right weights, decides.

    Args:
        pair: The models.
        source: Source tokens.
        source_mask: True where a source token is real.
        symbols: The control tokens.
        search: The settings of each search, and how many of all outputs are returned.

    Returns:
        For each sentence at least one and at most `nbest` hypotheses, the best first. Their
        `log_prob` is the sum of both, their weights are the left-to-right ones.

    Raises:
        DivergedError: A model says NaN, or leaves nothing that may be written.
        UserError: There is a coverage penalty, and the models do not look at the items.
    """
    if not len(source):
        return []
    state = pair.begin(source, source_mask)
    ours = _proposed(pair.left_to_right, state.left_to_right, source_mask, symbols, search)
    theirs = _proposed(pair.right_to_left, state.right_to_left, source_mask, symbols, search)
    outputs = [
        list(dict.fromkeys([*a, *(output[::-1] for output in b)]))
        for a, b in zip(ours, theirs, strict=True)
    ]
    found = []
    for row, said in enumerate(rescored(pair, state, outputs, symbols)):
        several = [
            one.hypothesis(output, search, source_mask[row].cpu())
            for output, one in zip(outputs[row], said, strict=True)
        ]
        found.append(sorted(several, key=lambda one: -one.score)[: search.nbest])
    return found


def _proposed(
    model: Seq2Seq, state: DecoderState, mask: Tensor, symbols: Symbols, search: Search
) -> list[list[tuple[int, ...]]]:
    batch = len(mask)
    if search.beam == 1:
        one = greedy_search(model, state, batch, symbols, search, mask=mask)
        return [[hypothesis.tokens] for hypothesis in one]
    wide = replace(search, nbest=search.beam)
    found = beam_search(model, state, batch, symbols, wide, mask=mask)
    return [[hypothesis.tokens for hypothesis in several] for several in found]
