"""Where the items are in what a layer says: sequences, channels first, grids, packed sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.errors import ShapeError

Layout = Literal["sequence", "time_first", "channels_first", "grid"]
AXES: dict[Layout, str] = {
    "sequence": "(batch, items, features)",
    "time_first": "(items, batch, features)",
    "channels_first": "(batch, features, items)",
    "grid": "(batch, features, rows, columns)",
}
_CHANNELS_FIRST = (nn.Conv1d, nn.ConvTranspose1d, nn.MaxPool1d, nn.AvgPool1d, nn.BatchNorm1d)


class Said(NamedTuple):
    """The tensor in what a layer said, and how to say something else in its place.

    Args:
        tensor: The tensor.
        lengths: Items of each row, where it was packed.
        again: Makes the layer's kind of output of another tensor and its lengths.
    """

    tensor: Tensor
    lengths: Tensor | None
    again: Callable[[Tensor, Tensor | None], Any]


def said(output: Any, *, batch_first: bool = True) -> Said:
    """Find the tensor in what a layer said.

    Args:
        output: A tensor (nested or not) or packed sequence; a tuple or list that begins with one;
            or a mapping (as the outputs of Hugging Face models are) with `last_hidden_state`, or
            whose first value is one.
        batch_first: Whether a packed sequence is unpacked with the batch first.

    Raises:
        ShapeError: There is none.
    """
    if isinstance(output, Tensor) and output.is_nested:
        return _padded(output)
    if isinstance(output, Tensor):
        return Said(output, None, lambda tensor, _: tensor)
    if isinstance(output, PackedSequence):
        return _unpacked(output, batch_first)
    if isinstance(output, Mapping) and output:
        key = "last_hidden_state" if "last_hidden_state" in output else next(iter(output))
        inner = said(output[key], batch_first=batch_first)

        def mapped(tensor: Tensor, lengths: Tensor | None) -> Any:
            return type(output)(**{**output, key: inner.again(tensor, lengths)})

        return inner._replace(again=mapped)
    if isinstance(output, tuple | list) and output:
        inner = said(output[0], batch_first=batch_first)

        def listed(tensor: Tensor, lengths: Tensor | None) -> Any:
            values = [inner.again(tensor, lengths), *output[1:]]
            return type(output)(*values) if hasattr(output, "_fields") else type(output)(values)

        return inner._replace(again=listed)
    raise ShapeError(
        f"what the layer says must be a tensor, or begin with one; got {type(output).__name__}. "
        f"Name another layer."
    )


def _unpacked(packed: PackedSequence, batch_first: bool) -> Said:
    tensor, lengths = pad_packed_sequence(packed, batch_first=batch_first)

    def again(tensor: Tensor, lengths: Tensor | None) -> PackedSequence:
        counts = cast(Tensor, lengths)  # whoever gives a packed sequence has them
        return pack_padded_sequence(
            tensor, counts.cpu(), batch_first=batch_first, enforce_sorted=False
        )

    return Said(tensor, lengths, again)


def _padded(nested: Tensor) -> Said:
    """Pad what `nn.TransformerEncoder` nests in evaluation, where there is padding."""
    lengths = torch.tensor([len(row) for row in nested.unbind()], device=nested.device)

    def again(tensor: Tensor, lengths: Tensor | None) -> Tensor:
        counts = cast(Tensor, lengths).tolist()  # whoever gives a nested tensor has them
        rows = [row[:count] for row, count in zip(tensor, counts, strict=True)]
        return torch.nested.as_nested_tensor(rows)

    return Said(nested.to_padded_tensor(0.0), lengths, again)


def layout_of(layer: nn.Module, tensor: Tensor) -> Layout:
    """Guess where the items are from the kind of a layer and the axes of what it says.

    Raises:
        ShapeError: It has neither three axes nor four.
    """
    if tensor.dim() == 4:
        return "grid"
    if tensor.dim() != 3:
        raise ShapeError(
            f"what the layer says must have 3 axes (a sequence) or 4 (a grid); got "
            f"{tuple(tensor.shape)}. Name another layer."
        )
    leaves = [part for part in layer.modules() if not any(True for _ in part.children())]
    if any(isinstance(part, _CHANNELS_FIRST) for part in leaves):
        return "channels_first"
    return "sequence" if batch_first(layer) else "time_first"


def batch_first(layer: nn.Module) -> bool:
    """Say whether a layer's sequences have the batch first: PyTorch's own need not."""
    kinds = (nn.RNNBase, nn.MultiheadAttention)
    own = [part.batch_first for part in layer.modules() if isinstance(part, kinds)]
    return all(own)


def items_of(tensor: Tensor, layout: Layout) -> Tensor:
    """Bring the items of a layout into `(batch, items, features)`.

    Raises:
        ShapeError: The tensor has other axes.
    """
    if tensor.dim() != AXES[layout].count(",") + 1:
        raise ShapeError(
            f"what the layer says must be {AXES[layout]} in the layout {layout!r}; got "
            f"{tuple(tensor.shape)}. Name the layout by Placement(layout=...)."
        )
    if layout == "grid":
        return tensor.flatten(2).transpose(1, 2)
    if layout == "channels_first":
        return tensor.transpose(1, 2)
    return tensor.transpose(0, 1) if layout == "time_first" else tensor


def back(items: Tensor, layout: Layout, size: torch.Size) -> Tensor:
    """Bring `(batch, items, features)` back into a layout.

    Args:
        items: As many as there were, or one.
        layout: The layout.
        size: Shape of the tensor that they came from.
    """
    if layout == "grid":
        rows, columns = size[2:] if items.shape[1] == size[2] * size[3] else (items.shape[1], 1)
        return items.transpose(1, 2).reshape(len(items), -1, rows, columns)
    if layout == "channels_first":
        return items.transpose(1, 2)
    return items.transpose(0, 1) if layout == "time_first" else items
