"""A lowered problem as arrays of integers, for hot loops.

Names become indices in the order of ``problem.lowered``; tier 0 is the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.machine import copy_ns

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Csr", "ProblemArrays", "compiled", "problem_arrays"]

Ints = NDArray[np.int64]
_F = TypeVar("_F", bound=Callable[..., Any])
_COMPILED: dict[Callable[..., Any], Any] = {}


def compiled(function: _F) -> _F:
    """Return the machine-code form of a kernel, compiled on first use and cached on disk.

    Kernels are plain functions on arrays, so that small inputs can use them as they are and never import numba.
    """
    if function not in _COMPILED:
        import numba

        _COMPILED[function] = numba.njit(cache=True, nogil=True)(function)
    return _COMPILED[function]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Csr:
    """Lists of indices of different lengths: row i is ``item[start[i]:start[i + 1]]``."""

    start: Ints
    item: Ints

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> Csr:
        """Build from rows."""
        start: list[int] = [0]
        items: list[int] = []
        for row in rows:
            items.extend(row)
            start.append(len(items))
        return cls(np.array(start, np.int64), np.array(items, np.int64))

    def row(self, i: int) -> Ints:
        """Return row i."""
        return self.item[self.start[i]:self.start[i + 1]]


@dataclass(frozen=True)
class ProblemArrays:
    """Arrays of a lowered problem.

    Attributes
    ----------
    n_ops, n_tensors, n_tiers, n_links, n_channels, n_streams : int
    duration : (n_ops,) int64, ns
    stream : (n_ops,) int64
    reads, writes, updates, after : Csr over ops
    size : (n_tensors,) int64, bytes
    occupied : (n_tensors, n_tiers) int64, bytes
    link : (n_tiers, n_tiers) int64, index of the link or −1
    channel : (n_links,) int64
    copy_time : (n_tensors, n_links) int64, ns
    capacity : (n_tiers,) int64, bytes; 2^62 if unbounded
    home : (n_tensors, n_tiers) bool, a copy exists at the start ("any" rows are all False)
    op_index, tensor_index, tier_index, stream_names
    """

    n_ops: int
    n_tensors: int
    n_tiers: int
    n_links: int
    n_channels: int
    n_streams: int
    duration: Ints
    stream: Ints
    reads: Csr
    writes: Csr
    updates: Csr
    after: Csr
    size: Ints
    occupied: Ints
    link: Ints
    channel: Ints
    copy_time: Ints
    capacity: Ints
    home: NDArray[np.bool_]
    op_index: dict[str, int]
    tensor_index: dict[str, int]
    tier_index: dict[str, int]
    stream_names: tuple[str, ...]


def problem_arrays(problem: Problem) -> ProblemArrays:
    """Return the arrays of a problem (built once, kept on it)."""
    cached = problem.__dict__.get("_arrays")
    if cached is None:
        cached = _build(problem)
        problem.__dict__["_arrays"] = cached
    return cached


def _build(problem: Problem) -> ProblemArrays:
    low, machine = problem.lowered, problem.machine
    tensor_index = {t.name: i for i, t in enumerate(low.tensors)}
    op_index = {o.name: i for i, o in enumerate(low.ops)}
    tier_index = {t.name: i for i, t in enumerate(machine.tiers)}
    channels = {c: i for i, c in enumerate(machine.channels)}
    streams = {s: i for i, s in enumerate(dict.fromkeys(("compute", *(o.stream for o in low.ops))))}
    n_tiers = len(machine.tiers)
    link = np.full((n_tiers, n_tiers), -1, np.int64)
    for i, k in enumerate(machine.links):
        link[tier_index[k.src], tier_index[k.dst]] = i
    sizes = [t.size for t in low.tensors]
    distinct = {s: [copy_ns(s, k.bandwidth, k.latency) for k in machine.links] for s in set(sizes)}
    home = np.zeros((len(sizes), n_tiers), np.bool_)
    for i, t in enumerate(low.tensors):
        if isinstance(t.home, tuple):
            for h in t.home:
                home[i, tier_index[h]] = True
    return ProblemArrays(
        n_ops=len(low.ops), n_tensors=len(sizes), n_tiers=n_tiers, n_links=len(machine.links),
        n_channels=len(channels), n_streams=len(streams),
        duration=np.array([o.duration for o in low.ops], np.int64),
        stream=np.array([streams[o.stream] for o in low.ops], np.int64),
        reads=Csr.of([tensor_index[n] for n in o.reads] for o in low.ops),
        writes=Csr.of([tensor_index[n] for n in o.writes] for o in low.ops),
        updates=Csr.of([tensor_index[n] for n in o.updates] for o in low.ops),
        after=Csr.of([op_index[n] for n in o.after] for o in low.ops),
        size=np.array(sizes, np.int64),
        occupied=np.array([[k.occupied(s) for k in machine.tiers] for s in sizes], np.int64).reshape(len(sizes), n_tiers),
        link=link, channel=np.array([channels[k.channel] for k in machine.links], np.int64),
        copy_time=np.array([distinct[s] for s in sizes], np.int64).reshape(len(sizes), len(machine.links)),
        capacity=np.array([2**62 if problem.capacity[k.name] is None else problem.capacity[k.name]
                           for k in machine.tiers], np.int64),
        home=home, op_index=op_index, tensor_index=tensor_index, tier_index=tier_index, stream_names=tuple(streams),
    )
