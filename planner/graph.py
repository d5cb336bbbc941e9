"""Tensors, ops and the static dataflow graph, as a file states them.

A *tensor* is one storage unless ``alias_of`` names the storage it shares. The op list is the default order and must be
topological. `planner.lower` turns a graph into the form that all algorithms read (no aliases, no workspace).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from planner.errors import InputError

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["ANY", "Graph", "Op", "Placement", "Tensor"]

ANY: Literal["any"] = "any"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One storage, or another name of one.

    Attributes
    ----------
    name : str
        Unique; ``@`` and ``#`` are reserved.
    size : int
        Bytes; 0 is legal.
    home : tuple of str, or "any"
        Tiers that hold a valid copy before the first op; empty for produced tensors; ``"any"`` where the planner
        chooses the one tier on which it starts.
    keep : str, optional
        Tier where it must be when the program ends, ``"home"`` for where it started, None if it may be dropped.
    kind : str
        weight, gradient, optimizer state, activation, kv, input, output, workspace, …
    alias_of : str, optional
        Name of the tensor whose storage this one shares.
    """

    name: str
    size: int
    home: tuple[str, ...] | Literal["any"] = ()
    keep: str | None = None
    kind: str = ""
    alias_of: str | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Duration of an op when some operands are used in place on another tier.

    Attributes
    ----------
    at : tuple of (tensor, tier)
        Sorted by tensor.
    duration : int
        Nanoseconds.
    """

    at: tuple[tuple[str, str], ...]
    duration: int


@dataclass(frozen=True, slots=True)
class Op:
    """One kernel.

    Attributes
    ----------
    name : str
        Unique; ``@`` and ``#`` are reserved.
    reads, writes, updates : tuple of str
        Tensors read, created, and changed in place (an update is also a read).
    duration : int, optional
        Nanoseconds; None if the machine's roofline gives it from ``flops`` and ``bytes``.
    workspace : int
        Bytes used only while the op runs.
    stream : str
        Ops of one stream run one after the other.
    recomputable : bool
        False if a second run could give another result.
    after : tuple of str
        Ops that must have ended first although no tensor says so.
    placements : tuple of Placement
        Profiled durations with operands elsewhere.
    flops, bytes : int, optional
        Arithmetic operations, and bytes of device memory traffic.
    dtype : str, optional
        Names the compute speed of the machine.
    """

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    duration: int | None = None
    workspace: int = 0
    stream: str = "compute"
    recomputable: bool = True
    after: tuple[str, ...] = ()
    placements: tuple[Placement, ...] = ()
    flops: int | None = None
    bytes: int | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class Graph:
    """A validated static graph in its default order.

    Raises
    ------
    InputError
        Lists every fault: duplicate or unknown names, two producers, a cycle, an order that is not topological, …
    """

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]

    def __post_init__(self) -> None:
        from planner.graph_rules import graph_faults

        faults = graph_faults(self.tensors, self.ops)
        if faults:
            raise InputError(faults)

    @cached_property
    def tensor(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return {t.name: t for t in self.tensors}

    @cached_property
    def op(self) -> dict[str, Op]:
        """Ops by name."""
        return {o.name: o for o in self.ops}

    @cached_property
    def sha256(self) -> str:
        """Hash of the canonical text of this graph (defaults filled, keys sorted)."""
        from planner.io.canonical import canonical_bytes

        return hashlib.sha256(canonical_bytes(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the ``planner-graph/1`` object."""
        from planner.io.graph_json import graph_to_dict

        return graph_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Graph:
        """Read a ``planner-graph/1`` object.

        Raises
        ------
        InputError
            Lists every fault with its path.
        """
        from planner.io.graph_json import graph_from_dict

        return graph_from_dict(data)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return ops as nodes and tensors as edges (producer → reader, key = tensor)."""
        import networkx as nx

        view: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name)
        producer: dict[str, str] = {}
        for op in self.ops:
            view.add_node(op.name, duration=op.duration, stream=op.stream)
            for name in dict.fromkeys((*op.reads, *op.updates)):
                if name in producer:
                    view.add_edge(producer[name], op.name, key=name, size=self.tensor[name].size)
            for name in op.after:
                view.add_edge(name, op.name, key=f"after {name}", size=0)
            producer.update(dict.fromkeys((*op.writes, *op.updates), op.name))
        return view

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, tensors={len(self.tensors)}, ops={len(self.ops)})"


