"""Which module an operation belongs to, forward and backward.

Forward hooks keep a stack of module names. A dispatch mode above the tracer stamps every new node of the traced graph
with the name on top. Autograd numbers the functions it creates, so the name seen when a function was created is the
name of everything that the function does in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["BACKWARD", "FORWARD", "SCOPE_KEY", "Label", "ScopeRecorder"]

FORWARD, BACKWARD = "forward", "backward"
SCOPE_KEY = "planner_scope"


@dataclass(frozen=True, slots=True)
class Label:
    """Where a node comes from.

    Attributes
    ----------
    phase : str
        ``"forward"`` or ``"backward"``.
    scope : str
        Dotted module path; empty for the root module.
    """

    phase: str = FORWARD
    scope: str = ""


class ScopeRecorder(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Stamps traced nodes with the module they belong to."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = FORWARD
        self._stack: list[str] = []
        self._of_sequence: dict[int, str] = {}
        self._last = ""

    @contextmanager
    def watching(self, module: torch.nn.Module, prefix: str = "") -> Iterator[None]:
        """Follow the calls of a module's parts while the context is open; ``prefix`` is left out of their names."""
        handles: list[Any] = []
        for name, part in module.named_modules():
            handles.append(part.register_forward_pre_hook(self._entering(f"{name}.".removeprefix(prefix)[:-1])))
            handles.append(part.register_forward_hook(self._leaving, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Label what is outside any module, e.g. the loss."""
        self._stack.append(name)
        try:
            yield
        finally:
            self._stack.pop()

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Label the backward pass."""
        self.phase = BACKWARD
        try:
            yield
        finally:
            self.phase = FORWARD

    def _entering(self, name: str) -> Any:
        def hook(_module: Any, _args: Any) -> None:
            self._stack.append(name)

        return hook

    def _leaving(self, _module: Any, _args: Any, _result: Any) -> None:
        self._stack.pop()

    def _label(self) -> Label:
        if self.phase == FORWARD:
            scope = self._stack[-1] if self._stack else ""
            # The function that autograd makes for this operation took its number just before.
            self._of_sequence.setdefault(torch.autograd._get_sequence_nr() - 1, scope)
            return Label(FORWARD, scope)
        node = torch._C._current_autograd_node()
        if node is not None:
            # Sums of gradients run between two functions and keep the name of the one before.
            self._last = self._of_sequence.get(node._sequence_nr(), self._last)
        return Label(BACKWARD, self._last)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        label = self._label()
        result = func(*args, **(kwargs or {}))
        mode = get_proxy_mode()
        if mode is not None:
            for node in reversed(mode.tracer.graph.nodes):
                if node.op == "placeholder" or SCOPE_KEY in node.meta:
                    break
                node.meta[SCOPE_KEY] = label
        return result
