"""What a graph must satisfy, and the stable sort that repairs an order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.errors import Fault, InputError

if TYPE_CHECKING:
    from planner.graph import Op, Tensor

__all__ = ["find_cycle", "graph_faults", "stable_topological_order"]

_PROTECTED = frozenset({"input", "output"})


def graph_faults(tensors: Sequence[Tensor], ops: Sequence[Op]) -> list[Fault]:
    """Return everything that is wrong with a graph, in file order."""
    by_name = {t.name: t for t in tensors}
    faults = _tensor_faults(tensors, by_name)
    faults += _op_faults(ops, by_name)
    faults += _source_faults(tensors, ops)
    return faults or _order_faults(ops)


def _name_fault(where: str, name: str) -> list[Fault]:
    if name and "@" not in name and "#" not in name:
        return []
    return [Fault(f"{where}.name", f"{name!r}: names are not empty and '@' and '#' are reserved")]


def _tensor_faults(tensors: Sequence[Tensor], by_name: dict[str, Tensor]) -> list[Fault]:
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    for i, t in enumerate(tensors):
        where = f"tensors[{i}]"
        first = seen.setdefault(t.name, i)
        if first != i:
            faults.append(Fault(f"{where}.name", f"duplicate tensor name {t.name!r} (first at tensors[{first}])"))
        faults += _name_fault(where, t.name)
        if t.size < 0:
            faults.append(Fault(f"{where}.size", f"{t.size}: a size cannot be negative"))
        if t.keep == "home" and not t.home and t.alias_of is None:
            faults.append(Fault(f"{where}.keep", f"'home' needs a home, and {t.name!r} has none"))
        if t.alias_of is not None:
            faults += _alias_faults(where, t, by_name.get(t.alias_of))
    return faults


def _alias_faults(where: str, t: Tensor, root: Tensor | None) -> list[Fault]:
    if root is None:
        return [Fault(f"{where}.alias_of", f"unknown tensor {t.alias_of!r}")]
    if root.name == t.name:
        return [Fault(f"{where}.alias_of", f"{t.name!r} is an alias of itself")]
    if root.alias_of is not None:
        return [Fault(f"{where}.alias_of", f"{root.name!r} is itself an alias; name the root {root.alias_of!r}")]
    if t.size > root.size:
        return [Fault(f"{where}.size", f"{t.size}: larger than its storage {root.name!r} of {root.size} bytes")]
    return []


def _op_faults(ops: Sequence[Op], tensors: dict[str, Tensor]) -> list[Fault]:
    faults: list[Fault] = []
    index: dict[str, int] = {}
    for i, op in enumerate(ops):
        index.setdefault(op.name, i)
    producer: dict[str, str] = {}
    for i, op in enumerate(ops):
        where = f"ops[{i}]"
        if index[op.name] != i:
            faults.append(Fault(f"{where}.name", f"duplicate op name {op.name!r} (first at ops[{index[op.name]}])"))
        faults += _name_fault(where, op.name)
        for field, names in (("reads", op.reads), ("writes", op.writes), ("updates", op.updates)):
            for name in names:
                if name not in tensors:
                    faults.append(Fault(f"{where}.{field}", f"op {op.name!r} names unknown tensor {name!r}"))
        for name in op.writes:
            first = producer.setdefault(name, op.name)
            if first != op.name:
                faults.append(Fault(f"{where}.writes", f"{name!r} has two producers, {first!r} and {op.name!r}; "
                                    "to change a tensor in place list it in 'updates'"))
            elif name in tensors and tensors[name].home:
                faults.append(Fault(f"{where}.writes", f"{name!r} starts on {tensors[name].home!r} and cannot be "
                                    f"created by {op.name!r}; to change it in place list it in 'updates'"))
        if op.updates:
            faults += _update_faults(where, op, tensors)
        if op.duration is not None and op.duration < 0:
            faults.append(Fault(f"{where}.duration", f"{op.duration}: a duration cannot be negative"))
        if op.workspace < 0:
            faults.append(Fault(f"{where}.workspace", f"{op.workspace}: a workspace cannot be negative"))
        for j, placement in enumerate(op.placements):
            operands = {*op.reads, *op.updates, *op.writes}
            for name, _ in placement.at:
                if name not in operands:
                    faults.append(Fault(f"{where}.placements[{j}].at", f"{name!r} is not an operand of {op.name!r}"))
        for name in op.after:
            if name not in index:
                faults.append(Fault(f"{where}.after", f"op {op.name!r} names unknown op {name!r}"))
    return faults


def _update_faults(where: str, op: Op, tensors: dict[str, Tensor]) -> list[Fault]:
    faults: list[Fault] = []
    for name in op.updates:
        if name in tensors and tensors[name].kind in _PROTECTED:
            faults.append(Fault(f"{where}.updates", f"{name!r} is a protected {tensors[name].kind} and cannot be "
                                f"updated in place by {op.name!r}"))
        if name in op.writes:
            faults.append(Fault(f"{where}.updates", f"{name!r} is both written and updated by {op.name!r}"))
    return faults


def _source_faults(tensors: Sequence[Tensor], ops: Sequence[Op]) -> list[Fault]:
    faults: list[Fault] = []
    written = {name for op in ops for name in op.writes}
    read = {name for op in ops for names in (op.reads, op.updates) for name in names}
    roots = {t.alias_of for t in tensors}
    homed = {t.name for t in tensors if t.home}  # by name: one that is listed twice is a fault of its own
    for i, t in enumerate(tensors):
        # what aliases add to a storage is only known once they are merged; planner.lower looks at those
        if t.name in homed or t.name in written or t.alias_of is not None or t.name in roots:
            continue
        if t.keep is not None:
            faults.append(Fault(f"tensors[{i}].keep", f"{t.name!r} is kept but no op writes it and it has no home"))
        elif t.name in read:
            faults.append(Fault(f"tensors[{i}]", f"{t.name!r} is read but no op writes it and it has no home"))
    return faults


def _order_faults(ops: Sequence[Op]) -> list[Fault]:
    position = {op.name: i for i, op in enumerate(ops)}
    producer = {name: i for i, op in enumerate(ops) for name in op.writes}
    faults: list[Fault] = []
    for i, op in enumerate(ops):
        for names in (op.reads, op.updates):
            for name in names:
                if producer.get(name, -1) >= i:
                    writer = ops[producer[name]].name
                    faults.append(Fault(f"ops[{i}]", f"op {op.name!r} reads {name!r}, which {writer!r} only writes "
                                        "later; the list must be in topological order"))
        for name in op.after:
            if position[name] >= i:
                faults.append(Fault(f"ops[{i}].after", f"op {op.name!r} stands before {name!r}, which it must follow"))
    if faults:
        cycle = find_cycle(ops)
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
