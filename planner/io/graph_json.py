"""``planner-graph/1``: a graph to and from plain JSON data."""

from __future__ import annotations

from typing import Any

import msgspec

from planner.errors import Fault, InputError
from planner.graph import Graph, Op, Placement, Tensor
from planner.graph_rules import graph_faults
from planner.io.fields import Fields, as_names
from planner.io.forms import GraphFile, OpForm, PlacementForm, TensorForm, members
from planner.units import parse_duration, parse_size

__all__ = ["FORMAT", "graph_from_dict", "graph_to_dict"]

FORMAT = "planner-graph/1"
#: Members whose faults leave all names and edges known, so that what is wrong with those can be said as well.
_VALUES = frozenset({"format", "size", "keep", "kind", "duration", "workspace", "stream", "recomputable", "flops",
                     "bytes", "dtype"})


def graph_to_dict(graph: Graph) -> dict[str, Any]:
    """Return the graph as plain data; fields at their default are left out."""
    return {"format": FORMAT, "name": graph.name, "tensors": [_tensor_out(t) for t in graph.tensors],
            "ops": [_op_out(o) for o in graph.ops]}


def _tensor_out(t: Tensor) -> dict[str, Any]:
    row: dict[str, Any] = {"name": t.name, "size": t.size}
    if t.home:
        row["home"] = t.home if isinstance(t.home, str) else list(t.home)
    if t.keep is not None:
        row["keep"] = t.keep
    if t.kind:
        row["kind"] = t.kind
    if t.alias_of is not None:
        row["alias_of"] = t.alias_of
    return row


def _op_out(op: Op) -> dict[str, Any]:
    row: dict[str, Any] = {"name": op.name}
    for key in ("reads", "writes", "updates", "after"):
        if getattr(op, key):
            row[key] = list(getattr(op, key))
    for key in ("duration", "flops", "bytes", "dtype"):
        if getattr(op, key) is not None:
            row[key] = getattr(op, key)
    if op.workspace:
        row["workspace"] = op.workspace
    if op.stream != "compute":
        row["stream"] = op.stream
    if not op.recomputable:
        row["recomputable"] = False
    if op.placements:
        row["placements"] = [{"at": dict(p.at), "duration": p.duration} for p in op.placements]
    return row


def graph_from_dict(data: object) -> Graph:
    """Read a graph.

    Raises
    ------
    InputError
        Lists every fault with its path.
    """
    try:
        form = msgspec.convert(data, GraphFile)
        return Graph(form.name, tuple(map(_tensor, form.tensors)), tuple(map(_op, form.ops)))
    except (msgspec.ValidationError, InputError):
        return _read_slowly(data)


def _tensor(row: TensorForm) -> Tensor:
    home = row.home if row.home is not None else ()
    return Tensor(row.name, row.size if type(row.size) is int else parse_size(row.size),
                  _distinct(home) if type(home) is tuple else "any", row.keep, row.kind, row.alias_of)


def _op(row: OpForm) -> Op:
    duration, space = row.duration, row.workspace
    placements = tuple(Placement(tuple(sorted(p.at.items())), parse_duration(p.duration)) for p in row.placements)
    return Op(
        row.name, _distinct(row.reads), _distinct(row.writes), _distinct(row.updates),
        duration if duration is None or type(duration) is int else parse_duration(duration),
        space if type(space) is int else parse_size(space), row.stream, row.recomputable, _distinct(row.after),
        placements, row.flops, row.bytes, row.dtype,
    )


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) < 2 else tuple(dict.fromkeys(names))


def _read_slowly(data: object) -> Graph:
    """Read member by member, which finds every fault and says what would do."""
    faults: list[Fault] = []
    top = Fields(data, "", members(GraphFile), faults)
    top.format(FORMAT)
    name = top.get("name", str, "graph")
    tensors = tuple(_tensor_in(row, f"tensors[{i}]", faults) for i, row in enumerate(top.get("tensors", list) or ()))
    ops = tuple(_op_in(row, f"ops[{i}]", faults) for i, row in enumerate(top.get("ops", list) or ()))
    if not faults:
        return Graph(name, tensors, ops)
    if all(f.where.rpartition(".")[2] in _VALUES for f in faults):
        known = {f.where for f in faults}
        faults += [f for f in graph_faults(tensors, ops) if f.where not in known]
    raise InputError(faults)


def _tensor_in(row: object, where: str, faults: list[Fault]) -> Tensor:
    f = Fields(row, where, members(TensorForm), faults)
    home = f.data.get("home", ())
    if home is None:
        home = ()
    elif home != "any" and home != ():
        home = as_names(home, f"{where}.home", faults)
    return Tensor(
        f.get("name", str) or "", f.quantity("size", parse_size), home, f.get("keep", (str, type(None)), None),
        f.get("kind", str, ""), f.get("alias_of", (str, type(None)), None),
    )


def _op_in(row: object, where: str, faults: list[Fault]) -> Op:
    f = Fields(row, where, members(OpForm), faults)
    data = f.data
    placements: tuple[Placement, ...] = ()
    if data.get("placements"):
        placements = tuple(_placement_in(p, f"{where}.placements[{j}]", faults)
                           for j, p in enumerate(f.get("placements", list, [])))
    return Op(
        f.get("name", str) or "", f.names("reads"), f.names("writes"), f.names("updates"),
        f.quantity("duration", parse_duration, None), f.quantity("workspace", parse_size, 0),
        f.get("stream", str, "compute"), f.get("recomputable", bool, True), f.names("after"), placements,
        _count(f, "flops"), _count(f, "bytes"), f.get("dtype", (str, type(None)), None),
    )


def _count(f: Fields, key: str) -> int | None:
    value = f.get(key, (int, type(None)), None)
    if value is not None and value < 0:
        f.fault(key, f"{value}: cannot be negative")
        return None
    return value  # type: ignore[no-any-return]


def _placement_in(row: object, where: str, faults: list[Fault]) -> Placement:
    f = Fields(row, where, members(PlacementForm), faults)
    at = f.get("at", dict) or {}
    if not all(isinstance(v, str) for v in at.values()):
        f.fault("at", "must map tensors to tiers")
        at = {}
    return Placement(tuple(sorted(at.items())), f.quantity("duration", parse_duration))
