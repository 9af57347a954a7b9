"""Addressing as arithmetic: how a head that reads or writes finds its slots.

A memory has slots, a row of numbers each. A head has weights over the slots, at least 0 and at
most 1 together. Three families find them: the Neural Turing Machine's (content, interpolation,
shift, sharpening), least recently used access, and the Differentiable Neural Computer's (usage,
allocation, temporal links). Half precision is raised to float32 throughout.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import functional

LEAST_LENGTH = 1e-3  # of a slot or a key that has a direction
LEAST_WEIGHT = 1e-30  # that sharpening tells from nothing


def bounded(raw: Float[Tensor, "*any"], cap: float) -> Float[Tensor, "*any"]:
    """Turn any number into one from 0 to a cap: `softplus(cap - softplus(cap - x))`.

    It is `softplus(x)` well below the cap, and flattens out there: a key strength or an exponent
    that may grow for ever is where machines end in NaN. Unlike a clamp it has a gradient on both
    sides.

    Args:
        raw: What a controller says.
        cap: What it comes close to, a few units above zero at least.

    Returns:
        Numbers from 0 to `softplus(cap)`, in float32 or wider.
    """
    with functional.full_precision(raw):
        below = cap - nn.functional.softplus(cap - functional.widened(raw))
        return nn.functional.softplus(below)


def _directed(vectors: Float[Tensor, "*lead dim"]) -> Float[Tensor, "*lead dim"]:
    """Bring vectors near length 1, and those that are next to nothing near 0.

    An empty slot resembles no key, and the gradient into it stays below `1 / LEAST_LENGTH`.
    """
    wide = functional.widened(vectors)
    squared = wide.square().sum(dim=-1, keepdim=True)
    return wide * (squared + LEAST_LENGTH**2).rsqrt()


def content_weights(
    memory: Float[Tensor, "batch slots width"],
    key: Float[Tensor, "batch heads width"],
    strength: Float[Tensor, "batch heads 1"],
) -> Float[Tensor, "batch heads slots"]:
    """Weigh slots by likeness to a key: `softmax_i(β · cos(k, M_i))`.

    The attention of Cosine and Softmax, with a strength that each head chooses at each step.

    Args:
        memory: The slots `M_i`.
        key: The key `k` of each head.
        strength: `β`, at least 0; 0 weighs all slots alike.

    Returns:
        The weights; they sum to 1.

    References:
        Graves, Wayne and Danihelka, Neural Turing machines, 2014.
    """
    with functional.full_precision(memory):
        scores = functional.dot_scores(_directed(key), _directed(memory))
        return functional.masked_softmax(scores * functional.widened(strength), None)


def interpolated(
    content: Float[Tensor, "batch heads slots"],
    before: Float[Tensor, "batch heads slots"],
    gate: Float[Tensor, "batch heads 1"],
) -> Float[Tensor, "batch heads slots"]:
    """Choose between content and the last place: `g · c + (1 - g) · w_{t-1}`.

    Args:
        content: The weights by content `c`.
        before: The weights of the step before.
        gate: `g`, from 0 (stay where it was) to 1 (go where the content is).

    Returns:
        The weights in between.

    References:
        Graves, Wayne and Danihelka 2014.
    """
    return torch.lerp(before, content, gate)


def shifted(
    weights: Float[Tensor, "batch heads slots"],
    shift: Float[Tensor, "batch heads offsets"],
) -> Float[Tensor, "batch heads slots"]:
    """Move weights around the ring of slots: `w̃_i = Σ_d s_d · w_{i-d}`, indices modulo slots.

    Args:
        weights: The weights `w`.
        shift: How much goes by each offset `d`, from `-r` to `r`: an odd number of them, which
            may be larger than the number of slots.

    Returns:
        The weights moved; their sum is that of `w` times that of `s`.

    References:
        Graves, Wayne and Danihelka 2014.
    """
    slots, offsets = weights.shape[-1], shift.shape[-1]
    reach = offsets // 2
    around = torch.arange(-reach, slots + reach, device=weights.device) % slots
    windows = weights.index_select(-1, around).unfold(-1, offsets, 1)  # (..., slots, offsets)
    with functional.full_precision(weights):
        return (windows @ shift.flip(-1).unsqueeze(-1)).squeeze(-1)


def sharpened(
    weights: Float[Tensor, "batch heads slots"],
    exponent: Float[Tensor, "batch heads 1"],
) -> Float[Tensor, "batch heads slots"]:
    """Make weights sharper: `w_i^γ / Σ_j w_j^γ`, computed as `softmax(γ · log w)`.

    A power of weights that are all small underflows, and the sum it is divided by is then 0. Here
    neither occurs, and a weight of 0 stays next to nothing, with a gradient of 0.

    Args:
        weights: Weights of at least 0.
        exponent: `γ`, at least 1, which leaves weights that sum to 1 as they are.

    Returns:
        The weights; they sum to 1.

    References:
        Graves, Wayne and Danihelka 2014.
    """
    with functional.full_precision(weights):
        logs = functional.widened(weights).clamp(min=LEAST_WEIGHT).log()
        return (logs * functional.widened(exponent)).softmax(dim=-1)


def least_used(
    usage: Float[Tensor, "batch slots"], count: int
) -> Float[Tensor, "batch count slots"]:
    """Point at the slots used least, one for each of so many heads; the first among equals.

    Args:
        usage: How much each slot has been used.
        count: How many slots, at most all.

    Returns:
        Ones and zeros, the least used first; no gradient.

    References:
        Santoro et al., Meta-learning with memory-augmented neural networks, 2016, whose `w^lu`
        is their sum.
    """
    order = usage.detach().argsort(dim=-1, stable=True)[:, :count]
    nothing = usage.new_zeros(usage.shape[0], count, usage.shape[1])
    return nothing.scatter(-1, order.unsqueeze(-1), 1.0)


def recent_usage(
    usage: Float[Tensor, "batch slots"],
    read_weights: Float[Tensor, "batch readers slots"],
    write_weights: Float[Tensor, "batch writers slots"],
    *,
    decay: float,
) -> Float[Tensor, "batch slots"]:
    """Count how much slots were used of late: `u_t = γ · u_{t-1} + Σ w^r + Σ w^w`.

    Args:
        usage: The usage before.
        read_weights: Where heads read.
        write_weights: Where heads wrote.
        decay: `γ`, from 0 to below 1: what is left of the usage after a step.

    Returns:
        The usage after.

    References:
        Santoro et al. 2016.
    """
    return decay * usage + read_weights.sum(dim=1) + write_weights.sum(dim=1)


def next_usage(
    usage: Float[Tensor, "batch slots"],
    write_weights: Float[Tensor, "batch writers slots"],
    read_weights: Float[Tensor, "batch readers slots"],
    free: Float[Tensor, "batch readers 1"],
) -> Float[Tensor, "batch slots"]:
    """Say what is in use: written to before, and not freed after being read.

    `u_t = (u + w - u · w) · Π_r (1 - f_r · w^r)`, with `1 - w = Π (1 - w^w)` for several writers.

    Args:
        usage: The usage before, from 0 to 1.
        write_weights: Where heads wrote at the step before.
        read_weights: Where heads read at the step before.
        free: `f_r`, how far each reader gives its slots free.

    Returns:
        The usage after, from 0 to 1.

    References:
        Graves et al., Hybrid computing using a neural network with dynamic external memory, 2016.
    """
    unwritten = (1.0 - write_weights).prod(dim=1)
    retention = (1.0 - free * read_weights).prod(dim=1)
    return (1.0 - (1.0 - usage) * unwritten) * retention


def allocation(usage: Float[Tensor, "batch slots"]) -> Float[Tensor, "batch slots"]:
    """Weigh slots by how free they are, the freest first.

    With the slots sorted by usage, `a_j = (1 - u_j) · Π_{i < j} u_i`. The order counts as given in
    the gradient, as in the paper; slots of equal usage keep their order.

    Args:
        usage: From 0 to 1.

    Returns:
        Weights; their sum is 1 less the product of all usages: nothing is left where all is in use.

    References:
        Graves et al. 2016.
    """
    order = usage.detach().argsort(dim=-1, stable=True)
    ascending = usage.gather(-1, order)
    fuller = nn.functional.pad(ascending.cumprod(dim=-1), (1, 0), value=1.0)[:, :-1]
    return torch.zeros_like(usage).scatter(-1, order, (1.0 - ascending) * fuller)


def next_links(
    links: Float[Tensor, "batch writers slots slots"],
    precedence: Float[Tensor, "batch writers slots"],
    write_weights: Float[Tensor, "batch writers slots"],
) -> Float[Tensor, "batch writers slots slots"]:
    """Remember which slot was written after which.

    `L_ij ← (1 - w_i - w_j) · L_ij + w_i · p_j`, and 0 on the diagonal: `L_ij` is how far slot `i`
    was written right after slot `j`.

    Args:
        links: `L` before.
        precedence: `p`, where was written last (see `next_precedence`), before this step.
        write_weights: `w`, where is written now.

    Returns:
        The links after.

    References:
        Graves et al. 2016.
    """
    after, before = write_weights.unsqueeze(-1), write_weights.unsqueeze(-2)
    linked = (1.0 - after - before) * links + after * precedence.unsqueeze(-2)
    slots = links.shape[-1]
    return linked * (1.0 - torch.eye(slots, dtype=linked.dtype, device=linked.device))


def next_precedence(
    precedence: Float[Tensor, "batch writers slots"],
    write_weights: Float[Tensor, "batch writers slots"],
) -> Float[Tensor, "batch writers slots"]:
    """Say where was written last: `p ← (1 - Σ w) · p + w`.

    Args:
        precedence: `p` before.
        write_weights: `w`, where is written now.

    Returns:
        The precedence after.

    References:
        Graves et al. 2016.
    """
    return (1.0 - write_weights.sum(dim=-1, keepdim=True)) * precedence + write_weights


def followed(
    links: Float[Tensor, "batch writers slots slots"],
    read_weights: Float[Tensor, "batch readers slots"],
    *,
    backwards: bool = False,
) -> Float[Tensor, "batch readers writers slots"]:
    """Go from where a head read to what was written next: `L w`, or before: `Lᵀ w`.

    Args:
        links: `L`.
        read_weights: `w`, where each head read at the step before.
        backwards: Whether to go to what was written before.

    Returns:
        The weights of each reader, by each writer's links.

    References:
        Graves et al. 2016.
    """
    turned = links if backwards else links.transpose(-1, -2)
    with functional.full_precision(links):
        return (read_weights.unsqueeze(1) @ turned).transpose(1, 2)


def written(
    memory: Float[Tensor, "batch slots width"],
    weights: Float[Tensor, "batch writers slots"],
    erase: Float[Tensor, "batch writers width"],
    add: Float[Tensor, "batch writers width"],
) -> Float[Tensor, "batch slots width"]:
    """Erase, then add: `M_i ← M_i · Π_h (1 - w_hi · e_h) + Σ_h w_hi · a_h`.

    All heads erase before any adds, so that their order does not count.

    Args:
        memory: The slots `M_i`.
        weights: `w_h`, where each head writes.
        erase: `e_h`, from 0 to 1: how far each number is erased.
        add: `a_h`, what is added.

    Returns:
        The memory after.

    References:
        Graves, Wayne and Danihelka 2014.
    """
    kept = 1.0 - weights.unsqueeze(-1) * erase.unsqueeze(-2)  # (batch, writers, slots, width)
    whole = kept.squeeze(1) if kept.shape[1] == 1 else kept.prod(dim=1)
    with functional.full_precision(memory):
        return torch.baddbmm(memory * whole, weights.transpose(1, 2), add)
