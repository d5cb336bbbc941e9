"""Training graphs in Checkmate's shape (MLSys'20): nodes with a cost and a result each, and edges between them.

Every node is an op that may run again, with one result. Forward nodes come first, then the loss, then the backward.
Parameters are apart (Checkmate counts them as constant), so the memory of a plan is that of results only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from planner.errors import CaptureError, Fault, InputError
from planner.graph import Graph, Op, Tensor
from planner.io.files import read_json

__all__ = ["import_checkmate"]

_KEYS = ("n", "edges", "cost_flops", "mem_bytes")


def import_checkmate(path: str | os.PathLike[str], *, dtype: str | None = None) -> Graph:
    """Read a graph with members n, edges, cost_flops and mem_bytes, and, optionally, names, loss and model.

    Parameters
    ----------
    path : path
    dtype : str, optional
        Leave durations to the machine's roofline at this type's speed. By default an operation takes a nanosecond, so
        that durations add up to Checkmate's objective.

    Returns
    -------
    Graph
        Nodes of the forward and the loss keep their names, node 23 of the backward is called ``b23``. Nothing has to be
        there at the end.

    Raises
    ------
    CaptureError
        The file is not of this form; lists every fault.
    """
    try:
        data = read_json(path)
    except InputError as error:
        raise CaptureError(error.faults, error.source) from None
    faults = _faults(data)
    if faults:
        raise CaptureError(faults, str(path))
    count: int = data["n"]
    loss: int = data.get("loss", count)
    names = {int(k): str(v).replace("@", "_").replace("#", "_") for k, v in data.get("names", {}).items()}
    label = [names.get(i, f"n{i}" if i <= loss else f"b{i}") for i in range(count)]
    label = [name if label.count(name) == 1 else f"{name}.{i}" for i, name in enumerate(label)]
    reads: list[list[str]] = [[] for _ in range(count)]
    for a, b in sorted(set(map(tuple, data["edges"]))):
        reads[b].append(f"t.{label[a]}")
    tensors, ops = [], []
    for i, name in enumerate(label):
        cost, size = int(data["cost_flops"][str(i)]), int(data["mem_bytes"][str(i)])
        tensors.append(Tensor(f"t.{name}", size, (), None, "activation" if i <= loss else "gradient"))
        times: dict[str, Any] = {"duration": cost} if dtype is None else {"flops": cost, "dtype": dtype}
        ops.append(Op(name, tuple(reads[i]), (f"t.{name}",), **times))
    return Graph(str(data.get("model", Path(path).stem)), tuple(tensors), tuple(ops))


def _faults(data: object) -> list[Fault]:
    if not isinstance(data, dict):
        return [Fault("", "must be an object")]
    missing = [k for k in _KEYS if k not in data]
    if missing:
        return [Fault("", f"has no member {', '.join(missing)}")]
    count = data["n"]
    if not isinstance(count, int) or count < 1:
        return [Fault("n", f"{count!r}: must be a positive integer")]
    faults = []
    for key in ("cost_flops", "mem_bytes"):
        for i in range(count):
            value = data[key].get(str(i)) if isinstance(data[key], dict) else None
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                faults.append(Fault(f"{key}.{i}", f"{value!r}: must be a whole number, not negative"))
    for j, edge in enumerate(data["edges"]):
        if not (isinstance(edge, list) and len(edge) == 2 and all(isinstance(x, int) for x in edge)
                and 0 <= edge[0] < edge[1] < count):
            faults.append(Fault(f"edges[{j}]", f"{edge!r}: must be [from, to] with 0 ≤ from < to < {count}"))
    return faults
