"""Give storages and calls their names, roles and order: the planner's graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch.fx import GraphModule, Node

from planner.capture.names import Unique, op_names
from planner.capture.optimizer import OptimizerSpec, optimizer_ops
from planner.capture.scopes import BACKWARD
from planner.capture.storages import Call, Condensed
from planner.capture.trace import Traced
from planner.errors import CaptureError
from planner.graph import Graph, Op, Tensor

__all__ = ["Captured", "assemble"]


@dataclass(frozen=True)
class Captured:
    """A graph together with the program it was taken from.

    Attributes
    ----------
    graph : Graph
    module : GraphModule
        Flat torch program of the whole step (without the optimizer).
    nodes : dict of str to Node
        Traced call of each op; ops that the trace does not hold (optimizer steps, running statistics) are absent.
    inputs : tuple of str
        Graph tensor of each placeholder, in order.
    """

    graph: Graph
    module: GraphModule
    nodes: Mapping[str, Node]
    inputs: tuple[str, ...]


def assemble(
    name: str, traced: Traced, condensed: Condensed, optimizer: OptimizerSpec | None, elements: Mapping[str, int]
) -> Captured:
    """Build the graph.

    Parameters
    ----------
    name : str
    traced, condensed : Traced, Condensed
    optimizer : OptimizerSpec, optional
        Adds its states and steps; gradients may then be dropped after them.
    elements : mapping of str to int
        Number of elements of each parameter, by name.
    """
    unique = Unique()
    tensors: dict[int, Tensor] = {}
    size = condensed.size
    updated = {k for call in condensed.calls for k in call.updates}
    for source, key in zip(traced.sources, condensed.inputs, strict=True):
        if key in tensors:
            continue
        kind, home, keep = source.kind, source.home, source.keep
        if key in updated and kind == "input":
            # An input that the program changes is state: it starts anywhere and is there again at the end.
            kind, home, keep = "state", "any", "home"
        tensors[key] = Tensor(unique(source.name), size[key], home, keep, kind)  # type: ignore[arg-type]
    for target, key in condensed.constants:
        if key not in tensors and size[key]:
            tensors[key] = Tensor(unique(target.lstrip("_")), size[key], ("host",), None, "constant")
    given = set(tensors)
    results: dict[int, tuple[str, str, str | None]] = {}
    gradients: dict[str, list[int]] = {}
    for result, output in zip(traced.results, condensed.outputs, strict=True):
        if output is None or output in given or not size[output]:
            continue
        keep = None if optimizer is not None and result.kind == "gradient" else result.keep
        kind = "activation" if output in updated and result.kind == "output" else result.kind
        results.setdefault(output, (result.name, kind, keep))
        if result.of:
            gradients.setdefault(result.of, []).append(output)
    calls = _live(condensed.calls, {k for k, (_, _, keep) in results.items() if keep is not None or optimizer}, given)
    names = op_names([(c.label, c.short) for c in calls])
    for call, op_name in zip(calls, names, strict=True):
        for i, key in enumerate(call.writes):
            if key in tensors:
                raise CaptureError(f"{op_name!r} creates storage {tensors[key].name!r} a second time")
            kind = "gradient" if call.label.phase == BACKWARD else "activation"
            label, kind, keep = results.get(key, (op_name if i == 0 else f"{op_name}.out{i}", kind, None))
            tensors[key] = Tensor(unique(label), size[key], (), keep, kind)
    ops = [_op(op_name, call, tensors) for op_name, call in zip(names, calls, strict=True)]
    nodes = {op_name: c.node for op_name, c in zip(names, calls, strict=True) if c.node is not None}
    used = {n for op in ops for n in (*op.reads, *op.writes, *op.updates)}
    listed = [t for t in tensors.values() if t.kind != "constant" or t.name in used]
    if optimizer is not None:
        owner = {s.name: tensors[k] for s, k in zip(traced.sources, condensed.inputs, strict=True)}
        merged: dict[str, tuple[Tensor, int, list[Tensor]]] = {}
        for parameter, keys in gradients.items():
            tensor = owner[parameter]
            _, count, held = merged.get(tensor.name, (tensor, 0, []))
            merged[tensor.name] = (tensor, count + elements[parameter], [*held, *(tensors[k] for k in keys)])
        states, steps = optimizer_ops(optimizer, list(merged.values()))
        listed, ops = [*listed, *states], [*ops, *steps]
    graph = Graph(name, tuple(listed), tuple(ops))
    return Captured(graph, traced.module, nodes, tuple(tensors[k].name for k in condensed.inputs))


def _op(name: str, call: Call, tensors: Mapping[int, Tensor]) -> Op:
    op = Op(
        name, tuple(tensors[k].name for k in call.reads), tuple(tensors[k].name for k in call.writes),
        tuple(tensors[k].name for k in call.updates), flops=call.price.flops, bytes=call.price.bytes,
        dtype=call.price.dtype,
    )
    return op if not call.random and not call.updates else replace(op, recomputable=False)


def _live(calls: list[Call], kept: set[int], given: set[int]) -> list[Call]:
    """Leave out calls whose results nobody reads and that change nothing which outlives them."""
    needed = set(kept) | given
    live: list[Call] = []
    for call in reversed(calls):
        if any(k in needed for k in (*call.writes, *call.updates)):
            live.append(call)
            needed.update(call.reads, call.updates)
    return live[::-1]
