"""Follow which module of a model is running, without a hook on any of its modules."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

Output = Callable[[nn.Module, tuple[Any, ...], Any], None]


class Place(NamedTuple):
    """Where a model is while it runs: a module's path, and how often it was called before.

    Args:
        path: The module's name in the model, as `named_modules` says it; "" is the model itself.
        call: 0 for its first call.
    """

    path: str
    call: int


class Tracker:
    """Tells at any time which module of a model is running, and its how-manieth call it is.

    PyTorch's hooks for all modules serve, for its native encoders switch their fast path off where
    a module has a hook of its own. Several trackers may run at once, in one thread or in several:
    each sees its own model alone, and a module that stands in several places has its first name.

    Args:
        model: The model to follow.
        output: Called with module, inputs and output after each module of the model that ended
            well, while the module is still the current one.
    """

    def __init__(self, model: nn.Module, output: Output | None = None) -> None:
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._model = model  # its modules must not be freed: their ids would be given to others
        self._output = output
        self._calls: Counter[str] = Counter()
        self._running = threading.local()
        self._handles: list[Any] = []

    def __enter__(self) -> Tracker:
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def stack(self) -> list[Place]:
        """The modules that are running in this thread, the outermost first."""
        stack: list[Place] = getattr(self._running, "stack", [])
        return stack

    @property
    def place(self) -> Place | None:
        """The innermost module of the model that is running in this thread, if any is."""
        return self.stack[-1] if self.stack else None

    def _begin(self, module: nn.Module, _inputs: tuple[Any, ...]) -> None:
        path = self._paths.get(id(module))
        if path is None:
            return
        if not hasattr(self._running, "stack"):
            self._running.stack = []
        self._running.stack.append(Place(path, self._calls[path]))
        self._calls[path] += 1

    def _end(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        path = self._paths.get(id(module))
        stack = self.stack
        if path is None or not any(place.path == path for place in stack):
            return
        while stack[-1].path != path:  # what ended by an error that somebody caught
            stack.pop()
        try:
            if self._output is not None and output is not None:
                self._output(module, inputs, output)
        finally:
            stack.pop()
