"""Put an attention between two layers of a model, without editing it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from regard.errors import MechanismError, ShapeError, did_you_mean
from regard.inside.inserted import Chosen, Inserted, Placement, Sizes, build, role_of
from regard.inside.layouts import Said, batch_first, items_of, layout_of, said

Given = Mapping[str, Any]
NAME = "inserted"
PLAIN = Placement()


class _Pass:
    """What one forward pass of the model has said so far, for each thread by itself.

    Args:
        names: Names of the parameters of the model's `forward`.
        mask: Makes the mask of the model's arguments.
    """

    def __init__(self, names: tuple[str, ...], mask: Callable[[Given], Tensor] | None) -> None:
        self.names, self.mask = names, mask
        self.masks: dict[int, Tensor] = {}
        self.contexts: dict[int, Tensor] = {}

    def key(self) -> int:
        """Tell threads apart, which DataParallel's replicas are; a compiled pass has only one."""
        return 0 if torch.compiler.is_compiling() else threading.get_ident()

    def begin(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the mask of the model's arguments (a hook before the model)."""
        if self.mask is not None:
            given = {**dict(zip(self.names, args, strict=False)), **kwargs}
            self.masks[self.key()] = self.mask(given)

    def end(self, *_: Any) -> None:
        """Forget it all (a hook after the model, also where it raised an error)."""
        self.masks.pop(self.key(), None)
        self.contexts.pop(self.key(), None)

    def __deepcopy__(self, _memo: dict[int, Any]) -> _Pass:
        return _Pass(self.names, self.mask)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Pass, (self.names, self.mask)


class _KeepContext:
    """A hook after the layer that gives the context."""

    def __init__(self, own: _Pass) -> None:
        self.own = own

    def __call__(self, layer: nn.Module, _args: Any, output: Any) -> None:
        found = said(output, batch_first=batch_first(layer)).tensor
        self.own.contexts[self.own.key()] = _as_queries(layer, found)


class _Attend:
    """A hook after the layer: what is inserted speaks in its place."""

    def __init__(self, own: _Pass, name: str) -> None:
        self.own, self.name = own, name

    def __call__(self, layer: nn.Module, _args: Any, output: Any) -> Any:
        inserted = getattr(layer, self.name)  # of a copy or a replica, its own
        found: Said = said(output, batch_first=inserted.layout != "time_first")
        key = self.own.key()
        tensor, lengths = inserted(
            found.tensor,
            lengths=found.lengths,
            mask=self.own.masks.get(key),
            context=self.own.contexts.get(key),
        )
        return found.again(tensor, lengths)


def _as_queries(layer: nn.Module, tensor: Tensor) -> Tensor:
    return tensor if tensor.dim() == 2 else items_of(tensor, layout_of(layer, tensor))


class Insertion(NamedTuple):
    """An attention that was inserted.

    Args:
        model: The model.
        path: Path of what was inserted, a prefix of its keys in the model's `state_dict`.
        module: What was inserted; its `attention` is the attention.
        handles: The hooks that call it.
        trained: Whether each parameter of the model was trained when it was inserted.
    """

    model: nn.Module
    path: str
    module: Inserted
    handles: tuple[RemovableHandle, ...]
    trained: dict[str, bool]

    def train_alone(self) -> list[nn.Parameter]:
        """Freeze the rest of the model, and return the parameters that are left to train.

        Running statistics (of batch norms) are no parameters: `model.eval()` keeps them still.
        """
        own = list(self.module.parameters())
        kept = {id(one) for one in own}
        for parameter in self.model.parameters():
            parameter.requires_grad_(id(parameter) in kept)
        return own

    def train_all(self) -> None:
        """Train again what was trained when it was inserted, and what was inserted."""
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self.trained.get(name, True))

    def remove(self) -> None:
        """Undo it: the model is what it was, and its `state_dict` has its old keys."""
        for handle in self.handles:
            handle.remove()
        parent, _, name = self.path.rpartition(".")
        layer = self.model.get_submodule(parent)
        if getattr(layer, name, None) is self.module:
            delattr(layer, name)


