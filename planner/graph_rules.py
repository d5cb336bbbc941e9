"""What a graph must satisfy, and the stable sort that repairs an order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.errors import Fault, InputError

if TYPE_CHECKING:
    from planner.graph import Graph, Op, Tensor

__all__ = ["find_cycle", "graph_faults", "stable_topological_order"]

_PROTECTED = frozenset({"input", "output"})


def graph_faults(graph: Graph) -> list[Fault]:
    """Return everything that is wrong with a graph, in file order."""
    faults = _tensor_faults(graph.tensors)
    faults += _op_faults(graph)
    return faults or _order_faults(graph)


def _tensor_faults(tensors: Sequence[Tensor]) -> list[Fault]:
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    by_name = {t.name: t for t in tensors}
    for i, t in enumerate(tensors):
        where = f"tensors[{i}]"
        if t.name in seen:
            faults.append(Fault(f"{where}.name", f"duplicate tensor name {t.name!r} (first at tensors[{seen[t.name]}])"))
        seen.setdefault(t.name, i)
        if not t.name or "@" in t.name or "#" in t.name:
            faults.append(Fault(f"{where}.name", f"{t.name!r}: names are not empty and '@' and '#' are reserved"))
        if t.size < 0:
            faults.append(Fault(f"{where}.size", f"{t.size}: a size cannot be negative"))
        if t.keep == "home" and not t.home and t.alias_of is None:
            faults.append(Fault(f"{where}.keep", f"'home' needs a home, and {t.name!r} has none"))
        if t.alias_of is None:
            continue
        root = by_name.get(t.alias_of)
        if root is None:
            faults.append(Fault(f"{where}.alias_of", f"unknown tensor {t.alias_of!r}"))
        elif root is t:
            faults.append(Fault(f"{where}.alias_of", f"{t.name!r} is an alias of itself"))
        elif root.alias_of is not None:
            faults.append(Fault(f"{where}.alias_of", f"{t.alias_of!r} is itself an alias; name the root {root.alias_of!r}"))
        elif t.size > root.size:
            faults.append(Fault(f"{where}.size", f"{t.size}: larger than its storage {root.name!r} of {root.size} bytes"))
    return faults


def _op_faults(graph: Graph) -> list[Fault]:
    faults: list[Fault] = []
    tensors = {t.name: t for t in graph.tensors}
    index: dict[str, int] = {}
    producer: dict[str, str] = {}
    for i, op in enumerate(graph.ops):
        where = f"ops[{i}]"
        if op.name in index:
            faults.append(Fault(f"{where}.name", f"duplicate op name {op.name!r} (first at ops[{index[op.name]}])"))
        index.setdefault(op.name, i)
        if not op.name or "@" in op.name or "#" in op.name:
            faults.append(Fault(f"{where}.name", f"{op.name!r}: names are not empty and '@' and '#' are reserved"))
        for field in ("reads", "writes", "updates"):
            for name in getattr(op, field):
                if name not in tensors:
                    faults.append(Fault(f"{where}.{field}", f"op {op.name!r} names unknown tensor {name!r}"))
        for name in op.writes:
            t = tensors.get(name)
            if t is None:
                continue
            if name in producer:
                faults.append(Fault(f"{where}.writes", f"{name!r} has two producers, {producer[name]!r} and {op.name!r}; "
                                    "to change a tensor in place list it in 'updates'"))
            elif t.home:
                faults.append(Fault(f"{where}.writes", f"{name!r} starts on {t.home!r} and cannot be created by {op.name!r}; "
                                    "to change it in place list it in 'updates'"))
            producer.setdefault(name, op.name)
        for name in op.updates:
            if name in tensors and tensors[name].kind in _PROTECTED:
                faults.append(Fault(f"{where}.updates", f"{name!r} is a protected {tensors[name].kind} and cannot be "
                                    f"updated in place by {op.name!r}"))
            if name in op.writes:
                faults.append(Fault(f"{where}.updates", f"{name!r} is both written and updated by {op.name!r}"))
        if op.duration is not None and op.duration < 0:
            faults.append(Fault(f"{where}.duration", f"{op.duration}: a duration cannot be negative"))
        if op.workspace < 0:
            faults.append(Fault(f"{where}.workspace", f"{op.workspace}: a workspace cannot be negative"))
        for j, placement in enumerate(op.placements):
            operands = {*op.reads, *op.updates, *op.writes}
            for name, _ in placement.at:
                if name not in operands:
                    faults.append(Fault(f"{where}.placements[{j}].at", f"{name!r} is not an operand of {op.name!r}"))
    for i, op in enumerate(graph.ops):
        faults += [Fault(f"ops[{i}].after", f"op {op.name!r} names unknown op {name!r}")
                   for name in op.after if name not in index]
    read = {name for op in graph.ops for name in (*op.reads, *op.updates)}
    roots = {t.alias_of for t in graph.tensors if t.alias_of is not None}
    for i, t in enumerate(graph.tensors):
        if t.home or t.name in producer or t.alias_of is not None or t.name in roots:
            continue
        if t.keep is not None:
            faults.append(Fault(f"tensors[{i}].keep", f"{t.name!r} is kept but no op writes it and it has no home"))
        elif t.name in read:
            faults.append(Fault(f"tensors[{i}]", f"{t.name!r} is read but no op writes it and it has no home"))
    return faults


def _order_faults(graph: Graph) -> list[Fault]:
    position = {op.name: i for i, op in enumerate(graph.ops)}
    producer = {name: i for i, op in enumerate(graph.ops) for name in op.writes}
    faults: list[Fault] = []
    for i, op in enumerate(graph.ops):
        for name in (*op.reads, *op.updates):
            if producer.get(name, -1) >= i:
                faults.append(Fault(f"ops[{i}]", f"op {op.name!r} reads {name!r}, which {graph.ops[producer[name]].name!r} "
                                    "only writes later; the list must be in topological order"))
        faults += [Fault(f"ops[{i}].after", f"op {op.name!r} stands before {name!r}, which it must follow")
                   for name in op.after if position[name] >= i]
    if faults:
        cycle = find_cycle(graph.ops)
        if cycle:
            return [Fault("ops", "the graph has a cycle: " + " > ".join(cycle))]
    return faults


def _edges(ops: Sequence[Op]) -> list[list[int]]:
    """Return for each op the indices of the ops it must follow."""
    position = {op.name: i for i, op in enumerate(ops)}
    producer = {name: i for i, op in enumerate(ops) for name in op.writes}
    before: list[list[int]] = []
    for op in ops:
        found = [producer[name] for name in (*op.reads, *op.updates) if name in producer]
        found += [position[name] for name in op.after if name in position]
        before.append(sorted(set(found)))
    return before


def find_cycle(ops: Sequence[Op]) -> list[str]:
    """Return the op names along one cycle in the way of the data, first repeated last; empty if there is none.

    Iterative depth-first search from the first op, so deep chains are no problem.
    """
    after: list[list[int]] = [[] for _ in ops]
    for i, sources in enumerate(_edges(ops)):
        for j in sources:
            after[j].append(i)
    state = [0] * len(ops)
    for root in range(len(ops)):
        if state[root]:
            continue
        path: list[int] = [root]
        todo = [iter(after[root])]
        state[root] = 1
        while todo:
            step = next(todo[-1], None)
            if step is None:
                state[path.pop()] = 2
                todo.pop()
            elif state[step] == 1:
                loop = path[path.index(step):]
                first = loop.index(min(loop))
                loop = loop[first:] + loop[:first]
                return [ops[i].name for i in [*loop, loop[0]]]
            elif state[step] == 0:
                state[step] = 1
                path.append(step)
                todo.append(iter(after[step]))
    return []


def stable_topological_order(ops: Iterable[Op]) -> list[Op]:
    """Sort ops so that producers come first, ties by the given order.

    Raises
    ------
    InputError
        There is a cycle; the message prints one.
    """
    listed = list(ops)
    before = _edges(listed)
    waiting = [len(b) for b in before]
    after: list[list[int]] = [[] for _ in listed]
    for i, sources in enumerate(before):
        for j in sources:
            after[j].append(i)
    heap = [i for i, n in enumerate(waiting) if n == 0]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        i = heapq.heappop(heap)
        order.append(i)
        for j in after[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(heap, j)
    if len(order) < len(listed):
        raise InputError([Fault("ops", "the graph has a cycle: " + " > ".join(find_cycle(listed)))])
    return [listed[i] for i in order]
