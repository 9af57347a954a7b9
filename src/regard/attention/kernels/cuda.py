"""Fused additive attention on a graphics processor: Triton's loops over tiles.

Scores are never whole where only contexts are wanted: a few queries at a time are scored, turned
into weights and read by matrix products, so that memory grows with queries plus keys. Features of
pairs are left to the reference.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from regard.attention.kernels.inputs import Inputs, Source
from regard.errors import MissingExtraError

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
PAIRS = 1 << 24
"""How many scores are in memory at a time where only contexts are wanted."""


def serves(tensors: list[Tensor]) -> bool:
    """Tell whether these tensors can be worked on here: half precision or float32, on a GPU.

    Triton's interpreter, which tests use, takes those of a processor.
    """
    if any(t.dtype not in DTYPES or t.dim() > 3 for t in tensors) or _loops() is None:
        return False
    return all(t.device.type == "cuda" for t in tensors) or _interpreted()


def scores(inputs: Inputs) -> Tensor:
    """Return the scores, `(batch, queries, keys)`."""
    query, key, vector, *_ = inputs
    batch, queries, keys = inputs.pairs
    result = torch.empty(inputs.pairs, dtype=torch.float32, device=query.device)
    loops = _needed_loops()
    grid = (_tiles(queries, loops.QUERIES), _tiles(keys, loops.KEYS), batch)
    if result.numel():
        sizes = (queries, keys, vector.shape[0])
        common = (query.stride(), key.stride(), sizes, *_blocks(loops))
        loops.score[grid](query, key, vector.float().contiguous(), result, *common)
    return result


def spread_scores(inputs: Inputs, given: Tensor) -> list[Tensor | None]:
    """Return the gradients of the inputs, from those of the scores."""
    query, key, vector, *_ = inputs
    batch, queries, keys = inputs.pairs
    hidden = vector.shape[0]
    loops = _needed_loops()
    options = {"dtype": torch.float32, "device": query.device}
    to_query = torch.zeros(batch, queries, hidden, **options)  # type: ignore[arg-type]
    to_key = torch.zeros(batch, keys, hidden, **options)  # type: ignore[arg-type]
    rows, pieces = _tiles(queries, loops.QUERIES), _tiles(hidden, loops.HIDDEN)
    parts = torch.zeros(batch * rows, hidden, **options)  # type: ignore[arg-type]
    if given.numel():
        tensors = (query, key, vector.float().contiguous(), given.float().contiguous())
        common = (query.stride(), key.stride(), (queries, keys, hidden), *_blocks(loops))
        loops.spread_query[rows, pieces, batch](*tensors, to_query, parts, *common)
        loops.spread_key[_tiles(keys, loops.KEYS), pieces, batch](*tensors, to_key, *common)
    to_vector = parts.sum(dim=0, dtype=torch.float64)
    found = (to_query.to(query.dtype), to_key.to(key.dtype), to_vector.to(vector.dtype))
    return [*found, None, None]


def attention(inputs: Inputs, source: Source) -> tuple[Tensor, Tensor]:
    """Return the contexts, and the logarithm of each row's sum of exponentials."""
    contexts, log_totals = [], []
    for part, mask, _ in _parts(inputs, source):
        hidden_away = scores(part)
        if mask is not None:
            hidden_away = hidden_away.masked_fill(~mask, -torch.inf)
        totals = hidden_away.logsumexp(dim=-1)
        totals = totals.masked_fill(totals == -torch.inf, 0.0)
        weights = (hidden_away - totals.unsqueeze(-1)).exp()
        contexts.append(weights @ source.value.float())
        log_totals.append(totals)
    return torch.cat(contexts, dim=1), torch.cat(log_totals, dim=1)


def spread_context(
    inputs: Inputs, source: Source, kept: tuple[Tensor, Tensor], given: Tensor
) -> list[Tensor | None]:
    """Return the gradients of the inputs and the values, from those of the contexts."""
    value = source.value.float()
    to_key, to_vector, to_value = (torch.zeros_like(t) for t in (inputs.key, inputs.vector, value))
    to_key, to_vector = to_key.float(), to_vector.float()
    to_query = []
    for part, mask, rows in _parts(inputs, source):
        own, context, totals = given[:, rows].float(), kept[0][:, rows], kept[1][:, rows]
        weights = (scores(part) - totals.unsqueeze(-1)).exp()
        weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
        to_value += weights.transpose(1, 2) @ own
        inner = (own * context).sum(dim=-1, keepdim=True)
        slope = weights * (own @ value.transpose(1, 2) - inner)
        query, key, vector, *_ = spread_scores(part, slope)
        to_query.append(query)
        to_key += key
        to_vector += vector
    whole = torch.cat(to_query, dim=1)  # type: ignore[arg-type]
    found = (whole, to_key.to(inputs.key.dtype), to_vector.to(inputs.vector.dtype))
    return [*found, None, None, to_value.to(source.value.dtype)]


def _parts(inputs: Inputs, source: Source) -> list[tuple[Inputs, Tensor | None, slice]]:
    batch, queries, keys = inputs.pairs
    size = max(1, PAIRS // max(batch * keys, 1))
    parts = []
    for first in range(0, max(queries, 1), size):
        rows = slice(first, first + size)
        mask = None if source.mask is None else source.mask[:, rows]
        parts.append((inputs._replace(query=inputs.query[:, rows]), mask, rows))
    return parts


def _tiles(count: int, size: int) -> int:
    return (count + size - 1) // size


def _blocks(loops: ModuleType) -> tuple[int, int, int]:
    return loops.QUERIES, loops.KEYS, loops.HIDDEN


@cache
def _loops() -> ModuleType | None:
    try:
        return importlib.import_module("regard.attention.kernels.triton_loops")
    except ImportError:
        return None


def _needed_loops() -> ModuleType:
    loops = _loops()
    if loops is None:
        raise MissingExtraError(
            "triton must be installed for the cuda kernel; got none. Install it, or set "
            "REGARD_KERNEL=reference."
        )
    return loops


@cache
def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
