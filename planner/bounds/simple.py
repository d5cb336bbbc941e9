"""Bounds that need no solver: the op chain, and the bytes that must cross a channel.

* *compute* (`ideal_ns`): the longest path through the ops, by streams, data and ``after``; no memory or copy limits. Valid for
  every plan, whatever it may do (reruns only add).
* *loads*: a tensor that starts only on tiers other than the device and is read there must come over a link into the device.
  With one such link, all those copies in turn; and in a fixed order, for each op j: the copies of all that is needed by
  ops up to j on its stream come before it starts, and the ops from j on follow.
* *stores*: a tensor that an op produces or changes and that must end on another tier must leave over a link out of the
  device; the same argument backwards.

``reorder`` turns the prefix forms off; ``direct`` turns the loads and stores off (operands may stay where they are).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from planner.arrays import problem_arrays

if TYPE_CHECKING:
    from planner.graph import Op
    from planner.problem import Problem

__all__ = ["ideal_ns", "simple_bounds"]


def ideal_ns(problem: Problem) -> int:
    """Return the longest path through the ops without memory or copy limits, ns."""
    cached = problem.__dict__.get("_ideal_ns")
    if cached is None:
        cached = _longest_path(problem)
        problem.__dict__["_ideal_ns"] = cached
    return int(cached)


def _longest_path(problem: Problem) -> int:
    ended: dict[str, int] = {}
    made: dict[str, int] = {}
    readers: dict[str, int] = {}
    stream: dict[str, int] = {}
    fixed = not problem.rules.reorder
    last = 0
    for op in problem.lowered.ops:
        begin = stream.get(op.stream, 0) if fixed else 0
        for name in op.reads:
            begin = max(begin, made.get(name, 0))
        for name in op.after:
            begin = max(begin, ended[name])
        for name in op.updates:
            begin = max(begin, readers.get(name, 0))
        end = begin + _shortest(problem, op)
        ended[op.name] = end
        stream[op.stream] = max(end, stream.get(op.stream, 0))
        for name in (*op.writes, *op.updates):
            made[name] = end
        for name in op.reads:
            readers[name] = max(readers.get(name, 0), end)
        last = max(last, end)
    if not fixed:  # one stream runs one op at a time in any order
        totals: dict[str, int] = {}
        for op in problem.lowered.ops:
            totals[op.stream] = totals.get(op.stream, 0) + _shortest(problem, op)
        last = max([last, *totals.values()])
    return last


def _shortest(problem: Problem, op: Op) -> int:
    """Return the least time an op can take: in place, on the tier where that is fastest, if the rules allow it, ns."""
    least = op.duration or 0
    if not problem.rules.direct:
        return least
    compute = problem.machine.compute
    fastest = [t.direct_bandwidth for t in problem.machine.tiers[1:] if t.direct and t.direct_bandwidth]
    if compute and compute.memory_bandwidth and fastest and max(fastest) > compute.memory_bandwidth:
        gain = Fraction(1, compute.memory_bandwidth) - Fraction(1, max(fastest))
        touched = sum(problem.lowered.tensor[n].size for n in dict.fromkeys((*op.reads, *op.writes)))
        least = max(0, math.ceil(least - touched * 10**9 * gain))
    return min([least, *(p.duration for p in op.placements)])


def simple_bounds(problem: Problem) -> list[tuple[str, int]]:
    """Return (name, ns) of each bound; the largest is the one to use."""
    found = [("compute", ideal_ns(problem))]
    if problem.rules.direct and any(t.direct for t in problem.machine.tiers[1:]):
        return found
    if any(op.placements for op in problem.lowered.ops) and problem.rules.direct:
        return found
    a = problem_arrays(problem)
    device = problem.machine.device.name
    into = [i for i, k in enumerate(problem.machine.links) if k.dst == device]
    out = [i for i, k in enumerate(problem.machine.links) if k.src == device]
    low = problem.lowered
    away = np.array([isinstance(t.home, tuple) and bool(t.home) and device not in t.home for t in low.tensors], np.bool_)
    fixed = not problem.rules.reorder
    if len(into) == 1 and away.any():
        found.append(("loads", _loads(problem, away, a.copy_time[:, into[0]], fixed)))
    stored = np.array([_must_leave(t.keep, t.home, device) for t in low.tensors], np.bool_)
    if len(out) == 1 and stored.any():
        found.append(("stores", _stores(problem, stored, a.copy_time[:, out[0]], fixed)))
    return found


def _must_leave(keep: str | None, home: object, device: str) -> bool:
    if keep is None or keep == device or home == "any":
        return False
    if keep == "home":
        return isinstance(home, tuple) and device not in home
    return True


def _loads(problem: Problem, away: np.ndarray, time: np.ndarray, fixed: bool) -> int:
    a = problem_arrays(problem)
    best, seen = 0, np.zeros(a.n_tensors, np.bool_)
    for s in range(a.n_streams):
        ops = np.flatnonzero(a.stream == s)
        rest = int(a.duration[ops].sum())
        loaded = 0
        mine = np.zeros(a.n_tensors, np.bool_)
        for i in ops.tolist():
            for t in a.reads.row(i).tolist():
                if away[t] and not mine[t]:
                    mine[t] = True
                    loaded += int(time[t])
            if fixed:
                best = max(best, loaded + rest)
            rest -= int(a.duration[i])
        seen |= mine
    return max(best, int(time[seen].sum()))


def _stores(problem: Problem, stored: np.ndarray, time: np.ndarray, fixed: bool) -> int:
    a = problem_arrays(problem)
    first_change: dict[int, int] = {}
    last_change: dict[int, int] = {}
    for i in range(a.n_ops):
        for t in (*a.writes.row(i).tolist(), *a.updates.row(i).tolist()):
            if stored[t]:
                first_change.setdefault(t, i)
                last_change[t] = i
    best = sum(int(time[t]) for t in last_change)
    if fixed:
        for s in range(a.n_streams):
            done = 0
            waiting = sum(int(time[t]) for t, i in last_change.items() if a.stream[i] == s)
            at: dict[int, int] = {}
            for t, i in last_change.items():
                at[i] = at.get(i, 0) + int(time[t])
            for i in np.flatnonzero(a.stream == s).tolist():
                done += int(a.duration[i])
                if i in at:
                    best = max(best, done + waiting)
                    waiting -= at[i]
    return best
