"""``planner-graph/1``: a graph to and from plain JSON data."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from planner.errors import Fault, InputError
from planner.graph import Graph, Op, Placement, Tensor
from planner.io.fields import Fields, as_names
from planner.units import parse_duration, parse_size

__all__ = ["FORMAT", "graph_from_dict", "graph_to_dict"]

FORMAT = "planner-graph/1"
_TENSOR = tuple(f.name for f in fields(Tensor))
_OP = tuple(f.name for f in fields(Op))


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
    faults: list[Fault] = []
    top = Fields(data, "", ("format", "name", "tensors", "ops"), faults)
    top.format(FORMAT)
    name = top.get("name", str, "graph")
    tensors = tuple(_tensor_in(row, f"tensors[{i}]", faults) for i, row in enumerate(top.get("tensors", list) or ()))
    ops = tuple(_op_in(row, f"ops[{i}]", faults) for i, row in enumerate(top.get("ops", list) or ()))
    if faults:
        raise InputError(faults)
    return Graph(name, tensors, ops)


def _tensor_in(row: object, where: str, faults: list[Fault]) -> Tensor:
    f = Fields(row, where, _TENSOR, faults)
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
    f = Fields(row, where, _OP, faults)
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
    f = Fields(row, where, ("at", "duration"), faults)
    at = f.get("at", dict) or {}
    if not all(isinstance(v, str) for v in at.values()):
        f.fault("at", "must map tensors to tiers")
        at = {}
    return Placement(tuple(sorted(at.items())), f.quantity("duration", parse_duration))
