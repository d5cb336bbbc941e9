"""From calls on views to calls on storages.

About half of a traced graph only makes views. Here every value is identified by its storage, calls that create no
storage and change none disappear, and calls that change one become updates. A fresh uninitialised buffer
(``empty``) is created by whatever first fills it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from planner.capture.pricing import Price, PriceRule, price_call, tensors_in
from planner.capture.scopes import SCOPE_KEY, Label
from planner.errors import CaptureError

__all__ = ["Call", "Condensed", "condense", "storage_key"]

_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
#: Only shape and dtype of their first operand matter.
_METADATA_ONLY = ("_like", "new_")
#: In training, running mean and variance are changed and not read, although the signature does not say so: position of
#: (mean, variance, training).
_HIDDEN_STATISTICS: dict[str, tuple[int, int, int]] = {
    "native_batch_norm": (3, 4, 5), "cudnn_batch_norm": (3, 4, 5), "miopen_batch_norm": (3, 4, 5)}
#: The gradient takes the running statistics and does not use them in training: position of (mean, variance, training).
_UNUSED_STATISTICS: dict[str, tuple[int, int, int | None]] = {
    "native_batch_norm_backward": (3, 4, 7), "cudnn_batch_norm_backward": (3, 4, None)}


@dataclass
class Call:
    """One kernel call on storages, named by their keys.

    Attributes
    ----------
    node : Node, optional
        The traced call; None for work that the trace does not hold.
    short : str
        Kernel name.
    """

    node: Node | None
    short: str
    label: Label
    reads: list[int]
    writes: list[int]
    updates: list[int]
    price: Price
    random: bool = False


@dataclass
class Condensed:
    """A traced graph on storages.

    Attributes
    ----------
    calls : list of Call
        In program order.
    inputs : list of int
        Storage of each placeholder (several placeholders may share one).
    outputs : list of int or None
        Storage of each result; None where the program returns none.
    constants : list of (str, int)
        Tensors that the program holds itself.
    size : dict of int to int
        Bytes of each storage.
    """

    calls: list[Call] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int | None] = field(default_factory=list)
    constants: list[tuple[str, int]] = field(default_factory=list)
    size: dict[int, int] = field(default_factory=dict)


def storage_key(tensor: torch.Tensor) -> int:
    """Return a number that two tensors share exactly if they share storage (while both are alive)."""
    return int(tensor.untyped_storage()._cdata)


class _Condenser:
    def __init__(self, module: GraphModule, default: str, rules: Mapping[str, PriceRule]) -> None:
        self.module, self.default, self.rules = module, default, rules
        self.done = Condensed()
        self.unfilled: set[int] = set()

    def note(self, tensor: torch.Tensor) -> int:
        key = storage_key(tensor)
        self.done.size.setdefault(key, int(tensor.untyped_storage().nbytes()))
        return key

    def keys(self, tensors: list[torch.Tensor]) -> list[int]:
        """Return the distinct storages that hold any bytes."""
        return [k for k in dict.fromkeys(map(self.note, tensors)) if self.done.size[k]]

    def value(self, node: Node) -> Any:
        if "val" in node.meta:
            return node.meta["val"]
        if node.op == "get_attr":
            return operator.attrgetter(str(node.target))(self.module)
        raise CaptureError(f"the traced value {node.name!r} ({node.target}) has no known shape")

    def call(self, node: Node) -> None:
        func: Any = node.target
        if func is operator.getitem:
            return
        if not isinstance(func, torch._ops.OpOverload):
            if tensors_in(node.meta.get("val")):
                raise CaptureError(f"{node.name!r} calls {func}, a higher-order operation; rewrite the model "
                                   "without it")
            return
        args = torch.fx.map_arg(node.args, self.value)
        kwargs = torch.fx.map_arg(node.kwargs, self.value)
        out = node.meta.get("val")
        short = func._schema.name.split("::")[-1]
        mutated = _mutated(func, args, kwargs)
        operands = tensors_in([args, kwargs])
        known = set(map(storage_key, operands))
        fresh = [t for t in tensors_in(out) if storage_key(t) not in known]
        writes, updates = self.keys(fresh), self.keys(mutated)
        if torch.Tag.inplace_view in func.tags:
            return  # t_(), squeeze_(), as_strided_() change the view, not the storage
        if short in _EMPTY:
            self.unfilled.update(writes)
            return
        if not writes and not updates:
            return
        if short.endswith(_METADATA_ONLY[0]) or short.startswith(_METADATA_ONLY[1]):
            operands = []
        for place in (_HIDDEN_STATISTICS.get(short), _UNUSED_STATISTICS.get(short)):
            if place is not None and (place[2] is None or args[place[2]]):
                operands = tensors_in([a for i, a in enumerate(args) if i not in place[:2]])
        reads = [k for k in self.keys(operands) if k not in updates]
        first = [k for k in updates if k in self.unfilled]
        self.unfilled.difference_update(first)
        self.fill([k for k in reads if k in self.unfilled])
        price = price_call(func, args, kwargs, out, mutated, fresh, self.default, self.rules)
        label = node.meta.get(SCOPE_KEY) or Label()
        self.done.calls.append(Call(
            node, short, label, reads, [*writes, *first], [k for k in updates if k not in first], price,
            _is_random(func, args, kwargs),
        ))
        self._running_statistics(short, label, args, out)

    def fill(self, keys: list[int]) -> None:
        """Create buffers that are used without ever having been filled."""
        if keys:
            self.unfilled.difference_update(keys)
            self.done.calls.append(Call(None, "empty", Label(), [], keys, [], Price(0, 0, self.default)))

    def _running_statistics(self, short: str, label: Label, args: tuple[Any, ...], out: Any) -> None:
        """Split the update of running statistics from the normalisation, which can then be recomputed."""
        place = _HIDDEN_STATISTICS.get(short)
        if place is None or len(args) <= max(place) or not args[place[2]] or args[place[0]] is None:
            return
        statistics = [args[place[0]], args[place[1]]]
        count = sum(int(t.numel()) for t in statistics)
        nbytes = 3 * sum(int(t.numel()) * t.element_size() for t in statistics)
        price = Price(3 * count, nbytes, "fp32")
        self.done.calls.append(Call(
            None, "running_stats", label, self.keys(tensors_in(out)[1:3]), [], self.keys(statistics), price))

    def run(self) -> Condensed:
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.done.inputs.append(self.note(self.value(node)))
            elif node.op == "get_attr":
                for tensor in tensors_in(self.value(node)):
                    self.done.constants.append((str(node.target), self.note(tensor)))
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                flat = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
                self.done.outputs = [self.note(self.value(n)) if isinstance(n, Node) else None for n in flat]
                self.fill([k for k in self.done.outputs if k in self.unfilled])
        return self.done


def condense(module: GraphModule, default: str, rules: Mapping[str, PriceRule] | None = None) -> Condensed:
    """Condense a traced graph to storages.

    Parameters
    ----------
    module : GraphModule
        Flat graph whose nodes carry fake values.
    default : str
        Dtype for calls without floating-point operands.
    rules : mapping, optional
        Price rules of the caller.

    Raises
    ------
    CaptureError
        An operation has no price or no static shape.
    """
    return _Condenser(module, default, rules or {}).run()


def _mutated(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) and not argument.kwarg_only else kwargs.get(argument.name)
            found += tensors_in(value)
    return found


def _is_random(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tell whether a second run could differ. Attention and dropout with probability 0 are not random."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    arguments = func._schema.arguments
    named = {a.name: a.default_value for a in arguments if a.has_default_value()}
    named.update((a.name, value) for a, value in zip(arguments, args, strict=False))
    named.update(kwargs)
    if named.get("train") is False:
        return False
    if "dropout_p" in named:
        return bool(named["dropout_p"])
    return not (func._schema.name == "aten::native_dropout" and not named["p"])