def insert(
    model: nn.Module,
    after: str,
    attention: Chosen = "attention_pooling",
    *,
    sample: Tensor | tuple[Any, ...] | dict[str, Any],
    context: str | None = None,
    mask: Callable[[Given], Tensor] | None = None,
    placement: Placement = PLAIN,
) -> Insertion:
    """Put an attention after a layer of a model, without editing the model.

    What the layer says (a sequence of items, or the cells of a grid) is what is attended to, and
    what the attention makes of it goes on in its place. By default a learned vector asks, and all
    items become one; with "self" each item asks all, and what it reads is added to it; with a
    context, what another layer says asks. After an `nn.Sequential` means after its last layer.
    Wherever the layer runs more than once, it is attended each time.

    The `state_dict` has new keys, which begin with the insertion's path (`layer3.inserted.` or
    the like); the old keys stay as they are. Load old weights before or after it was inserted
    (then with `strict=False`); to load a model with an insertion, insert the same again first.

    Args:
        model: The model.
        after: Path of a layer, as `named_modules` gives it.
        attention: A name ("attention_pooling", "feed_forward", "multihead", "self", "step",
            "context"), an attention, or a function that makes one of the `Sizes` at its place.
        sample: What the model can be called with: a tensor, a tuple of arguments or a dictionary
            of named ones. The model reads it once before and once after, without training.
        context: Path of a layer that runs earlier, and asks.
        mask: Makes a mask `(batch, items)`, True = counts, of the arguments of the model's
            `forward` by name. Packed sequences need none.
        placement: How it stands in the model.

    Returns:
        What was inserted, to train alone or to remove.

    Raises:
        MechanismError: A path does not exist, or an attention does not fit.
        ShapeError: The layer says nothing that could be attended to, or what follows cannot read
            what comes in its place.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.Flatten(0, 1))
        >>> insertion = insert(model, "0", sample=torch.zeros(2, 5, 3))
        >>> insertion.path, model(torch.zeros(2, 5, 3)).shape
        ('0.inserted', torch.Size([2, 8]))
        >>> insertion.remove()
    """
    path, layer = _layer(model, after)
    given = _called(sample)
    own = _Pass(tuple(inspect.signature(model.forward).parameters), mask)
    sizes, placement = _probed(model, (path, layer), context, given=given, placement=placement)
    module = build(attention, sizes)
    role = role_of(module, context=context is not None)
    inserted = _moved(Inserted(module, role, placement), model)
    trained = {name: one.requires_grad for name, one in model.named_parameters()}
    name = next(
        free
        for free in (NAME, *(f"{NAME}_{count}" for count in range(2, 1_000)))
        if not hasattr(layer, free)
    )
    layer.add_module(name, inserted)
    handles = [layer.register_forward_hook(_Attend(own, name))]
    if context is not None:
        handles.append(_layer(model, context)[1].register_forward_hook(_KeepContext(own)))
    handles.append(model.register_forward_pre_hook(own.begin, with_kwargs=True))
    handles.append(model.register_forward_hook(own.end, always_call=True))
    where = f"{path}.{name}" if path else name
    insertion = Insertion(model, where, inserted, tuple(handles), trained)
    try:
        _run(model, given)
    except Exception as error:
        insertion.remove()
        raise ShapeError(
            f"the model must read what the attention makes of {path!r}; got "
            f"{type(error).__name__}: {error}. Try Placement(keep_axes=...), 'self', or another "
            f"place."
        ) from error
    return insertion


def _layer(model: nn.Module, path: str) -> tuple[str, nn.Module]:
    """Find a layer; the last one of an `nn.Sequential`, whose own list must not grow."""
    known = dict(model.named_modules())
    if path not in known:
        raise MechanismError(
            f"the path of a layer must be one of the model's; got {path!r}. "
            f"{did_you_mean(path, [name for name in known if name])}"
        )
    layer = known[path]
    while type(layer).forward is nn.Sequential.forward and len(layer):
        name, layer = list(layer.named_children())[-1]
        path = f"{path}.{name}" if path else name
    return path, layer


def _called(sample: Tensor | tuple[Any, ...] | dict[str, Any]) -> tuple[Any, Any]:
    if isinstance(sample, dict):
        return (), sample
    return (sample if isinstance(sample, tuple) else (sample,)), {}


def _run(model: nn.Module, given: tuple[Any, Any]) -> None:
    """Let the model read the sample, and leave nothing behind: neither statistics nor draws."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            model(*given[0], **given[1])
    finally:
        for module, training in modes.items():
            module.training = training


def _probed(
    model: nn.Module,
    at: tuple[str, nn.Module],
    context: str | None,
    *,
    given: tuple[Any, Any],
    placement: Placement,
) -> tuple[Sizes, Placement]:
    """Read the sizes at a place from a sample."""
    path, layer = at
    found: list[Tensor] = []
    asked: list[Tensor] = []

    def look(module: nn.Module, _args: Any, output: Any) -> None:
        found.append(said(output, batch_first=batch_first(module)).tensor)

    def hear(module: nn.Module, _args: Any, output: Any) -> None:
        if not found:  # what is said later cannot be asked with
            tensor = said(output, batch_first=batch_first(module)).tensor
            asked.append(_as_queries(module, tensor))

    asking = [] if context is None else [_layer(model, context)[1]]
    handles = [layer.register_forward_hook(look)]
    handles += [one.register_forward_hook(hear) for one in asking]
    try:
        _run(model, given)
    finally:
        for handle in handles:
            handle.remove()
    if not found or (context is not None and not asked):
        missing = path if not found else context
        raise MechanismError(
            f"a layer must run in the model's forward pass, and a context before what it asks; "
            f"got {missing!r}, which does not. Name another layer."
        )
    layout = placement.layout or layout_of(layer, found[0])
    items = items_of(found[0], layout)
    width = asked[0].shape[-1] if asked else None
    return Sizes(items.shape[2], items.shape[1], width), placement._replace(layout=layout)


def _moved(inserted: Inserted, model: nn.Module) -> Inserted:
    """Bring it to where the model's parameters are, and to their type."""
    first = next((one for one in model.parameters() if one.is_floating_point()), None)
    return inserted if first is None else inserted.to(device=first.device, dtype=first.dtype)
